#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs are private to who started them, and starting is a permission."""

import json

from harness import MANAGER, ROOT, RUN, call, command, data, get, host, main, push_watcher, run_to_end, start, start_run, wait_state, watch

SECRET = "tell-nobody-4711"


def list_ids(user):
    return [row[0] for row in data(call(ROOT, MANAGER, "ListRuns", "a{sv}", "0", user=user))[0]]


def said(result):
    assert result.status != 0
    return result.errors


def test_others_do_not_see():
    """bob neither lists, finds, introspects nor reads alice's run: it is to him as one that never was"""
    run, path, _, _ = run_to_end(command("echo", SECRET))
    never = run[:-4] + "0000"
    never_path = path[:-4] + "0000"
    assert run in list_ids("alice") and run in list_ids("root")
    assert run not in list_ids("bob")

    def as_never(make):
        mine = said(make(run, path)).replace(run, "ID").replace(path, "PATH")
        other = said(make(never, never_path)).replace(never, "ID").replace(never_path, "PATH")
        assert mine == other, (mine, other)

    as_never(lambda r, p: call(ROOT, MANAGER, "GetRun", "s", r, user="bob"))
    for member, *arguments in (("GetTimeline", "tu", "0", "10"), ("GetResult",), ("GetRequest",), ("Cancel",), ("Subscribe",)):
        as_never(lambda r, p, m=member, a=tuple(arguments): call(p, RUN, m, *a, user="bob"))
    as_never(lambda r, p: host("busctl", "get-property", "org.ephemeral1", p, RUN, "State", user="bob"))
    tree = host("busctl", "tree", "--list", "org.ephemeral1", user="bob").text
    assert path not in tree and path.rsplit("/", 1)[1] not in tree


def test_others_do_not_end():
    """bob cannot cancel alice's run; alice and root can"""
    for who in ("alice", "root"):
        _, path = start_run(command("sleep", "1000"))
        wait_state(path, ("running",))
        assert call(path, RUN, "Cancel", user="bob").status != 0
        assert get(path, RUN, "State", user="alice") == "running"
        data(call(path, RUN, "Cancel", user=who))
        wait_state(path, ("ended",), seconds=20)


def test_others_do_not_hear():
    """bob, who listens to every signal of the bus, hears nothing of alice's run"""
    push_watcher()
    listener = start("python3", "/usr/local/lib/watch.py", "listen", user="bob")
    assert listener.stdout.readline() == b"listening\n"
    signals = watch(command("echo", SECRET))
    assert any(s.get("member") == "Output" for s in signals)
    host("pkill", "-u", "bob", "-f", "watch.py listen", ok=True)
    heard = listener.stdout.read()
    listener.wait(timeout=20)
    assert heard == b"", heard
    assert host("busctl", "monitor", "org.ephemeral1", user="bob", timeout=20).status != 0


def test_not_a_member():
    """mallory, who is not in the group, is asked to authenticate, and nothing has been made"""
    before = list_ids("root")
    result = call(ROOT, MANAGER, "StartRun", "sa{sh}a{sv}", json.dumps(command("true")), "0", "0", user="mallory")
    assert result.status != 0
    assert "uthentication" in result.errors or "ermitted" in result.errors, result.errors
    assert list_ids("root") == before
    assert list_ids("mallory") == []


def test_guest_root_is_asked_for():
    """root inside the guest is a permission of its own, which the group does not give"""
    request = command("id", "-u", vm={"root": True})
    result = call(ROOT, MANAGER, "StartRun", "sa{sh}a{sv}", json.dumps(request), "0", "0", user="alice")
    assert result.status != 0 and ("uthentication" in result.errors or "ermitted" in result.errors), result.errors
    _, _, _, events = run_to_end(request, user="root")
    assert [e[3]["data"] for e in events if e[2] == "output"] == ["0\n"]


def test_without_polkit():
    """when polkit cannot be asked the answer is no"""
    host("systemctl", "mask", "--runtime", "--now", "polkit.service", ok=True)
    try:
        result = call(ROOT, MANAGER, "StartRun", "sa{sh}a{sv}", json.dumps(command("true")), "0", "0", user="alice")
        assert result.status != 0 and "ermitted" in result.errors, result.errors
    finally:
        host("systemctl", "unmask", "--runtime", "polkit.service", ok=True)
    run_to_end(command("true"))


main()

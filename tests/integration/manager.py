#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The manager as a good citizen: small, silent, gone when idle, and clear about a broken world."""

import time

from harness import (
    MANAGER,
    ROOT,
    call,
    command,
    configure,
    configure_back,
    data,
    get,
    host,
    leftovers,
    main,
    manager_pid,
    run_to_end,
    start_run,
    wait_for,
    watch,
)

QEMU = "/usr/bin/qemu-system-x86_64"


def refusal(request):
    """What StartRun answers to a request that it must refuse: (name of the error, text)."""
    (said,) = watch(request)
    return said["error"], said["message"]


def test_small():
    """idle after a run, it takes less than 12 MiB"""
    run_to_end(command("true"))
    rss = int(host("awk", "/^VmRSS/ { print $2 }", f"/proc/{manager_pid()}/status").text)
    assert rss < 12 * 1024, f"{rss} KiB"


def test_silent():
    """idle, it makes no system call at all"""
    get(ROOT, MANAGER, "Version")
    time.sleep(8)  # the last reply is over, and so are the two looks at whether it was read, three seconds apart
    said = host("timeout", "5", "strace", "-f", "-p", str(manager_pid()))
    # Attaching interrupts the wait for events, which is then begun anew: what counts is what comes after that.
    _, waiting, rest = said.errors.partition("epoll_wait(")
    calls = [line for line in rest.splitlines()[1:] if "(" in line and "futex" not in line]
    assert waiting and calls == [], calls


def test_leaves_when_idle():
    """it exits when idle, and the next call starts it again"""
    configure("[Manager]\nIdleSec=1\n")
    try:
        get(ROOT, MANAGER, "Version")
        wait_for(lambda: host("systemctl", "is-active", "ephemerald.service").text == "inactive", 20, "it left")
        assert host("systemctl", "show", "--property=Result", "--value", "ephemerald.service").text == "success"
        for _ in range(5):
            get(ROOT, MANAGER, "Version")
        _, _, result, _ = run_to_end(command("sleep", "2"))
        assert result["outcome"] == "succeeded"
    finally:
        configure_back()


def test_queue():
    """more runs than RunsMax= wait their turn, and all come to their end"""
    configure("[Manager]\nRunsMax=1\n")
    try:
        runs = [start_run(command("echo", str(i))) for i in range(3)]
        assert get(ROOT, MANAGER, "RunsActive") <= 1
        assert get(ROOT, MANAGER, "RunsQueued") >= 1
        for _, path in runs:
            wait_for(lambda p=path: get(p, "org.ephemeral1.Run", "State", user="alice") == "ended", 120, "it ended")
            assert get(path, "org.ephemeral1.Run", "Outcome", user="alice") == "succeeded"
    finally:
        configure_back()


def test_no_qemu():
    """without QEMU, with one too old, and again with the right one"""
    host("mv", QEMU, QEMU + ".kept", ok=True)
    try:
        name, text = refusal(command("true"))
        assert name.endswith(".NoQemu") and "qemu-system-x86" in text, (name, text)
        host("sh", "-c", f"printf '#!/bin/sh\\necho QEMU emulator version 5.2.0\\n' >{QEMU}; chmod 755 {QEMU}", ok=True)
        name, text = refusal(command("true"))
        assert name.endswith((".QemuTooOld", ".NoQemu")), (name, text)
    finally:
        host("mv", QEMU + ".kept", QEMU, ok=True)
    run_to_end(command("true"))


def test_no_image():
    """an image that is not there is named, with the way to get one"""
    name, text = refusal(command("true", vm={"image": "nowhere"}))
    assert name.endswith(".NoSuchImage") and "nowhere" in text, (name, text)


def test_bad_requests():
    """what is wrong with a request is said with its place, and nothing is made of it"""
    many = {f"N{i}": "x" for i in range(10000)}
    cases = [
        ('{"workflow": "command",\n "input": {', ("line 2",)),
        ("[]", ("object",)),
        (command("true", wrkflow="x"), ("wrkflow",)),
        ({"workflow": "nothing-like-it"}, ("nothing-like-it",)),
        (command("true", timeout_seconds=0), ("timeout_seconds",)),
        (command("true", timeout_seconds=-1), ("timeout_seconds",)),
        (command("true", timeout_seconds=10**12), ("timeout_seconds",)),
        (command("a\0b"), ("argv",)),
        (command("true", labels={"x": "y" * (2 << 20)}), ("",)),
        ({"workflow": "command", "input": {"argv": ["true"], "env": many}}, ("env",)),
        ({"workflow": "command", "input": {"argv": []}}, ("argv",)),
    ]
    for request, words in cases:
        name, text = refusal(request)
        assert name.startswith("org.ephemeral1.Error."), (name, text)
        assert name != "org.ephemeral1.Error.Internal", (name, text)
        assert all(word in text for word in words), (words, text)
        assert len(text) < 500 and "\n" not in text, text
    assert get(ROOT, MANAGER, "RunsActive") == 0
    assert leftovers() == []


def test_validate():
    """ValidateRequest answers with everything that was left out, and starts nothing"""
    before = data(call(ROOT, MANAGER, "ListRuns", "a{sv}", "0"))
    accepted = data(call(ROOT, MANAGER, "ValidateRequest", "s", '{"workflow":"command","input":{"argv":["true"]}}', user="alice"))[0]
    assert '"timeout_seconds"' in accepted and '"memory_mib"' in accepted
    assert data(call(ROOT, MANAGER, "ListRuns", "a{sv}", "0")) == before


main()

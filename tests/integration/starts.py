#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The three ways to a machine: booted, cloned, or waiting already. What is asked of a run holds for each, and nothing is shared."""

import os

from harness import (
    command,
    configure,
    configure_back,
    get,
    host,
    leftovers,
    main,
    manager_pid,
    output_of,
    qemu_pids,
    restart,
    run_to_end,
    start_run,
    unit_of,
    wait_for,
    wait_for_standby,
    wait_state,
)

CLONES = int(os.environ.get("EPHEMERAL_TEST_CLONES", "200"))
STANDBYS = "/sys/fs/cgroup/ephemeral.slice/ephemeral-standby-*.scope"

# What two machines could share if one were a copy of the other: one line, a word for each.
IDENTITY = r"""
import os, socket, uuid
libc = next(line.split("-")[0] for line in open("/proc/self/maps") if "libc.so" in line)
stack = next(line.split("-")[0] for line in open("/proc/self/maps") if "[stack]" in line)
print(socket.gethostname(), open("/proc/sys/kernel/random/boot_id").read().strip(), os.getrandom(16).hex(),
      open("/dev/urandom", "rb").read(16).hex(), uuid.uuid4(), open("/proc/sys/kernel/random/uuid").read().strip(),
      libc, stack)
"""
WORDS = ("host name", "boot id", "getrandom", "urandom", "uuid4", "kernel's uuid", "address of libc", "address of the stack")


def way_of(events):
    (started,) = [e[3] for e in events if e[2] == "vm.starting"]
    return started["path"]


def warm(*argv):
    """A run of a machine that waited."""
    wait_for_standby()
    return run_to_end(command(*argv))


def hash_of_template():
    """Of the memory that clones map, as the manager holds it, and of the state beside it."""
    script = 'for fd in /proc/"$1"/fd/*; do case $(readlink "$fd") in *memfd:ephemeral-*) sha256sum <"$fd";; esac; done'
    text = host("bash", "-c", script, "-", str(manager_pid()), ok=True).text
    assert len(text.splitlines()) == 2, text
    return text


def holds(way, said):
    """All that is asked of a run, whichever way its machine came."""
    run, _, result, events = said
    kinds = [e[2] for e in events]
    assert way_of(events) == way, events
    assert result["outcome"] == "succeeded" and output_of(events) == f"{run}\nlo\n", events
    assert kinds == sorted(kinds, key=kinds.index) and [e[0] for e in events] == list(range(1, len(events) + 1))
    assert kinds.index("isolation.verified") < kinds.index("command.started")
    (verified,) = [e[3] for e in events if e[2] == "isolation.verified"]
    assert verified["namespace"]["links"] == [{"name": "lo", "up": False}] and len(verified["devices"]) == 5, verified
    (gone,) = [e[3] for e in events if e[2] == "vm.destroyed"]
    assert (gone["unit"], gone["processes"], gone["cgroup"], gone["uid_free"]) == (unit_of(run), 0, "empty", True), gone
    wait_for(lambda: not leftovers(), 20, "nothing left of it")


def test_three_ways():
    """booted, cloned or waiting: each is on the timeline, and all that is asked of a run holds"""
    ask = ("sh", "-c", "hostname; ls /sys/class/net")
    configure("[Manager]\nTemplates=no\n")
    try:
        holds("cold", run_to_end(command(*ask)))
        configure("[Manager]\nStandby=0\n")
        run_to_end(command("true"))
        holds("clone", run_to_end(command(*ask)))
    finally:
        configure_back()
    run_to_end(command("true"))
    holds("standby", warm(*ask))


def test_one_that_waits():
    """a machine waits in a scope of its own, with the least weight and without work, and goes over into the run's"""
    run_to_end(command("true"))
    wait_for_standby()
    (unit,) = host("systemctl", "list-units", "--plain", "--no-legend", "ephemeral-standby-*").text.splitlines()
    unit = unit.split()[0]
    shown = host("systemctl", "show", "--property=CPUWeight,BindsTo,Slice", unit).text.split()
    assert sorted(shown) == ["BindsTo=ephemerald.service", "CPUWeight=1", "Slice=ephemeral.slice"], shown
    (pid,) = qemu_pids(STANDBYS)
    before, after = (
        host("sh", "-c", f"sleep {n}; awk '{{ print $14 + $15 }}' /proc/{pid}/stat").text for n in (1, 3)
    )
    assert before == after, f"it uses the processor: {before}, {after}"
    run, path = start_run(command("sleep", "1000"))
    wait_state(path, ("running",))
    assert pid in qemu_pids(f"/sys/fs/cgroup/ephemeral.slice/{unit_of(run)}")
    wait_for(lambda: host("systemctl", "is-active", unit).text == "inactive", 20, f"{unit} is over")
    host("systemctl", "stop", unit_of(run), ok=True)
    wait_state(path, ("ended",))
    assert host("test", "-e", f"/proc/{pid}").status != 0, "the machine has outlived its run"


def test_killed_while_waiting():
    """a machine that dies or is stopped while it waits costs the next run nothing but time"""
    for kill in ("kill -9 $1", "systemctl stop 'ephemeral-standby-*.scope'"):
        run_to_end(command("true"))
        wait_for_standby()
        host("sh", "-c", kill, "-", *qemu_pids(STANDBYS), ok=True)
        wait_for(lambda: get("/org/ephemeral1", "org.ephemeral1.Manager", "StandbyReady") == 0, 20, "it is gone")
        _, _, result, events = run_to_end(command("true"))
        assert result["outcome"] == "succeeded" and way_of(events) == "clone", events


def test_stopped_while_waiting():
    """what waits ends with the service"""
    run_to_end(command("true"))
    wait_for_standby()
    restart()
    assert host("bash", "-c", f"ls -d {STANDBYS}").status != 0 and host("pgrep", "qemu-system").status != 0


def test_clones_differ():
    """copies of one machine share no name, no random number and no address"""
    one = "ephemeralctl run --quiet -- python3 -c \"$1\""
    script = f"seq {CLONES} | xargs -P 2 -I N sh -c '{one}' - \"$1\""
    said = host("bash", "-c", script, "-", IDENTITY, user="alice", timeout=900)
    lines = [line.split() for line in said.text.splitlines()]
    assert len(lines) == CLONES and all(len(line) == len(WORDS) for line in lines), said.text[-2000:]
    for word, values in zip(WORDS, zip(*lines)):
        assert len(set(values)) == CLONES, f"{word}: {CLONES - len(set(values))} of {CLONES} are another's as well"


def test_template_is_untouched():
    """a guest that writes over its memory changes nothing for the next one"""
    run_to_end(command("true"))
    before = hash_of_template()
    fill = "b = bytearray(90 << 20)\nfor i in range(0, len(b), 512): b[i:i + 512] = b'\\xee' * 512"
    for n in range(2):
        request = command("sh", "-ec", f"head -c 40000000 /dev/zero >/var/tmp/x; python3 -c \"{fill}\"", vm={"root": n == 1})
        _, _, result, events = run_to_end(request, user="root")
        assert result["outcome"] == "succeeded" and result["stderr_bytes"] == 0, events
    assert hash_of_template() == before
    wait_for_standby()
    _, _, _, events = run_to_end(command("sh", "-c", "ls /var/tmp | wc -l"))
    assert output_of(events) == "0\n", events


def test_another_image():
    """an image that takes the place of another is what the next run gets, also where a machine of the old one waits"""
    run_to_end(command("true"))
    wait_for_standby()
    place = "/etc/ephemeral/images"
    image = host("sh", "-c", "ls -d /var/lib/ephemeral/images/default /usr/lib/ephemeral/images/default 2>/dev/null").text.split()[0]
    try:
        host("sh", "-c", f"mkdir -p {place} && cp -rL {image} {place}/default", ok=True)
        _, _, result, events = run_to_end(command("true"))
        assert result["outcome"] == "succeeded" and way_of(events) == "clone", events
        assert "template.building" in [e[2] for e in events], events
        wait_for_standby()
        _, _, _, events = run_to_end(command("true"))
        assert way_of(events) == "standby" and len(qemu_pids(STANDBYS)) <= 1
    finally:
        host("rm", "-rf", f"{place}/default", ok=True)
    _, _, result, _ = run_to_end(command("true"))
    assert result["outcome"] == "succeeded"


def test_template_by_hand():
    """templates are listed, dropped and built by those whom polkit lets, and by a unit"""
    for words in (["drop"], ["build"]):
        said = host("ephemeralctl", "template", *words, user="alice")
        assert said.status == 126 and "authentication" in said.errors, said.errors
    host("ephemeralctl", "template", "drop", ok=True)
    assert host("ephemeralctl", "template", user="alice").text.splitlines()[1:] == []
    wait_for(lambda: host("pgrep", "qemu-system").status != 0, 20, "no machine of it waits")
    host("systemctl", "start", "ephemeral-template.service", ok=True)
    (line,) = host("ephemeralctl", "template", "list", user="alice").text.splitlines()[1:]
    assert line.split()[0] == "default" and "memory" in line, line
    wait_for_standby()
    _, _, _, events = run_to_end(command("true"))
    assert way_of(events) == "standby" and events[1][2] == "vm.starting", events


main()

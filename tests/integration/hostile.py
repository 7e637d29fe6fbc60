#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What breaks around a run, and what a run tries to break. Each run ends once, with its output and its end told, and leaves nothing."""

import json
import os
import time

from harness import (
    command,
    get,
    host,
    journal,
    leftovers,
    main,
    manager_pid,
    output_of,
    qemu_pids,
    result_of,
    run_to_end,
    start_run,
    timeline_of,
    unit_of,
    wait_for,
    wait_state,
)

BEFORE_AND_AFTER = ("sh", "-c", "echo before; sleep 4; echo after; exit 7")


def running(*argv, **keys):
    """A run whose command has begun, and has written."""
    run, path = start_run(command(*argv, **keys))
    wait_state(path, ("running",))
    wait_for(lambda: output_of(timeline_of(path)), 20, "its first output")
    return run, path


def ended(path, seconds=60):
    """The result and the timeline of a run, whose end leaves nothing."""
    wait_state(path, ("ended",), seconds=seconds)
    events = timeline_of(path)
    kinds = [e[2] for e in events]
    assert [e[0] for e in events] == list(range(1, len(events) + 1)), "a gap"
    assert kinds.count("run.result") == 1 and kinds[-1] == "vm.destroyed", kinds
    wait_for(lambda: not leftovers(), 20, "nothing left of it")
    return result_of(path), events


def the_qemu(run):
    """The process id of its QEMU."""
    (pid,) = qemu_pids(f"/sys/fs/cgroup/ephemeral.slice/{unit_of(run)}")
    return pid


def survives(fault):
    run, path = running(*BEFORE_AND_AFTER)
    host("sh", "-c", fault, ok=True)
    result, events = ended(path)
    assert result["outcome"] == "failed" and result["exit_status"] == 7, result
    assert output_of(events) == "before\nafter\n", events
    return run, events


def test_journald():
    """journald is restarted or killed in the middle of a run: the run goes on, its timeline is whole, later events are in the journal"""
    for fault in ("systemctl restart systemd-journald", "systemctl kill --signal=KILL systemd-journald; sleep 1"):
        run, events = survives(fault)
        wait_for(lambda r=run: journal(r), 20, "its entries")
        kept = [entry["EPHEMERAL_EVENT"] for entry in journal(run)]
        assert "run.result" in kept and "vm.destroyed" in kept, kept
        assert len(kept) <= len(events), "an entry twice"


def test_reload():
    """PID 1 reloads and executes itself anew in the middle of a run: its processes stay in the scope, and the scope's clock still ends it"""
    survives("systemctl daemon-reload")
    survives("systemctl daemon-reexec")
    _, path = running("sh", "-c", "echo x; sleep 1000", timeout_seconds=5)
    host("systemctl", "daemon-reexec", ok=True)
    result, _ = ended(path)
    assert result["outcome"] == "timed-out", result


def test_reload_while_starting():
    """reloads while many runs start: each is in its scope, or is told as failed, and none is lost"""
    runs = []
    for _ in range(6):
        runs.append(start_run(command("echo", "x")))
        host("systemctl", "daemon-reload", ok=True)
    for _, path in runs:
        wait_state(path, ("ended",))
        result = result_of(path)
        assert result["outcome"] == "succeeded", (result, timeline_of(path))
    wait_for(lambda: not leftovers(), 20, "nothing left of them")


def test_qemu_stopped():
    """a QEMU that is stopped (SIGSTOP) is ended by the clock of its scope all the same"""
    run, path = running("sh", "-c", "echo x; sleep 1000", timeout_seconds=6)
    pid = the_qemu(run)
    host("kill", "-STOP", pid, ok=True)
    result, events = ended(path)
    assert result["outcome"] == "timed-out" and output_of(events) == "x\n", events


def test_qemu_goes_on():
    """a QEMU that was stopped, or frozen with its scope, goes on where it was, as after a host was suspended"""
    run, path = running(*BEFORE_AND_AFTER)
    pid = the_qemu(run)
    for _ in range(5):
        host("sh", "-c", f"kill -STOP {pid}; sleep 0.2; kill -CONT {pid}; sleep 0.1", ok=True)
    host("sh", "-c", f"systemctl freeze {unit_of(run)} && sleep 0.5 && systemctl thaw {unit_of(run)}")
    result, events = ended(path)
    assert result["outcome"] == "failed" and result["exit_status"] == 7 and output_of(events) == "before\nafter\n", events


def test_qemu_killed():
    """a QEMU that is killed: the run has failed for a reason of ours, which names the signal, and keeps its output"""
    run, path = running("sh", "-c", "echo x; sleep 1000")
    pid = the_qemu(run)
    host("kill", "-KILL", pid, ok=True)  # others do not reach the first process of a namespace from outside
    result, events = ended(path)
    assert result["outcome"] == "vm-failed" and output_of(events) == "x\n", events
    assert "SIGKILL" in result["reason"], result


def test_outer_half_killed():
    """the process that watches QEMU is killed: QEMU dies with it"""
    run, path = running("sh", "-c", "echo x; sleep 1000")
    pid = the_qemu(run)
    parent = host("awk", "/^PPid:/ { print $2 }", f"/proc/{pid}/status", ok=True).text
    host("kill", "-KILL", parent, ok=True)
    result, _ = ended(path)
    assert result["outcome"] == "vm-failed", result


def test_guest_root_and_its_disk():
    """root in the guest cannot write to the image, whatever it sets"""
    image = host("sh", "-c", "ls /var/lib/ephemeral/images/default/root.erofs /usr/lib/ephemeral/images/default/root.erofs 2>/dev/null").text.split()[0]
    before = host("sha256sum", image, ok=True).text
    script = r"""
import errno, fcntl, mmap, os, struct
fd = os.open("/dev/vda", os.O_RDWR | os.O_DIRECT) if os.access("/dev/vda", os.W_OK) else os.open("/dev/vda", os.O_RDONLY)
try:
    fcntl.ioctl(fd, 0x125D, struct.pack("i", 0))  # BLKROSET
    print("BLKROSET done")
except OSError as e:
    print("BLKROSET", errno.errorcode[e.errno])
page = mmap.mmap(-1, 4096)
page.write(b"evil" * 1024)
for flags in (os.O_RDWR, os.O_RDWR | os.O_DIRECT):
    try:
        f = os.open("/dev/vda", flags)
        os.pwritev(f, [page], 0)
        os.fsync(f)
        print("written")
    except OSError as e:
        print("write", errno.errorcode[e.errno])
"""
    _, _, result, events = run_to_end(command("python3", "-c", script, vm={"root": True}), user="root")
    said = output_of(events)
    assert result["outcome"] == "succeeded" and said.count("write ") == 2 and "written" not in said, events
    assert host("sha256sum", image, ok=True).text == before


def test_strings():
    """whatever is in a command's words goes to the guest and nowhere else, exactly as it is"""
    words = ["--", "$(reboot)", "%n%s", "a\nb", "\x1b]52;c;aGk=\x07", "../../etc/passwd", "x" * 100000, "\u202e", "-rf", ""]
    run, _, result, events = run_to_end(command("python3", "-c", "import sys; sys.stdout.write(repr(sys.argv[1:]))", *words))
    assert result["outcome"] == "succeeded", result
    assert output_of(events) == repr(words), output_of(events)[:300]
    (started,) = [e[3] for e in events if e[2] == "command.started"]
    assert started["argv"][3:] == words
    raw = host("journalctl", "--no-pager", "--output=cat", f"EPHEMERAL_RUN={run}").text
    assert "\x1b" not in raw and "\u202e" not in raw, "control characters in the journal's messages"


def all_runs():
    return [json.loads(line)["id"] for line in host("ephemeralctl", "list", "--all", "--json", ok=True).text.splitlines()]


def test_babble():
    """callers who send nonsense to every method get an error each, start nothing and end nobody: the same service goes on"""
    run_to_end(command("true"))
    before, runs = manager_pid(), all_runs()
    with open(os.path.join(os.path.dirname(os.path.realpath(__file__)), "babble.py"), "rb") as f:
        host("sh", "-c", "cat >/usr/local/lib/babble.py", stdin=f.read(), ok=True)
    seed = int.from_bytes(os.urandom(4))
    for user in ("root", "alice", "mallory"):
        said = host("python3", "/usr/local/lib/babble.py", str(seed), "1500", user=user, timeout=300, ok=True)
        counts = json.loads(said.text)
        assert not {"org.freedesktop.DBus.Error.NoReply", "org.freedesktop.DBus.Error.ServiceUnknown"} & counts.keys(), counts
        assert sum(counts.values()) == 1500 and counts["answered"] < 1000, counts
    assert manager_pid() == before, "it has ended meanwhile"
    assert all_runs() == runs, "a run was started"
    _, _, result, _ = run_to_end(command("true"))
    assert result["outcome"] == "succeeded", result


def test_bus_goes_away():
    """the bus is restarted: the service is there for the next call, and nothing of before is left"""
    _, path = running("sh", "-c", "echo x; sleep 20", timeout_seconds=15)
    del path
    host("sh", "-c", "systemctl restart dbus.service", ok=True)
    time.sleep(1)
    wait_for(lambda: host("busctl", "call", "org.ephemeral1", "/org/ephemeral1", "org.freedesktop.DBus.Peer", "Ping").status == 0, 60, "the service")
    wait_for(lambda: not leftovers(), 60, "nothing left of it")
    _, _, result, _ = run_to_end(command("true"))
    assert result["outcome"] == "succeeded", result
    assert get("/org/ephemeral1", "org.ephemeral1.Manager", "RunsActive") == 0


main()

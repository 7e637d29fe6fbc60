#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The limits of a run are systemd's, and hold without us."""

import time

from harness import command, host, journal, leftovers, main, manager_pid, result_of, start_run, timeline_of, unit_of, wait_for, wait_state

TIMEOUT = 3


def show(unit, *names):
    text = host("systemctl", "show", *(f"--property={name}" for name in names), unit, ok=True).text
    return dict(line.split("=", 1) for line in text.splitlines())


def is_gone(unit):
    return host("systemctl", "is-active", unit).text == "inactive"


def timed_out(unit):
    """Did systemd itself say that the unit had run for too long?"""
    host("journalctl", "--sync")
    text = host("journalctl", "--no-pager", "--output=cat", "_PID=1", f"UNIT={unit}").text
    return "Result 'timeout'" in text or "result 'timeout'" in text


def test_scope():
    """a run sits in a scope of its own in ephemeral.slice that carries every limit"""
    run, path = start_run(command("sleep", "1000", timeout_seconds=500, vm={"vcpus": 1, "memory_mib": 256}))
    wait_state(path, ("running",))
    p = show(
        unit_of(run),
        *("Slice", "RuntimeMaxUSec", "MemoryMax", "MemorySwapMax", "TasksMax", "CPUQuotaPerSecUSec", "DevicePolicy"),
        *("IPAddressDeny", "OOMPolicy", "CollectMode", "PartOf", "Description", "ActiveState"),
    )
    host("systemctl", "stop", unit_of(run), ok=True)
    assert p["ActiveState"] == "active" and p["Slice"] == "ephemeral.slice", p
    assert p["RuntimeMaxUSec"] == "8min 20s", p
    assert 256 << 20 < int(p["MemoryMax"]) < 1 << 30 and p["MemorySwapMax"] == "0", p
    assert 16 <= int(p["TasksMax"]) <= 256 and p["CPUQuotaPerSecUSec"] != "infinity", p
    assert p["DevicePolicy"] == "strict" and "0.0.0.0/0" in p["IPAddressDeny"] and "::/0" in p["IPAddressDeny"], p
    assert p["OOMPolicy"] == "kill" and p["CollectMode"] == "inactive-or-failed" and p["PartOf"] == "ephemerald.service", p
    assert "command" in p["Description"] and run in p["Description"], p


def test_timeout():
    """a run that lasts too long is ended by systemd, and told so"""
    run, path = start_run(command("sleep", "1000", timeout_seconds=TIMEOUT))
    wait_state(path, ("ended",), seconds=60)
    assert result_of(path)["outcome"] == "timed-out"
    assert "timeout.reached" in [e[2] for e in timeline_of(path)]
    assert timed_out(unit_of(run))


def test_timeout_without_manager():
    """with ephemerald killed and kept from coming back, a run still ends in time, and nothing is left"""
    run, _ = start_run(command("sleep", "1000", timeout_seconds=TIMEOUT))
    unit = unit_of(run)
    wait_for(lambda: host("systemctl", "is-active", unit).text == "active", 20, "the scope is active")
    started = time.monotonic()
    host("systemctl", "mask", "--runtime", "ephemerald.service", ok=True)
    try:
        host("kill", "-9", str(manager_pid()), ok=True)
        wait_for(lambda: is_gone(unit), TIMEOUT + 10, "the scope is gone")
        assert time.monotonic() - started < TIMEOUT + 10
        assert host("systemctl", "is-active", "ephemerald.service").text != "active"
        assert timed_out(unit)
        processes = [line for line in leftovers() if not line.startswith("file")]
        assert processes == [], processes
    finally:
        host("systemctl", "unmask", "--runtime", "ephemerald.service", ok=True)
    # The next manager clears what the killed one could not.
    host("busctl", "--timeout=30", "call", "org.ephemeral1", "/org/ephemeral1", "org.freedesktop.DBus.Peer", "Ping", ok=True)
    wait_for(lambda: not leftovers(), 20, "nothing left of the run")


def test_stop_of_the_service():
    """an explicit stop of the service ends its runs"""
    run, path = start_run(command("sleep", "1000"))
    wait_state(path, ("running",))
    host("systemctl", "stop", "ephemerald.service", ok=True)
    wait_for(lambda: is_gone(unit_of(run)), 20, "the scope is gone")
    wait_for(lambda: not leftovers(), 20, "nothing left of the run")
    kinds = [entry.get("EPHEMERAL_EVENT") for entry in journal(run)]
    assert "request.accepted" in kinds, kinds


main()

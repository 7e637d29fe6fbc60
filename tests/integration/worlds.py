#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A world that is not as it should be costs a caller one clear sentence that names the cure, and the service nothing."""

import json

from harness import MANAGER, ROOT, Skip, get, host, main, restart, wait_for

QEMU = "/usr/bin/qemu-system-x86_64"


def run(*options, user="alice", status=125):
    """Runs `true`; answers what was said of it on standard error."""
    said = host("ephemeralctl", "run", "--quiet", *options, "--", "true", user=user, timeout=180)
    assert said.status == status, said.errors
    return said.errors


def sentence(text, *words):
    """One line that holds all the words."""
    assert len(text.splitlines()) == 1, text
    for word in words:
        assert word in text, (word, text)


def with_file(command, text):
    """Runs a command of alice's with the name of a file that holds this text behind it."""
    return host("sh", "-c", f'f=$(mktemp); cat >"$f"; {command} "$f"; s=$?; rm "$f"; exit $s', user="alice", stdin=text.encode())


def is_well():
    run(status=0)


def test_no_qemu():
    """without QEMU a run is refused, and the package to install is named; with it again, runs go on"""
    host("mv", QEMU, QEMU + ".away", ok=True)
    try:
        sentence(run(), QEMU, "install", "qemu-system-x86")
    finally:
        host("mv", QEMU + ".away", QEMU, ok=True)
    is_well()


def test_old_qemu():
    """a QEMU that is too old is told so, with the version that would do"""
    host("mv", QEMU, QEMU + ".away", ok=True)
    try:
        host("sh", "-c", f"printf '#!/bin/sh\\necho QEMU emulator version 5.2.0\\n' >{QEMU}; chmod 755 {QEMU}", ok=True)
        sentence(run(), "5.2", "7.2")
    finally:
        host("mv", QEMU + ".away", QEMU, ok=True)
    is_well()


def test_no_image():
    """an image that is not there: how to build one"""
    sentence(run("--image", "none-such"), "none-such", "ephemeralctl image build")


def test_broken_image():
    """an image with a kernel that was cut short: which file, and what is wrong with it"""
    place = "/var/lib/ephemeral/images/broken"
    host("sh", "-c", f"mkdir -p {place}; cp -r /usr/lib/ephemeral/images/default/. {place}/; "
         f"sed -i 's/\"name\": *\"default\"/\"name\": \"broken\"/' {place}/manifest.json; truncate -s 1000 {place}/kernel", ok=True)
    try:
        sentence(run("--image", "broken"), f"{place}/kernel")
        host("sh", "-c", f"rm {place}/kernel; mkfifo {place}/kernel", ok=True)
        sentence(run("--image", "broken"), f"{place}/kernel")
        host("sh", "-c", f"rm {place}/kernel; cp /usr/lib/ephemeral/images/default/kernel {place}/; chmod 666 {place}/kernel", ok=True)
        sentence(run("--image", "broken"), f"{place}/kernel")
    finally:
        host("rm", "-r", place, ok=True)


def test_memory_short():
    """more memory than this host gives to all runs together is refused with both numbers"""
    document = "/usr/share/ephemeral/workflows/huge.json"
    host("sh", "-c", f"sed 's/\"name\": *\"command\"/\"name\": \"huge\"/; s/\"memory_mib\": *4096/\"memory_mib\": 1048576/' "
         f"/usr/share/ephemeral/workflows/command.json >{document}", ok=True)
    restart()
    try:
        request = {"workflow": "huge", "input": {"argv": ["true"]}, "vm": {"memory_mib": 1048576}}
        said = with_file("ephemeralctl run --quiet --request", json.dumps(request))
        assert said.status == 125, said.errors
        sentence(said.errors, "1048576 MiB", "memory_mib")
    finally:
        host("rm", document, ok=True)
        restart()


def test_disk_full():
    """with no room left under /run a run fails with that reason, and the next one is well again"""
    restart()
    host("mount", "-t", "tmpfs", "-o", "nr_inodes=1", "none", "/run/ephemeral/uid", ok=True)
    try:
        sentence(run(), "No space left on device")
    finally:
        restart()
        host("umount", "/run/ephemeral/uid", ok=True)
    is_well()


def test_no_bus():
    """without a bus both programs say so in one sentence"""
    away = "DBUS_SYSTEM_BUS_ADDRESS=unix:path=/none-such"
    said = host("env", away, "ephemeralctl", "list", user="alice")
    assert said.status == 125
    sentence(said.errors, "bus")
    said = host("env", away, "/usr/lib/ephemeral/ephemerald")
    assert said.status == 1


def test_bad_requests():
    """what is wrong in a request is told with its place and what would be right"""
    argv = {"argv": ["true"]}
    cases = (
        ('{\n  "workflow": "command"\n  "input": {}\n}', ("line 3, column",)),
        (json.dumps({"workflow": "command", "input": argv, "tiemout_seconds": 3}), ("tiemout_seconds", "timeout_seconds")),
        (json.dumps({"workflow": "command", "input": argv, "timeout_seconds": 0}), ("timeout_seconds", "1")),
        (json.dumps({"workflow": "command", "input": argv, "timeout_seconds": -5}), ("timeout_seconds", "1")),
        (json.dumps({"workflow": "command", "input": argv, "timeout_seconds": 10**12}), ("timeout_seconds", "3600")),
        (json.dumps({"workflow": "command", "input": argv, "timeout_seconds": 10**30}), ("line 1, column", "64 bits")),
        (json.dumps({"workflow": "command", "input": argv, "timeout_seconds": 1.5}), ("timeout_seconds",)),
        (json.dumps({"workflow": "command", "input": {"argv": ["a\0b"]}}), ("argv", "NUL")),
        (json.dumps({"workflow": "command", "input": {**argv, "env": {f"V{i}": "x" for i in range(10000)}}}), ("env", "1024")),
        (json.dumps({"workflow": "command", "input": {"script": "x" * (2 << 20)}}), ("1048576",)),
        (json.dumps({"workflow": "commando", "input": argv}), ("commando", "command")),
    )
    for text, words in cases:
        said = with_file("ephemeralctl validate", text)
        assert said.status == 126, (said.status, said.errors)
        sentence(said.errors, *words)


def test_kvm_that_does_not_work():
    """/dev/kvm that opens but boots nothing: the run succeeds all the same, and the reason is shown"""
    if host("test", "-c", "/dev/kvm").status != 0:
        raise Skip("there is no /dev/kvm here")
    # The host's node is the machine's own: one of ours takes its place.
    host("sh", "-c", "getent group kvm >/dev/null || groupadd --system kvm; umount /dev/kvm; rm /dev/kvm; mknod -m 660 /dev/kvm c 10 232; "
         "chgrp kvm /dev/kvm", ok=True)
    restart()
    try:
        run(status=0)
        accelerator, reason = (get(ROOT, MANAGER, name) for name in ("Accelerator", "AcceleratorReason"))
        if accelerator == "kvm":
            raise Skip("KVM works on this machine: there is nothing to fall back from")
        assert "/dev/kvm opens, but a guest does not boot with it" in reason, reason
        # The next manager does not try again.
        restart()
        assert get(ROOT, MANAGER, "AcceleratorReason") == reason
    finally:
        host("sh", "-c", "rm -f /dev/kvm /run/ephemeral/kvm-does-not-work", ok=True)
        restart()


def test_idle():
    """a manager with nothing to do sleeps, takes less than 12 MiB, and leaves"""
    host("busctl", "call", "org.ephemeral1", ROOT, "org.freedesktop.DBus.Peer", "Ping", ok=True)
    pid = host("systemctl", "show", "--property=MainPID", "--value", "ephemerald.service", ok=True).text
    rss = int(host("awk", "/^VmRSS/ { print $2 }", f"/proc/{pid}/status", ok=True).text)
    assert rss < 12 * 1024, rss
    before = host("awk", "{ print $14 + $15 }", f"/proc/{pid}/stat", ok=True).text
    wait_for(lambda: host("test", "-e", f"/proc/{pid}").status != 0, 60, "the manager has left")
    used = host("journalctl", "--no-pager", "--output=cat", "-u", "ephemerald.service", "-n", "3").text
    assert "Deactivated successfully" in used, (before, used)


main()

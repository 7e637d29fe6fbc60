#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What code in a run can reach: nothing but itself."""

import os

from harness import command, host, in_order, main, output_of, run_to_end, start_run, unit_of, wait_state

DEMO = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "host", "demo.sh")


def test_no_network():
    """inside there is only lo, and every way out fails at once with the kernel's own error"""
    with open(DEMO, encoding="utf-8") as f:
        script = f.read()
    request = {"workflow": "command", "input": {"script": script, "interpreter": ["/bin/sh"]}}
    _, _, result, events = run_to_end(request)
    text = output_of(events)
    assert result["outcome"] == "succeeded", result
    assert "Network interfaces: lo\n" in text
    assert text.count("ENETUNREACH (Network is unreachable)") == 2 and "EAI_" in text


def test_three_answers():
    """isolation.verified carries what the namespace, QEMU and the guest themselves say"""
    _, _, _, events = run_to_end(command("true"))
    (told,) = [e[3] for e in events if e[2] == "isolation.verified"]
    assert told["namespace"] == {"links": [{"name": "lo", "up": False}], "addresses": 0, "routes": 0}, told
    assert [link["name"] for link in told["guest"]["links"]] == ["lo"], told
    assert told["devices"] and not [d for d in told["devices"] if "net" in d], told
    assert told["uid"] >= 0x6ED00000 and told["hardware_virtualization"] == (told["accelerator"] == "kvm"), told
    assert in_order(("isolation.verified", "vm.ready", "command.started"), [e[2] for e in events])


def test_jail():
    """QEMU runs in the run's scope as a uid of its own, without capabilities, alone in every namespace"""
    run, path = start_run(command("sleep", "1000"))
    wait_state(path, ("running",))
    script = r"""
        cgroup=$(systemctl show --property=ControlGroup --value "$1")
        for pid in $(cat "/sys/fs/cgroup$cgroup/cgroup.procs"); do
            [ "$(cat "/proc/$pid/comm")" != ephemeral-jail ] || continue
            grep -E '^(Uid|Gid|Groups|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp):' "/proc/$pid/status"
            for ns in mnt pid net ipc uts cgroup; do
                [ "$(readlink "/proc/$pid/ns/$ns")" != "$(readlink "/proc/1/ns/$ns")" ] || echo "shared: $ns"
            done
            echo "devices: $(ls "/proc/$pid/root/dev" | xargs)"
            tr '\0' '\n' <"/proc/$pid/environ" | sed 's/^/environment: /'
        done
    """
    text = host("bash", "-c", script, "-", unit_of(run), ok=True).text
    host("systemctl", "stop", unit_of(run), ok=True)
    values = dict(line.split(":", 1) for line in text.splitlines() if line and line[0].isupper())
    uids = set(values["Uid"].split())
    assert len(uids) == 1 and int(uids.pop()) >= 0x6ED00000, values
    assert values["Groups"].strip() == "", values
    for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(values[name], 16) == 0, values
    assert values["NoNewPrivs"].strip() == "1" and values["Seccomp"].strip() == "2", values
    assert "shared:" not in text and "environment:" not in text, text
    assert text.split("devices:")[1].split("\n")[0].strip() in ("", "kvm"), text


def test_two_runs_differ():
    """two runs at once have different uids, and the workload is nobody of the host's"""
    runs = [start_run(command("sh", "-c", "id -u; exec sleep 1000")) for _ in range(2)]
    uids = set()
    for run, path in runs:
        wait_state(path, ("running",))
        script = 'ps -o uid= -p "$(tail -n 1 "/sys/fs/cgroup$(systemctl show --property=ControlGroup --value "$1")/cgroup.procs")"'
        uids.add(host("bash", "-c", script, "-", unit_of(run), ok=True).text)
    for run, _ in runs:
        host("systemctl", "stop", unit_of(run), ok=True)
    assert len(uids) == 2, uids


def test_what_is_written_is_gone():
    """what a run writes is there for it and gone for the next"""
    text = output_of(run_to_end(command("sh", "-c", "echo x >/tmp/a && cat /tmp/a; touch ~/b && ls ~"))[3])
    assert text.startswith("x\n"), text
    assert "no\n" == output_of(run_to_end(command("sh", "-c", "test -e /tmp/a || echo no"))[3])


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A D-Bus client alone can do it all."""

import json

from harness import (
    MANAGER,
    ROOT,
    RUN,
    call,
    command,
    data,
    get,
    host,
    in_order,
    main,
    output_of,
    result_of,
    run_to_end,
    start_run,
    timeline_of,
    unit_of,
    wait_for,
    wait_state,
    watch,
)

# Between the first two, template.building and template.ready where nobody has needed that machine before.
WHOLE_LIFE = (
    "request.accepted",
    "vm.starting",
    "isolation.verified",
    "vm.ready",
    "command.started",
    "output",
    "command.finished",
    "run.result",
    "vm.destroyed",
)


def test_start():
    """busctl starts a run while the service is not running, and reads how it ended"""
    host("systemctl", "stop", "ephemerald.service", ok=True)
    assert host("systemctl", "is-active", "ephemerald.service").text == "inactive"
    _, path, result, events = run_to_end(command("sh", "-c", "echo out; echo err >&2; exit 3"))
    assert host("systemctl", "is-active", "ephemerald.service").text == "active"
    assert result["outcome"] == "failed" and result["exit_status"] == 3, result
    assert get(path, RUN, "Outcome", user="alice") == "failed"
    assert get(path, RUN, "ExitStatus", user="alice") == 3
    assert output_of(events) == "out\n" and output_of(events, "stderr") == "err\n"
    assert result["stdout_bytes"] == 4 and result["stderr_bytes"] == 4


def test_timeline():
    """the timeline tells the whole life of a run in order, numbered from 1 without a gap"""
    _, _, _, events = run_to_end(command("echo", "hello"))
    assert [e[0] for e in events] == list(range(1, len(events) + 1))
    kinds = [e[2] for e in events]
    assert in_order(WHOLE_LIFE, kinds), kinds
    assert sorted(e[1] for e in events) == [e[1] for e in events]
    accepted = events[0][3]["request"]
    assert accepted["workflow"] == "command" and accepted["input"]["argv"] == ["echo", "hello"]
    assert accepted["timeout_seconds"] > 0 and accepted["vm"]["memory_mib"] > 0


def test_signals():
    """the starter gets every event, the output and the end as signals, the same as GetTimeline says"""
    signals = watch(command("sh", "-c", "for i in 1 2 3; do echo line $i; done"))
    path = signals[0]["path"]
    assert signals[-1]["member"] == "Finished" and signals[-1]["arguments"][0] == "succeeded"
    states = [s["arguments"][1]["State"] for s in signals[1:] if s["member"] == "PropertiesChanged"]
    assert in_order(("starting", "running", "ended"), states), states
    got = [s["arguments"] for s in signals[1:] if s["member"] == "Event"]
    kept = data(call(path, RUN, "GetTimeline", "tu", "0", "1000", user="alice"))[0]
    outputs = [s["arguments"] for s in signals[1:] if s["member"] == "Output"]
    assert "".join(o[2] for o in outputs) == "line 1\nline 2\nline 3\n"
    assert [e for e in kept if e[2] != "output"] == [e for e in got if e[2] != "output"]
    assert {o[0] for o in outputs} == {e[0] for e in kept if e[2] == "output"}


def test_cancel():
    """a run that is cancelled ends as cancelled, soon, and a second time is refused"""
    _, path = start_run(command("sleep", "1000"))
    wait_state(path, ("running",))
    data(call(path, RUN, "Cancel", user="alice"))
    wait_state(path, ("ended",), seconds=20)
    assert result_of(path)["outcome"] == "cancelled"
    assert [e[3]["by"] for e in timeline_of(path) if e[2] == "run.cancelled"] == ["uid:1000"]
    again = call(path, RUN, "Cancel", user="alice")
    assert again.status != 0 and "ended" in again.errors


def test_systemctl_stop():
    """systemctl stop on a run's scope is a cancelled run, settled like any other"""
    run, path = start_run(command("sleep", "1000"))
    wait_state(path, ("running",))
    host("systemctl", "stop", unit_of(run), ok=True)
    wait_state(path, ("ended",), seconds=20)
    assert result_of(path)["outcome"] == "cancelled"
    events = timeline_of(path)
    assert [e[3]["by"] for e in events if e[2] == "run.cancelled"] == ["systemd"]
    assert events[-1][2] == "vm.destroyed" and events[-1][3]["processes"] == 0, events[-1]


def test_input():
    """SendInput reaches the command, and an empty one is its end of file"""
    arguments = (json.dumps(command("cat")), "0", "1", "stdin", "b", "true")
    _, path = data(call(ROOT, MANAGER, "StartRun", "sa{sh}a{sv}", *arguments, user="alice"))
    wait_for(lambda: [e for e in timeline_of(path) if e[2] == "command.started"], 120, "command.started")
    data(call(path, RUN, "SendInput", "ay", "3", "104", "105", "10", user="alice"))
    data(call(path, RUN, "SendInput", "ay", "0", user="alice"))
    wait_state(path, ("ended",))
    assert output_of(timeline_of(path)) == "hi\n"
    assert result_of(path)["outcome"] == "succeeded"


def test_introspection():
    """the methods of the design are there, with named arguments"""
    text = host("busctl", "introspect", "org.ephemeral1", ROOT, user="alice", ok=True).text
    for member in ("StartRun", "ValidateRequest", "ListRuns", "GetRun", "ListWorkflows", "GetWorkflow", "Subscribe",
                   "BuildTemplate", "DropTemplates", "ListTemplates", "StandbyReady"):
        assert f".{member} " in text, member
    xml = host("busctl", "introspect", "--xml-interface", "org.ephemeral1", ROOT, user="alice", ok=True).text
    assert 'name="request_json"' in xml


def test_failures_of_the_command():
    """a signal, a command that is not there: each ends the run with its own result"""
    _, _, result, _ = run_to_end(command("sh", "-c", "kill -SEGV $$"))
    assert result["outcome"] == "failed" and result["signal"] in ("SEGV", "SIGSEGV"), result
    _, _, result, events = run_to_end(command("/no/such/command"))
    assert result["outcome"] == "failed", result
    assert [e[3].get("errno") for e in events if e[2] == "command.finished"] == ["ENOENT"]


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the journal keeps of a run."""

import json

from harness import command, host, journal, main, run_to_end, timeline_of, unit_of


def test_fields():
    """each event is one entry with the fields of the design, attributed to the run's scope"""
    run, path, _, events = run_to_end(command("sh", "-c", "echo out; echo err >&2"))
    entries = [e for e in journal(run) if "EPHEMERAL_SEQ" in e]
    assert [int(e["EPHEMERAL_SEQ"]) for e in entries] == [e[0] for e in events]
    assert [e["EPHEMERAL_EVENT"] for e in entries] == [e[2] for e in events]
    assert [json.loads(e["EPHEMERAL_JSON"]) for e in entries] == [e[3] for e in timeline_of(path)]
    for entry in entries:
        assert entry["OBJECT_SYSTEMD_UNIT"] == unit_of(run) and entry["MESSAGE"] and len(entry["MESSAGE_ID"]) == 32, entry


def test_by_unit():
    """journalctl -u of the scope shows systemd's words and the run's, after the scope is gone"""
    run, _, _, _ = run_to_end(command("echo", "the very output"))
    host("journalctl", "--sync")
    text = host("journalctl", "--no-pager", "--output=cat", "-u", unit_of(run), ok=True).text
    assert "the very output" in text and f"Started {unit_of(run)}" in text, text


def test_catalog():
    """journalctl -x explains the events"""
    run, _, _, _ = run_to_end(command("true"))
    host("journalctl", "--sync")
    text = host("journalctl", "--no-pager", "--catalog", f"EPHEMERAL_RUN={run}", ok=True).text
    assert text.count("░░ Subject:") >= 5, text


def test_terminal_is_safe():
    """control characters of the guest's never reach a terminal raw, and programs get them exactly"""
    run, _, _, events = run_to_end(command("printf", r"a\033]52;c;eA==\007b\n"))
    host("journalctl", "--sync")
    raw = host("journalctl", "--no-pager", "--output=cat", f"EPHEMERAL_RUN={run}", ok=True).out
    assert b"\x1b" not in raw and b"\x07" not in raw
    output = [e[3] for e in events if e[2] == "output"]
    assert "".join(o.get("data", "") for o in output) == "a\x1b]52;c;eA==\x07b\n", output


main()

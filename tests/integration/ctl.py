#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""ephemeralctl against the real service."""

import hashlib
import json

from harness import host, main, start, wait_for


def ctl(*arguments, user="alice", stdin=b"", timeout=180):
    return host("ephemeralctl", *arguments, user=user, stdin=stdin, timeout=timeout)


def test_streams():
    """stdout, stderr and the exit status are the command's own"""
    said = ctl("run", "--quiet", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert (said.status, said.out, said.err) == (7, b"out\n", b"err\n")


def test_input():
    """standard input reaches the command, byte for byte"""
    sent = bytes(range(256)) * 4096
    said = ctl("run", "--quiet", "--stdin", "--", "cat", stdin=sent)
    assert said.status == 0 and said.out == sent, (said.status, len(said.out))


def test_statuses():
    """each way to end has the exit status that the manual gives it"""
    for arguments, status in (
        (("--", "true"), 0),
        (("--", "sh", "-c", "kill -KILL $$"), 128 + 9),
        (("--timeout", "3", "--", "sleep", "1000"), 124),
        (("--", "/no/such/command"), 127),
        (("--memory", "0", "--", "true"), 126),
    ):
        assert ctl("run", "--quiet", *arguments).status == status, arguments
    assert ctl("run", "--quiet", "--", "true", user="mallory").status == 126


def test_much_output():
    """100 MiB of output arrive whole and in order, and are counted to the byte"""
    blocks, words = 1600, 8192
    write = f"import sys\nfor i in range({blocks}): sys.stdout.buffer.write(i.to_bytes(8, 'big') * {words})"
    digest = hashlib.sha256()
    for i in range(blocks):
        digest.update(i.to_bytes(8, "big") * words)
    script = 'ephemeralctl run --quiet -- python3 -c "$1" | sha256sum; exit "${PIPESTATUS[0]}"'
    said = host("bash", "-c", script, "-", write, user="alice", timeout=300)
    assert said.status == 0 and said.text.split()[0] == digest.hexdigest(), said.text
    newest = json.loads(host("ephemeralctl", "list", "--json", user="alice").text.splitlines()[0])
    result = json.loads(host("ephemeralctl", "result", "--json", newest["id"], user="alice").text)
    assert result["stdout_bytes"] == blocks * words * 8, result


def test_script():
    """--script sends a file and runs it"""
    host("sh", "-c", "cat >hello.py", user="alice", stdin=b"#!/usr/bin/env python3\nimport sys\nprint('six', 2 * 3, sys.version_info[0])\n", ok=True)
    said = ctl("run", "--quiet", "--script", "hello.py")
    assert said.status == 0 and said.out == b"six 6 3\n", said.errors


def test_json():
    """--json prints one object a line, and list has the newest run first"""
    said = ctl("run", "--json", "--", "echo", "hello")
    events = [json.loads(line) for line in said.text.splitlines()]
    assert [e["seq"] for e in events if e.get("seq")] == list(range(1, len([e for e in events if e.get("seq")]) + 1))
    assert {"request.accepted", "output", "run.result"} <= {e["type"] for e in events}
    rows = [json.loads(line) for line in ctl("list", "--json").text.splitlines()]
    assert [r["id"] for r in rows] == sorted((r["id"] for r in rows), reverse=True)
    assert rows[0]["state"] == "ended" and {"id", "state", "workflow"} <= set(rows[0])


def test_others_cancel():
    """cancel from another terminal ends the run with status 130"""
    process = start("ephemeralctl", "run", "--quiet", "--", "sleep", "1000", user="alice")

    def running():
        rows = [json.loads(line) for line in ctl("list", "--json").text.splitlines()]
        return next((r["id"] for r in rows if r["state"] == "running"), None)

    run = wait_for(running, 120, "the run is running")
    assert ctl("cancel", run).status == 0
    process.communicate(timeout=60)
    assert process.returncode == 130, process.returncode
    status = ctl("status", run)
    assert "cancelled" in status.text


def test_reading():
    """timeline, result, console and status read a run that has ended"""
    ctl("run", "--quiet", "--", "echo", "hello")
    run = json.loads(ctl("list", "--json").text.splitlines()[0])["id"]
    assert "run.result" in ctl("timeline", "--json", run).text
    assert "hello" in ctl("timeline", run).text
    assert json.loads(ctl("result", "--json", run).text.splitlines()[0])["outcome"] == "succeeded"
    assert ctl("status", run).status == 0
    assert b"\x1b" not in ctl("timeline", run).out


main()

# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the tests against a booted test host share.

A test file holds functions called test_…, each a claim whose sentence is its docstring, and ends with main(). They run in the order
of the file and print TAP. A test says no by raising (assert), and cannot tell by raising Skip with a reason. What it saw is printed.
"""

import json
import os
import shlex
import subprocess
import sys
import time
import traceback

HOST_TOOL = os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "host", "host")
HOST_NAME = os.environ.get("EPHEMERAL_TEST_HOST", "default")
SHOWN_MAX = 2000

BUS = "org.ephemeral1"
ROOT = "/org/ephemeral1"
MANAGER = "org.ephemeral1.Manager"
RUN = "org.ephemeral1.Run"


class Skip(Exception):
    """The claim cannot be tested here, for the reason given."""


class Result:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    @property
    def text(self):
        return self.out.decode(errors="replace").strip()

    @property
    def errors(self):
        return self.err.decode(errors="replace").strip()


def note(text):
    for line in str(text).splitlines():
        print("#", line, flush=True)


def shown(data):
    text = data.decode(errors="backslashreplace").rstrip()
    return text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + f"… ({len(data)} bytes)"


def command_line(argv, user):
    return [HOST_TOOL, "--name", HOST_NAME, "run", "--user", user, "--", *argv]


def host(*argv, user="root", stdin=b"", timeout=120, ok=False):
    """Runs a command in the host and waits for it. With ok=True it must succeed."""
    note(f"{user}: {shlex.join(argv)[:SHOWN_MAX]}")
    done = subprocess.run(command_line(argv, user), input=stdin, capture_output=True, timeout=timeout, check=False)
    for data in (done.stdout, done.stderr):
        if data.strip():
            note("  " + shown(data).replace("\n", "\n  "))
    if done.returncode != 0:
        note(f"  exit status {done.returncode}")
    assert not ok or done.returncode == 0, f"{argv[0]} failed with {done.returncode}"
    return Result(done.returncode, done.stdout, done.stderr)


def start(*argv, user="root", **options):
    """Starts a command in the host and answers its Popen."""
    note(f"{user}: {shlex.join(argv)[:SHOWN_MAX]} &")
    return subprocess.Popen(
        command_line(argv, user), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
    )


def wait_for(condition, seconds, what):
    """Asks until the condition holds and answers what it said."""
    deadline = time.monotonic() + seconds
    while True:
        said = condition()
        if said:
            return said
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.1)


def call(path, interface, member, *arguments, user="root", timeout=120):
    """A method call with busctl. Answers the Result; its JSON is read with data()."""
    argv = ["busctl", "--json=short", "--timeout=60", "call", BUS, path, interface, member, *arguments]
    return host(*argv, user=user, timeout=timeout)


def data(result):
    """The values of a successful call."""
    assert result.status == 0, result.errors
    return json.loads(result.text)["data"] if result.text else []


def get(path, interface, name, user="root"):
    result = host("busctl", "--json=short", "get-property", BUS, path, interface, name, user=user)
    assert result.status == 0, result.errors
    return json.loads(result.text)["data"]


def start_run(request, user="alice"):
    """StartRun over the bus. Answers (id, object path)."""
    return data(call(ROOT, MANAGER, "StartRun", "sa{sh}a{sv}", json.dumps(request), "0", "0", user=user))


def command(*argv, **keys):
    """A request of the workflow `command`."""
    return {"workflow": "command", "input": {"argv": list(argv)}, **keys}


def unit_of(run):
    return f"ephemeral-{run}.scope"


def journal(run, *options):
    """The entries of a run, oldest first, as dictionaries."""
    host("journalctl", "--sync")
    said = host("journalctl", "--output=json", "--no-pager", *options, f"EPHEMERAL_RUN={run}", ok=True)
    return [json.loads(line) for line in said.text.splitlines()]


def main():
    module = sys.modules["__main__"]
    tests = [value for name, value in vars(module).items() if name.startswith("test_") and callable(value)]
    if subprocess.run([HOST_TOOL, "--name", HOST_NAME, "status"], stdout=subprocess.DEVNULL, check=False).returncode != 0:
        print(f"1..0 # SKIP the test host {HOST_NAME} is not running; ./check vm starts it")
        return
    print(f"1..{len(tests)}", flush=True)
    failed = False
    for number, test in enumerate(tests, 1):
        sentence = " ".join(test.__doc__.split())
        note(f"--- {sentence}")
        try:
            test()
            print(f"ok {number} - {sentence}", flush=True)
        except Skip as reason:
            print(f"ok {number} - {sentence} # SKIP {reason}", flush=True)
        except Exception:  # pylint: disable=broad-except
            note(traceback.format_exc())
            print(f"not ok {number} - {sentence}", flush=True)
            failed = True
    sys.exit(failed)

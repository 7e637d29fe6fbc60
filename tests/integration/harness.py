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
CONFIG = "/etc/ephemeral/ephemerald.conf"
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
    text = "".join(c if c.isprintable() or c in "\n\t" else f"\\x{ord(c):02x}" for c in text)
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


def command(*argv, **keys):
    """A request of the workflow `command`."""
    return {"workflow": "command", "input": {"argv": list(argv)}, **keys}


def start_run(request, user="alice"):
    """StartRun over the bus. Answers (id, object path)."""
    return data(call(ROOT, MANAGER, "StartRun", "sa{sh}a{sv}", json.dumps(request), "0", "0", user=user))


def wait_state(path, states, user="alice", seconds=120):
    """Waits for one of the states and answers it."""

    def state():
        said = get(path, RUN, "State", user=user)
        return said if said in states else None

    return wait_for(state, seconds, f"{path} in state {states}")


def result_of(path, user="alice"):
    return json.loads(data(call(path, RUN, "GetResult", user=user))[0])


def timeline_of(path, user="alice"):
    """[(seq, usec, type, object)] of all events so far."""
    events = []
    while True:
        more = data(call(path, RUN, "GetTimeline", "tu", str(len(events)), "1000", user=user))[0]
        if not more:
            return events
        events += [(seq, usec, kind, json.loads(text)) for seq, usec, kind, text in more]


def output_of(events, stream="stdout"):
    return "".join(e[3].get("data", "") for e in events if e[2] == "output" and e[3]["stream"] == stream)


def run_to_end(request, user="alice", seconds=120):
    """Starts a run over the bus and waits for its end. Answers (id, path, result, timeline)."""
    run, path = start_run(request, user=user)
    wait_state(path, ("ended",), user=user, seconds=seconds)
    return run, path, result_of(path, user), timeline_of(path, user)


def push_watcher():
    with open(os.path.join(os.path.dirname(os.path.realpath(__file__)), "watch.py"), "rb") as f:
        host("sh", "-c", "cat >/usr/local/lib/watch.py", stdin=f.read(), ok=True)


def watch(request, user="alice"):
    """Starts a run from a D-Bus client that stays connected. Answers what it printed: what was started, then each signal."""
    push_watcher()
    text = request if isinstance(request, str) else json.dumps(request)
    said = host("python3", "/usr/local/lib/watch.py", user=user, stdin=text.encode(), timeout=180)
    return [json.loads(line) for line in said.text.splitlines()]


def in_order(wanted, kinds):
    """Do these types of events appear in this order, whatever is between them?"""
    rest = iter(kinds)
    return all(kind in rest for kind in wanted)


def unit_of(run):
    return f"ephemeral-{run}.scope"


def leftovers():
    """What runs may have left on the host, as a list of lines; empty when all is clean. A machine that waits for a run is none of it."""
    script = r"""
        waiting=$(cat /sys/fs/cgroup/ephemeral.slice/ephemeral-standby-*.scope/cgroup.procs 2>/dev/null |
                  xargs -I PID stat --format=%u /proc/PID 2>/dev/null | grep -v '^0$' | sort -u)
        rest() { grep -vwF "${waiting:-none}"; }
        ps -eo uid,pid,args --no-headers | awk '$1 >= 1859125248 { print "process", $0 }' | rest
        systemctl list-units --all --plain --no-legend 'ephemeral-run-*' | sed 's/^/unit /'
        find /sys/fs/cgroup -type d -name 'ephemeral-run-*' -printf 'cgroup %p\n'
        grep -E 'ephemeral-(run|jail)|/run/ephemeral' /proc/mounts | grep -v '^ramfs' | sed 's/^/mount /'
        find /run/ephemeral -mindepth 1 ! -type d -printf 'file %p\n' 2>/dev/null | rest
    """
    return host("bash", "-c", script).text.splitlines()


def qemu_pids(scopes):
    """Process ids of QEMU in the scopes whose directories these are."""
    script = f"cat {scopes}/cgroup.procs | while read -r pid; do ! grep -q ^qemu-system /proc/$pid/comm || echo $pid; done"
    return host("bash", "-c", script).text.split()


def restart():
    """The next call starts the manager again."""
    host("systemctl", "stop", "ephemerald.service", ok=True)


def configure(text):
    host("sh", "-c", f"[ -e {CONFIG}.kept ] || mv {CONFIG} {CONFIG}.kept; cat >{CONFIG}", stdin=text.encode(), ok=True)
    restart()


def configure_back():
    host("sh", "-c", f"[ ! -e {CONFIG}.kept ] || mv {CONFIG}.kept {CONFIG}", ok=True)
    restart()


def wait_for_standby():
    """Until the machine for the next run waits."""
    wait_for(lambda: get(ROOT, MANAGER, "StandbyReady") == 1, 60, "a machine waits")


def manager_pid():
    return int(host("systemctl", "show", "--property=MainPID", "--value", "ephemerald.service").text)


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

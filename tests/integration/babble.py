#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Runs inside the test host: calls every method of the service with arguments that nobody should send, and properties that are not there.
Usage: babble.py SEED CALLS. Prints how many calls were answered and how many were errors, and the names of the errors."""
import collections
import json
import random
import sys

import dbus

BUS = "org.ephemeral1"
MANAGER, RUN, PROPERTIES = "org.ephemeral1.Manager", "org.ephemeral1.Run", "org.freedesktop.DBus.Properties"
METHODS = [
    (MANAGER, "StartRun", "sa{sh}a{sv}"), (MANAGER, "ValidateRequest", "s"), (MANAGER, "ListRuns", "a{sv}"), (MANAGER, "GetRun", "s"),
    (MANAGER, "ListWorkflows", ""), (MANAGER, "GetWorkflow", "s"), (MANAGER, "ListTemplates", ""), (MANAGER, "Subscribe", ""),
    (MANAGER, "BuildTemplate", "s"), (MANAGER, "DropTemplates", ""), (MANAGER, "NoSuchMethod", "s"),
    (RUN, "Subscribe", ""), (RUN, "Cancel", ""), (RUN, "Kill", ""), (RUN, "Attach", ""), (RUN, "GetTimeline", "tu"),
    (RUN, "GetResult", ""), (RUN, "GetRequest", ""), (RUN, "SendInput", "ay"), (RUN, "OpenOutput", "a{sv}"),
    (PROPERTIES, "Get", "ss"), (PROPERTIES, "GetAll", "s"), (PROPERTIES, "Set", "ssv"),
]
TEXTS = [
    "", " ", "x" * 4096, "../../etc/passwd", "run-", "run-" + "0" * 26, "%n%s%n", "a\nb\x1b[31m", "\u202e\ufffd", "null", "[]", "{}", "{" * 5000,
    "[" * 20000, '{"workflow": 1}', '{"workflow": "command", "workflow": "command"}', '{"workflow": "command", "input": {"argv": []}}',
    '{"workflow": "command", "input": {"argv": [1]}}', '{"workflow": "command", "input": {"argv": ["x"], "env": {"": ""}}}',
    '{"workflow": "command", "input": {"argv": ["x"]}, "vm": {"image": "/dev/sda"}}', '{"workflow": "command", "input": {"script": "\\ud800"}}',
    '{"workflow": "command", "input": {"argv": ["x"]}, "timeout_seconds": 1e309}', '{"a": ' * 3000, "\ufeff{}", "default", "command",
    MANAGER, RUN, "Version", "State", "org.freedesktop.DBus.Peer",
]
SIGNATURES = ["", "s", "i", "u", "t", "b", "d", "o", "as", "ay", "a{sv}", "v", "(ss)", "ss", "tu", "sa{sh}a{sv}", "a(ss)", "aaaaas"]


def value(r, kind):
    number = r.choice([0, 1, 2, 255, 65536, 2**31 - 1])
    makers = {
        "s": lambda: r.choice(TEXTS), "i": lambda: -number, "u": lambda: number, "t": lambda: r.choice([0, 1, 2**63, 2**64 - 1]),
        "b": lambda: bool(number % 2), "d": lambda: r.choice([0.0, -1.5, 1e308]), "o": lambda: r.choice(["/", "/org/ephemeral1", "/x/y"]),
        "as": lambda: dbus.Array([r.choice(TEXTS) for _ in range(r.randrange(50))], signature="s"),
        "ay": lambda: dbus.ByteArray(r.randbytes(r.choice([0, 1, 70000]))),
        "a{sv}": lambda: dbus.Dictionary({r.choice(["all", "state", "limit", "stdin", "signals", "after-seq", "x", ""]): r.choice(
            [True, "x", dbus.UInt64(2**64 - 1), dbus.Array([], signature="s")]) for _ in range(r.randrange(4))}, signature="sv"),
        "a{sh}": lambda: dbus.Dictionary({}, signature="sh"), "v": lambda: r.choice([1, "x", True]),
        "(ss)": lambda: dbus.Struct(("a", "b"), signature="ss"), "a(ss)": lambda: dbus.Array([("a", "b")] * 3, signature="(ss)"),
        "aaaaas": lambda: dbus.Array([], signature="aaaas"),
    }
    return makers[kind]()


def split(signature):
    """Into its complete types, of which there are only those above."""
    kinds = []
    while signature:
        kind = next(k for k in ("aaaaas", "a(ss)", "a{sv}", "a{sh}", "(ss)", "as", "ay", signature[0]) if signature.startswith(k))
        kinds.append(kind)
        signature = signature[len(kind):]
    return kinds


def main():
    r = random.Random(int(sys.argv[1]))
    bus = dbus.SystemBus()
    said = collections.Counter()
    for _ in range(int(sys.argv[2])):
        interface, method, signature = r.choice(METHODS)
        if r.random() < 0.4:
            signature = r.choice(SIGNATURES)
        path = r.choice(["/org/ephemeral1", "/org/ephemeral1", "/org/ephemeral1/run/run_2d" + "0" * 26, "/org/ephemeral1/run", "/", "/nowhere"])
        try:
            bus.call_blocking(BUS, path, interface, method, signature, [value(r, k) for k in split(signature)], timeout=30)
            said["answered"] += 1
        except dbus.DBusException as e:
            said[e.get_dbus_name()] += 1
    print(json.dumps(said))


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""watch.py [listen]: a plain D-Bus client inside the test host. Starts the run whose request comes on standard input and prints each
signal that reaches it, one JSON object a line, until the run is finished. With `listen` it starts nothing, asks the bus for every
signal there is, says so when it has been heard, and prints those of the manager until it is ended."""

import json
import sys

import dbus
import dbus.mainloop.glib
from gi.repository import GLib

BUS = "org.ephemeral1"


def plain(value):
    if isinstance(value, dbus.Array) and value.signature == "y":
        return bytes(value).decode(errors="backslashreplace")
    if isinstance(value, (dbus.Array, dbus.Struct)):
        return [plain(v) for v in value]
    if isinstance(value, dbus.Dictionary):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (dbus.String, dbus.ObjectPath)):
        return str(value)
    return int(value) if isinstance(value, int) else value


def main():
    dbus.mainloop.glib.DBusGMainLoop(set_as_default=True)
    bus = dbus.SystemBus()
    loop = GLib.MainLoop()

    def on_signal(*arguments, member, interface, path):
        if interface.startswith(BUS) or str(path).startswith("/org/ephemeral1"):
            print(json.dumps({"member": member, "path": path, "arguments": plain(dbus.Array(arguments, signature="v"))}), flush=True)
        if member == "Finished":
            loop.quit()

    bus.add_signal_receiver(on_signal, member_keyword="member", interface_keyword="interface", path_keyword="path")
    if sys.argv[1:] == ["listen"]:
        bus.name_has_owner(BUS)  # answered behind AddMatch: from here on nothing is missed
        print("listening", flush=True)
    else:
        manager = dbus.Interface(bus.get_object(BUS, "/org/ephemeral1", introspect=False), "org.ephemeral1.Manager")
        try:
            run, path = manager.StartRun(
                sys.stdin.read(), dbus.Dictionary(signature="sh"), dbus.Dictionary(signature="sv"), timeout=60
            )
        except dbus.DBusException as error:
            print(json.dumps({"error": error.get_dbus_name(), "message": error.get_dbus_message()}))
            return 1
        print(json.dumps({"started": run, "path": path}), flush=True)
    loop.run()
    return 0


sys.exit(main())

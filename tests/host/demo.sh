#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# What ./try runs in a microVM: writes a program and lets it try the internet three ways. Succeeds if none of them worked.
set -eu
echo "Writing a program and running it with $(python3 --version), kernel $(uname -r), as $(id -un)."
cat >/tmp/internet.py <<'END'
import errno
import os
import socket
import sys


def connect():
    socket.create_connection(("1.1.1.1", 443), timeout=10).close()


def resolve():
    socket.getaddrinfo("www.debian.org", 443)


def send():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(b"anybody there?", ("9.9.9.9", 53))


def name(error):
    if isinstance(error, socket.gaierror):
        return next(n for n in dir(socket) if n.startswith("EAI_") and getattr(socket, n) == error.errno)
    return errno.errorcode.get(error.errno, type(error).__name__)


print("Network interfaces:", " ".join(n for _, n in socket.if_nameindex()))
reached = 0
for what, attempt in (
    ("TCP connection to 1.1.1.1, port 443", connect),
    ("looking up the name www.debian.org ", resolve),
    ("UDP datagram to 9.9.9.9, port 53   ", send),
):
    try:
        attempt()
        print(f"{what}: worked")
        reached += 1
    except OSError as error:
        print(f"{what}: {name(error)} ({error.strerror})")
print("Writing to the file system:", "works" if os.access("/tmp/internet.py", os.W_OK) else "refused", "(and is gone with this VM)")
sys.exit(1 if reached else 0)
END
exec python3 /tmp/internet.py

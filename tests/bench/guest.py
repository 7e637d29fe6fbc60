# SPDX-License-Identifier: LGPL-2.1-or-later
"""One bare VM of an image, without manager or jail, and the control protocol spoken to it (docs/design.md, section 17.1)."""
import json
import os
import select
import socket
import struct
import subprocess
import tempfile
import time

SETUP, ARG, ENV, SCRIPT, START, STDIN, STDIN_EOF, SIGNAL = range(1, 9)
HELLO, LINKS, STARTED, STDOUT, STDERR, EXITED, STDIN_CREDIT, LOG, FAILED = range(0x81, 0x8A)
NAMES = {HELLO: "HELLO", LINKS: "LINKS", STARTED: "STARTED", STDOUT: "STDOUT", STDERR: "STDERR", EXITED: "EXITED",
         STDIN_CREDIT: "STDIN_CREDIT", LOG: "LOG", FAILED: "FAILED"}
PAYLOAD_MAX, STDIN_WINDOW = 131072, 65536
HOW = ("exited", "signalled", "not executed")


def tsc_khz():
    """What the kernel measured, by the only places that tell without a probe: its log, or the CPU's nominal clock."""
    for command in (["journalctl", "-k", "-o", "cat", "--grep", "tsc: Detected"], ["dmesg"]):
        try:
            text = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        except OSError:
            continue
        for line in text.splitlines():
            if "tsc: Detected" in line:
                return round(float(line.split("tsc: Detected")[1].split()[0]) * 1000)
    with open("/proc/cpuinfo", encoding="ascii") as f:
        return round(float(next(line for line in f if line.startswith("cpu MHz")).split(":")[1]) * 1000)


class Guest:
    def __init__(self, image, memory=256, cpus=1, disk=0, cpu=None, accel="tcg", append="", kernel=None, root=None):
        self.manifest = json.load(open(os.path.join(image, "manifest.json"), encoding="utf-8"))
        self.console = tempfile.TemporaryFile()
        self.buffer = bytearray()
        self.credit = STDIN_WINDOW
        ours, theirs = socket.socketpair()
        cmdline = f"console=hvc0 quiet panic=-1 cryptomgr.notests ephemeral.disk_mib={disk or memory // 2} {append}"
        if accel == "tcg":
            cmdline += f" mitigations=off no_timer_check tsc=reliable tsc_early_khz={tsc_khz()}"
            cpu = cpu or "Nehalem-v1,+rdrand,+smep,+smap,+umip"
        self.started = time.monotonic()
        self.qemu = subprocess.Popen(
            ["qemu-system-x86_64", "-M", "microvm,acpi=on,pit=on,pic=on,rtc=on,x-option-roms=off", "-bios", "qboot.rom", "-accel", accel, "-cpu", cpu or "host",
             "-smp", str(cpus), "-m", str(memory), "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
             "-global", "virtio-mmio.force-legacy=false", "-kernel", kernel or os.path.join(image, "kernel"),
             "-initrd", os.path.join(image, "initrd"), "-append", cmdline,
             "-blockdev", f"driver=file,node-name=root,filename={root or image + '/root.erofs'},read-only=on,locking=off",
             "-device", "virtio-blk-device,drive=root,discard=off,write-zeroes=off,config-wce=off",
             "-device", "virtio-rng-device", "-device", "virtio-serial-device,max_ports=8",
             "-chardev", f"file,id=console,path=/proc/self/fd/{self.console.fileno()}",
             "-device", "virtconsole,chardev=console,name=console,nr=0",
             "-chardev", f"socket,id=control,fd={theirs.fileno()}",
             "-device", "virtserialport,chardev=control,name=control,nr=1",
             "-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"],
            stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno(), self.console.fileno()])
        theirs.close()
        self.control = ours

    def elapsed(self):
        return time.monotonic() - self.started

    def send(self, kind, payload=b""):
        self.control.sendall(struct.pack("<IBBH", len(payload), kind, 1, 0) + payload)

    def next(self, timeout):
        """The next frame: (type, payload); None when there is none in time; EOFError when QEMU is gone."""
        deadline = time.monotonic() + timeout
        while True:
            if len(self.buffer) >= 8:
                size, kind, version, zero = struct.unpack_from("<IBBH", self.buffer)
                if version != 1 or zero or size > PAYLOAD_MAX:
                    raise ValueError(f"not a frame: {bytes(self.buffer[:8]).hex()}")
                if len(self.buffer) >= 8 + size:
                    payload = bytes(self.buffer[8:8 + size])
                    del self.buffer[:8 + size]
                    return kind, payload
            if not select.select([self.control], [], [], max(0, deadline - time.monotonic()))[0]:
                return None
            data = self.control.recv(1 << 20)
            if not data:
                raise EOFError("the guest has gone")
            self.buffer += data

    def expect(self, kind, timeout=60):
        """The next frame of that type; what init logs on the way is printed."""
        while True:
            frame = self.next(timeout)
            if frame is None:
                raise TimeoutError(f"no {NAMES[kind]} within {timeout} s; console: {self.read_console()!r}")
            if frame[0] == kind:
                return frame[1]
            if frame[0] in (LOG, FAILED):
                print(f"{NAMES[frame[0]]}: {frame[1].decode()}")
            if frame[0] == FAILED or frame[0] not in (LOG, STDIN_CREDIT):
                raise ValueError(f"{NAMES.get(frame[0], frame[0])} where {NAMES[kind]} was expected")

    def setup(self, hostname="bench"):
        self.send(SETUP, struct.pack("<Q", time.time_ns() // 1000) + os.urandom(64) + hostname.encode())
        payload, links = self.expect(LINKS), []
        while payload:
            index, flags, size = struct.unpack_from("<IIB", payload)
            links.append((index, payload[9:9 + size].decode(), flags))
            payload = payload[9 + size:]
        return links

    def start(self, argv, env=(), script=b"", uid=1000, stdin=False):
        for arg in argv:
            self.send(ARG, os.fsencode(arg))
        for entry in env:
            self.send(ENV, os.fsencode(entry))
        for at in range(0, len(script), PAYLOAD_MAX):
            self.send(SCRIPT, script[at:at + PAYLOAD_MAX])
        self.send(START, struct.pack("<III", uid, uid, 1 if stdin else 0))

    def finish(self, stdin=b"", timeout=120, on_output=None):
        """Feeds stdin through the window and collects until EXITED: {how, status, …, stdout, stderr, logs}."""
        out = {STDOUT: bytearray(), STDERR: bytearray(), LOG: []}
        pending, open_stdin = memoryview(stdin or b""), stdin is not None
        while True:
            while pending and self.credit:
                n = min(len(pending), self.credit, 65536)
                self.send(STDIN, bytes(pending[:n]))
                self.credit -= n
                pending = pending[n:]
            if open_stdin and not pending:
                self.send(STDIN_EOF)
                open_stdin = False
            frame = self.next(timeout)
            if frame is None:
                raise TimeoutError(f"no EXITED within {timeout} s; console: {self.read_console()!r}")
            kind, payload = frame
            if kind == EXITED:
                how, status, user, system, rss, duration = struct.unpack("<BIQQQQ", payload)
                return {"how": HOW[how], "status": status, "user_usec": user, "system_usec": system, "max_rss_kib": rss,
                        "duration_usec": duration, "stdout": bytes(out[STDOUT]), "stderr": bytes(out[STDERR]),
                        "logs": out[LOG]}
            if kind in (STDOUT, STDERR):
                if on_output:
                    on_output(kind, payload)
                out[kind] += payload
            elif kind == STDIN_CREDIT:
                self.credit += struct.unpack("<I", payload)[0]
            elif kind == LOG:
                out[LOG].append(payload.decode())
            elif kind == FAILED:
                raise ValueError(f"FAILED: {payload.decode()}")
            elif kind != STARTED:
                raise ValueError(f"{NAMES.get(kind, kind)} in the middle of a run")

    def read_console(self):
        self.console.seek(0)
        return self.console.read().decode("utf-8", "replace")

    def close(self):
        self.control.close()
        self.qemu.kill()
        return self.qemu.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

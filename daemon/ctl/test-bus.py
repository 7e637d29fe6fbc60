#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every verb of ephemeralctl against fake-manager, on a bus of its own: no root, no VM, no sleeping.

Usage: test-bus.py EPHEMERALCTL FAKE_MANAGER
"""
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

CTL, MANAGER = sys.argv[1:3]
TIMEOUT = 60  # a test that hangs is a failure

BUS_CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <listen>unix:path={directory}/bus</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
"""


class Bus:
    """A dbus-daemon, and a manager on it."""

    def __init__(self):
        self.directory = tempfile.mkdtemp(prefix="ephemeralctl-")
        config = os.path.join(self.directory, "bus.conf")
        with open(config, "w", encoding="utf-8") as f:
            f.write(BUS_CONFIG.format(directory=self.directory))
        self.daemon = subprocess.Popen(
            ["dbus-daemon", "--config-file=" + config, "--nofork", "--nopidfile", "--nosyslog", "--print-address"],
            stdout=subprocess.PIPE)
        self.daemon.stdout.readline()
        self.environment = dict(os.environ, DBUS_SYSTEM_BUS_ADDRESS="unix:path=%s/bus" % self.directory,
                                LC_ALL="C.UTF-8", TERM="xterm")
        self.environment.pop("NO_COLOR", None)
        self.manager = None

    def start_manager(self):
        self.manager = subprocess.Popen([MANAGER], env=self.environment, stdout=subprocess.PIPE)
        assert self.manager.stdout.readline() == b"ready\n"

    def stop_manager(self):
        if self.manager:
            self.manager.kill()
            self.manager.wait()
            self.manager.stdout.close()
        self.manager = None

    def stop(self):
        self.stop_manager()
        self.daemon.kill()
        self.daemon.wait()
        self.daemon.stdout.close()
        shutil.rmtree(self.directory)


def ctl(*arguments, stdin=b"", environment=None):
    return subprocess.run([CTL, *arguments], input=stdin, capture_output=True, timeout=TIMEOUT, check=False,
                          env=environment or BUS.environment)


def on_terminal(*arguments, stdout_too=True):
    """Runs it with stderr (and stdout) on a terminal; what came there, the exit code, and stdout if it was a pipe."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([CTL, *arguments], env=BUS.environment, stdin=subprocess.DEVNULL, stderr=theirs,
                               stdout=theirs if stdout_too else subprocess.PIPE)
    os.close(theirs)
    seen = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # EIO: the other side was closed
            break
        if not piece:
            break
        seen += piece
    os.close(ours)
    out = process.communicate(timeout=TIMEOUT)[0]
    return seen, process.returncode, out


def json_lines(data):
    return [json.loads(line) for line in data.decode().splitlines()]


def newest():
    return json_lines(ctl("list", "--json").stdout)[0]["id"]


class Run(unittest.TestCase):
    def test_output_goes_to_the_stream_it_came_from(self):
        r = ctl("run", "--", "both")
        self.assertEqual((r.stdout, r.stderr, r.returncode), (b"out\n", b"err\n", 0))

    def test_options_after_the_command_belong_to_the_command(self):
        r = ctl("run", "echo", "--json", "-x")
        self.assertEqual((r.stdout, r.returncode), (b"--json -x\n", 0))

    def test_three_megabytes_arrive_whole(self):
        r = ctl("run", "--", "big")
        want = b"".join(bytes([ord("a") + i % 26]) * 65520 + b"\n" for i in range(48))
        self.assertEqual(len(r.stdout), len(want))
        self.assertEqual(r.stdout, want)

    def test_exit_codes(self):
        for script, code in (("echo", 0), ("exit7", 7), ("signal", 128 + 15), ("timeout", 124), ("vmfail", 125),
                             ("noexec", 127), ("oom", 137), ("refuse", 126), ("deny", 126), ("noqemu", 125)):
            with self.subTest(script):
                self.assertEqual(ctl("run", "--", script).returncode, code)

    def test_what_the_output_does_not_explain_is_said(self):
        for script, words in (("timeout", b"timeout"), ("oom", b"memory"), ("vmfail", b"QEMU ended"),
                              ("noexec", b"No such file or directory")):
            with self.subTest(script):
                self.assertIn(words, ctl("run", "--", script).stderr)

    def test_quiet_says_only_what_is_ours(self):
        self.assertEqual(ctl("run", "--quiet", "--", "timeout").stderr, b"")
        self.assertIn(b"QEMU ended", ctl("run", "--quiet", "--", "vmfail").stderr)

    def test_a_refusal_is_one_sentence_and_harmless(self):
        r = ctl("run", "--", "refuse")
        self.assertIn(b"request key 'input': ^[[2Jthis is refused", r.stderr)
        self.assertNotIn(b"\033[2J", r.stderr)
        self.assertEqual(r.stdout, b"")

    def test_standard_input_of_a_pipe_is_passed_on(self):
        data = bytes(range(256)) * 4096
        r = ctl("run", "--stdin", "--", "cat", stdin=data)
        self.assertEqual((r.stdout, r.returncode), (data, 0))

    def test_standard_input_of_a_file_is_passed_on(self):
        with tempfile.TemporaryFile() as f:
            f.write(b"from a file\n")
            f.seek(0)
            r = subprocess.run([CTL, "run", "-i", "--", "cat"], stdin=f, capture_output=True, timeout=TIMEOUT,
                               check=False, env=BUS.environment)
        self.assertEqual((r.stdout, r.returncode), (b"from a file\n", 0))

    def test_a_restart_of_the_service_loses_and_doubles_nothing(self):
        r = ctl("run", "--", "restart")
        self.assertEqual((r.stdout, r.returncode), (b"one\ntwo\n", 0))

    def test_a_service_that_does_not_come_back_is_given_up(self):
        r = ctl("run", "--", "gone")
        self.assertEqual(r.returncode, 125)
        self.assertIn(b"Lost contact", r.stderr)

    def test_what_is_no_frame_ends_it(self):
        r = ctl("run", "--", "garbage")
        self.assertEqual(r.returncode, 125)
        self.assertIn(b"cannot be understood", r.stderr)

    def test_lost_bytes_are_counted_where_they_are_missing(self):
        r = ctl("run", "--", "lost")
        self.assertEqual(r.stdout, b"before\nafter\n")
        self.assertIn(b"4711 bytes", r.stderr)

    def test_json_is_one_object_a_line(self):
        r = ctl("run", "--json", "--", "both")
        lines = json_lines(r.stdout)
        self.assertEqual(r.stderr, b"")
        self.assertEqual([o["seq"] for o in lines], list(range(1, len(lines) + 1)))
        self.assertEqual(len({o["id"] for o in lines}), 1)
        outputs = [(o["stream"], o["data"]) for o in lines if o.get("type") == "output"]
        self.assertEqual(outputs, [("stdout", "out\n"), ("stderr", "err\n")])
        self.assertEqual([o["outcome"] for o in lines if o["type"] == "run.result"], ["succeeded"])

    def test_json_escapes_what_a_terminal_would_obey(self):
        r = ctl("run", "--json", "--", "controls")
        for bad in b"\033", b"\302\233", b"\342\200\256":
            self.assertNotIn(bad, r.stdout)
        self.assertIn("\033]52;c;Zm9v\a",
                      [o.get("data") for o in json_lines(r.stdout) if o["type"] == "output"][0])

    def test_piped_bytes_are_exact(self):
        r = ctl("run", "--", "controls")
        self.assertEqual(r.stdout, b"a\033]52;c;Zm9v\ab\n\302\2332J\n\342\200\256cba\n\303\274ber\033")
        self.assertEqual(r.stderr, b"\033[31mred\n")

    def test_the_first_signal_cancels(self):
        p = subprocess.Popen([CTL, "run", "--", "sleep"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env=BUS.environment)
        self.assertEqual(p.stdout.readline(), b"asleep\n")
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=TIMEOUT)
        self.assertEqual(p.returncode, 130)
        self.assertIn(b"cancelling run-", err)

    def test_a_reader_that_goes_ends_the_run(self):
        p = subprocess.Popen([CTL, "run", "--", "yes"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env=BUS.environment)
        p.stdout.read(10)
        p.stdout.close()
        err = p.stderr.read()
        p.stderr.close()
        self.assertEqual((p.wait(timeout=TIMEOUT), err), (128 + 13, b""))

    def test_signals_are_heard_while_nobody_reads(self):
        p = subprocess.Popen([CTL, "run", "--", "yes"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env=BUS.environment)
        p.stdout.read(10)  # then no more: its pipe fills
        p.send_signal(signal.SIGINT)
        self.assertIn(b"cancelling", p.stderr.readline())
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(timeout=TIMEOUT), 130)
        p.stdout.close()
        p.stderr.close()


class Terminal(unittest.TestCase):
    def test_control_characters_are_shown_not_obeyed(self):
        seen, code, _ = on_terminal("run", "--quiet", "--", "controls")
        self.assertEqual(code, 0)
        self.assertEqual(seen, b"a^[]52;c;Zm9v^Gb\r\n\\x9b2J\r\n\\u202ecba\r\n^[[31mred\r\n\303\274ber^["
                         if b"red\r\n\303" in seen else
                         b"a^[]52;c;Zm9v^Gb\r\n\\x9b2J\r\n\\u202ecba\r\n\303\274ber^[^[[31mred\r\n")

    def test_raw_lets_them_through(self):
        seen, _, _ = on_terminal("run", "--quiet", "--raw", "--", "controls")
        self.assertIn(b"\033]52;c;Zm9v\a", seen)

    def test_the_timeline_is_on_stderr_and_output_stays_clean(self):
        seen, code, out = on_terminal("run", "--", "both", stdout_too=False)
        self.assertEqual((code, out), (0, b"out\n"))
        for word in b"request.accepted", b"vm.ready", b"run.result", b"err":
            self.assertIn(word, seen)

    def test_quiet_has_no_timeline(self):
        seen, _, _ = on_terminal("run", "--quiet", "--", "echo", "hello")
        self.assertEqual(seen, b"hello\r\n")

    def test_verbose_has_it_without_a_terminal(self):
        self.assertIn(b"vm.ready", ctl("run", "--verbose", "--", "echo").stderr)

    def test_lists_have_colour_on_a_terminal_only(self):
        ctl("run", "--", "echo")
        self.assertIn(b"\033[", on_terminal("list")[0])
        self.assertNotIn(b"\033", ctl("list").stdout)


class Request(unittest.TestCase):
    def sent(self, *arguments, **keys):
        r = ctl("run", *arguments, **keys)
        self.assertIn(r.returncode, (0, 7), r.stderr)
        return json_lines(ctl("request", "--json", newest()).stdout)[0]

    def test_a_command_alone(self):
        self.assertEqual(self.sent("--", "echo", "ü"), {"workflow": "command", "input": {"argv": ["echo", "ü"]},
                                                        "stdin": False, "signals": False})

    def test_every_option_has_its_key(self):
        environment = dict(BUS.environment, PASSED="here")
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
            json.dump({"workflow": "command", "input": {"argv": ["echo"]}}, f)
            f.flush()
            request = self.sent("--request", f.name, "-t", "2min", "-m", "1G", "-c", "2", "--disk=64", "--image=x",
                                "--root", "-e", "A=1=2", "-e", "PASSED", "--label", "k=v", "--stdin",
                                environment=environment)
        self.assertEqual(request, {
            "workflow": "command", "input": {"argv": ["echo"], "env": {"A": "1=2", "PASSED": "here"}},
            "timeout_seconds": 120, "labels": {"k": "v"}, "stdin": True, "signals": False,
            "vm": {"image": "x", "vcpus": 2, "memory_mib": 1024, "disk_mib": 64, "root": True}})

    def test_a_script_from_standard_input(self):
        request = self.sent("--script", "-", "--interpreter", "python3 -u", stdin=b"print('x')\n")
        self.assertEqual(request["input"]["script"], "print('x')\n")
        self.assertEqual(request["input"]["interpreter"], ["python3", "-u"])

    def test_a_script_names_its_interpreter(self):
        for line, want in ((b"#!/usr/bin/env python3", ["/usr/bin/env", "python3"]),
                           (b"#! /bin/bash  -e -u ", ["/bin/bash", "-e -u"]), (b"#!/bin/sh\r", ["/bin/sh"]),
                           (b"echo", None), (b"#!", None)):
            with self.subTest(line):
                request = self.sent("--script", "-", stdin=line + b"\nx\n")
                self.assertEqual(request["input"].get("interpreter"), want)

    def test_impossible_values_are_for_the_service_to_refuse(self):
        self.assertEqual(self.sent("--timeout=-1", "--", "echo")["timeout_seconds"], -1)

    def test_bytes_that_are_no_utf8_are_refused_here(self):
        for arguments in (["--", b"echo", b"\xff"], ["-e", b"A=\xff", "--", "echo"], ["--script", "/bin/true"]):
            with self.subTest(arguments):
                r = ctl("run", *arguments)
                self.assertEqual(r.returncode, 126)
                self.assertIn(b"UTF-8", r.stderr)

    def test_json_that_is_wrong_gets_the_services_words(self):
        r = ctl("run", "--request", "-", stdin=b"{,}")
        self.assertEqual(r.returncode, 126)
        self.assertIn(b"line 1, column 1", r.stderr)

    def test_contradictions_are_refused(self):
        for arguments in ([], ["--script=x", "--", "echo"], ["--interpreter=sh", "--", "echo"],
                          ["--request=x", "--script=y"], ["--stdin", "--script=-"], ["--timeout=soon", "--", "echo"]):
            with self.subTest(arguments):
                r = ctl("run", *arguments)
                self.assertEqual(r.returncode, 126)
                self.assertIn(b"--help", r.stderr)


class Verbs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        ctl("run", "--", "exit7")
        cls.id = newest()

    def test_list_has_the_newest_first(self):
        ctl("run", "--", "echo")
        rows = json_lines(ctl("list", "--json").stdout)
        self.assertEqual([o["id"] for o in rows], sorted((o["id"] for o in rows), reverse=True))
        self.assertEqual((rows[0]["state"], rows[0]["outcome"], rows[0]["workflow"]), ("ended", "succeeded", "command"))
        self.assertIn(b"OUTCOME", ctl("list").stdout)

    def test_ids_may_be_abbreviated_while_one_fits(self):
        for name in self.id, self.id[-6:], self.id[:-1]:
            with self.subTest(name):
                self.assertEqual(json_lines(ctl("status", "--json", name).stdout)[0]["id"], self.id)
        ctl("run", "--", "echo")
        r = ctl("status", "run-0")
        self.assertEqual(r.returncode, 1)
        self.assertIn(b"More than one run", r.stderr)

    def test_runs_that_do_not_exist(self):
        for name in "run-00000000000000000000000000", "nosuch":
            with self.subTest(name):
                r = ctl("status", name)
                self.assertNotEqual(r.returncode, 0)
                self.assertIn(name.encode(), r.stderr)

    def test_status_for_people_and_programs(self):
        ctl("run", "--", "exit7")
        run = newest()
        out = ctl("status", run).stdout
        self.assertIn(b"State: ended (failed, exit status 7)", out)
        self.assertIn(b"Duration: 2.50s", out)
        self.assertIn(b"team=a^[[31m", out)
        o = json_lines(ctl("status", "--json", run).stdout)[0]
        self.assertEqual((o["state"], o["outcome"], o["exit_status"], o["started_usec"]),
                         ("ended", "failed", 7, 1700000000000000))
        self.assertEqual(o["isolation"], {"hardware_virtualization": False})

    def test_timeline_is_read_to_its_end(self):
        lines = json_lines(ctl("timeline", "--json", self.id).stdout)
        self.assertEqual([o["seq"] for o in lines], [1, 2, 3, 4])
        self.assertEqual(lines[1], {"id": self.id, "seq": 2, "usec": 1700000001500000, "type": "vm.ready",
                                    "kernel": "6.1.0", "boot_usec": 2000000})
        out = ctl("timeline", self.id).stdout.decode().splitlines()
        self.assertEqual(len(out), 4)
        self.assertRegex(out[1], r"^ *\+1\.500s vm\.ready ")
        self.assertRegex(out[2], r"^ *\+3\.000s output +stdout: hi$")

    def test_timeline_follows_until_the_end(self):
        types = [o["type"] for o in json_lines(ctl("timeline", "-f", "--json", self.id).stdout)]
        self.assertEqual((types[0], types[-1]), ("request.accepted", "vm.destroyed"))

    def test_cancel_and_kill(self):
        for verb in "cancel", "kill":
            with self.subTest(verb):
                self.assertEqual(json_lines(ctl(verb, "--json", self.id).stdout)[0], {"id": self.id, "state": "ended"})
                self.assertIn(self.id.encode(), ctl(verb, self.id).stdout)

    def test_console_is_exact_in_a_pipe_and_harmless_on_a_terminal(self):
        self.assertEqual(ctl("console", self.id).stdout, b"[    0.1] Linux version 6.1.0\r\n\033[2Jinit: ready\r\n")
        self.assertEqual(on_terminal("console", self.id)[0],
                         b"[    0.1] Linux version 6.1.0\r\n^[[2Jinit: ready\r\n")

    def test_result_and_request(self):
        ctl("run", "--", "exit7")
        run = newest()
        self.assertEqual(json_lines(ctl("result", "--json", run).stdout)[0]["exit_status"], 7)
        self.assertIn(b"outcome: failed", ctl("result", run).stdout)
        out = ctl("request", run).stdout
        for words in b"Command: exit7", b"Files: none", b"Connections: none", b"Web access: off", b"Budget: ", \
                b"Timeout: ":
            self.assertIn(words, out)

    def test_validate(self):
        r = ctl("validate", "-", stdin=b'{"input":{"argv":["a b","c"]},"timeout_seconds":90}')
        self.assertIn(b"Command: 'a b' c", r.stdout)
        self.assertIn(b"Timeout: 1min 30s", r.stdout)
        r = ctl("validate", "-", stdin=b"[")
        self.assertEqual(r.returncode, 126)
        self.assertIn(b"line 3, column 14", r.stderr)
        self.assertIn(b"No such file", ctl("validate", "/nonexistent").stderr)

    def test_workflows(self):
        self.assertEqual(json_lines(ctl("workflows", "--json").stdout),
                         [{"name": "command", "description": "Runs a command or a script"}])
        self.assertEqual(json.loads(ctl("workflows", "command").stdout)["limits"]["vcpus"], 4)
        self.assertIn(b"there are: command", ctl("workflows", "nosuch").stderr)

    def test_templates(self):
        rows = json_lines(ctl("template", "--json").stdout)
        self.assertEqual([(row["image"], row["where"], row["memory_mib"]) for row in rows],
                         [("default", "memory", 256), ("other", "making", 512)])
        lines = ctl("template", "list").stdout.decode().splitlines()
        self.assertEqual(lines[0].split(), ["IMAGE", "VCPUS", "MEMORY", "WHERE", "SIZE", "MADE", "TEMPLATE"])
        self.assertIn("0123456789ab", lines[1])
        self.assertEqual(ctl("template", "build").stdout, b"0123456789abcdef0123\n")
        refused = ctl("template", "build", "nowhere")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn(b"no image 'nowhere'", refused.stderr)
        self.assertEqual(ctl("template", "drop").returncode, 0)
        for wrong in (["drop", "x"], ["make"], ["list", "x"]):
            self.assertEqual(ctl("template", *wrong).returncode, 2)

    def test_info(self):
        self.assertEqual(json_lines(ctl("--json", "info").stdout)[0]["runs_max"], 4)
        self.assertIn(b"Accelerator: tcg", ctl("info").stdout)
        self.assertIn(b"ready for the next run", ctl("info").stdout)


class Manners(unittest.TestCase):
    def test_a_mistyped_command_gets_a_suggestion(self):
        r = ctl("lst")
        self.assertEqual(r.returncode, 2)
        self.assertIn(b"Did you mean 'list'?", r.stderr)
        self.assertIn(b"--help", ctl("frobnicate").stderr)

    def test_every_command_has_help_that_fits_a_terminal(self):
        verbs = [line.split()[0] for line in ctl("--help").stdout.decode().split("Commands:")[1].split("Options:")[0]
                 .splitlines() if line.strip()]
        self.assertGreater(len(verbs), 10)
        for verb in verbs:
            r = ctl(verb, "--help")
            self.assertEqual(r.returncode, 0)
            self.assertLessEqual(max(map(len, r.stdout.decode().splitlines())), 110, verb)

    def test_options_may_stand_before_and_after_the_command(self):
        for arguments in (["--json", "list"], ["list", "--json"]):
            json_lines(ctl(*arguments).stdout)

    def test_without_a_bus_it_says_so(self):
        environment = dict(BUS.environment, DBUS_SYSTEM_BUS_ADDRESS="unix:path=/nonexistent")
        r = ctl("list", environment=environment)
        self.assertEqual(r.returncode, 125)
        self.assertIn(b"Is D-Bus running", r.stderr)

    def test_without_the_service_it_says_so(self):
        BUS.stop_manager()
        try:
            r = ctl("run", "--", "echo")
        finally:
            BUS.start_manager()
        self.assertEqual(r.returncode, 125)
        self.assertIn(b"ephemerald is not installed", r.stderr)


if __name__ == "__main__":
    if not shutil.which("dbus-daemon"):
        print("SKIP: there is no dbus-daemon (package dbus-daemon)")
        sys.exit(77)
    BUS = Bus()
    try:
        BUS.start_manager()
        program = unittest.main(argv=sys.argv[:1] + sys.argv[3:], exit=False, verbosity=2)
    finally:
        BUS.stop()
    sys.exit(not program.result.wasSuccessful())

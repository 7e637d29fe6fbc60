# SPDX-License-Identifier: LGPL-2.1-or-later
"""The test host, as the bench uses it."""
import json
import os
import subprocess
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CONFIG = "/etc/ephemeral/ephemerald.conf.d/zz-bench.conf"


class Server:
    """A program in the host that answers each line with a line of JSON."""

    def __init__(self, argv):
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"no answer to '{line}'")
        return json.loads(answer)

    def end(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


class Host:
    def __init__(self, name):
        self.tool = [f"{SOURCE}/tests/host/host", "--name", name]

    def is_up(self):
        return subprocess.run([*self.tool, "status"], stdout=subprocess.DEVNULL, check=False).returncode == 0

    def argv(self, *command):
        return [*self.tool, "run", "--", *command]

    def text(self, *command, stdin=None, check=True):
        return subprocess.run(self.argv(*command), input=stdin, stdin=None if stdin else subprocess.DEVNULL,
                              stdout=subprocess.PIPE, check=check).stdout.decode().strip()

    def push(self, path, name):
        with open(path, "rb") as f:
            self.text("sh", "-c", f"cat >/usr/local/bin/{name} && chmod 755 /usr/local/bin/{name}", stdin=f.read())

    def serve(self, *command):
        return Server(self.argv(*command))

    def configure(self, line):
        text = f"[Manager]\n{line}\n".encode()
        self.text("sh", "-c", f"mkdir -p {os.path.dirname(CONFIG)} && cat >{CONFIG} && systemctl stop ephemerald", stdin=text)

    def configure_back(self):
        self.text("sh", "-c", f"rm -f {CONFIG}; systemctl stop ephemerald")

    def manager_cpu_ms(self):
        script = ('pid=$(systemctl show --property=MainPID --value ephemerald.service); '
                  'cat /proc/"$pid"/task/*/schedstat | awk \'{ ns += $1 } END { printf "%.0f", ns }\'')
        return int(self.text("sh", "-c", script)) / 1e6

    def start_sleepers(self, n):
        sleepers = [subprocess.Popen(self.argv("ephemeralctl", "run", "--quiet", "--", "sh", "-c", "echo x; exec sleep 600"),
                                     stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) for _ in range(n)]
        for sleeper in sleepers:
            sleeper.stdout.readline()
        time.sleep(1)
        return sleepers

    def end_sleepers(self, sleepers):
        self.text("sh", "-c", "ephemeralctl list --state=running --json | sed -n 's/.*\"id\": *\"\\([^\"]*\\)\".*/\\1/p' | xargs -n 1 ephemeralctl cancel",
                  check=False)
        for sleeper in sleepers:
            sleeper.stdout.close()
            sleeper.wait()

    def memory_of_machines(self):
        """Private and proportional memory of the QEMUs there are, the mean of each, in MiB."""
        text = self.text("sh", "-c", "for pid in $(pgrep qemu-system); do cat /proc/$pid/smaps_rollup; done")
        sums, n = {}, text.count("[rollup]")
        for line in text.splitlines():
            key, _, rest = line.partition(":")
            if rest.endswith("kB"):
                sums[key] = sums.get(key, 0) + int(rest.split()[0])
        return ((sums["Private_Clean"] + sums["Private_Dirty"]) / n / 1024, sums["Pss"] / n / 1024)

    def run_events(self, *command):
        return [json.loads(line) for line in self.text("ephemeralctl", "run", "--json", "--", *command).splitlines()]

    def machine(self, processor):
        with open("/proc/cpuinfo", encoding="ascii") as f:
            names = [line.split(":")[1].strip() for line in f if line.startswith("model name")]
        return {
            "processor": names[0] if names else processor,
            "processors": os.cpu_count(),
            "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)),
            "kernel": os.uname().release,
            "distribution": self.text("sh", "-c", ". /etc/os-release; echo $PRETTY_NAME"),
            "qemu": self.text("sh", "-c", "qemu-system-x86_64 --version | sed -n '1s/.*version \\([^ ]*\\).*/\\1/p'"),
            "accelerator": json.loads(self.text("ephemeralctl", "--json", "info"))["accelerator"],
        }

# SPDX-License-Identifier: LGPL-2.1-or-later
"""What others take for the same command on the same root: containers, which share their host's kernel. Each that cannot be had is told
with its reason."""
import json
import os
import subprocess
import tempfile

from host import SOURCE

PLACE = "/var/tmp/bench"
PACKAGES = ("crun", "libyajl2", "systemd-container", "libsystemd-shared")
# Unpacked beside the host's own files, not installed: its packages stay as they are.
TOOLS = ["env", f"PATH={PLACE}/tools/usr/bin:/usr/bin:/bin",
         f"LD_LIBRARY_PATH={PLACE}/tools/usr/lib/x86_64-linux-gnu:{PLACE}/tools/usr/lib/x86_64-linux-gnu/systemd"]
CRUN = [*TOOLS, "crun", "run", "--no-new-keyring", "--bundle", f"{PLACE}/bundle", "bench"]
NSPAWN = [*TOOLS, "systemd-nspawn", "--quiet", "--register=no", "--keep-unit", f"--directory={PLACE}/root", "--ephemeral", "echo", "x"]


class Peers:
    def __init__(self, host):
        self.host = host
        self.skipped = {"virtme_ng": "no package of it in Debian 12"}
        self.commands = {}
        reason = self.push_root()
        reason = reason or self.install()
        for name, argv, prepare in (("crun", CRUN, self.prepare_crun), ("nspawn", NSPAWN, lambda: None)):
            why = reason or prepare() or self.try_out(argv)
            if why:
                self.skipped[name] = why
            else:
                self.commands[name] = argv

    def push_root(self):
        """The image's root as a directory in the host."""
        with tempfile.TemporaryDirectory() as place:
            done = subprocess.run(["fsck.erofs", f"--extract={place}/root", f"{SOURCE}/build/images/default/root.erofs"],
                                  capture_output=True, text=True, check=False)
            if done.returncode != 0:
                return f"fsck.erofs: {done.stderr.strip()}"
            tar = subprocess.run(["tar", "-C", place, "-cf", "-", "root"], capture_output=True, check=True).stdout
        self.host.text("sh", "-c", f"rm -rf {PLACE}; mkdir -p {PLACE}/bundle; tar -C {PLACE} -xf -", stdin=tar)
        return None

    def install(self):
        """Their packages, which the host itself cannot fetch."""
        with tempfile.TemporaryDirectory() as place:
            os.chmod(place, 0o777)
            done = subprocess.run(["apt-get", "download", *PACKAGES], cwd=place, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                return f"apt-get download: {done.stderr.strip().splitlines()[-1]}"
            tar = subprocess.run(["tar", "-C", place, "-cf", "-", "."], capture_output=True, check=True).stdout
        self.host.text("sh", "-c", f"mkdir -p {PLACE}/deb {PLACE}/tools; cd {PLACE}/deb; tar -xf -; "
                       f"for deb in *.deb; do dpkg-deb -x $deb {PLACE}/tools; done", stdin=tar)
        return None

    def prepare_crun(self):
        self.host.text("sh", "-c", f"cd {PLACE}/bundle; rm -f config.json; {' '.join(TOOLS)} crun spec")
        config = json.loads(self.host.text("cat", f"{PLACE}/bundle/config.json"))
        config["process"].update(terminal=False, args=["echo", "x"], rlimits=[])
        config["root"] = {"path": f"{PLACE}/root", "readonly": True}
        config["linux"]["resources"] = {}  # a container host has none to give
        self.host.text("sh", "-c", f"cat >{PLACE}/bundle/config.json", stdin=json.dumps(config).encode())

    def try_out(self, argv):
        done = subprocess.run(self.host.argv(*argv), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        return None if done.stdout == "x\n" else f"{(done.stderr or done.stdout).strip()}"

    def turn(self, samples):
        """One of each. Timed inside of the host, from the exec of the tool to its end, which is at most a moment after the output."""
        for name, argv in self.commands.items():
            script = 'a=$(date +%s%N); "$@" >/dev/null; echo $(($(date +%s%N) - a))'
            said = self.host.text("bash", "-c", script, "-", *argv)
            samples.setdefault(name, []).append(int(said) / 1e6)

# SPDX-License-Identifier: Apache-2.0
"""moka report --on: reports of other machines, through an ssh server of this test on 127.0.0.1."""

import getpass
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from case import PROGRAM, Case, moka

SERVER = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
PATIENCE = 60  # seconds until something counts as hanging
# Runs what ssh would run, with programs of the folder that is named first.
HERE = """#!/bin/sh
PATH="{tools}:$PATH" TMPDIR="{folder}" sh -c "$2"
exit $?
"""


class On(Case):
    """A machine is a folder for its temporary files, and a program that runs commands there."""

    def setUp(self):
        super().setUp()
        self.there = self.folder / "there"
        self.tools = self.folder / "tools"
        self.there.mkdir()
        self.tools.mkdir()
        self.environment = {**os.environ, "MOKA_RATES": "off"}  # of one device, the reference's, they are measured at once

    def script(self, path, text):
        path.write_text(text)
        path.chmod(0o755)
        return path

    def tool(self, name, text):
        self.script(self.tools / name, "#!/bin/sh\n" + text + "\n")

    def here(self):
        return self.script(self.folder / "here", HERE.format(tools=self.tools, folder=self.there))

    def report(self, *arguments, ssh=None, model=None):
        options = ("--threads", "1", "--seconds", "0.05", "--device", "reference", "--json")
        done = subprocess.run([PROGRAM, "report", model or self.affine(), *options, "--ssh", str(ssh or self.here()), *map(str, arguments)],
                              capture_output=True, text=True, timeout=PATIENCE, env=self.environment, stdin=subprocess.DEVNULL)
        self.assertEqual(list(self.there.iterdir()), [], "left there")
        done.stderr = re.sub("moka report: .*measuring the speed of this machine takes .*\n", "", done.stderr)
        return done

    def settings(self, done):
        return {s["name"]: s for s in json.loads(done.stdout)["settings"]}

    def fails(self, words, *arguments, ssh=None):
        done = self.report("--on", "lab", "--only-on", *arguments, ssh=ssh)
        self.assertEqual(done.returncode, 3, done.stderr)
        settings = self.settings(done)
        self.assertEqual(list(settings), ["lab"])
        self.assertRegex(settings["lab"]["error"], words)
        self.assertEqual(done.stderr, f"moka report: lab: {settings['lab']['error']}\n")


class Hosts(On):
    def test_an_older_c_library_is_replaced(self):
        self.tool("getconf", "echo glibc 2.17")
        long = Path(self.affine()).rename(self.folder / ("long" * 24 + ".mlmodelc"))  # more than a name of tar holds in one field
        done = self.report("--on", "old", "--only-on", model=long)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        answer = json.loads(done.stdout)
        self.assertEqual([s["name"] for s in answer["settings"]], ["old: 1 thread"])
        self.assertEqual(answer["processors"], os.cpu_count())
        self.tool("tar", '/bin/tar "$@"; rm "$4"/lib/c/ld*')
        self.fails("^the program does not run on the host: ")
        (self.tools / "getconf").unlink()  # this machine's own is new enough
        self.assertEqual(self.report("--on", "new", "--only-on").returncode, 0)

    def test_files_of_inputs_go_along(self):
        value = self.folder / "it's x.json"
        value.write_text("[[1, 2, 3, 4]]")
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        done = self.report("--on", "lab", "--only-on", "-i", "x=@it's x.json", "-i", "y=[[1,1,1,1]]")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertGreater(self.settings(done)["lab: 1 thread"]["steady"]["count"], 0)
        done = self.report("--on", "lab", "-i", "x=@absent.json")
        self.assertEqual((done.returncode, done.stderr),
                         (2, "moka report: --input x=@absent.json: there is no such file to copy\n"))

    def test_machines_that_cannot_run_it(self):
        self.tool("uname", 'case $1 in -m) echo pdp11;; *) exec /bin/uname "$@";; esac')
        self.fails(r"^the host is Linux/pdp11, this program is for Linux/")
        (self.tools / "uname").unlink()
        self.tool("mktemp", "exit 1")
        self.fails("^no temporary folder can be made on the host$")
        (self.tools / "mktemp").unlink()
        self.tool("tar", "cat >/dev/null; exit 2")
        self.fails("^the files cannot be unpacked on the host$")
        self.tool("tar", '/bin/tar "$@"; echo "echo broken; exit 0" > "$4/run"')
        self.fails("^what came is not a report: ")
        self.tool("tar", '/bin/tar "$@"; echo no >"$4/moka"; rm "$4"/lib/c/ld*')
        self.fails("^the program does not run on the host: ")
        (self.tools / "tar").unlink()
        self.fails("^/absent/ssh cannot be started: No such file", ssh="/absent/ssh")

    def test_one_host_of_two_fails(self):
        ssh = self.script(self.folder / "some", f'#!/bin/sh\n[ "$1" = good ] || {{ echo "$1: Connection refused" >&2; exit 255; }}\n'
                          + f'exec {self.here()} "$@"\n')
        done = self.report("--on", "bad,good", ssh=ssh)
        self.assertEqual(done.returncode, 3)
        settings = self.settings(done)
        self.assertEqual(list(settings), ["1 thread", "bad", "good: 1 thread"])
        self.assertEqual(settings["bad"]["error"], "bad: Connection refused")
        for name in ("1 thread", "good: 1 thread"):
            self.assertGreater(settings[name]["steady"]["count"], 0)

    def test_wrong_use(self):
        for arguments, words in ((("--on", "-oProxyCommand=x"), "expected a host"), (("--on", "a,a"), "given twice"),
                                 (("--only-on",), "expected hosts"), (("--on", "a", "--ssh", "ssh 'x"), "not closed")):
            done = moka("report", self.affine(), *arguments)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(words, done.stderr)


@unittest.skipUnless(SERVER and shutil.which("ssh"), "openssh-server or openssh-client is not installed")
class Ssh(On):
    def setUp(self):
        super().setUp()
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / name], check=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        config = self.folder / "sshd_config"
        config.write_text(f"""ListenAddress 127.0.0.1:{self.port}
HostKey {self.folder}/host
AuthorizedKeysFile {self.folder}/user.pub
PidFile none
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
SetEnv TMPDIR={self.there}
""")
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # where sshd of root separates its privileges
        server = subprocess.Popen([SERVER, "-D", "-e", "-f", config], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(server.stderr.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.terminate)
        line = server.stderr.readline()
        self.assertIn("listening", line)
        known = self.folder / "known"
        known.write_text(f"[127.0.0.1]:{self.port} " + (self.folder / "host.pub").read_text())
        self.ssh = (f"ssh -F none -p {self.port} -i {self.folder}/user -o IdentitiesOnly=yes -o BatchMode=yes "
                    f"-o UserKnownHostsFile={known} -o StrictHostKeyChecking=yes")

    def test_machines_side_by_side(self):
        host = f"{getpass.getuser()}@127.0.0.1"
        page = self.folder / "report.html"
        done = self.report("--on", host, "-o", page, ssh=self.ssh)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        settings = self.settings(done)
        self.assertEqual(list(settings), ["1 thread", f"{host}: 1 thread"])
        for s in settings.values():
            self.assertGreater(s["steady"]["count"], 0)
            self.assertEqual([o["name"] for o in s["operations"]], [o["name"] for o in settings["1 thread"]["operations"]])
        self.assertIn(f"{host}: 1 thread", page.read_text())

    def test_a_server_that_refuses(self):
        with tempfile.TemporaryDirectory() as other:
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{other}/user"], check=True)
            self.fails("Permission denied", ssh=self.ssh.replace(f"-i {self.folder}/user", f"-i {other}/user -o HostName=127.0.0.1 -o HostKeyAlias=[127.0.0.1]:{self.port}"))

    def test_what_runs_there_ends_with_the_program(self):
        running = subprocess.Popen([PROGRAM, "report", self.affine(), "--on", "127.0.0.1", "--only-on", "--seconds", "100", "--ssh", self.ssh],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env=self.environment)
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        self.eventually(lambda: list(self.there.glob("moka-report-*/*/moka-report-*")), "a measurement")
        running.send_signal(signal.SIGKILL)
        self.eventually(lambda: not list(self.there.iterdir()), "the end of the other side")

    def eventually(self, condition, what):
        end = time.monotonic() + PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), end, f"waited in vain for {what}")
            time.sleep(0.02)


if __name__ == "__main__":
    unittest.main()

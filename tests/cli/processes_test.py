# SPDX-License-Identifier: Apache-2.0
"""Child processes end with the process that started them, also when SIGKILL ends it; a traced command goes on."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from case import PROGRAM, Case

# A prediction on the simulator takes a minute, so that what measures it is still at work when its parent ends.
SLOW = {"MOKA_SIMULATOR_MS": "60000", "MOKA_RATES": "off"}
STARTS = """
import os, subprocess, sys, time
child = subprocess.Popen(sys.argv[1:], env={**os.environ, "MOKA_PARENT": str(os.getpid())}, stdout=subprocess.DEVNULL)
time.sleep(600)
"""


def is_running(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children_of(process):
    found = []
    for file in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            found += [int(child) for child in file.read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def descendants_of(process):
    children = children_of(process)
    return children + [d for c in children for d in descendants_of(c)]


class Processes(Case):
    def start(self, *arguments, program=PROGRAM, **more):
        process = subprocess.Popen([str(program), *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env={**os.environ, **SLOW, "TMPDIR": str(self.folder), **more}, text=True)

        def end():
            process.kill()
            process.communicate()

        self.addCleanup(end)
        return process

    def eventually(self, condition, what):
        for _ in range(1200):
            found = condition()
            if found:
                return found
            time.sleep(0.05)
        self.fail(f"not within a minute: {what}")

    def wait_for_descendants(self, process, count):
        return self.eventually(lambda: len(found := descendants_of(process.pid)) >= count and found, f"{count} processes")

    def end_with(self, parent, descendants):
        self.assertTrue(all(map(is_running, descendants)))
        parent.kill()
        try:
            self.eventually(lambda: not any(map(is_running, descendants)), f"the end of {descendants}")
        finally:
            for process in filter(is_running, descendants):
                os.kill(process, signal.SIGKILL)

    def test_what_measures_a_report_ends(self):
        rates = self.folder / "rates.json"
        self.ends(0, "rates", "--rates", rates)  # or a report measures them in another process
        report = self.start("report", self.affine(), "--device", "simulator", "--json", MOKA_RATES=str(rates))
        # The model is first compiled in another process, which takes milliseconds.
        self.eventually(lambda: [c for c in children_of(report.pid) if time.sleep(0.5) or is_running(c)], "a child")
        self.end_with(report, descendants_of(report.pid))

    def test_what_measures_for_the_viewer_ends(self):
        viewer = self.start("view", self.affine(), "--device", "simulator", "--no-open")
        address = viewer.stdout.readline().strip()

        def report():
            request = urllib.request.Request(address + "api/report", json.dumps({}).encode(), {"Content-Type": "application/json"})
            try:
                urllib.request.urlopen(request, timeout=600).read()
            except (OSError, urllib.error.URLError):
                pass  # the server is killed

        asks = threading.Thread(target=report)
        asks.start()
        try:
            self.end_with(viewer, self.wait_for_descendants(viewer, 2))
        finally:
            asks.join()

    def test_python_that_computes_the_other_side_of_verify_ends(self):
        python = self.folder / "python"
        python.write_text("#!/bin/sh\nexec sleep 600\n")
        python.chmod(0o755)
        other = self.folder / "other.onnx"
        other.write_bytes(b"")
        verify = self.start("verify", self.affine(), "--against", other, MOKA_PYTHON=str(python))
        self.end_with(verify, self.wait_for_descendants(verify, 1))

    def test_a_program_that_names_its_parent_ends(self):
        parent = self.start("-c", STARTS, PROGRAM, "view", self.affine(), "--no-open", program=sys.executable)
        self.end_with(parent, self.wait_for_descendants(parent, 2))

    def test_a_child_of_another_parent_does_not_end_with_the_named_one(self):
        # The variable is not handed on: what a traced command starts has the command as its parent.
        shown = self.start("trace", "-o", self.folder / "out.pftrace", "--", "env", MOKA_PARENT=str(os.getpid())).communicate()[0]
        self.assertIn("MOKA_TRACE=", shown)
        self.assertNotIn("MOKA_PARENT", shown)

    def test_a_traced_command_outlives_a_killed_tracer(self):
        tracer = self.start("trace", "-o", self.folder / "out.pftrace", "--", "sleep", "600")
        command = self.wait_for_descendants(tracer, 1)[0]
        tracer.kill()
        tracer.wait()
        time.sleep(0.3)
        self.assertTrue(is_running(command))
        os.kill(command, signal.SIGKILL)

    def test_a_tracer_hands_signals_on_and_collects_the_trace(self):
        out = self.folder / "out.pftrace"
        for number in (signal.SIGTERM, signal.SIGHUP):
            tracer = self.start("trace", "-o", out, "--", PROGRAM, "predict", self.affine(), "--device", "simulator",
                                "--input", "random")
            command = self.wait_for_descendants(tracer, 1)
            self.eventually(lambda: any(p.stat().st_size > 0 for p in self.folder.glob("moka-trace-*/*.pftrace")), "a trace")
            tracer.send_signal(number)
            messages = tracer.communicate()[1]
            self.assertEqual(tracer.returncode, 128 + number, messages)
            self.assertIn("open it at ui.perfetto.dev", messages)
            self.assertFalse(any(map(is_running, command)))
            self.assertEqual(list(self.folder.glob("moka-trace-*")), [])


if __name__ == "__main__":
    unittest.main()

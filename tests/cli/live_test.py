# SPDX-License-Identifier: Apache-2.0
"""moka trace --pid: programs that run are attached to, recorded, and concluded upon."""

import json
import os
import select
import signal
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from case import PROGRAM, Case, moka

OUTSIDER = Path(os.environ.get("MOKA_EXAMPLES", ".")) / "example_load_in_a_loop"
PATIENCE = 120  # seconds until something counts as hanging; nothing waits that long on a machine that works


@unittest.skipUnless(OUTSIDER.exists(), f"{OUTSIDER.name} is not built")
class Live(Case):
    def setUp(self):
        super().setUp()
        keeper = tempfile.TemporaryDirectory()
        self.addCleanup(keeper.cleanup)
        self.run_dir = Path(keeper.name)
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": str(self.run_dir)}
        for name in ("MOKA_TRACE", "MOKA_TRACE_SOCKET", "MOKA_TRACE_SIGNAL"):
            self.environment.pop(name, None)

    def outsider(self, *arguments, **variables):
        """Starts the program, and waits until it has predicted. Another one may have the model open."""
        model = self.folder / "affine.mlmodelc"
        if not model.exists():
            self.affine()
        running = subprocess.Popen([OUTSIDER, model, str(PATIENCE), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True, env={**self.environment, **{k: str(v) for k, v in variables.items()}})
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        self.addCleanup(running.stdout.close)
        self.addCleanup(running.stderr.close)
        self.assertEqual(running.stdout.readline(), "predicts\n")
        return running

    def moka(self, *arguments):
        return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE, env=self.environment,
                              stdin=subprocess.DEVNULL)

    def start(self, *arguments):
        running = subprocess.Popen([PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=self.environment, stdin=subprocess.DEVNULL,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # jobs of scripts ignore it
        self.addCleanup(running.wait)
        self.addCleanup(running.kill)
        self.addCleanup(running.stdout.close)
        self.addCleanup(running.stderr.close)
        return running

    def record(self, program, *arguments, seconds="0.1"):
        out = self.folder / "live.pftrace"
        done = self.moka("trace", "--pid", program.pid, "--seconds", seconds, "-o", out, "--json", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def eventually(self, condition, what):
        end = time.monotonic() + PATIENCE
        while not condition():
            self.assertLess(time.monotonic(), end, f"waited in vain for {what}")
            time.sleep(0.02)

    def sockets(self):
        return sorted(p.name for p in (self.run_dir / "moka").glob("*")) if (self.run_dir / "moka").exists() else []

    def test_an_outsider_is_recorded_and_concluded_upon(self):
        program = self.outsider(MOKA_TRACE_SOCKET="1")
        self.assertEqual(self.sockets(), [f"{program.pid}.sock"])
        answer = self.record(program)
        found = {c["rule"]: c for c in answer["conclusions"]}["loaded-repeatedly"]
        self.assertRegex(found["text"], r"^loaded \d+ times for \d+ predictions: keep the model$")
        self.assertGreater(found["count"], 2)
        self.assertGreater(found["seconds"], 0)
        self.assertEqual(found["model"], "affine.mlmodelc")
        self.assertIn(str(program.pid), found["process"])
        for event in found["events"]:
            self.assertEqual((event["lane"], event["name"]), ("Activity", "load"))
            self.assertEqual(event["thread"].split(",")[0], f"thread {program.pid}")
            self.assertEqual(event["details"]["path"], str(self.folder / "affine.mlmodelc"))
            self.assertTrue(0 <= event["start"] <= answer["seconds"])
        # The same from the file, in the terminal and as a page.
        trace, page = self.folder / "live.pftrace", self.folder / "page.html"
        self.assertIn(found["text"], self.ends(0, "trace", "conclude", trace).stdout)
        self.assertIn(found["text"], self.ends(0, "trace", "summary", trace).stdout)
        self.assertEqual(json.loads(self.ends(0, "trace", "conclude", trace, "--json").stdout)["conclusions"], answer["conclusions"])
        self.ends(0, "trace", "conclude", trace, "-o", page)
        self.assertIn(found["text"], page.read_text())
        # It runs on, and can be recorded again.
        self.assertIsNone(program.poll())
        self.assertGreater(len(self.record(program)["groups"]), 0)

    def test_a_kept_model_is_no_fault_and_has_its_lanes(self):
        program = self.outsider("keep", MOKA_TRACE_SOCKET="1")
        listed = json.loads(self.moka("trace", "--list", "--json").stdout)
        self.assertEqual([(p["pid"], [m["path"] for m in p["models"]]) for p in listed], [(program.pid, [str(self.folder / "affine.mlmodelc")])])
        self.assertIn("affine.mlmodelc", self.moka("trace", "--list").stdout)
        answer = self.record(program)
        self.assertNotIn("loaded-repeatedly", [c["rule"] for c in answer["conclusions"]])
        kinds = {(g["lane"], g["kind"]) for g in answer["groups"] if g["model"] == "affine.mlmodelc"}
        self.assertLessEqual({("Activity", "loaded"), ("Activity", "predict"), ("Compute", "stretch")}, kinds)
        self.assertNotIn(("Activity", "load"), kinds)

    def test_a_ring_keeps_the_newest_events(self):
        program = self.outsider(MOKA_TRACE_SOCKET="1")
        whole = self.record(program)
        ring = self.record(program, "--ring", "16K", seconds="0.3")
        self.assertEqual(whole["leftOut"], 0)
        self.assertGreater(ring["leftOut"], 0)
        count = sum(g["count"] for g in ring["groups"])
        self.assertTrue(0 < count <= 16384 // 32, count)
        last = self.record(program, "--last", "0.05", seconds="0.3")
        self.assertGreater(last["leftOut"], 0)
        self.assertLess(last["seconds"], 0.3)
        self.assertIn("16 KB", self.moka("trace", "--pid", program.pid, "--ring", "16 KB").stderr)

    def test_a_ring_of_a_command(self):
        out = self.folder / "ring.pftrace"
        done = self.moka("trace", "--ring", "4K", "-o", out, "--", PROGRAM, "predict", self.affine(), "--input", "random", "--repeat", "200")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("left out", done.stderr)
        answer = json.loads(self.ends(0, "trace", "summary", out, "--json").stdout)
        self.assertGreater(answer["leftOut"], 0)
        self.assertIn("predict", [g["kind"] for g in answer["groups"]])

    def test_signals_end_a_recording(self):
        program = self.outsider(MOKA_TRACE_SOCKET="1")
        for number in (signal.SIGINT, signal.SIGTERM):
            out = self.folder / f"{number}.pftrace"
            tracer = self.start("trace", "--pid", program.pid, "-o", out)
            self.eventually(lambda: out.exists() and out.stat().st_size > 1000, "a trace")
            tracer.send_signal(number)
            shown, messages = tracer.communicate(timeout=PATIENCE)
            self.assertEqual(tracer.returncode, 0, messages)
            self.assertIn("until Ctrl-C", messages)
            self.assertIn("keep the model", shown)

    def test_a_killed_tracer_leaves_a_valid_file_and_the_program(self):
        program = self.outsider(MOKA_TRACE_SOCKET="1")
        out = self.folder / "killed.pftrace"
        tracer = self.start("trace", "--pid", program.pid, "-o", out)
        self.eventually(lambda: out.exists() and out.stat().st_size > 1000, "a trace")
        tracer.kill()
        tracer.communicate()
        self.assertGreater(json.loads(self.ends(0, "trace", "summary", out, "--json").stdout)["seconds"], 0)
        self.assertIsNone(program.poll())
        # The recording ended, so that another one may begin.
        self.eventually(lambda: self.moka("trace", "--pid", program.pid, "--seconds", "0.1", "-o", out).returncode == 0, "another recording")

    def test_a_killed_program_leaves_a_valid_file(self):
        program = self.outsider(MOKA_TRACE_SOCKET="1")
        out = self.folder / "t.pftrace"
        tracer = self.start("trace", "--pid", program.pid, "-o", out)
        self.eventually(lambda: out.exists() and out.stat().st_size > 1000, "a trace")
        program.kill()
        shown, messages = tracer.communicate(timeout=PATIENCE)
        self.assertEqual(tracer.returncode, 0, messages)
        self.assertIn("ended", messages)
        self.assertIn("keep the model", shown)
        # The next process removes the socket of the killed one.
        program.wait()
        self.assertEqual(self.sockets(), [f"{program.pid}.sock"])
        again = self.outsider(MOKA_TRACE_SOCKET="1")
        self.assertEqual(self.sockets(), [f"{again.pid}.sock"])

    def test_only_one_records_at_a_time(self):
        program = self.outsider(MOKA_TRACE_SOCKET="1")
        out = self.folder / "t.pftrace"
        tracer = self.start("trace", "--pid", program.pid, "-o", out)
        self.eventually(lambda: out.exists() and out.stat().st_size > 1000, "a trace")
        second = self.moka("trace", "--pid", program.pid, "--seconds", "0.1", "-o", self.folder / "second.pftrace")
        self.assertEqual(second.returncode, 3)
        self.assertIn("recorded already", second.stderr)
        self.assertFalse((self.folder / "second.pftrace").exists())
        self.assertEqual(len(json.loads(self.moka("trace", "--list", "--json").stdout)), 1)
        tracer.send_signal(signal.SIGINT)
        tracer.communicate(timeout=PATIENCE)

    def test_a_program_that_traces_itself_says_so(self):
        own = self.folder / "own.pftrace"
        program = self.outsider(MOKA_TRACE_SOCKET="1", MOKA_TRACE=own)
        done = self.moka("trace", "--pid", program.pid, "--seconds", "0.1", "-o", self.folder / "t.pftrace")
        self.assertEqual(done.returncode, 3)
        self.assertIn(f"already traces to '{own}'", done.stderr)

    def test_a_signal_opens_the_socket(self):
        program = self.outsider(MOKA_TRACE_SIGNAL="SIGUSR2")
        self.assertEqual(self.sockets(), [])
        self.assertIn("loaded-repeatedly", [c["rule"] for c in self.record(program)["conclusions"]])
        self.assertEqual(self.sockets(), [f"{program.pid}.sock"])
        other = self.outsider(MOKA_TRACE_SIGNAL="SIGKILL")
        other.kill()
        self.assertIn("expected a signal such as SIGUSR2", other.communicate()[1])

    def test_who_is_not_asked_is_left_alone(self):
        program = self.outsider()
        threads = {p.read_text().strip() for p in Path(f"/proc/{program.pid}/task").glob("*/comm")}
        self.assertNotIn("moka-live", threads)
        self.assertEqual(self.sockets(), [])
        self.assertIn("No process", self.moka("trace", "--list").stdout)
        done = self.moka("trace", "--pid", program.pid, "--seconds", "0.1", "-o", self.folder / "t.pftrace")
        self.assertEqual(done.returncode, 3)
        self.assertIn("start it with MOKA_TRACE_SOCKET=1", done.stderr)
        self.assertFalse((self.folder / "t.pftrace").exists())
        gone = subprocess.Popen(["true"])
        gone.wait()
        self.assertIn("there is none", self.moka("trace", "--pid", gone.pid).stderr)

    def test_foreign_files_stay_and_the_program_runs(self):
        text = self.folder / "text"
        text.write_text("keep me")
        program = self.outsider(MOKA_TRACE_SOCKET=text)
        program.kill()
        self.assertIn(f"MOKA_TRACE_SOCKET: socket '{text}': is not a socket of this user and is not replaced", program.communicate()[1])
        self.assertEqual(text.read_text(), "keep me")

    def test_a_path_of_the_users_choice(self):
        path = self.run_dir / "mine.sock"
        program, second = (self.outsider(MOKA_TRACE_SOCKET=path) for _ in range(2))
        for p in (program, second):
            self.assertGreater(len(self.record(p)["groups"]), 0)
        done = self.moka("trace", "--socket", path, "--seconds", "0.1", "-o", self.folder / "t.pftrace")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"process {program.pid} ", done.stderr)
        done = self.moka("trace", "--socket", self.run_dir / "absent", "-o", self.folder / "t.pftrace")
        self.assertEqual(done.returncode, 3)

    def test_a_socket_that_was_removed_comes_back(self):
        program = self.outsider(MOKA_TRACE_SOCKET="1")
        (self.run_dir / "moka" / f"{program.pid}.sock").unlink()
        self.eventually(lambda: self.sockets() != [], "the socket")
        self.assertGreater(len(self.record(program)["groups"]), 0)

    def test_what_is_no_request_gets_an_error_and_the_door_stays_open(self):
        program = self.outsider(MOKA_TRACE_SOCKET="1")
        path = str(self.run_dir / "moka" / f"{program.pid}.sock")
        for sent, part in ((b"GET / HTTP/1.1\n", b"error expected"), (b"moka-trace/1 record bytes=x\n", b"error ring"),
                           (b"moka-trace/1 record seconds=-1\n", b"error last"), (b"x" * 100000, b""), (b"", b"")):
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(path)
                try:
                    s.sendall(sent)
                    s.shutdown(socket.SHUT_WR)
                    answer = s.recv(1000)
                except (BrokenPipeError, ConnectionResetError):
                    answer = b""
                self.assertIn(part, answer)
        self.assertGreater(len(self.record(program)["groups"]), 0)

    @unittest.skipIf(os.geteuid(), "only root can act as another user")
    def test_other_users_are_refused(self):
        program = self.outsider(MOKA_TRACE_SOCKET="1")
        path = self.run_dir / "moka" / f"{program.pid}.sock"
        for p in (self.run_dir, self.run_dir / "moka", path):
            p.chmod(0o777)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.setgid(65534)
            os.setuid(65534)
            with socket.socket(socket.AF_UNIX) as s:
                s.connect(str(path))
                try:
                    s.sendall(b"moka-trace/1 list\n")
                    os.write(write, b"got " + s.recv(1000))
                except OSError:
                    os.write(write, b"got ")
            os._exit(0)
        os.waitpid(child, 0)
        self.assertTrue(select.select([read], [], [], PATIENCE)[0])
        self.assertEqual(os.read(read, 1000), b"got ")
        os.close(read)
        os.close(write)

    def test_mistakes(self):
        self.assertIn("--pid", self.ends(2, "trace", "--pid", "x").stderr)
        self.assertIn("--seconds", self.ends(2, "trace", "--seconds", "1", "--", "true").stderr)
        self.assertIn("several", self.ends(2, "trace", "--pid", "1", "--list").stderr)
        self.assertIn("conclude", self.ends(2, "trace", "-o", self.folder / "x.html", "--", "true").stderr)
        self.ends(2, "trace", "conclude")
        self.ends(3, "trace", "conclude", self.folder / "absent")
        self.assertIn(".html", self.ends(2, "trace", "conclude", self.folder / "absent", "-o", self.folder / "x.txt").stderr)
        self.assertIn("no-such-rule", self.ends(2, "trace", "conclude", self.folder / "absent", "--only", "no-such-rule").stderr)

    def test_rules_of_the_user(self):
        program = self.outsider("keep", MOKA_TRACE_SOCKET="1")
        rules = self.folder / "rules.json"
        rules.write_text(json.dumps({"rules": [{"name": "predicts", "says": "predicted {count} times", "where": {"kind": "predict"}}]}))
        answer = self.record(program, "--rules", rules, "--only", "predicts")
        self.assertEqual([c["rule"] for c in answer["conclusions"]], ["predicts"])
        self.assertRegex(answer["conclusions"][0]["text"], r"^predicted \d+ times$")
        rules.write_text("{")
        done = self.moka("trace", "conclude", self.folder / "live.pftrace", "--rules", rules)
        self.assertEqual(done.returncode, 3)
        self.assertIn("rules.json", done.stderr)

    def test_the_rules_are_listed(self):
        listed = json.loads(self.ends(0, "trace", "--list-rules", "--json").stdout)
        self.assertIn("loaded-repeatedly", [r["name"] for r in listed])
        self.assertIn("loaded-repeatedly", self.ends(0, "trace", "--list-rules").stdout)


del Case
if __name__ == "__main__":
    unittest.main()

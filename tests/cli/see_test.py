# SPDX-License-Identifier: Apache-2.0
"""moka report and moka trace from outside."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from case import PROGRAM, Case, moka
from model_files import array_feature, write_program

NET = """program(1.3)
{
    func main<ios18>(tensor<fp32, [1, 16, 24, 24]> x, tensor<fp32, [16, 16, 3, 3]> w) {
        tensor<fp32, [1, 16, 24, 24]> first = conv(x = x, weight = w, pad_type = string("same"))[name = string("first")];
        tensor<fp32, [1, 16, 24, 24]> second = relu(x = first)[name = string("second")];
        tensor<fp32, [1, 16, 24, 24]> z = softmax(x = second, axis = int32(1))[name = string("z")];
    } -> (z);
}
"""
KEPT = tempfile.TemporaryDirectory()
RATES = ["--rates", Path(KEPT.name) / "rates.json"]


def net(folder):
    path = folder / "Net.mlmodelc"
    if path.exists():
        return path
    features = [array_feature("x", [1, 16, 24, 24]), array_feature("w", [16, 16, 3, 3])]
    return write_program(path, NET, features, [array_feature("z", [1, 16, 24, 24])])


class Report(Case):
    @classmethod
    def setUpClass(cls):
        for threads in ("1", "2", str(os.cpu_count())):
            assert moka("rates", *RATES, "--threads", threads).returncode == 0

    def model(self):
        return net(self.folder)

    def report(self, *arguments):
        return json.loads(self.ends(0, "report", self.model(), "--seconds", "0.2", *RATES, "--json", *arguments).stdout)

    def test_settings_stand_side_by_side(self):
        report = self.report("--threads", "1,2", "--precision", "at-least,exact")
        self.assertEqual((report["format"], report["version"]), ("moka-report", 1))
        self.assertEqual([s["name"] for s in report["settings"]], [
            "at-least, 1 thread", "at-least, 2 threads", "exact, 1 thread", "exact, 2 threads"])
        for s in report["settings"]:
            steady = s["steady"]
            self.assertLessEqual(steady["minimum"], steady["median"])
            self.assertLessEqual(steady["median"], steady["p90"])
            self.assertLessEqual(steady["p90"], steady["p99"])
            self.assertLessEqual(steady["p99"], steady["maximum"])
            self.assertAlmostEqual(sum(o.get("share", 0) for o in s["operations"]), 1, places=6)
            self.assertEqual({o["name"] for o in s["operations"] if o["kernel"]} - {"second"}, {"first", "z"})
            for u in s["machine"]["units"]:
                if u["device"] == "cpu" and s["options"]["threads"] in (1, 2):
                    self.assertGreater(u["fp32"], 1e8)
            self.assertEqual(s["machine"]["from"], str(RATES[1]))

    def test_roof_is_measured_where_it_is_not_known(self):
        report = json.loads(self.ends(0, "report", self.model(), "--seconds", "0.1", "--rates", "off", "--json").stdout)
        machine = report["settings"][0]["machine"]
        self.assertEqual(machine["from"], "for this report")
        self.assertRegex(machine["units"][0]["measured"], r"^20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertGreater(machine["units"][0]["bytesPerSecond"], 0)

    def test_operations_and_conversions_cover_the_prediction(self):
        shape = [1, 32, 96, 96]
        text = NET.replace("[1, 16, 24, 24]", str(shape)).replace("[16, 16, 3, 3]", "[32, 32, 3, 3]")
        model = write_program(self.folder / "Large.mlmodelc", text, [array_feature("x", shape), array_feature("w", [32, 32, 3, 3])],
                              [array_feature("z", shape)])
        report = json.loads(self.ends(0, "report", model, "--seconds", "0.2", "--threads", "1", *RATES, "--json").stdout)
        covered = report["settings"][0]["plan"]["coverage"]
        self.assertGreater(covered["fraction"], 0.95)
        self.assertLessEqual(covered["fraction"], 1)
        parts = covered["operationsSeconds"] + covered["conversionsSeconds"]
        self.assertAlmostEqual(parts / covered["predictionSeconds"], covered["fraction"], places=9)

    def test_arithmetic_is_that_of_the_convolution(self):
        for o in self.report()["settings"][0]["operations"]:
            if o["type"] == "conv":
                results = 16 * 24 * 24
                # The fused relu passes once over the result.
                self.assertEqual(o["arithmetic"], results * 16 * 9 * 2 + results * len(o["fused"]))
                self.assertEqual(o["bytesMoved"], 4 * (2 * results + 16 * 16 * 9))
                self.assertIn(o["roof"]["bound"], ("arithmetic", "memory"))

    def test_page_is_one_file_that_holds_the_report(self):
        page = self.folder / "r.html"
        self.ends(0, "report", self.model(), "--seconds", "0.1", *RATES, "-o", page)
        text = page.read_text()
        self.assertNotRegex(text.replace("http://www.w3.org/2000/svg", ""), r"https?://|src=|@import")
        held = re.search(r'<script id="report" type="application/json">(.*?)</script>', text, re.S).group(1)
        self.assertEqual(json.loads(held)["model"]["name"], "Net.mlmodelc")
        self.assertNotIn("<", held)

    def test_compare_finds_what_is_worse_beyond_noise(self):
        old = self.folder / "old.json"
        self.ends(0, "report", self.model(), "--seconds", "0.2", *RATES, "--save", old)
        report = json.loads(old.read_text())

        def saved(name, change):
            changed = json.loads(old.read_text())
            change(changed["settings"][0])
            (self.folder / name).write_text(json.dumps(changed))
            return self.folder / name

        same = self.ends(0, "report", "--compare", old, old, "--json")
        self.assertEqual({c["verdict"] for c in json.loads(same.stdout)["changes"]}, {"same"})
        steady = saved("steady.json", lambda s: s["steady"].update(samples=[1e-3] * 100, p90=1e-3, median=1e-3))
        slow = saved("slow.json", lambda s: s["steady"].update(samples=[2e-3] * 100, p90=2e-3, median=2e-3))
        worse = json.loads(self.ends(1, "report", "--compare", steady, slow, "--json").stdout)
        self.assertEqual(worse["regressions"], 2)
        self.ends(0, "report", "--compare", slow, steady)
        self.ends(0, "report", "--compare", steady, slow, "--tolerance", "2")
        # The same change, while the machine strays as much.
        noisy = saved("noisy.json", lambda s: s["steady"].update(samples=[1e-3] * 50 + [4e-3] * 50, p90=4e-3, median=2e-3))
        verdicts = {c["what"]: c["verdict"] for c in json.loads(
            moka("report", "--compare", noisy, slow, "--json").stdout)["changes"]}
        self.assertEqual(verdicts["prediction"], "same")
        larger = saved("larger.json", lambda s: s["memory"].update(peakBytes=2 * report["settings"][0]["memory"]["peakBytes"]))
        self.assertIn("peak memory", self.ends(1, "report", "--compare", old, larger).stdout)

    def test_mistakes(self):
        done = self.ends(3, "report", self.folder / "absent.mlpackage")
        (self.folder / "x.json").write_text('{"format": "moka-report", "version": 1, "settings": 3}')
        self.assertIn("x.json", self.ends(3, "report", self.folder / "x.json").stderr)
        (self.folder / "y.json").write_text("[1, 2")
        self.assertIn("moka report --save", self.ends(3, "report", self.folder / "y.json").stderr)
        self.assertIn("--threads", self.ends(2, "report", self.model(), "--threads", "none").stderr)
        done = self.ends(2, "report", self.model(), *RATES, "--shape", "x=1xtwo")
        self.assertIn("1x3x224x224", done.stderr)
        self.assertIn("function", self.ends(2, "report", self.model(), *RATES, "--function", "other").stderr)

    def test_slashes_behind_the_name_do_not_count(self):
        plain, slash = (json.loads(self.ends(0, "report", f"{self.model()}{end}", "--seconds", "0.1", *RATES, "--json").stdout)
                        for end in ("", "/"))
        self.assertEqual(slash["model"], plain["model"])

    def test_files_are_checked_before_anything_is_measured(self):
        place = self.folder / "absent" / "x.json"
        for option in ("--save", "-o", "--compare"):
            self.assertIn(str(place), self.ends(3, "report", self.folder / "absent.mlpackage", option, place).stderr)

    def test_an_interrupted_report_leaves_no_files(self):
        place = self.folder / "tmp"
        place.mkdir()
        running = subprocess.Popen([PROGRAM, "report", self.model(), "--seconds", "30", *map(str, RATES)], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, env={**os.environ, "TMPDIR": str(place)}, start_new_session=True,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # jobs of scripts ignore it
        deadline = time.monotonic() + 60
        while not list(place.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.5)
        self.assertNotEqual(list(place.iterdir()), [])
        os.killpg(running.pid, signal.SIGINT)
        self.assertEqual(running.wait(60), -signal.SIGINT)
        self.assertEqual(list(place.iterdir()), [])

    def test_shapes_that_the_model_refuses_say_so(self):
        done = self.ends(2, "report", self.model(), *RATES, "--shape", "x=1x16x25x24")
        self.assertIn("input 'x'", done.stderr)


class Traces(Case):
    def model(self):
        return net(self.folder)

    def test_command_with_children_is_one_trace(self):
        out = self.folder / "t.pftrace"
        shell = f"{PROGRAM} predict {self.model()} --input random >/dev/null; {PROGRAM} predict {self.model()} --input random >/dev/null; exit 5"
        self.ends(5, "trace", "-o", out, "--", "sh", "-c", shell)
        summary = json.loads(self.ends(0, "trace", "summary", out, "--json").stdout)
        predictions = [g for g in summary["groups"] if g["kind"] == "predict"]
        self.assertEqual(len(predictions), 2)
        self.assertEqual(len({g["process"] for g in predictions}), 2)
        self.assertEqual({g["model"] for g in predictions}, {"Net.mlmodelc"})
        self.assertEqual(sum(g["count"] for g in summary["groups"] if g["name"] == "first"), 2)
        text = self.ends(0, "trace", "summary", out).stdout
        for word in ("Activity", "Compute", "conv", "softmax", "predict"):
            self.assertIn(word, text)

    def test_operations_are_those_of_explain(self):
        out = self.folder / "t.pftrace"
        self.ends(0, "trace", "-o", out, "--", PROGRAM, "predict", self.model(), "--input", "random", "--repeat", "3")
        explained = json.loads(self.ends(0, "explain", self.model(), "--json").stdout)["operations"]
        groups = json.loads(self.ends(0, "trace", "summary", out, "--json").stdout)["groups"]
        seen = {(g["name"], g["kind"], g["kernel"], g["device"]): g["count"] for g in groups if g["kernel"]}
        self.assertEqual(set(seen), {(o["name"], o["type"], o["kernel"], o["device"]) for o in explained if o["kernel"]})
        self.assertEqual(len(set(seen.values())), 1)

    def test_mistakes(self):
        self.assertIn("summary FILE", self.ends(2, "trace").stderr)
        self.ends(2, "trace", "summary")
        self.ends(3, "trace", "summary", self.folder / "absent")
        (self.folder / "text").write_text("text")
        self.assertIn("Perfetto", self.ends(3, "trace", "summary", self.folder / "text").stderr)
        self.ends(127, "trace", "-o", self.folder / "t", "--", self.folder / "absent")
        done = self.ends(0, "trace", "-o", self.folder / "t", "--", "true")
        self.assertIn("no process used Moka", done.stderr)

    def test_a_file_that_cannot_be_written_does_not_stop_the_program(self):
        done = subprocess.run([PROGRAM, "predict", self.model(), "--input", "random"], capture_output=True, text=True,
                              env={**os.environ, "MOKA_TRACE": str(self.folder / "none" / "t")})
        self.assertEqual(done.returncode, 0)
        self.assertIn("MOKA_TRACE", done.stderr)


del Case
if __name__ == "__main__":
    unittest.main()

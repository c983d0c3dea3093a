# SPDX-License-Identifier: Apache-2.0
"""moka record, and what commands do with recordings, from outside. make test-swift runs the program itself."""

import base64
import json
import re
import struct
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from case import Case
from model_files import FLOAT16, array_feature, write_program

NET = """program(1.3)
{
    func main<ios18>(tensor<fp16, [1, 4]> x) {
        tensor<fp16, [1, 4]> doubled = add(x = x, y = x)[name = string("double_it")];
        tensor<fp16, [1, 4]> z = softmax(x = doubled, axis = int32(-1))[name = string("weigh")];
    } -> (z);
}
"""


def array(numbers, kind="float16"):
    code = {"float16": "e", "float32": "f"}[kind]
    return {"type": kind, "shape": [1, len(numbers)], "data": base64.b64encode(struct.pack(f"<{len(numbers)}{code}", *numbers)).decode()}


def operation(output, kind, *supported, preferred=None):
    return {"type": f"ios18.{kind}", "outputs": [output], "supported": list(supported), "preferred": preferred or supported[-1], "cost": 0.5}


class Record(Case):
    def net(self):
        return write_program(self.folder / "Net.mlmodelc", NET, [array_feature("x", [1, 4], FLOAT16)], [array_feature("z", [1, 4], FLOAT16)])

    def recording(self, name="recording.json", outputs=(0.25, 0.25, 0.25, 0.25), seconds=0.002, **changes):
        """As the Swift program writes it: keys in order, indented."""
        operations = [operation("doubled", "add", "cpu", "neuralEngine"), operation("z", "softmax", "cpu", "neuralEngine")]
        settings = [{"computeUnits": units, "loadSeconds": [0.4, 0.02], "firstSeconds": 0.01, "predictionSeconds": [seconds] * 20,
                     "outputs": [{"z": array(outputs)}], "plan": {"operations": operations}}
                    for units in ("all", "cpuOnly", "cpuAndGPU", "cpuAndNeuralEngine")]
        root = {"format": "moka-recording", "version": 1, "moka": "0.1.0", "date": "2026-11-29T20:00:00Z",
                "device": {"system": "iOS", "version": "Version 26.1 (Build 23B85)", "machine": "iPhone17,1", "chip": "iPhone17,1",
                           "processors": 6, "memoryBytes": 8 << 30, "thermalState": "nominal", "lowPowerMode": False, "simulated": False},
                "model": {"name": "Net.mlpackage", "function": ""}, "inputs": [{"x": array([1, 1, 1, 1])}], "settings": settings, **changes}
        path = self.folder / name
        path.write_text(json.dumps(root, indent=2, sort_keys=True))
        return path

    def test_a_program_is_written_and_replaced(self):
        net, source = self.net(), self.folder / "Record.swift"
        answer = self.answer("record", net, "--input", "x=[[1,2,3,4]]", "--units", "all,cpuOnly", "-o", source)
        self.assertEqual(answer, {"generated": [str(source)]})
        text = source.read_text()
        cases = json.loads(re.search(r'static let inputs = #"""\n(.*)\n"""#', text).group(1))
        self.assertEqual(cases, [{"x": array([1, 2, 3, 4])}])
        self.assertIn('static let units: [String] = ["all", "cpuOnly"]', text)
        self.assertIn("swiftc -O -parse-as-library Record.swift -o record && ./record Net.mlmodelc recording.json", text)
        self.ends(0, "record", net, "--runs", "3", "--test", "-o", source)
        text = source.read_text()
        self.assertEqual(len(json.loads(re.search(r'static let inputs = #"""\n(.*)\n"""#', text).group(1))), 3)
        self.assertIn("final class RecordTests: XCTestCase", text)
        source.write_text("// my own\n")
        self.assertIn("--force replaces it", self.ends(2, "record", net, "-o", source).stderr)
        self.assertEqual(source.read_text(), "// my own\n")
        self.ends(0, "record", net, "-o", source, "--force")
        self.assertIn("ends with .swift", self.ends(2, "record", net, "-o", self.folder / "record.py").stderr)
        self.assertIn("no input 'y'", self.ends(2, "record", net, "--input", "y=1", "-o", source).stderr)

    def test_large_inputs_get_a_file(self):
        shape = [1, 1200000]
        net = write_program(self.folder / "Wide.mlmodelc", NET.replace("[1, 4]", str(shape)), [array_feature("x", shape, FLOAT16)],
                            [array_feature("z", shape, FLOAT16)])
        (self.folder / "x.json").write_text(json.dumps({"x": [[0.5] * shape[1]]}))
        source = self.folder / "Record.swift"
        self.ends(0, "record", net, "--inputs", self.folder / "x.json", "-o", source)
        self.assertIn('static let inputs = #"""', source.read_text())  # 2.4 MB
        shape = [1, 2400000]
        net = write_program(self.folder / "Wide.mlmodelc", NET.replace("[1, 4]", str(shape)), [array_feature("x", shape, FLOAT16)],
                            [array_feature("z", shape, FLOAT16)])
        printed = self.ends(0, "record", net, "-o", source).stdout
        beside = self.folder / "Record.inputs.json"
        self.assertEqual(printed, f"{source}\n{beside}\n")
        self.assertIn('static let inputsFile = "Record.inputs.json"', source.read_text())
        [case] = json.loads(beside.read_text())
        self.assertEqual(case["x"]["shape"], shape)

    def test_answers_are_verified(self):
        net, recording = self.net(), self.recording()
        answer = self.answer("verify", net, "--against", recording, "--against-units", "cpuAndNeuralEngine")
        self.assertTrue(answer["passed"])
        self.assertEqual(answer["reference"], f"{recording} (iPhone17,1, iOS Version 26.1 (Build 23B85), cpuAndNeuralEngine)")
        wrong = self.recording(outputs=(0.2, 0.3, 0.25, 0.25))
        done = self.ends_no("verify", net, "--against", wrong)
        self.assertIn("output 'z'", done.stdout)
        for key, message in (("settings", "'settings' should be"), ("inputs", "'inputs' should be"), ("device", "'device'")):
            self.assertIn(message, self.ends(3, "verify", net, "--against", self.recording("bad.json", **{key: 7})).stderr)
        self.assertIn("is not a recording", self.ends(2, "verify", net, "--against", net, "--against-units", "all").stderr)
        few = self.recording("few.json", settings=[])
        self.assertIn("it has no answers", self.ends(2, "verify", net, "--against", few).stderr)

    def ends_no(self, *arguments):
        from case import moka
        done = moka(*arguments)
        self.assertEqual(done.returncode, 1, done.stderr)
        return done

    def test_the_placement_is_explained(self):
        net, recording = self.net(), self.recording()
        answer = self.answer("explain", net, "--recording", recording)["recording"]
        self.assertEqual((answer["computeUnits"], answer["same"], answer["elsewhere"]), ("all", 0, 2))
        self.assertEqual([o["name"] for o in answer["operations"]], ["double_it", "weigh"])
        shown = self.ends(0, "explain", net, "--recording", recording).stdout
        self.assertRegex(shown, r"double_it +ios18.add +neuralEngine +cpu neuralEngine +50.0% +cpu")
        answer = self.answer("explain", net, "--recording", recording, "--unit", "neuralEngine")["recording"]
        self.assertEqual((answer["computeUnits"], answer["previewWrongSupport"], answer["previewWrongPreference"]),
                         ("cpuAndNeuralEngine", 0, 2))
        self.assertEqual({(o["preview"], o["rule"]) for o in answer["operations"]}, {("wronglyDoubted", "small-program")})
        shown = self.ends(0, "explain", net, "--recording", recording, "--unit", "neuralEngine").stdout
        self.assertRegex(shown, "the preview doubts it, Core ML prefers neuralEngine +small-program")

    def test_the_rule_of_a_wrong_refusal_is_named(self):
        net, rules = self.net(), self.folder / "my.rules"
        rules.write_text("[no-softmax]\noperations = softmax\nreason = no softmax\nsource = a guess\n")
        shown = self.ends(0, "explain", net, "--rules", rules, "--recording", self.recording(), "--unit", "neuralEngine").stdout
        self.assertIn("wrong support", shown)
        self.assertRegex(shown, r"1 +weigh +ios18.softmax +the preview refuses it, Core ML supports it +no-softmax +a guess")

    def test_reports_read_recordings(self):
        net, recording = self.net(), self.recording()
        report = self.answer("report", recording)
        self.assertEqual([s["steady"]["median"] for s in report["settings"]], [0.002] * 4)
        self.assertRegex(self.ends(0, "report", recording).stdout, r"load +210 ms +210 ms")
        answer = self.answer("report", self.recording("new.json", seconds=0.001), "--compare", recording)
        self.assertEqual({c["verdict"] for c in answer["changes"] if c["what"] == "prediction"}, {"better"})
        self.ends(0, "report", net, "--units", "cpuOnly", "--seconds", "0.05", "--compare", recording)

    def test_recordings_are_compared(self):
        net, recording = self.net(), self.recording()
        self.assertTrue(self.answer("diff", recording, recording)["same"])
        other = self.recording("other.json", outputs=(0.2, 0.3, 0.25, 0.25))
        done = self.ends_no("diff", recording, other)
        self.assertIn("cpuOnly: output 'z'", done.stdout)
        answer = self.answer("diff", net, recording, "--against-units", "cpuAndNeuralEngine")
        self.assertTrue(answer["passed"])
        self.assertEqual(answer["recording"]["same"], 0)
        self.assertIn("expected another recording", self.ends(2, "diff", recording, net).stderr)


if __name__ == "__main__":
    sys.exit(unittest.main())

# SPDX-License-Identifier: Apache-2.0
"""moka verify from outside."""

import json
import os
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from case import AFFINE, MODELS, Case, moka
from model_files import INT32, array_feature, write_npy, write_program

OTHER = """program(1.3)
{
    func main<ios18>(tensor<fp32, [1, 4]> a, tensor<fp32, [1, 4]> y) {
        tensor<fp32, [1, 4]> twice = mul(x = a, y = fp32(FACTOR))[name = string("twice")];
        tensor<fp32, [1, 4]> result = add(x = twice, y = y)[name = string("result")];
    } -> (result);
}
"""

TABLE = """program(1.3)
{
    func main<ios18>(tensor<int32, [64]> ids) {
        tensor<fp32, [1000]> numbers = range_1d(start = fp32(0), end = fp32(1000), step = fp32(1))[name = string("numbers")];
        tensor<fp32, [1000]> rows = ROWS[name = string("rows")];
        tensor<fp32, [64]> y = gather(x = rows, indices = ids, axis = int32(0))[name = string("y")];
    } -> (y);
}
"""


class Verify(Case):
    def affine(self):
        inputs = [array_feature("x", [1, 4]), array_feature("y", [1, 4])]
        return write_program(self.folder / "A.mlmodelc", AFFINE, inputs, [array_feature("z", [1, 4])])

    def other(self, factor):
        inputs = [array_feature("a", [1, 4]), array_feature("y", [1, 4])]
        program = OTHER.replace("FACTOR", str(factor))
        return write_program(self.folder / "B.mlmodelc", program, inputs, [array_feature("result", [1, 4])])

    def test_features_of_other_names_are_paired(self):
        answer = self.answer("verify", self.affine(), "--against", self.other(2))
        self.assertTrue(answer["passed"])
        self.assertEqual(answer["minSnr"], 80)
        [output] = answer["shapes"][0]["outputs"]
        self.assertEqual((output["name"], output["reference"], output["equal"]), ("z", "result", True))
        self.assertEqual(answer["shapes"][0]["predictions"], 3)
        again = self.answer("verify", self.affine_again(), "--against", self.folder / "B.mlmodelc", "--map", "x=a", "--runs", "5")
        self.assertEqual(again["shapes"][0]["outputs"][0]["elements"], 20)

    def affine_again(self):
        return self.folder / "A.mlmodelc"

    def test_a_difference_is_measured(self):
        # 2x + y is 3, 6, 9, 12; 2.5x + y is 3.5, 7, 10.5, 14.
        done = self.moka_fails("verify", self.affine(), "--against", self.other(2.5), "--input", "x=[[1,2,3,4]]", "--input",
                               "y=[[1,2,3,4]]", "--json")
        answer = json.loads(done.stdout)
        [output] = answer["shapes"][0]["outputs"]
        self.assertEqual(output["largestError"], 2)
        self.assertAlmostEqual(output["largestRelativeError"], 1 / 7)
        self.assertAlmostEqual(output["snr"], 16.9020, places=3)  # 10 log10(7^2)
        self.assertIn("expected at least 80.0 dB", answer["failures"][0])
        self.ends(0, "verify", self.folder / "A.mlmodelc", "--against", self.folder / "B.mlmodelc", "--min-snr", "5")
        self.moka_fails("verify", self.folder / "A.mlmodelc", "--against", self.folder / "B.mlmodelc", "--min-snr", "5",
                        "--max-error", "0.001")

    def moka_fails(self, *arguments):
        done = moka(*arguments)
        self.assertEqual(done.returncode, 1, done.stderr)
        return done

    def test_saved_answers(self):
        model = self.affine()
        cases = {"device": "some phone", "cases": [
            {"inputs": {"x": [[1, 2, 3, 4]], "y": [[0, 0, 0, -9]]}, "outputs": {"z": [[2, 4, 6, 0]]}},
            {"inputs": {"x": [[1, 1, 1, 1]], "y": [[1, 1, 1, 1]]}, "outputs": {"z": {"type": "float32", "values": [3, 3, 3, 3]}}}]}
        file = self.folder / "answers.json"
        file.write_text(json.dumps(cases))
        answer = self.answer("verify", model, "--against", file)
        self.assertTrue(answer["passed"])
        self.assertEqual(answer["reference"], f"{file} (some phone)")
        self.assertTrue(answer["shapes"][0]["outputs"][0]["equal"])
        cases["cases"][1]["outputs"]["z"]["values"][2] = 4
        file.write_text(json.dumps(cases))
        self.moka_fails("verify", model, "--against", file)
        for text, message in (("[1", "answers.json"), ("{}", "no object 'outputs'"), ('{"outputs": {}}', "no outputs"),
                              ('{"inputs": {"q": 1}, "outputs": {"z": 1}}', "no input 'q'"), ('{"cases": 3}', "not a list")):
            file.write_text(text)
            self.assertIn(message, self.ends(2, "verify", model, "--against", file).stderr)

    def test_numbers_whose_squares_overflow(self):
        answers = self.folder / "far.json"
        case = {"inputs": {"x": [[1, 2, 3, 4]], "y": [[0, 0, 0, 0]]}, "outputs": {"z": [[1e200, 4, 6, 8]]}}
        answers.write_text(json.dumps(case))
        done = self.moka_fails("verify", self.affine(), "--against", answers, "--json")
        self.assertAlmostEqual(json.loads(done.stdout)["shapes"][0]["outputs"][0]["snr"], 0)

    def test_null_is_nan(self):
        model, answers = self.affine(), self.folder / "nan.json"
        given = ("-i", "x=[[1,2,3,4]]", "-i", "y=[[0,0,0,0]]")
        case = {"outputs": {"z": [[None, 4, 6, 8]]}}
        answers.write_text(json.dumps(case))
        text = self.moka_fails("verify", model, "--against", answers, *given).stdout
        self.assertIn("1 element NaN or infinite on one side only", text)
        write_npy(self.folder / "x.npy", [1, 4], [float("nan"), 2, 3, 4])
        self.ends(0, "verify", model, "--against", answers, "-i", f"x=@{self.folder / 'x.npy'}", "-i", "y=[[0,0,0,0]]")

    def test_ranges_of_indices(self):
        inputs, outputs = [array_feature("ids", [64], INT32)], [array_feature("y", [64])]
        small = TABLE.replace("ROWS", "minimum(x = numbers, y = fp32(9))")
        a = write_program(self.folder / "Table.mlmodelc", TABLE.replace("ROWS", "relu(x = numbers)"), inputs, outputs)
        b = write_program(self.folder / "Small.mlmodelc", small, inputs, outputs)
        self.ends(0, "verify", a, "--against", b, "--range", "ids=0:9")
        self.moka_fails("verify", a, "--against", b, "--range", "ids=5:999")
        self.moka_fails("verify", a, "--against", b)
        self.assertIn("no whole number", self.ends(2, "verify", a, "--against", b, "--range", "ids=0.2:0.8").stderr)

    def test_a_folder_of_arrays(self):
        folder = self.folder / "arrays"
        folder.mkdir()
        for name, values in (("x", [1, 2, 3, 4]), ("y", [0, 0, 0, 0]), ("z", [2, 4, 6, 8])):
            write_npy(folder / f"{name}.npy", [1, 4], values)
        self.ends(0, "verify", self.affine(), "--against", folder)
        write_npy(folder / "z.npy", [1, 4], [2, 4, 6, 9])
        self.moka_fails("verify", self.folder / "A.mlmodelc", "--against", folder)

    def test_a_function_of_several(self):
        both = self.folder / "Both.mlpackage"
        self.ends(0, "decompile", self.affine(), self.folder / "A.mlpackage")
        self.ends(0, "decompile", self.other(3), self.folder / "B.mlpackage")
        self.ends(0, "edit", self.folder / "A.mlpackage", "--add-function", f"second={self.folder / 'B.mlpackage'}", "-o", both)
        # A reference of one function needs no name; one of several has the function of the same name or another.
        self.ends(0, "verify", both, "--function", "second", "--against", self.folder / "B.mlmodelc")
        self.ends(0, "verify", both, "--function", "second", "--against", both)
        self.moka_fails("verify", both, "--function", "second", "--against", self.folder / "A.mlmodelc", "--map", "a=x")
        self.moka_fails("verify", both, "--against-function", "second")
        self.ends(0, "verify", self.folder / "A.mlmodelc", "--against", both, "--against-function", "main")
        self.ends(0, "diff", both, self.folder / "B.mlmodelc", "--function", "second")
        self.assertIn("'third'", self.ends(2, "verify", both, "--against-function", "third").stderr)

    def test_pixels_for_an_array(self):
        brightness = """program(1.3)
{
    func main<ios18>(tensor<fp32, [1, 3, 2, 2]> x) {
        tensor<fp32, [1, 3, 2, 2]> y = mul(x = x, y = fp32(FACTOR))[name = string("y")];
    } -> (y);
}
"""
        for name, factor in (("Pixels", "0x1.010102p-8"), ("Numbers", "1")):
            compiled = write_program(self.folder / f"{name}.mlmodelc", brightness.replace("FACTOR", factor),
                                     [array_feature("x", [1, 3, 2, 2])], [array_feature("y", [1, 3, 2, 2])])
            self.ends(0, "decompile", compiled, self.folder / f"{name}.mlpackage")
        self.ends(0, "edit", self.folder / "Pixels.mlpackage", "--image", "x=rgb", "-o", self.folder / "Pixels.mlpackage", "--force")
        against = ("verify", self.folder / "Pixels.mlpackage", "--against", self.folder / "Numbers.mlmodelc")
        self.assertIn("--pixel-scale", self.moka_fails(*against).stdout)
        self.ends(0, *against, "--pixel-scale", "1/255")
        self.assertIn("'1/0'", self.ends(2, *against, "--pixel-scale", "1/0").stderr)

    def test_other_settings(self):
        self.ends(0, "verify", self.affine(), "--against-device", "reference", "--shapes", "all")

    def test_mistakes(self):
        model = self.affine()
        self.assertIn("--against", self.ends(2, "verify", model).stderr)
        against = ("verify", model, "--against", self.other(2))
        self.assertIn("no input or output 'q'", self.ends(2, *against, "--map", "q=a").stderr)
        self.assertIn("expected a number", self.ends(2, *against, "--min-snr", "much").stderr)
        for option, value in (("--min-snr", "nan"), ("--max-error", "nan"), ("--pixel-scale", "nan"), ("--pixel-bias", "inf/inf")):
            self.assertIn(f"{option}: expected a number", self.ends(2, *against, option, value).stderr)
        for value in ("x=3", "x=0:nan", "x=0:inf"):
            self.assertIn("NAME=LOW:HIGH", self.ends(2, *against, "--range", value).stderr)

    def test_python_that_is_missing(self):
        (self.folder / "net.onnx").write_bytes(b"no model")
        os.environ["MOKA_PYTHON"] = str(self.folder / "nothing")
        self.addCleanup(os.environ.pop, "MOKA_PYTHON")
        text = self.ends(3, "verify", self.affine(), "--against", self.folder / "net.onnx").stderr
        self.assertIn("$MOKA_PYTHON", text)
        os.environ["MOKA_PYTHON"] = "/bin/false"
        text = self.ends(3, "verify", self.folder / "A.mlmodelc", "--against", self.folder / "net.onnx").stderr
        self.assertIn("net.onnx: the interpreter '/bin/false' ended with status 1 and wrote nothing", text)
        os.environ["MOKA_PYTHON"] = sys.executable
        self.ends(3, "verify", self.folder / "A.mlmodelc", "--against", self.folder / "net.onnx")

    def test_a_model_and_what_apples_compiler_made_of_it(self):
        source = MODELS / "silero_vad" / "silero-vad-unified-v6.0.0.mlpackage"
        if not source.exists():
            self.skipTest(f"{source} is not there; MOKA_TEST_MODELS names the folder")
        answer = self.answer("verify", source, "--against", source.with_suffix(".mlmodelc"))
        self.assertTrue(all(o["equal"] for o in answer["shapes"][0]["outputs"]))


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""moka diff from outside."""

import json
import re
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from case import MODELS, Case, moka
from layer_files import floats
from look_files import description, layer, write_model
from model_files import array_feature, field, write_program

NET = """program(1.3)
{
    func main<ios18>(tensor<fp32, [1, 4]> x) {
        tensor<fp32, [1, 4]> a = mul(x = x, y = fp32(SCALE))[name = string("A")];
        tensor<fp32, [1, 4]> b = add(x = a, y = tensor<fp32, [4]>([1, 2, 3, 4]))[name = string("B")];
        tensor<fp32, [1, 4]> c = FUNCTION(x = b)[name = string("C")];
        tensor<fp32, [1, 4]> y = add(x = c, y = x)[name = string("D")];
    } -> (y);
}
"""

# A convolution with a batch norm, and a convolution with the weights of both.
APART = """program(1.3)
{
    func main<ios18>(tensor<fp32, [1, 2, 4]> x) {
        tensor<fp32, [1, 2, 4]> c = conv(x = x, weight = tensor<fp32, [2, 2, 1]>([[[1], [2]], [[3], [4]]]), pad_type = string("valid"))[name = string("conv_1")];
        tensor<fp32, [1, 2, 4]> n = batch_norm(x = c, mean = tensor<fp32, [2]>([0, 0]), variance = tensor<fp32, [2]>([1, 1]), gamma = tensor<fp32, [2]>([2, GAMMA]), beta = tensor<fp32, [2]>([1, 1]), epsilon = fp32(0))[name = string("norm_1")];
        tensor<fp32, [1, 2, 4]> y = relu(x = n)[name = string("relu_1")];
    } -> (y);
}
"""
FOLDED = """program(1.3)
{
    func main<ios18>(tensor<fp32, [1, 2, 4]> x) {
        tensor<fp32, [1, 2, 4]> f = conv(x = x, weight = tensor<fp32, [2, 2, 1]>([[[2], [4]], [[6], [8]]]), bias = tensor<fp32, [2]>([1, 1]), pad_type = string("valid"))[name = string("folded")];
        tensor<fp32, [1, 2, 4]> y = relu(x = f)[name = string("last")];
    } -> (y);
}
"""

# The net with a scale that float16 rounds, computed in float16.
HALF = """program(1.3)
{
    func main<ios18>(tensor<fp32, [1, 4]> x) {
        tensor<fp16, [1, 4]> h = cast(x = x, dtype = string("fp16"))[name = string("to_half")];
        tensor<fp16, [1, 4]> a = mul(x = h, y = fp16(SCALE))[name = string("A")];
        tensor<fp16, [1, 4]> b = add(x = a, y = tensor<fp16, [4]>([1, 2, 3, 4]))[name = string("B")];
        tensor<fp16, [1, 4]> c = relu(x = b)[name = string("C")];
        tensor<fp16, [1, 4]> d = add(x = c, y = h)[name = string("D")];
        tensor<fp32, [1, 4]> y = cast(x = d, dtype = string("fp32"))[name = string("from_half")];
    } -> (y);
}
"""
PACKAGE = Path(__file__).resolve().parents[1] / "golden" / "cached" / "model.mlpackage"


class Diff(Case):
    def program(self, name, text, shape=(1, 4)):
        return write_program(self.folder / name, text, [array_feature("x", shape)], [array_feature("y", shape)])

    def net(self, name, scale="0x1p+1", function="relu", **names):
        text = NET.replace("SCALE", scale).replace("FUNCTION", function)
        text = re.sub(r'string\("(\w)"\)', lambda m: f'string("{names.get(m[1], m[1])}")', text)
        return self.program(name, text)

    def differs(self, *arguments):
        done = moka("diff", *arguments, "--json")
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        return json.loads(done.stdout)

    def test_a_parameter_and_the_way_to_the_output(self):
        found = self.differs(self.net("a.mlmodelc"), self.net("b.mlmodelc", "0x1.8p+1"), "--input", "x=[[1,1,1,1]]")
        [difference] = found["structure"]["differences"]
        self.assertEqual((difference["a"]["name"], difference["parameter"]), ("A", "y"))
        self.assertEqual((difference["first"], difference["second"], difference["kind"]), ("2", "3", "parameter"))
        values = found["values"]
        self.assertEqual(values["first"]["operation"], "A")
        self.assertEqual(values["first"]["operationsOfA"][0]["inputs"], {"x": ["x"]})
        self.assertEqual([v["operation"] for v in values["trail"]], ["A", "B", "C", "D"])
        self.assertEqual(values["trail"][0]["difference"], 1)
        # 1 + relu(2 + 1..4) is 4..7; the difference is 1: 10 log10((25 + 36 + 49 + 64) / 4).
        self.assertAlmostEqual(values["outputs"][0]["snr"], 16.3849, places=3)

    def test_names_do_not_matter(self):
        other = self.net("b.mlmodelc", A="one", B="A", C="B", D="C")
        found = self.answer("diff", self.net("a.mlmodelc"), other)
        self.assertTrue(found["same"])
        self.assertEqual(found["structure"]["renamed"], [["A", "one"], ["B", "A"], ["C", "B"], ["D", "C"]])
        altered = self.net("c.mlmodelc", "0x1.8p+1", A="D", B="C", C="B", D="A")
        [difference] = self.differs(self.folder / "a.mlmodelc", altered)["structure"]["differences"]
        self.assertEqual((difference["a"]["name"], difference["b"]["name"]), ("A", "D"))

    def test_another_operation(self):
        found = self.differs(self.net("a.mlmodelc"), self.net("b.mlmodelc", function="abs"), "--input", "x=[[-4,0,0,0]]")
        [difference] = found["structure"]["differences"]
        self.assertEqual((difference["kind"], difference["first"], difference["second"]), ("type", "relu", "abs"))
        self.assertEqual(found["values"]["first"]["operation"], "C")

    def test_a_difference_that_no_value_shows(self):
        # Where relu gives 0, the scale does not matter downstream.
        arguments = (self.net("a.mlmodelc"), self.net("b.mlmodelc", "0x1.8p+1"), "--input", "x=[[0,0,0,0]]")
        found = self.differs(*arguments)
        self.assertNotIn("first", found["values"])
        self.assertEqual(found["structure"]["differences"][0]["a"]["name"], "A")
        self.ends(0, "diff", *arguments, "--ignore-structure")

    def test_operations_that_were_folded(self):
        apart = self.program("a.mlmodelc", APART.replace("GAMMA", "2"), (1, 2, 4))
        folded = self.program("b.mlmodelc", FOLDED, (1, 2, 4))
        found = self.answer("diff", apart, folded, "--ignore-structure")
        self.assertFalse(found["structure"]["same"])
        [alone] = found["structure"]["onlyInA"]
        self.assertEqual((alone["name"], alone["fusedInto"]["name"]), ("norm_1", "folded"))
        self.assertEqual(found["values"]["compared"], 2)
        altered = self.program("c.mlmodelc", APART.replace("GAMMA", "3"), (1, 2, 4))
        first = self.differs(altered, folded)["values"]["first"]
        self.assertEqual((first["operation"], first["other"]), ("norm_1", "f"))
        self.assertEqual([op["name"] for op in first["operationsOfA"]], ["conv_1", "norm_1"])
        self.assertEqual([op["name"] for op in first["operationsOfB"]], ["folded"])

    def test_a_chain_that_was_folded(self):
        def line(type, name, arguments):
            return f'        tensor<fp32, [1, 2, 4]> {name} = {type}({arguments})[name = string("{name}")];\n'

        def program(file, folded):
            lines, x = "", "x"
            for i in (1, 2, 3):
                last = "y" if i == 3 else f"r{i}" + "_folded" * folded
                weight = "[[[2], [4]], [[6], [8]]]), bias = tensor<fp32, [2]>([1, 1])" if folded else "[[[1], [2]], [[3], [4]]])"
                lines += line("conv", f"c{i}", f'x = {x}, weight = tensor<fp32, [2, 2, 1]>({weight}, pad_type = string("valid")')
                if not folded:
                    numbers = {"mean": 0, "variance": 1, "gamma": 2, "beta": 1}
                    lines += line("batch_norm", f"n{i}", f"x = c{i}, epsilon = fp32(0), " + ", ".join(
                        f"{k} = tensor<fp32, [2]>([{v}, {v}])" for k, v in numbers.items()))
                lines += line("relu", last, f"x = {'c' if folded else 'n'}{i}")
                x = last
            text = "program(1.3)\n{\n    func main<ios18>(tensor<fp32, [1, 2, 4]> x) {\n" + lines + "    } -> (y);\n}\n"
            return self.program(file, text, (1, 2, 4))

        found = self.answer("diff", program("a.mlmodelc", False), program("b.mlmodelc", True), "--ignore-structure")
        structure, values = found["structure"], found["values"]
        self.assertEqual([(op["name"], op["fusedInto"]["name"]) for op in structure["onlyInA"]],
                         [("n1", "c1"), ("n2", "c2"), ("n3", "c3")])
        self.assertEqual(structure["onlyInB"], [])
        self.assertEqual({d["kind"] for d in structure["differences"]} & {"type", "input"}, set())
        self.assertEqual((values["compared"], values["differ"]), (6, 0))

    def test_float32_against_float16(self):
        wide = self.net("a.mlmodelc", "0x1.99999ap-4")  # 0.1
        half = self.program("b.mlmodelc", HALF.replace("SCALE", "0x1.998p-4"))
        numbers = "x=[[1,0.3,-0.7,2.5]]"
        found = self.answer("diff", wide, half, "--input", numbers, "--ignore-structure", "--precision", "exact")
        structure, values = found["structure"], found["values"]
        self.assertEqual((structure["operations"]["paired"], structure["transparent"]), (4, 2))
        self.assertEqual((structure["onlyInA"], structure["onlyInB"]), ([], []))
        self.assertEqual({d["kind"] for d in structure["differences"]} - {"element", "parameter"}, set())
        [scale] = [d for d in structure["differences"] if d["a"]["name"] == "A"]
        self.assertIn("0.1", scale["first"])
        self.assertEqual((values["compared"], values["differ"], values["tolerance"]), (4, 0, 2**-8))
        self.assertLess(values["equal"], 4)
        self.assertGreater(values["outputs"][0]["snr"], 50)
        wrong = self.program("c.mlmodelc", HALF.replace("SCALE", "0x1.a98p-4"))  # 4% more
        first = self.differs(wide, wrong, "--input", numbers, "--ignore-structure", "--precision", "exact")["values"]["first"]
        self.assertEqual(first["operation"], "A")

    def test_palettes(self):
        small = self.folder / "small.mlpackage"
        compress = ("compress", PACKAGE, "--least", 16, "-o", small, "--palette")
        written = [w for w in self.answer(*compress, 6)["weights"] if w["form"]]
        found = self.differs(PACKAGE, small)
        structure, values = found["structure"], found["values"]
        self.assertEqual((structure["onlyInA"], structure["onlyInB"]), ([], []))
        self.assertEqual(structure["operations"]["paired"], structure["operations"]["a"])
        self.assertEqual({d["kind"] for d in structure["differences"]}, {"weight"})
        snr = sorted(d["numbers"]["snr"] for d in structure["differences"])
        self.assertEqual(len(snr), len(written))
        for one, other in zip(snr, sorted(w["signalToNoise"] for w in written)):
            self.assertAlmostEqual(one, other, places=2)
        self.assertEqual((values["same"], values["equal"]), (True, 0))
        self.assertAlmostEqual(values["minSnr"], min(snr[0] - 10, 20), places=6)
        self.assertTrue(all(d["formChanged"] and d["second"].endswith(", 6-bit palette") for d in structure["differences"]))
        self.ends(0, *compress, 4)
        self.ends(0, "diff", PACKAGE, small, "--ignore-structure")
        self.ends(0, *compress, 6)
        self.ends(0, "diff", PACKAGE, small, "--ignore-structure")
        # One bit is more than the tolerance allows, from the first weight on.
        self.ends(0, *compress, 1)
        first = self.differs(PACKAGE, small, "--ignore-structure")["values"]["first"]
        self.assertEqual(first["operation"], structure["differences"][0]["a"]["name"])

    def test_metadata(self):
        a, b = self.folder / "a.mlpackage", self.folder / "b.mlpackage"
        self.ends(0, "edit", PACKAGE, "--author", "me", "-o", a)
        self.ends(0, "edit", PACKAGE, "--author", "you", "--set", "place=here", "-o", b)
        found = self.answer("diff", a, b)
        self.assertTrue(found["same"])
        texts = {f["what"]: (f["a"], f["b"]) for f in found["structure"]["metadata"]}
        self.assertEqual(texts, {"author": ("me", "you"), "'place'": ("", "here")})

    def test_other_settings(self):
        found = self.answer("diff", self.net("a.mlmodelc"), "--against-device", "reference")
        self.assertNotIn("structure", found)
        self.assertTrue(found["values"]["same"])
        half = self.program("half.mlmodelc", HALF.replace("SCALE", "0x1.998p-4"))
        rounded = self.answer("diff", half, "--against-precision", "exact", "--input", "x=[[1,0.3,-0.7,2.5]]")
        self.assertEqual(rounded["values"]["tolerance"], 2**-8)  # the largest that a value is judged by

    def test_sequences_of_old_networks(self):
        embedding = field(1, 3) + field(2, 2) + field(20, floats(1, 2, 3, 4, 5, 6))
        model = self.folder / "Rows.mlmodel"
        spec = field(1, 1) + description([array_feature("x", [1])], [array_feature("y", [2])])
        write_model(model, spec + field(500, layer("rows", 150, embedding, "x", "y")))
        sequence = ("-i", "x=[[[0]],[[2]],[[1]],[[0]]]")  # [sequence, batch, C] for [C]
        answer = self.answer("predict", model, *sequence)
        self.assertEqual(answer["outputs"]["y"]["shape"][0], 4)
        answer = self.answer("diff", model, model, *sequence)
        self.assertEqual([v["equal"] for v in answer["values"]["outputs"]], [True])
        answer = self.answer("verify", model, "--against-device", "reference", *sequence)
        self.assertEqual(answer["shapes"][0]["outputs"][0]["elements"], 8)

    def test_text(self):
        done = moka("diff", self.net("a.mlmodelc"), self.net("b.mlmodelc", "0x1.8p+1"), "--input", "x=[[1,1,1,1]]")
        self.assertEqual(done.returncode, 1)
        self.assertIn("A is the first operation whose value differs", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^A +mul +y +2 +3 ")
        self.assertRegex(done.stdout, r"(?m)^result +different$")

    def test_mistakes(self):
        model = self.net("a.mlmodelc")
        self.assertIn("expected another model", self.ends(2, "diff", model).stderr)
        self.ends(2, "diff", model, model, "--tolerance", "much")
        self.ends(2, "diff", model, "--against-device", "reference", "--structure-only")
        self.ends(3, "diff", model, self.folder / "absent.mlmodel")

    def test_published_models(self):
        folder = MODELS / "silero_vad"
        source = folder / "silero-vad-unified-v6.0.0.mlpackage"
        if not source.exists():
            self.skipTest(f"{source} is not there; MOKA_TEST_MODELS names the folder")
        self.assertTrue(self.answer("diff", source, source.with_suffix(".mlmodelc"))["same"])
        compressed = self.differs(source, folder / "unified_int8.mlpackage")
        self.assertEqual({d["kind"] for d in compressed["structure"]["differences"]}, {"weight"})
        self.assertEqual(compressed["structure"]["onlyInA"] + compressed["structure"]["onlyInB"], [])
        self.assertTrue(compressed["values"]["same"])
        self.assertEqual(compressed["values"]["trail"][0]["operation"], "stft_out_cast_fp16")


if __name__ == "__main__":
    unittest.main()

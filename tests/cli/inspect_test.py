# SPDX-License-Identifier: Apache-2.0
"""`moka inspect`. For a model that Moka cannot run, it shows the content of the file and then the reason."""

import re
import unittest
import zipfile
from pathlib import Path

import look_files
from case import MODELS, Case
from model_files import array_feature, write_program, write_weights


class Inspect(Case):
    def test_for_people(self):
        shown = self.ends(0, "inspect", self.affine(), "--layers").stdout
        for text in ("mlProgram", "iOS 18, macOS 15", "Someone", "MultiArray (Float32 1 x 4)", "3 operations", "doubled"):
            self.assertIn(text, shown)

    def test_json(self):
        model = self.affine()
        facts = self.answer("inspect", model, "--layers", "--weights")
        self.assertEqual(facts["specificationVersion"], 9)
        self.assertEqual(facts["bytes"], sum(f.stat().st_size for f in Path(model).rglob("*") if f.is_file()))
        self.assertEqual([i["name"] for i in facts["functions"][0]["inputs"]], ["x", "y"])
        self.assertEqual(facts["functions"][0]["inputs"][0]["shape"], [1, 4])
        self.assertEqual(facts["operations"]["byType"], {"add": 2, "relu": 1})
        self.assertEqual([o["name"] for o in facts["operations"]["list"]], ["doubled", "sum", "z"])

    def test_defaults_of_optional_inputs(self):
        model = Path(__file__).parent.parent / "golden/detectors/pipeline.mlmodel"
        self.assertRegex(self.ends(0, "inspect", model).stdout, r"iouThreshold +Double +optional, by default 0\.45\n")
        inputs = self.answer("inspect", model)["functions"][0]["inputs"]
        self.assertEqual({i["name"]: i.get("default") for i in inputs},
                         {"image": None, "iouThreshold": 0.45, "confidenceThreshold": 0.25})

    def test_mil(self):
        model = self.affine()
        shown = self.ends(0, "inspect", model, "--mil").stdout
        self.assertTrue(shown.startswith("program("))
        self.assertIn("relu(", shown)
        self.ends(0, "inspect", model, "--mil", "--optimized")
        self.ends(2, "inspect", model, "--optimized")


class Refused(Case):
    """Shows each model as text and as JSON. The text ends with the reason."""

    def looked_at(self, model, reason, *texts):
        done = self.ends(0, "inspect", model, "--layers", "--weights")
        for text in texts:
            self.assertIn(text, done.stdout)
        last = done.stdout.rstrip("\n").split("\n")[-1]
        self.assertTrue(last.startswith("refused: "), done.stdout)
        self.assertIn(reason, last)
        facts = self.answer("inspect", model, "--layers", "--weights")
        self.assertIn(reason, facts["refused"])
        self.assertEqual(f"refused: {facts['refused']}", last)
        return facts

    def test_custom_layer(self):
        facts = self.looked_at(look_files.custom_layer(self.folder / "m.mlmodel"), "odd", "Someone", "MultiArray (Float32 3)",
                               "2 layers", "custom Swish", "dense.weights")
        self.assertEqual([(l["name"], l["type"], l["inputs"]) for l in facts["layers"]["list"]],
                         [("dense", "innerProduct", ["x"]), ("odd", "custom", ["h"])])
        self.assertEqual(facts["layers"]["list"][1]["class"], "Swish")
        weight, = facts["weights"]["list"]
        statistics = weight.pop("statistics")
        self.assertEqual(weight, {"name": "dense.weights", "type": "tensor<fp32, [2, 3]>", "bytes": 24, "storage": "inline"})
        self.assertEqual((statistics["count"], statistics["bits"], sum(statistics["histogram"])), (6, 32, 6))

    def test_unknown_layer(self):
        facts = self.looked_at(look_files.unknown_layer(self.folder / "m.mlmodel"), "new", "unknown layer", "innerProduct")
        self.assertEqual(facts["layers"]["count"], 2)

    def test_unknown_kind(self):
        facts = self.looked_at(look_files.unknown_kind(self.folder / "m.mlmodel"), "field 4711", "Someone",
                               "unknown (field 4711)", "MultiArray (Float32 2)")
        self.assertEqual(facts["type"], "unknown (field 4711)")
        self.assertEqual(facts["functions"][0]["inputs"][0]["shape"], [3])

    def test_unreadable_feature(self):
        facts = self.looked_at(look_files.unreadable_feature(self.folder / "m.mlmodel"), "odd", "faults", "input 'odd'",
                               "dense.weights")
        self.assertEqual([f["name"] for f in facts["functions"][0]["inputs"]], ["x"])
        self.assertEqual(len(facts["faults"]), 1)

    def test_missing_weights(self):
        facts = self.looked_at(look_files.missing_weights(self.folder / "m.mlmodelc"), "weight.bin", "linear", "file, missing",
                               "weights of 1 array cannot be read")
        self.assertEqual(facts["operations"]["byType"], {"linear": 1})
        weight = facts["weights"]["list"][0]
        self.assertEqual((weight["bytes"], weight["available"]), (64, False))
        self.assertNotIn("statistics", weight)

    def test_one_damaged_weight_leaves_the_others(self):
        model = self.folder / "m.mlmodelc"
        values = write_weights(model, ("f", [1] * 4), ("f", [2] * 4))
        text = """program(1.3)
{
    func main<ios18>(tensor<fp32, [4]> x) {
        tensor<fp32, [4]> a = const()[name = string("a"), val = tensor<fp32, [4]>%s];
        tensor<fp32, [4]> b = const()[name = string("b"), val = tensor<fp32, [4]>%s];
        tensor<fp32, [4]> h = add(x = x, y = a)[name = string("h")];
        tensor<fp32, [4]> y = add(x = h, y = b)[name = string("y")];
    } -> (y);
}
""" % tuple(values)
        write_program(model, text, [array_feature("x", [4])], [array_feature("y", [4])])
        weights = model / "weights/weight.bin"
        weights.write_bytes(weights.read_bytes()[:64] + bytes(64) + weights.read_bytes()[128:])
        facts = self.looked_at(model, "weight.bin", "file, missing", "weights of 1 array cannot be read")
        self.assertEqual([(w["name"], w.get("available", True)) for w in facts["weights"]["list"]], [("a", False), ("b", True)])

    def test_other_files_as_weights(self):
        archive = self.folder / "archive.zip"
        with zipfile.ZipFile(archive, "w") as z:
            z.writestr("weight.bin", bytes(100))
        for name, content, kind in (
            ("a", b"\x89PNG\r\n\x1a\n" + bytes(80), "a PNG picture"),
            ("b", b"just some words\n" * 9, "text ('just some words')"),
            ("c", archive.read_bytes(), "a zip archive"),
            ("d", b"\x08\x07\x12\x07pytorch\x3a\x02\x0a\x00\x42\x02\x10\x0d" + b"\x3a\x40" + bytes(64), "an ONNX model"),
            ("e", b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 1234\n", "a Git LFS pointer"),
            ("f", b"", "an empty file"),
        ):
            with self.subTest(kind):
                model = look_files.missing_weights(self.folder / f"{name}.mlmodelc")
                weights = self.folder / f"{name}.mlmodelc/weights/weight.bin"
                weights.parent.mkdir()
                weights.write_bytes(content)
                for command in ("predict", "explain", "bench"):
                    said = self.ends(3, command, model).stderr
                    self.assertIn("weights/weight.bin", said)
                    self.assertIn(kind, said)
                self.looked_at(model, kind, "linear")

    def test_unknown_operation(self):
        facts = self.looked_at(look_files.unknown_operation(self.folder / "m.mlmodelc"), "ios99", "teleport", "x=h", "ios99")
        self.assertEqual(facts["operations"]["byType"], {"relu": 1, "teleport": 1})

    def test_damaged_text(self):
        folder = look_files.unknown_operation(self.folder / "m.mlmodelc")
        mil = self.folder / "m.mlmodelc/model.mil"
        mil.write_text(mil.read_text().replace("teleport(", "teleport["))
        facts = self.looked_at(folder, "model.mil", "relu")
        self.assertIn("5:42: expected '('", facts["faults"][0])

    def test_suppression_pipeline(self):
        facts = self.looked_at(look_files.suppression_pipeline(self.folder / "m.mlmodel", scores="absent"), "absent", "detector",
                               "2 layers, 72 B of weights", "iouThreshold 0.45", "classes 2")
        self.assertEqual([m["type"] for m in facts["models"]], ["neuralNetwork", "nonMaximumSuppression"])
        self.assertEqual(facts["weights"]["bytes"], 72)

    def test_compiled_network(self):
        model = look_files.espresso(self.folder / "m.mlmodelc")
        facts = self.answer("inspect", model, "--layers", "--weights")
        self.assertEqual(facts["type"], "neuralNetwork")
        layer, = facts["layers"]["list"]
        self.assertEqual({key: layer[key] for key in ("name", "type", "depth", "inputs", "outputs")},
                         {"name": "conv", "type": "convolution", "depth": 0, "inputs": ["x"], "outputs": ["y"]})
        self.assertEqual({w["name"]: (w["type"], w["bytes"]) for w in facts["weights"]["list"]},
                         {"conv.blob_biases": ("tensor<fp32, [2]>", 8), "conv.blob_weights": ("tensor<fp32, [2, 3, 3, 3]>", 216)})
        self.assertEqual(facts["facts"]["model.rank.info.json"], '{"x":5}')

    def test_no_model_at_all(self):
        (self.folder / "m.mlmodel").write_bytes(b"\xff" * 64)
        self.ends(3, "inspect", self.folder / "m.mlmodel")


PALETTE = """program(1.3)
{
    func main<ios18>(tensor<fp32, [1, 4]> x) {
        tensor<fp32, [2, 4]> k = const()[name = string("k"), val = tensor<fp32, [2, 4]>([[-1.5, 0, 0, 4], [0, 0, 0, 0]])];
        tensor<int8, [6]> codes = const()[name = string("codes"), val = tensor<int8, [6]>([1, 1, 2, 3, 3, 3])];
        tensor<fp32, [2, 4]> z = not_an_operation(x = x, y = k)[name = string("z")];
    } -> (z);
}
"""


class Weights(Case):
    def test_statistics_of_a_refused_model(self):
        model = write_program(self.folder / "m.mlmodelc", PALETTE, [array_feature("x", [1, 4])], [array_feature("z", [2, 4])])
        lines = self.ends(0, "inspect", model, "--weights").stdout.split("\n")
        header, = [line for line in lines if line.startswith("weight ")]
        self.assertEqual(header.split(), ["weight", "type", "bytes", "bits", "minimum", "maximum", "zeros", "different", "stored"])
        row, = [line for line in lines if line.startswith("k ")]
        self.assertEqual(row.split(), ["k", "fp32", "2", "x", "4", "32", "B", "32", "-1.5", "4", "75.0%", "inline"])
        self.assertTrue(any(line.startswith("refused: ") for line in lines))
        weights = {w["name"]: w["statistics"] for w in self.answer("inspect", model, "--weights")["weights"]["list"]}
        k = weights["k"]
        self.assertEqual((k["minimum"], k["maximum"], k["zeros"], k["mean"], k["distinct"]), (-1.5, 4, 6, 2.5 / 8, 0))


class Structure(Case):
    def test_a_pipeline_that_runs_is_not_refused(self):
        facts = self.answer("inspect", look_files.suppression_pipeline(self.folder / "m.mlmodel"))
        self.assertEqual([m["name"] for m in facts["models"]], ["detector", "suppression"])

    def test_functions(self):
        self.assertIn("'main'", self.ends(2, "inspect", self.affine(), "--function", "other").stderr)
        self.assertEqual(self.answer("inspect", self.affine_in("two"), "--function", "main")["function"], "main")

    def affine_in(self, name):
        self.folder = self.folder / name
        return self.affine()


@unittest.skipUnless(MODELS.is_dir(), "no folder of published models: MOKA_TEST_MODELS names one")
class RealModels(Case):
    def test_every_model(self):
        models = sorted(p for p in MODELS.rglob("*") if re.fullmatch(r"\.mlmodel|\.mlpackage|\.mlmodelc", p.suffix)
                        and not any(q.suffix in (".mlpackage", ".mlmodelc") for q in p.parents))
        self.assertGreater(len(models), 20)
        for model in models:
            with self.subTest(str(model)):
                facts = self.answer("inspect", model, "--layers", "--weights")
                self.assertNotIn("faults", facts)
                self.assertTrue(facts["functions"][0]["outputs"])
                self.assertTrue({"operations", "layers", "models", "facts"} & set(facts), facts.keys())

    def test_a_compiled_network_is_told_as_its_source(self):
        source = self.answer("inspect", MODELS / "image_quality/ImageQualityCP20.mlmodel")
        compiled = self.answer("inspect", MODELS / "image_quality/ImageQualityCP20.mlmodelc")
        self.assertEqual(source["functions"], compiled["functions"])
        self.assertEqual(compiled["layers"]["byType"]["convolution"], source["layers"]["byType"]["convolution"])

    def test_system_models(self):
        facts = self.answer("inspect", MODELS / "nsfw_visionfeatureprint/NSFW.mlmodel")
        self.assertEqual([m["type"] for m in facts["models"]], ["visionFeaturePrint", "glmClassifier"])
        self.assertIn("visionFeaturePrint", facts["refused"])


if __name__ == "__main__":
    unittest.main()

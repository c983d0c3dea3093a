# SPDX-License-Identifier: Apache-2.0
"""`moka compress`: errors and sizes of the written models, the search for a form, and refusals."""

import json
import shutil
import struct
import sys
import unittest
from pathlib import Path

from case import MODELS, Case, moka
from model_files import FLOAT16, array_feature, write_program, write_weights

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
MODEL = GOLDEN / "cached" / "model.mlpackage"


def size(package):
    return sum(p.stat().st_size for p in Path(package).rglob("*.bin"))


BRANCHES = """program(1.3)
{{
    func main<ios18>(tensor<fp32, [1, 8]> x) {{
        tensor<fp32, []> s = reduce_sum(x = x, keep_dims = bool(false))[name = string("s")];
        bool c = greater(x = s, y = fp32(0))[name = string("c")];
        tensor<fp32, [1, 8]> y = cond(pred = c)[name = string("y")] {{
            block yes() {{
                tensor<fp32, [8, 8]> wa = const()[name = string("wa"), val = tensor<fp32, [8, 8]>{0}];
                tensor<fp32, [1, 8]> ra = linear(x = x, weight = wa)[name = string("ra")];
            }} -> (ra);
            block no() {{
                tensor<fp32, [8, 8]> wb = const()[name = string("wb"), val = tensor<fp32, [8, 8]>{1}];
                bool t = const()[name = string("t"), val = bool(true)];
                tensor<fp32, [1, 8]> rb = matmul(x = x, y = wb, transpose_y = t)[name = string("rb")];
            }} -> (rb);
        }};
    }} -> (y);
}}
"""

PRODUCT = """program(1.3)
{{
    func main<{0}>(tensor<fp32, [1, 8]> x) {{
        tensor<fp32, [8, 8]> w = const()[name = string("w"), val = tensor<fp32, [8, 8]>{1}];
        tensor<fp32, [1, 8]> y = linear(x = x, weight = w)[name = string("y")];
    }} -> (y);
}}
"""

MASKED = """program(1.3)
{{
    func main<ios18>(tensor<{0}, [8, 8]> x) {{
        tensor<{0}, [8, 8]> mask = const()[name = string("mask"), val = tensor<{0}, [8, 8]>{1}];
        tensor<{0}, [8, 8]> y = add(x = x, y = mask)[name = string("y")];
    }} -> (y);
}}
"""

SUM = """program(1.3)
{
    func main<ios18>(tensor<fp16, [1, 8]> a, tensor<fp16, [1, 8]> b) {
        tensor<fp16, [1, 8]> y = add(x = a, y = b)[name = string("y")];
    } -> (y);
}
"""

LOGARITHM = """program(1.3)
{{
    func main<ios18>(tensor<fp32, [1, 8]> x) {{
        tensor<fp32, [8, 8]> w = const()[name = string("w"), val = tensor<fp32, [8, 8]>{0}];
        tensor<fp32, [1, 8]> l = log(x = x, epsilon = fp32(0))[name = string("l")];
        tensor<fp32, [1, 16]> both = concat(values = (l, x), axis = int32(1), interleave = bool(false))[name = string("both")];
        tensor<fp32, [1, 8]> h = linear(x = x, weight = w)[name = string("h")];
        tensor<fp32, [1, 8]> y = add(x = h, y = l)[name = string("y")];
    }} -> (y, both);
}}
"""


def diagonal(value):
    return [value if i % 9 == 0 else 0.0 for i in range(64)]


class Compress(Case):
    def setUp(self):
        super().setUp()
        self.out = self.folder / "out.mlpackage"

    def compress(self, *options, model=MODEL):
        return self.answer("compress", model, "-o", self.out, *options)

    def outputs(self, model):
        return [v for row in self.answer("predict", model, "-i", "random")["outputs"]["y"]["values"] for v in row]

    def test_forms(self):
        expected = self.outputs(MODEL)
        power = sum(v * v for v in expected)
        for options, share, noise in (((), 0.35, 1e-3), (("--linear", 8, "--asymmetric", "--per", "tensor"), 0.35, 1e-3),
                                      (("--palette", 8), 0.6, 1e-3), (("--palette", 4), 0.3, 5e-2), (("--prune", 0.2), 1.1, 5e-2)):
            answer = self.compress("--least", 16, *options)
            changed = [w for w in answer["weights"] if w["form"]]
            self.assertTrue(changed, options)
            self.assertLess(size(self.out), size(MODEL) * share + 1024, options)
            got = self.outputs(self.out)
            error = sum((a - b) ** 2 for a, b in zip(got, expected))
            self.assertLess(error / power, noise, options)
            self.assertGreater(error, 0, options)

    def test_a_model_of_small_weights_says_why_it_stays(self):
        done = self.ends(0, "compress", MODEL, "-o", self.out, "--palette", 4, "--least", 3456)
        why = "nothing was compressed: no weight has more than 3456 elements (--least), the largest, 'y_weight_0', has 3456"
        self.assertIn(why, done.stderr)
        self.assertEqual(self.outputs(self.out), self.outputs(MODEL))
        done = self.ends(0, "compress", MODEL, "-o", self.out, "--palette", 4, "--least", 16)
        self.assertNotIn("nothing", done.stderr)

    def test_thresholds_leave_weights_with_few_zeros(self):
        small = ("--least", 16, "--threshold", 1e-6)
        for weight in self.compress(*small)["weights"]:
            self.assertIn("less than 0.5", weight["skipped"])
        self.assertTrue(any(w["form"] for w in self.compress(*small, "--least-sparsity", 0)["weights"]))

    def test_weights_that_are_not_finite_stay(self):
        model = self.folder / "infinite.mlpackage"
        shutil.copytree(MODEL, model)
        weights = next(model.rglob("*.bin"))
        data = bytearray(weights.read_bytes())
        data[128:132] = struct.pack("<f", float("-inf"))  # the first element of the first weight
        weights.write_bytes(data)
        for form in (("--prune", 0.2), ("--prune", "2:4"), ("--linear", 8), ("--palette", 4)):
            first, second = self.compress("--least", 16, *form, model=model)["weights"]
            self.assertEqual(first["skipped"], "it has values that are not finite")
            self.assertTrue(second["form"])

    def program(self, name, text, *weights, inputs=(("x", [1, 8]),), outputs=(("y", [1, 8]),), kind=None, spec=9):
        compiled, package = self.folder / f"{name}.mlmodelc", self.folder / f"{name}.mlpackage"
        values = write_weights(compiled, *weights)
        features = [[array_feature(*f, *([kind] if kind else [])) for f in some] for some in (inputs, outputs)]
        write_program(compiled, text(values), *features, spec_version=spec)
        self.ends(0, "decompile", compiled, package)
        return package

    def first(self, model, x, *options):
        values = self.answer("predict", model, "-i", f"x={x}", *options)["outputs"]["y"]["values"]
        return values[0][0]

    def test_blocks_beside_each_other_keep_their_weights(self):
        weights = ("f", diagonal(1.0)), ("f", diagonal(3.0))
        model = self.program("branches", lambda values: BRANCHES.format(*values), *weights)
        specification = next(model.rglob("*.mlmodel"))
        specification.write_bytes(specification.read_bytes().replace(b"wb", b"wa").replace(b"rb", b"ra"))
        up, down = [[1.0] * 8], [[-1.0] * 8]
        self.assertEqual((self.first(model, up), self.first(model, down)), (1, -3))
        for form in (("--linear", 8), ("--palette", 4), ("--prune", 0.5)):
            self.compress("--least", 16, *form, model=model)
            self.assertAlmostEqual(self.first(self.out, up), 1, delta=0.01, msg=form)
            self.assertAlmostEqual(self.first(self.out, down), -3, delta=0.03, msg=form)

    def test_functions_of_several_opsets(self):
        weight = "f", [(i % 13 - 6) / 4 for i in range(64)]
        new = self.program("new", lambda values: PRODUCT.format("ios18", *values), weight)
        old = self.program("old", lambda values: PRODUCT.format("ios16", *values), weight, spec=7)
        both, x = self.folder / "both.mlpackage", [[1, 2, 3, 4, 5, 6, 7, 8]]
        self.ends(0, "edit", new, "--add-function", f"old={old}", "-o", both)
        expected = sum((k + 1) * (k % 13 - 6) / 4 for k in range(8))
        for form in (("--linear", 8), ("--palette", 8)):
            self.compress("--least", 16, *form, model=both)
            for function in ("main", "old"):
                self.assertAlmostEqual(self.first(self.out, x, "--function", function), expected, delta=0.5)

    def test_masks_of_the_least_number(self):
        for name, code, least, kind in (("fp16", "e", -65504.0, FLOAT16), ("fp32", "f", -3.4028234663852886e38, None)):
            numbers = [0.0 if i % 8 <= i // 8 else least for i in range(64)]
            features = {"inputs": [("x", [8, 8])], "outputs": [("y", [8, 8])]}
            model = self.program(name, lambda values: MASKED.format(name, *values), (code, numbers), kind=kind, **features)
            for form in ((8,), (4,), (8, "--asymmetric"), (8, "--unsigned"), (8, "--per", "tensor")):
                (weight,) = self.compress("--least", 16, "--linear", *form, model=model)["weights"]
                self.assertTrue(weight["form"], weight)
                got = self.answer("predict", self.out, "-i", f"x={[[0.0] * 8] * 8}")["outputs"]["y"]["values"]
                for i, number in enumerate(numbers):
                    self.assertAlmostEqual(got[i // 8][i % 8] / least, number / least, delta=0.01, msg=form)

    def test_unchanged_weights_keep_their_values(self):
        self.compress("--layer", "*=none")
        self.assertEqual(self.outputs(self.out), self.outputs(MODEL))

    def test_search_by_size(self):
        chart = self.out.parent / "chart.png"
        answer = self.compress("--least", 16, "--target-size", "60%", "--chart", chart)
        whole = size(MODEL) + (MODEL / "Data/com.apple.CoreML/model.mlmodel").stat().st_size
        written = size(self.out) + next(self.out.rglob("*.mlmodel")).stat().st_size
        self.assertEqual((answer["sizeBefore"], answer["sizeAfter"]), (whole, written))
        self.assertLess(written, 0.6 * whole)
        self.assertEqual(chart.read_bytes()[:4], b"\x89PNG")
        self.assertTrue(answer["separateInputs"])
        self.assertGreater(answer["secondsAfter"], 0)
        for weight in answer["sensitivity"]:
            self.assertEqual(weight["trials"][0]["signalToNoise"], None)  # unchanged
        self.assertTrue(any(len(weight["trials"]) > 3 for weight in answer["sensitivity"]))
        sizes = [point["size"] for point in answer["curve"]]
        self.assertEqual(sizes, sorted(sizes, reverse=True))
        self.assertGreaterEqual(sum("measured" in point for point in answer["curve"]), 3)

    def test_search_by_error(self):
        for goal in (45, 25):
            answer = self.compress("--least", 16, "--max-error", f"{goal}dB")
            self.assertGreaterEqual(answer["bound"], goal)
            for seed in ("77", "78"):
                done = moka("verify", self.out, "--against", MODEL, "--seed", seed, "--runs", 20, "--min-snr", goal)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done = moka("compress", MODEL, "-o", self.out, "--least", 16, "--max-error", "25", "--forms", "palette4,linear8")
        self.assertEqual(done.returncode, 0, done.stderr)
        for words in ("@ written", "prediction", "bound", "linear 8 bits, channel"):
            self.assertIn(words, done.stdout)

    def test_search_among_pruned_and_joint_forms(self):
        raised = self.out.parent / "raised.mlpackage"
        self.assertEqual(moka("edit", MODEL, "--target", "ios18", "-o", raised).returncode, 0)
        forms = "linear8,prune0.3+palette6,prune2:4+linear8"
        answer = self.compress("--least", 16, "--max-error", "12dB", "--forms", forms, model=raised)
        self.assertGreaterEqual(answer["bound"], 12)
        tried = {trial["form"] for weight in answer["sensitivity"] for trial in weight["trials"]}
        for form in ("linear 8 bits, channel", "pruned to 0.3, palette 6 bits, tensor", "pruned 2:4, linear 8 bits, channel"):
            self.assertIn(form, tried)
        self.assertLessEqual({w["form"] for w in answer["weights"]}, tried)
        answer = self.compress("--least", 16, "--target-size", "40%", "--forms", "palette4:8,palette4+vector2,palette2+scales", model=raised)
        tried = {trial["form"] for weight in answer["sensitivity"] for trial in weight["trials"]}
        self.assertLessEqual({"palette 4 bits, groups of 8", "palette 4 bits, tensor, vectors of 2"}, tried)
        only = self.compress("--least", 16, "--max-error", "5dB", "--forms", "prune0.3+palette4", model=raised)
        self.assertEqual({w["form"] for w in only["weights"]}, {"pruned to 0.3, palette 4 bits, tensor"})
        fixed = self.compress("--least", 16, "--layer", "y_*=prune2:4+linear8", model=raised)
        self.assertEqual([w["form"] for w in fixed["weights"]], ["linear 8 bits, channel", "pruned 2:4, linear 8 bits, channel"])

    def test_search_mistakes(self):
        for code, words, options in ((2, "got both", ("--target-size", "40%", "--max-error", "40")), (2, "40%", ("--target-size", "small")),
                                     (2, "12MB", ("--target-size", "12miles")), (2, "40dB", ("--max-error", "loud")), (2, "--forms", ("--palette", 4, "--max-error", 40)),
                                     (2, "FORM:SIZE", ("--max-error", 40, "--forms", "linear4:x")), (2, "got 'prun0.5'", ("--max-error", 40, "--forms", "prun0.5+linear8")),
                                     (2, "N:M", ("--max-error", 40, "--forms", "prune2:x")), (2, "got 'none'", ("--max-error", 40, "--forms", "none")), (2, "need a search", ("--forms", "linear8")),
                                     (3, "the smallest model", ("--target-size", "1%"))):
            done = moka("compress", MODEL, "-o", self.out, *options)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(words, done.stderr)
            self.assertFalse(self.out.exists())

    def test_decompress(self):
        small, again = self.out.parent / "small.mlpackage", self.out.parent / "again.mlpackage"
        for form in (("--palette", 4), ("--linear", 8), ("--prune", 0.5)):
            self.assertEqual(moka("compress", MODEL, "-o", small, "--least", 16, *form).returncode, 0)
            answer = self.compress("--decompress", model=small)
            self.assertEqual([w["form"] for w in answer["weights"]], ["float32", "float32"])
            self.assertEqual(answer["bytesBefore"], sum(w["bytesBefore"] for w in answer["weights"]))
            self.assertLess(answer["bytesBefore"], size(small))
            self.assertGreater(answer["bytesBefore"], 0.5 * size(small))
            self.assertEqual(self.outputs(self.out), self.outputs(small))
            stays = moka("compress", small, "-o", again)
            self.assertEqual(stays.returncode, 0, stays.stderr)
            self.assertIn("it is compressed already (constexpr_", stays.stdout)
            self.assertIn("--decompress expands", stays.stdout)
            self.assertEqual(self.outputs(again), self.outputs(small))
        recompressed = self.compress("--decompress", "--linear", 8, "--least", 16, model=small)
        self.assertEqual({w["form"] for w in recompressed["weights"]}, {"linear 8 bits, channel"})
        searched = self.compress("--decompress", "--max-error", "30dB", "--least", 16, model=small)
        self.assertGreaterEqual(searched["bound"], 30)
        self.assertTrue(any(w["form"].startswith(("linear", "palette")) for w in searched["weights"]))

    def test_activations(self):
        inputs, raised = ("-i", "random"), self.out.parent / "raised.mlpackage"
        refused = moka("compress", MODEL, "-o", self.out, "--activations", "int8", *inputs)
        self.assertEqual(refused.returncode, 3, refused.stderr)
        self.assertIn("moka edit --target ios17", refused.stderr)
        self.assertEqual(moka("edit", MODEL, "--target", "ios17", "-o", raised).returncode, 0)
        answer = self.compress("--least", 16, "--activations", "int8", *inputs, model=raised)
        self.assertTrue(answer["activations"])
        for value in answer["activations"]:
            self.assertEqual(value["zeroPoint"], 0)
            self.assertAlmostEqual(value["scale"], max(-value["least"], value["greatest"]) / 127, delta=1e-3 * value["scale"])
        self.assertTrue(any(w["form"] for w in answer["weights"]))
        self.assertGreater(answer["signalToNoise"], 20)
        expected, got = self.outputs(MODEL), self.outputs(self.out)
        self.assertGreater(sum(a * a for a in expected), 100 * sum((a - b) ** 2 for a, b in zip(expected, got)))
        shown = moka("compress", raised, "-o", self.out, "--layer", "*=none", "--activations", "uint8:asymmetric", *inputs)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        for text in ("greatest", "zero", f"{len(answer['activations'])} values in integers", "worst of 1 input"):
            self.assertIn(text, shown.stdout)
        every = self.compress("--activations", "int8", "--unchanged", "*", *inputs, model=raised)
        self.assertEqual(every["activations"], [])
        self.assertNotIn("activations", self.compress())

    def test_values_that_are_not_finite_stay_floats(self):
        features = {"outputs": [("y", [1, 8]), ("both", [1, 16])]}
        model = self.program("log", lambda values: LOGARITHM.format(*values), ("f", diagonal(0.5)), **features)
        for x in (-1.0, 0.0):
            answer = self.compress("--activations", "int8", "-i", f"x={[[x] * 8]}", model=model)
            self.assertEqual([value["name"] for value in answer["activations"]], ["x", "h"])
        answer = self.compress("--activations", "int8", "-i", f"x={[[2.0] * 8]}", model=model)
        self.assertEqual([value["name"] for value in answer["activations"]], ["x", "l", "h"])

    def test_outputs_that_become_infinite(self):
        features = {"inputs": [("a", [1, 8]), ("b", [1, 8])], "outputs": [("y", [1, 8])]}
        model = self.program("sum", lambda values: SUM, kind=FLOAT16, **features)
        options = ("--activations", "int8", "-i", f"a={[[32752.0] * 8]}", "-i", f"b={[[32752.0] * 8]}")
        answer = self.compress(*options, model=model)
        self.assertEqual([value["scale"] for value in answer["activations"]], [258, 258])  # 2 * 127 * 258 is above 65504
        self.assertEqual(answer["signalToNoise"], "not finite")
        done = self.ends(0, "compress", model, "-o", self.out, *options)
        self.assertIn("outputs: not finite in the worst of 1 input", done.stdout)

    def test_activation_mistakes(self):
        for code, words, options in ((2, "needs inputs", ("--activations", "int8")), (2, "got 'int4'", ("--activations", "int4", "-i", "random")),
                                     (2, "int8:asymmetric", ("--activations", "int8:odd", "-i", "random")), (2, "--activations", ("--unchanged", "a")),
                                     (2, "second command", ("--activations", "int8", "-i", "random", "--target-size", "50%")), (2, "--input is for", ("-i", "random"))):
            done = moka("compress", MODEL, "-o", self.out, *options)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(words, done.stderr)
            self.assertFalse(self.out.exists())

    def test_mistakes(self):
        for words, options in (("got both", ("--linear", 8, "--palette", 4)), ("--prune", ("--prune", "some")), ("--per", ("--per", "row")),
                               ("granularity", ("--linear", 8, "--per", "group:4")), ("--layer", ("--layer", "a=small")),
                               ("N:M, got 'nan'", ("--prune", "nan")), ("N:M, got '2.7:4'", ("--prune", "2.7:4")),
                               ("tensor or group, got 'channel'", ("--palette", 4, "--per", "channel"))):
            done = moka("compress", MODEL, "-o", self.out, *options)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(words, done.stderr)
            self.assertFalse(self.out.exists())
        done = self.ends(0, "compress", MODEL, "-o", self.out, "--layer", "nosuch=linear8", "--layer", "*=palette4")
        self.assertEqual(done.stderr.count("no weight matches"), 1)
        self.assertIn("--layer nosuch=linear8: no weight matches 'nosuch'", done.stderr)
        classic = GOLDEN / "classic" / "decision_tree_classifier.mlmodel"
        done = moka("compress", classic, "-o", self.out)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("neural network", done.stderr)

    @unittest.skipUnless((MODELS / "image_nn").is_dir(), "needs the models in MOKA_TEST_MODELS")
    def test_networks(self):
        network = MODELS / "image_nn" / "MNIST.mlmodel"
        out = self.out.with_suffix(".mlmodel")
        for options, share in ((("--linear", 8), 0.26), (("--linear", 5, "--asymmetric"), 0.17), (("--palette", 7), 0.23), (("--half",), 0.51),
                                     (("--target-size", "20%"), 0.2), (("--max-error", "20"), 0.26)):
            done = moka("compress", network, "-o", out, *options)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertLess(out.stat().st_size, share * network.stat().st_size, options)
            done = moka("verify", out, "--against", network, "--seed", 9, "--min-snr", 15)
            self.assertEqual(done.returncode, 0, done.stdout)
            if options[0] not in ("--linear", "--palette"):
                continue
            plain = out.with_name("plain.mlmodel")
            done = moka("compress", out, "-o", plain, "--decompress", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual({w["form"] for w in json.loads(done.stdout)["weights"] if w["form"]}, {"float32"})
            done = moka("verify", plain, "--against", out, "--min-snr", 120)
            self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

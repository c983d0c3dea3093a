# SPDX-License-Identifier: Apache-2.0
"""moka edit from outside."""

import json
import struct
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from case import Case
from model_files import FLOAT16, FLOAT32, array_feature, field, varint, write_program

NET = """program(1.3)
{
    func main<ios18>(tensor<fp32, [1, 4]> x) {
        tensor<fp32, [1, 4]> first = add(x = x, y = fp32(1))[name = string("first")];
        tensor<fp32, [1, 4]> y = mul(x = first, y = fp32(2))[name = string("y")];
    } -> (y);
}
"""


STATE = """program(1.3)
{
    func main<ios18>(state<tensor<fp16, [3]>> total, tensor<fp16, [3]> x) {
        tensor<fp16, [3]> more = mul(x = x, y = fp16(2))[name = string("more")];
        tensor<fp16, [3]> less = sub(x = more, y = fp16(1))[name = string("less")];
        tensor<fp16, [3]> before = read_state(input = total)[name = string("before")];
        tensor<fp16, [3]> sum = add(x = before, y = less)[name = string("sum")];
        write_state(data = sum, input = total)[name = string("after")];
    } -> (sum);
}
"""

STATE_IN_BLOCKS = """program(1.3)
{
    func main<ios18>(state<tensor<fp16, [3]>> total, tensor<fp16, [3]> x) {
        tensor<fp16, [3]> before = read_state(input = total)[name = string("before")];
        tensor<fp16, [3]> more = add(x = x, y = before)[name = string("more")];
        tensor<fp16, []> s = reduce_sum(x = x, keep_dims = bool(false))[name = string("s")];
        bool c = greater(x = s, y = fp16(0))[name = string("c")];
        tensor<fp16, [3]> unread = cond(pred = c)[name = string("unread")] {
            block then() {
                tensor<fp16, [3]> inner = cond(pred = c)[name = string("inner")] {
                    block then_again() {
                        tensor<fp16, [3]> q = mul(x = more, y = fp16(1))[name = string("q")];
                        write_state(data = q, input = total)[name = string("w")];
                    } -> (q);
                    block other_again() { tensor<fp16, [3]> r = mul(x = x, y = fp16(3))[name = string("r")]; } -> (r);
                };
            } -> (inner);
            block other() { tensor<fp16, [3]> p = mul(x = x, y = fp16(3))[name = string("p")]; } -> (p);
        };
        tensor<fp16, [3]> now = read_state(input = total)[name = string("now")];
        tensor<fp16, [3]> sum = add(x = now, y = x)[name = string("sum")];
    } -> (sum);
}
"""


class Edit(Case):
    def model(self):
        path = self.folder / "Net.mlpackage"
        if not path.exists():
            features = [array_feature("x", [1, 4])], [array_feature("y", [1, 4])]
            compiled = write_program(self.folder / "Net.mlmodelc", NET, *features)
            self.ends(0, "decompile", compiled, path)
        return path

    def predicted(self, model, name="x"):
        out = self.ends(0, "predict", model, "--input", f"{name}=[[1,2,3,4]]", "--json").stdout
        return json.loads(out)["outputs"] if "outputs" in json.loads(out) else json.loads(out)

    def values(self, model, output, name="x"):
        return self.predicted(model, name)[output]["values"]

    def test_edits_in_the_given_order(self):
        out = self.folder / "Edited.mlpackage"
        done = self.ends(0, "edit", self.model(), "--rename", "x=a", "--type", "a=float16", "--rename", "a=b", "--author",
                         "somebody", "--set", "key=text=1", "--outputs", "first", "-o", out, "--json")
        self.assertEqual(json.loads(done.stdout)["edits"], [
            "--rename x=a", "--type a=float16", "--rename a=b", "--author somebody", "--set key=text=1", "--outputs first"])
        self.assertEqual(self.values(out, "first", "b"), [[2, 3, 4, 5]])
        facts = json.loads(self.ends(0, "inspect", out, "--json").stdout)
        self.assertEqual(facts["metadata"]["author"], "somebody")
        self.assertEqual(self.values(self.model(), "y"), [[4, 6, 8, 10]])

    def test_a_model_replaces_itself(self):
        self.ends(0, "edit", self.model(), "--rename", "y=z", "-o", self.model(), "--force")
        self.assertEqual(self.values(self.model(), "z"), [[4, 6, 8, 10]])

    def test_a_failed_edit_writes_nothing(self):
        out = self.folder / "Edited.mlpackage"
        failed = self.ends(2, "edit", self.model(), "--author", "me", "--rename", "q=z", "-o", out)
        self.assertIn("--rename q=z: the model has no input or output 'q'; it has: x, y", failed.stderr)
        self.assertFalse(out.exists())
        self.assertIn("expected OLD=NEW, got 'q'", self.ends(2, "edit", self.model(), "--rename", "q", "-o", out).stderr)
        self.assertFalse(out.exists())

    def test_labels_images_and_weights(self):
        (self.folder / "labels.txt").write_text("a\nb\n\nc\nd\n")
        out = self.folder / "Edited.mlpackage"
        self.ends(0, "edit", self.model(), "--labels", f"{self.folder / 'labels.txt'},output=y,label=best", "-o", out)
        self.assertEqual(self.predicted(out)["best"]["value"], "d")
        (self.folder / "labels.txt").write_bytes(b"\xef\xbb\xbf1\r\n2\r\n3\r\n4\r\n")
        self.ends(0, "edit", out, "--labels", f"{self.folder / 'labels.txt'},type=int64", "-o", out, "--force")
        self.assertEqual(self.predicted(out)["best"]["value"], 4)
        self.ends(0, "edit", out, "--remove-labels", "--normalize", "x=mean=1:2:3:4,std=2", "-o", out, "--force")
        self.assertEqual(self.values(out, "y"), [[2, 2, 2, 2]])
        self.ends(0, "edit", out, "--strip", "random,seed=4", "--target", "ios26", "-o", out, "--force")
        self.assertIn("number such as", self.ends(2, "edit", out, "--normalize", "x=mean=one", "-o", out, "--force").stderr)
        self.assertIn("zeros or random", self.ends(2, "edit", out, "--strip", "all", "-o", out, "--force").stderr)
        self.assertIn("expected the color", self.ends(2, "edit", out, "--image", "x=cmyk", "-o", out, "--force").stderr)
        self.assertIn("'depth=3'", self.ends(2, "edit", out, "--image", "x=rgb,depth=3", "-o", out, "--force").stderr)
        self.assertIn("cannot be read", self.ends(2, "edit", out, "--labels", "absent.txt", "-o", out, "--force").stderr)

    def test_stripped_weights_stay_sparse(self):
        model = Path(__file__).resolve().parents[1] / "golden" / "cached" / "model.mlpackage"
        sparse, out = self.folder / "Sparse.mlpackage", self.folder / "Edited.mlpackage"
        self.ends(0, "compress", model, "--prune", 0.5, "--least", 16, "-o", sparse)
        for what in ("zeros", "random"):
            self.ends(0, "edit", sparse, "--strip", what, "-o", out)
            self.assertIn("outputs", self.answer("predict", out, "-i", "random"))

    def test_pipelines_functions_and_halves(self):
        model, out = self.model(), self.folder / "Edited.mlpackage"
        self.ends(0, "edit", model, "--rename", "x=y,y=z", "-o", self.folder / "Next.mlpackage")
        self.ends(0, "edit", model, "--append", self.folder / "Next.mlpackage", "-o", out)
        self.assertEqual(self.values(out, "z"), [[10, 14, 18, 22]])
        self.ends(0, "edit", out, "--inline", "-o", self.folder / "One.mlpackage")
        self.assertEqual(self.values(self.folder / "One.mlpackage", "z"), [[10, 14, 18, 22]])
        self.assertIn("it has: Net, Next", self.ends(2, "edit", out, "--stage", "First", "-o", out, "--force").stderr)
        self.ends(0, "edit", out, "--stage", "Net", "-o", self.folder / "Again.mlpackage")
        self.assertEqual(self.values(self.folder / "Again.mlpackage", "y"), self.values(model, "y"))
        self.ends(0, "edit", out, "--stage", "Next", "-o", out, "--force")
        self.assertEqual(self.values(out, "z", "y"), [[4, 6, 8, 10]])
        self.ends(0, "edit", model, "--add-function", f"second={out}", "--default-function", "second", "-o", out, "--force")
        self.assertEqual(self.values(out, "z", "y"), [[4, 6, 8, 10]])
        self.ends(0, "edit", out, "--function", "main", "--bisect", "-o", out, "--force")
        self.assertEqual(self.values(out, "y"), [[4, 6, 8, 10]])
        self.assertIn("it has: first, second", self.ends(2, "edit", out, "--stage", "7", "-o", out, "--force").stderr)

    def test_states_are_still_written(self):
        (self.folder / "steps.jsonl").write_text('{"x": [1, 2, 3]}\n' * 3)
        out, half = self.folder / "Edited.mlpackage", self.folder / "Half.mlpackage"
        sums = lambda model: [s["sum"]["values"] for s in self.answer(
            "predict", model, "-i", f"@{self.folder}/steps.jsonl", "--state")["batch"]]
        features = [array_feature("x", [3], FLOAT16)], [array_feature("sum", [3], FLOAT16)]
        for name, mil, expected in (("State", STATE, [[1, 3, 5], [2, 6, 10], [3, 9, 15]]),
                                    ("Blocks", STATE_IN_BLOCKS, [[2, 4, 6], [3, 6, 9], [4, 8, 12]])):
            model = write_program(self.folder / f"{name}.mlmodelc", mil, *features, [array_feature("total", [3], FLOAT16, True)])
            package = self.folder / f"{name}.mlpackage"
            self.ends(0, "decompile", model, package)
            self.assertEqual(sums(package), expected)
            self.ends(0, "edit", package, "--outputs", "sum", "-o", out)
            self.assertEqual(sums(out), expected, name)
            if mil is STATE:
                self.ends(0, "edit", package, "--bisect", "-o", half)
                self.assertEqual(sums(half), expected)
                self.ends(0, "edit", half, "--inline", "-o", out)
                self.assertEqual(sums(out), expected)

    def test_a_default_value_that_the_type_lacks(self):
        default = field(5, field(1, b"\x04") + field(2, FLOAT32) + varint(51 << 3 | 5) + struct.pack("<f", 3e38)) + field(1000, 1)
        inputs = [array_feature("x", [4]), field(1, "o") + field(3, default)]
        mil = NET.replace("[1, 4]> x", "[4]> x, tensor<fp32, [4]> o").replace("y = fp32(1)", "y = o").replace("[1, 4]", "[4]")
        model = write_program(self.folder / "Optional.mlmodelc", mil, inputs, [array_feature("y", [4])])
        out = self.folder / "Edited.mlpackage"
        self.ends(0, "decompile", model, self.folder / "Optional.mlpackage")
        failed = self.ends(2, "edit", self.folder / "Optional.mlpackage", "--type", "o=int32", "-o", out)
        self.assertIn("'o': the default value 3.0", failed.stderr)

    def test_values_of_any_kind_pass_from_half_to_half(self):
        mil = """program(1.3)
{
    func main<ios18>(tensor<fp32, [1, 4]> x) {
        tensor<fp32, [1, 4]> h = mul(x = x, y = fp32(2))[name = string("h")];
        tensor<fp32, []> m = reduce_max(x = h, keep_dims = bool(false))[name = string("m")];
        %s
        tensor<fp32, [1, 4]> y = mul(x = x, y = m3)[name = string("y")];
    } -> (y);
}
"""
        scalar = """tensor<fp32, []> m2 = mul(x = m, y = fp32(3))[name = string("m2")];
        tensor<fp32, []> m3 = mul(x = m2, y = fp32(1))[name = string("m3")];"""
        boolean = """bool c = greater(x = m, y = fp32(0))[name = string("c")];
        tensor<fp32, []> m3 = cast(x = c, dtype = string("fp32"))[name = string("m3")];"""
        for name, text, expected in ("Scalar", scalar, [24, 48, 72, 96]), ("Boolean", boolean, [1, 2, 3, 4]):
            model = write_program(self.folder / f"{name}.mlmodelc", mil % text, [array_feature("x", [1, 4])], [array_feature("y", [1, 4])])
            package, out = self.folder / f"{name}.mlpackage", self.folder / "Edited.mlpackage"
            self.ends(0, "decompile", model, package)
            self.assertEqual(self.values(package, "y"), [expected])
            self.ends(0, "edit", package, "--bisect", "-o", out)
            self.assertEqual(self.values(out, "y"), [expected])
        self.ends(0, "edit", package, "--outputs", "m,c", "-o", out)
        found = self.predicted(out)
        self.assertEqual((found["m"]["values"], found["c"]["values"]), ([8], [1]))

    def test_sizes_of_blocks_that_use_the_same_names(self):
        mil = """program(1.3)
{
    func main<ios18>(tensor<fp32, [4]> x) {
        tensor<fp32, []> s = reduce_sum(x = x, keep_dims = bool(false))[name = string("s")];
        bool c = greater(x = s, y = fp32(0))[name = string("c")];
        tensor<fp32, [4]> y = cond(pred = c)[name = string("y")] {
            block then() {
                tensor<fp32, [4, 1]> raa = expand_dims(x = x, axes = tensor<int32, [1]>([1]))[name = string("raa")];
                tensor<fp32, [4]> qaa = squeeze(x = raa)[name = string("qaa")];
            } -> (qaa);
            block other() {
                tensor<fp32, [4]> rbb = mul(x = x, y = fp32(3))[name = string("rbb")];
                tensor<fp32, [4]> qbb = mul(x = rbb, y = fp32(3))[name = string("qbb")];
            } -> (qbb);
        };
    } -> (y);
}
"""
        model = write_program(self.folder / "Same.mlmodelc", mil, [array_feature("x", [4])], [array_feature("y", [4])])
        package, out = self.folder / "Same.mlpackage", self.folder / "Edited.mlpackage"
        self.ends(0, "decompile", model, package)
        (specification,) = package.rglob("*.mlmodel")
        specification.write_bytes(specification.read_bytes().replace(b"rbb", b"raa").replace(b"qbb", b"qaa"))
        self.ends(0, "edit", package, "--shape", "x=2..6", "-o", out)
        for x, y in (([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6]), ([-1, -2], [-9, -18])):
            self.assertEqual(self.answer("predict", out, "-i", f"x={x}")["outputs"]["y"]["values"], y)

    def test_sizes(self):
        out = self.folder / "Edited.mlpackage"
        self.ends(0, "edit", self.model(), "--shape", "x=1x2..9", "-o", out)
        answer = self.ends(0, "predict", out, "--input", "x=[[1,2,3,4,5,6]]", "--json").stdout
        self.assertEqual(json.loads(answer)["outputs"]["y"]["values"], [[4, 6, 8, 10, 12, 14]])
        self.ends(0, "edit", self.model(), "--shape", "x=1x4|1x6", "-o", out)
        self.ends(2, "predict", out, "--input", "x=[[1,2,3,4,5]]")
        self.assertIn("expected sizes such as", self.ends(2, "edit", out, "--shape", "x=1xfour", "-o", out, "--force").stderr)
        self.assertIn("from 1 on", self.ends(2, "edit", out, "--shape", "x=1x9..4", "-o", out, "--force").stderr)


if __name__ == "__main__":
    unittest.main()

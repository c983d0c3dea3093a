# SPDX-License-Identifier: Apache-2.0
"""moka lint from outside."""

import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from case import Case, moka
from model_files import FLOAT16, INT32, array_feature, write_program

PROGRAM = """program(1.3)
{
    func main<ios18>(tensor<fp32, [1, 4]> x) {
        tensor<fp16, [1, 4]> half = cast(x = x, dtype = string("fp16"))[name = string("half")];
        tensor<fp16, [1, 4]> scaled = mul(x = half, y = fp16(30000))[name = string("scaled")];
        tensor<fp32, [1, 4]> y = cast(x = scaled, dtype = string("fp32"))[name = string("y")];
    } -> (y);
}
"""


class Lint(Case):
    def model(self):
        return write_program(self.folder / "Net.mlmodelc", PROGRAM, [array_feature("x", [1, 4])], [array_feature("y", [1, 4])])

    def finds(self, *arguments):
        done = moka("lint", *arguments)
        self.assertEqual((done.returncode, done.stderr), (1, ""), done.stdout)
        return done

    def test_an_overflow_of_given_data_is_an_error(self):
        done = self.finds(self.model(), "--range", "x=2.5:3", "--json")
        answer = json.loads(done.stdout)
        [finding] = answer["findings"]
        self.assertEqual((finding["rule"], finding["level"]), ("float16-overflow", "error"))
        self.assertEqual(finding["place"], "operation 'scaled' (mul)")
        self.assertIn("4 infinite", finding["evidence"])
        self.assertEqual((answer["predictions"], answer["sizes"]), (1, 0))

    def test_small_numbers_are_fine(self):
        done = self.ends(0, "lint", self.model(), "--input", "x=[[0.5, 1, 1.5, 2]]")
        self.assertEqual(done.stdout, "nothing found; values measured in 1 prediction\n")
        self.ends(0, "lint", self.folder / "Net.mlmodelc", "--no-run")

    def test_rules_and_levels_are_chosen(self):
        model = self.model()
        self.ends(0, "lint", model, "--range", "x=3:4", "--ignore", "float16-overflow")
        self.ends(0, "lint", model, "--range", "x=3:4", "--only", "swift-name")
        self.finds(model, "--range", "x=0:4", "--no-run", "--fail-on", "warning")
        self.ends(0, "lint", model, "--range", "x=0:4", "--no-run")

    def test_ids_that_wrap(self):
        body = """program(1.3)
{
    func main<ios17>(tensor<int32, [3]> ids) {
        tensor<int16, [3]> narrow = cast(x = ids, dtype = string("int16"))[name = string("narrow")];
        tensor<int32, [3]> y = cast(x = narrow, dtype = string("int32"))[name = string("y")];
    } -> (y);
}
"""
        model = write_program(self.folder / "Ids.mlmodelc", body, [array_feature("ids", [3], INT32)], [array_feature("y", [3], INT32)])
        [finding] = json.loads(self.finds(model, "--range", "ids=0:40000", "--json").stdout)["findings"]
        self.assertEqual((finding["rule"], finding["level"]), ("narrow-integer", "error"))
        self.assertIn("from 32768 on it wraps: 40000 becomes -25536", finding["evidence"])
        for options, found in (([], "nothing bounds input 'ids'"), (["--range", "ids=0:40000"], "40000 becomes -25536")):
            remarks = self.answer("explain", model, *options)["remarks"]
            [text] = [remark["text"] for remark in remarks if remark["pass"] == "integers"]
            self.assertIn(found, text)
        remarks = self.answer("explain", model, "--range", "ids=0:32767")["remarks"]
        self.assertNotIn("integers", {remark["pass"] for remark in remarks})
        self.assertIn("not an array input", self.ends(2, "explain", model, "--range", "id=0:1").stderr)

    def test_the_rules_are_listed(self):
        rules = json.loads(self.ends(0, "lint", "--rules", "--json").stdout)["rules"]
        self.assertGreaterEqual(len(rules), 20)
        self.assertTrue(all(rule["finds"] and rule["remedy"] for rule in rules))
        self.assertIn("infinite-mask", self.ends(0, "lint", "--rules").stdout)

    def test_repairs_keep_what_writes_a_state(self):
        written = """
        tensor<fp16, [3]> idle = add(x = x, y = fp16(0))[name = string("idle")];
        tensor<fp16, [3]> before = read_state(input = total)[name = string("before")];
        tensor<fp16, [3]> more = add(x = before, y = idle)[name = string("more")];
        write_state(data = more, input = total)[name = string("w")];"""
        in_blocks = """
        tensor<fp16, [3]> unread = mul(x = x, y = fp16(2))[name = string("unread")];
        tensor<fp16, [3]> before = read_state(input = total)[name = string("before")];
        tensor<fp16, []> s = reduce_sum(x = x, keep_dims = bool(false))[name = string("s")];
        bool c = greater(x = s, y = fp16(0))[name = string("c")];
        tensor<fp16, [3]> outer = cond(pred = c)[name = string("outer")] {
            block then() {
                tensor<fp16, [3]> inner = cond(pred = c)[name = string("inner")] {
                    block then_again() {
                        tensor<fp16, [3]> q = add(x = x, y = before)[name = string("q")];
                        write_state(data = q, input = total)[name = string("w")];
                    } -> (q);
                    block other_again() { tensor<fp16, [3]> r = mul(x = x, y = fp16(3))[name = string("r")]; } -> (r);
                };
            } -> (inner);
            block other() { tensor<fp16, [3]> p = mul(x = x, y = fp16(3))[name = string("p")]; } -> (p);
        };"""
        (self.folder / "steps.jsonl").write_text('{"x": [1, 2, 3]}\n' * 2)
        for name, text in ("Written", written), ("Blocks", in_blocks):
            mil = f"""program(1.3)
{{
    func main<ios18>(state<tensor<fp16, [3]>> total, tensor<fp16, [3]> x) {{{text}
        tensor<fp16, [3]> now = read_state(input = total)[name = string("now")];
        tensor<fp16, [3]> y = mul(x = now, y = fp16(2))[name = string("y")];
    }} -> (y);
}}
"""
            model = write_program(self.folder / f"{name}.mlmodelc", mil, [array_feature("x", [3], FLOAT16)],
                                  [array_feature("y", [3], FLOAT16)], [array_feature("total", [3], FLOAT16, True)])
            package, fixed = self.folder / f"{name}.mlpackage", self.folder / f"Fixed{name}.mlpackage"
            self.ends(0, "decompile", model, package)
            self.ends(0, "lint", package, "--fix", "-o", fixed)
            steps = self.answer("predict", fixed, "-i", f"@{self.folder}/steps.jsonl", "--state")["batch"]
            self.assertEqual([step["y"]["values"] for step in steps], [[2, 4, 6], [4, 8, 12]], name)

    def test_nothing_to_repair_is_said(self):
        model = Path(__file__).parents[1] / "golden" / "flexible" / "range.mlmodel"
        out = self.folder / "fixed.mlmodel"
        done = self.ends(0, "lint", model, "--fix", "-o", out, "--no-run")
        self.assertTrue(done.stdout.startswith(f"nothing to repair\nwrote {out}\n"), done.stdout)

    def test_mistakes(self):
        model = self.model()
        self.assertIn("expected one of", self.ends(2, "lint", model, "--only", "nonsense").stderr)
        self.assertIn("NAME=LOW:HIGH", self.ends(2, "lint", model, "--range", "x=3").stderr)
        self.assertIn("LOW up to HIGH", self.ends(2, "lint", model, "--range", "x=3:2").stderr)
        self.assertIn("--fix and -o", self.ends(2, "lint", model, "--fix").stderr)
        self.assertIn("expected MODEL", self.ends(2, "lint").stderr)
        self.ends(3, "lint", self.folder / "absent.mlmodel")


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""`moka predict`: inputs, options, outputs and states."""

import unittest
import zipfile

from case import Case
from model_files import array_feature, read_npy, write_npy, write_program

SCALED = """program(1.0)
{
    func main<ios15>(tensor<fp32, [1, 4]> x) {
            tensor<fp32, [4]> w = const()[name = tensor<string, []>("w"), val = tensor<fp32, [4]>([1, 2, 3, 4])];
            tensor<fp32, [1, 4]> z = mul(x = x, y = w)[name = tensor<string, []>("z")];
        } -> (z);
}
"""


class Predict(Case):
    def values(self, *arguments, output="z"):
        return self.answer("predict", *arguments)["outputs"][output]["values"]

    def test_numbers(self):
        model = self.affine()
        self.assertEqual(self.values(model, "--input", "x=1,2,3,4", "--input", "y=[[0.5,0,-10,1]]"), [[2.5, 4, 0, 9]])

    def test_npy_in_and_out(self):
        model = self.affine()
        write_npy(self.folder / "x.npy", [1, 4], [1, -2, 3, 0.25])
        out = self.folder / "out"
        self.ends(0, "predict", model, "-i", f"x=@{self.folder}/x.npy", "-i", "y=0,0,0,0", "-o", out)
        self.assertEqual(read_npy(out / "z.npy"), ((1, 4), [2, 0, 6, 0.5]))

    def test_json_file_by_names(self):
        model = self.affine()
        (self.folder / "in.json").write_text('{"x": [1, 2, 3, 4], "y": [[1, 1, 1, 1]]}')
        self.assertEqual(self.values(model, "-i", f"@{self.folder}/in.json"), [[3, 5, 7, 9]])

    def test_batch(self):
        model = self.affine()
        (self.folder / "in.csv").write_text('x,y\n"1,2,3,4","0,0,0,0"\n"[1,1,1,1]","1,2,3,4"\n')
        rows = self.answer("predict", model, "-i", f"@{self.folder}/in.csv")["batch"]
        self.assertEqual([r["z"]["values"] for r in rows], [[[2, 4, 6, 8]], [[3, 4, 5, 6]]])
        self.ends(0, "predict", model, "-i", f"@{self.folder}/in.csv", "-o", self.folder / "rows")
        self.assertEqual(read_npy(self.folder / "rows" / "z_002.npy")[1], [3, 4, 5, 6])

    def test_random_is_reproducible(self):
        model = self.affine()
        first = self.values(model, "-i", "random")
        self.assertEqual(first, self.values(model, "-i", "random"))
        self.assertNotEqual(first, self.values(model, "-i", "random", "--seed", "2"))

    def test_options_give_the_same_numbers(self):
        model = self.affine()
        plain = self.values(model, "-i", "random")
        for options in (["--device", "reference"], ["--compute-units", "cpuOnly"], ["--threads", "1"], ["--precision", "exact"], ["--repeat", "3"]):
            self.assertEqual(plain, self.values(model, "-i", "random", *options), options)

    def test_mistakes(self):
        model = self.affine()
        self.assertIn("no inputs given", self.ends(2, "predict", model).stderr)
        self.assertIn("no value for input 'y'", self.ends(2, "predict", model, "-i", "x=1,2,3,4").stderr)
        self.assertIn("no input 'X'; did you mean 'x'?", self.ends(2, "predict", model, "-i", "X=1,2,3,4").stderr)
        self.assertIn("got 2 numbers", self.ends(2, "predict", model, "-i", "x=1,2", "-i", "y=random").stderr)
        self.ends(3, "predict", model, "-i", f"x=@{self.folder}/absent.npy", "-i", "y=random")
        for option in (["--state"], ["--load-state", "q"], ["--save-state", "q"]):
            message = self.ends(2, "predict", model, "-i", "random", *option).stderr
            self.assertIn(f"{option[0]}: the model has no states", message)
        self.ends(2, "predict", model, "-i", "random", "--function", "other")
        self.ends(2, "predict", model, "-i", "random", "--device", "abacus")

    def test_a_wrong_shape_in_a_file(self):
        model = self.affine()
        write_npy(self.folder / "x.npy", [2, 4], [0] * 8)
        self.assertIn("'x'", self.ends(2, "predict", model, "-i", f"x=@{self.folder}/x.npy", "-i", "y=random").stderr)

    def test_replaced_weights(self):
        model = write_program(self.folder / "scaled.mlmodelc", SCALED, [array_feature("x", [1, 4])], [array_feature("z", [1, 4])])
        arguments = (model, "-i", "x=1,1,1,2")
        self.assertEqual(self.values(*arguments), [[1, 2, 3, 8]])
        file = self.folder / "new.npz"
        write_npy(self.folder / "w.npy", [4], [5, 6, 7, 8])
        with zipfile.ZipFile(file, "w") as archive:
            archive.write(self.folder / "w.npy", "w.npy")
        self.assertEqual(self.values(*arguments, "--parameters", file), [[5, 6, 7, 16]])
        self.assertEqual(self.values(*arguments, "--parameters", "w*"), [[1, 2, 3, 8]])
        self.assertIn("match 'v'", self.ends(2, "predict", *arguments, "--parameters", "v").stderr)
        write_npy(self.folder / "w.npy", [2], [5, 6])
        with zipfile.ZipFile(file, "w") as archive:
            archive.write(self.folder / "w.npy", "w.npy")
        self.assertIn("expected shape [4], got [2]", self.ends(2, "predict", *arguments, "--parameters", file).stderr)
        zipfile.ZipFile(file, "w").close()
        self.assertIn("no arrays", self.ends(2, "predict", *arguments, "--parameters", file).stderr)

    def test_state(self):
        model = self.accumulator()
        arguments = (model, "-i", "x=1,2,3", "--repeat", "3")
        self.assertEqual(self.values(*arguments, "--state", output="sum"), [3, 6, 9])
        self.assertEqual(self.values(*arguments, output="sum"), [1, 2, 3])

    def test_steps_on_one_state(self):
        model = self.accumulator()
        (self.folder / "steps.json").write_text('[{"x": [1, 2, 3]}, {"x": [10, 20, 30]}]')
        (self.folder / "steps.jsonl").write_text('{"x": [1, 2, 3]}\n{"x": [10, 20, 30]}\n')
        (self.folder / "steps.csv").write_text('x\n"1,2,3"\n"10,20,30"\n')
        for name in ("steps.json", "steps.jsonl", "steps.csv"):
            sums = lambda *more: [s["sum"]["values"] for s in self.answer("predict", model, "-i", f"@{self.folder}/{name}", *more)["batch"]]
            self.assertEqual(sums("--state"), [[1, 2, 3], [11, 22, 33]], name)
            self.assertEqual(sums(), [[1, 2, 3], [10, 20, 30]], name)

    def test_states_are_saved_and_loaded(self):
        model, kept = self.accumulator(), self.folder / "kept"
        saved = self.answer("predict", model, "-i", "x=1,2,3", "--repeat", "2", "--save-state", kept)
        self.assertEqual(saved["states"], [str(kept / "total.npy")])
        self.assertEqual(self.values(model, "-i", "x=1,1,1", "--load-state", kept, output="sum"), [3, 5, 7])
        self.assertEqual(self.values(model, "-i", "x=1,1,1", output="sum"), [1, 1, 1])
        write_npy(kept / "total.npy", [3], [0.5, 0, -1])
        self.assertEqual(self.values(model, "-i", "x=1,1,1", "--load-state", kept, output="sum"), [1.5, 1, 0])
        write_npy(kept / "total.npy", [4], [0] * 4)
        self.assertIn("state 'total': expected shape", self.ends(2, "predict", model, "-i", "x=1,1,1", "--load-state", kept).stderr)
        self.ends(3, "predict", model, "-i", "x=1,1,1", "--load-state", self.folder / "absent")
        self.ends(2, "predict", self.affine(), "-i", "random", "--save-state", kept)

    def test_random_in_any_order(self):
        model = self.affine()
        first = self.values(model, "-i", "random", "-i", "x=-9,-9,-9,-9")
        self.assertEqual(first, [[0, 0, 0, 0]])
        self.assertEqual(first, self.values(model, "-i", "x=-9,-9,-9,-9", "-i", "random"))


if __name__ == "__main__":
    unittest.main()

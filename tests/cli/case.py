# SPDX-License-Identifier: Apache-2.0
"""The program under test and the models that it runs."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

from model_files import array_feature, field, write_accumulator, write_program

PROGRAM = os.environ["MOKA_PROGRAM"]
MODELS = Path(os.environ.get("MOKA_TEST_MODELS") or os.environ.get("MOKA_TEST_MODELS_DEFAULT", "models"))

AFFINE = """program(1.3)
{
    func main<ios18>(tensor<fp32, [1, 4]> x, tensor<fp32, [1, 4]> y) {
        tensor<fp32, [1, 4]> doubled = add(x = x, y = x)[name = string("doubled")];
        tensor<fp32, [1, 4]> sum = add(x = doubled, y = y)[name = string("sum")];
        tensor<fp32, [1, 4]> z = relu(x = sum)[name = string("z")];
    } -> (z);
}
"""

CONVOLUTION = """program(1.3)
{
    func main<ios18>(tensor<fp32, [1, 32, 12, 12]> x, tensor<fp32, [32, 32, 3, 3]> w) {
        tensor<fp32, [1, 32, 12, 12]> z = conv(x = x, weight = w, pad_type = string("same"))[name = string("z")];
    } -> (z);
}
"""


def moka(*arguments, program=PROGRAM):
    return subprocess.run([str(program), *map(str, arguments)], capture_output=True, text=True, timeout=600)


class Case(unittest.TestCase):
    def setUp(self):
        keeper = tempfile.TemporaryDirectory()
        self.addCleanup(keeper.cleanup)
        self.folder = Path(keeper.name)

    def ends(self, code, *arguments):
        done = moka(*arguments)
        self.assertEqual(done.returncode, code, f"{arguments}\n{done.stdout}\n{done.stderr}")
        if code:
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
            self.assertTrue(done.stderr.startswith("moka"), done.stderr)
        return done

    def answer(self, *arguments):
        return json.loads(self.ends(0, *arguments, "--json").stdout)

    def affine(self):
        metadata = field(1, "Twice x and y, never below 0") + field(3, "Someone")
        features = [array_feature("x", [1, 4]), array_feature("y", [1, 4])]
        return write_program(self.folder / "affine.mlmodelc", AFFINE, features, [array_feature("z", [1, 4])], metadata=metadata)

    def convolution(self):
        features = [array_feature("x", [1, 32, 12, 12]), array_feature("w", [32, 32, 3, 3])]
        return write_program(self.folder / "convolution.mlmodelc", CONVOLUTION, features, [array_feature("z", [1, 32, 12, 12])])

    def accumulator(self):
        return write_accumulator(self.folder / "sum.mlmodelc")

# SPDX-License-Identifier: Apache-2.0
"""The example programs in C++."""

import os
import unittest
from pathlib import Path

from case import Case, moka

EXAMPLES = Path(os.environ.get("MOKA_EXAMPLES", "."))


class Examples(Case):
    def run_example(self, name, *arguments):
        program = EXAMPLES / f"example_{name}"
        if not program.exists():
            self.skipTest(f"{program.name} is not built")
        done = moka(*arguments, program=program)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_load_and_predict(self):
        line = [l for l in self.run_example("load_and_predict").splitlines() if l.startswith("probabilities")][0]
        self.assertAlmostEqual(sum(map(float, line.split(")")[1].split())), 1, places=4)
        self.assertIn("z: MultiArray (Float32 1 x 4)", self.run_example("load_and_predict", self.affine()))

    def test_batch(self):
        self.assertIn("32 predictions at once", self.run_example("batch"))

    def test_flexible_shape(self):
        shown = self.run_example("flexible_shape")
        for line in ("1 x 4 gives sums: MultiArray (Float32 1)", "5 x 4 gives sums: MultiArray (Float32 5)"):
            self.assertIn(line, shown)

    def test_state(self):
        lines = [l.split(":") for l in self.run_example("state").splitlines()]
        self.assertEqual([name for name, _ in lines], ["sum", "sum", "sum", "state total"])
        self.assertEqual(lines[2][1], lines[3][1])

    def test_image_in(self):
        models = Path(__file__).parents[2] / "examples/models"
        lines = self.run_example("image_in", models / "shapes.mlmodel", models / "square.png").splitlines()
        self.assertIn("shape: String", lines[-1])
        ranked = [line.split()[1] for line in lines if "%" in line]
        self.assertEqual((ranked[0], sorted(ranked)), ("square", ["circle", "square", "triangle"]))


if __name__ == "__main__":
    unittest.main()

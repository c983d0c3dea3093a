# SPDX-License-Identifier: Apache-2.0
"""`moka bench`: times of loading, predictions and streams."""

import unittest
from pathlib import Path

from case import Case


class Bench(Case):
    def test_json(self):
        times = self.answer("bench", self.affine(), "--iterations", "20", "--threads", "1")
        self.assertEqual(times["predictions"], 20)
        steady = times["steady"]
        self.assertLessEqual(steady["min"], steady["p50"])
        self.assertLessEqual(steady["p50"], steady["p90"])
        self.assertLessEqual(steady["p99"], steady["max"])
        self.assertLessEqual(times["load"]["open"] + times["load"]["import"], times["load"]["total"])

    def test_bench_of_a_stream(self):
        models = Path(__file__).parents[2] / "examples" / "models"
        picture = ["--input", f"image=@{models / 'square.png'}", "--fit", "scaleFit", "--seconds", "0.05", "--stream"]
        for device in ([], ["--device", "simulator"]):
            rates = self.answer("bench", models / "shapes.mlmodel", *picture, *device)["stream"]
            self.assertGreaterEqual(rates["predictions"], 3)
            slower = min(rates["reading"], rates["predicting"])
            self.assertGreater(slower, 0)
            self.assertAlmostEqual(rates["share"], rates["stream"] / slower)
        shown = self.ends(0, "bench", models / "shapes.mlmodel", *picture).stdout
        for text in ("reading inputs alone", "predicting alone", "both as a stream", "of the slower stage's rate"):
            self.assertIn(text, shown)
        self.assertIn("--input", self.ends(2, "bench", models / "shapes.mlmodel", "--stream").stderr)

    def test_state_and_time_limit(self):
        shown = self.ends(0, "bench", self.accumulator(), "--seconds", "0.05").stdout
        for row in ("open file", "first", "p90", "peak memory"):
            self.assertIn(row, shown)


if __name__ == "__main__":
    unittest.main()

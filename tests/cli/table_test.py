# SPDX-License-Identifier: Apache-2.0
"""moka predict on tables of many rows, compared with recorded answers of scikit-learn and NumPy (tests/golden/classic)."""

import csv
import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from case import Case

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "classic"
REPEATS = 60  # more rows than the first block


def numbers(value):
    """All numbers of nested lists, in order."""
    return [n for v in value for n in numbers(v)] if isinstance(value, list) else [value]


class Tables(Case):
    def predicted(self, rows, model):
        with open(self.folder / "table.csv", "w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            for row in rows:
                writer.writerow({k: v if isinstance(v, (str, int, float)) else json.dumps(v) for k, v in row.items()})
        return self.answer("predict", model, "-i", f"@{self.folder}/table.csv")["batch"]

    def check(self, name):
        recorded = json.loads((GOLDEN / f"{name}.json").read_text())
        cases = [c for c in recorded["cases"] if "outputs" in c] * REPEATS
        batch = self.predicted([self.cells(c["inputs"]) for c in cases], GOLDEN / f"{name}.mlmodel")
        self.assertEqual(len(batch), len(cases))
        for row, (got, case) in enumerate(zip(batch, cases)):
            for output, expected in case["outputs"].items():
                with self.subTest(name, row=row, output=output):
                    self.same(got[output], expected, recorded["tolerance"])

    @staticmethod
    def cells(inputs):
        return {k: dict(zip(map(str, v["keys"]), v["values"])) if isinstance(v, dict) else v for k, v in inputs.items()}

    def same(self, got, expected, tolerance):
        if isinstance(expected, dict):
            value = got["value"]
            self.assertEqual(sorted(value), sorted(map(str, expected["keys"])))
            for key, number in zip(expected["keys"], expected["values"]):
                self.assertAlmostEqual(value[str(key)], number, delta=max(tolerance, 1e-11))
        elif isinstance(expected, str):
            self.assertEqual(got["value"], expected)
        else:
            actual = numbers(got["values"] if "values" in got else got["value"])
            self.assertEqual(len(actual), len(numbers(expected)))
            for a, b in zip(actual, numbers(expected)):
                self.assertAlmostEqual(a, b, delta=max(tolerance, 1e-11) * max(1, abs(b)))

    def test_classifiers(self):
        for name in ("decision_tree_classifier", "svc_probability", "logistic_multi", "libsvm_3_classes"):
            self.check(name)

    def test_regressors(self):
        for name in ("linear_regression", "gradient_boosting_regressor", "nu_svr", "pipeline_regressor"):
            self.check(name)

    def test_texts_and_dictionaries(self):
        for name in ("one_hot_string_dense", "one_hot_string_sparse", "dict_vectorizer", "mapping_string"):
            self.check(name)

    def test_whole_numbers_keep_all_digits(self):
        numbers = [5, 2**53 + 1, 2**63 - 1]
        batch = self.predicted([{"x": n} for n in numbers], GOLDEN / "imputer_int.mlmodel")
        self.assertEqual([[output["value"] for output in row.values()] for row in batch], [[n] for n in numbers])

    def test_whole_numbers_may_have_a_point_or_an_exponent(self):
        written = {"4.0": 4, "1e2": 100, "-2.50e1": -25, "+3": 3}
        batch = self.predicted([{"x": n} for n in written], GOLDEN / "imputer_int.mlmodel")
        self.assertEqual([[output["value"] for output in row.values()] for row in batch], [[n] for n in written.values()])
        for text in ("3.7", "1e30", "nan", "inf", "three"):
            done = self.ends(2, "predict", GOLDEN / "imputer_int.mlmodel", "-i", f"x={text}")
            self.assertIn(f"input 'x': expected a whole number, got '{text}'", done.stderr)

    def test_an_error_names_the_row_of_the_table(self):
        (self.folder / "bad.csv").write_text("x\n" + "5\n" * 99 + "999\n" + "9\n" * 20)
        done = self.ends(3, "predict", GOLDEN / "one_hot_int.mlmodel", "-i", f"@{self.folder}/bad.csv")
        self.assertIn("row 100: input 'x'", done.stderr)
        self.assertIn("expected one of the categories -2, 5, 9, got 999", done.stderr)


if __name__ == "__main__":
    unittest.main()

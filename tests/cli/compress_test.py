"""moka compress: what it writes predicts, is as small as it says, and names what it cannot do."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = os.environ["MOKA_PROGRAM"]
GOLDEN = Path(__file__).resolve().parents[1] / "golden"
MODEL = GOLDEN / "cached" / "model.mlpackage"


def moka(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=600)


def size(package):
    return sum(p.stat().st_size for p in Path(package).rglob("*.bin"))


class Compress(unittest.TestCase):
    def setUp(self):
        keeper = tempfile.TemporaryDirectory()
        self.addCleanup(keeper.cleanup)
        self.out = Path(keeper.name) / "out.mlpackage"

    def compress(self, *options):
        done = moka("compress", MODEL, "-o", self.out, "--json", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def outputs(self, model):
        done = moka("predict", model, "-i", "random", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return [v for row in json.loads(done.stdout)["outputs"]["y"]["values"] for v in row]

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

    def test_unchanged_weights_keep_their_values(self):
        self.compress("--layer", "*=none")
        self.assertEqual(self.outputs(self.out), self.outputs(MODEL))

    def test_mistakes(self):
        for words, options in (("got both", ("--linear", 8, "--palette", 4)), ("--prune", ("--prune", "some")), ("--per", ("--per", "row")),
                               ("granularity", ("--linear", 8, "--per", "group:4")), ("--layer", ("--layer", "a=small"))):
            done = moka("compress", MODEL, "-o", self.out, *options)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn(words, done.stderr)
            self.assertFalse(self.out.exists())
        network = next(GOLDEN.rglob("*.mlmodel"))
        done = moka("compress", network, "-o", self.out)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertIn("ML program", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])

# SPDX-License-Identifier: Apache-2.0
"""Updatable models from outside: moka inspect, edit, compile and decompile."""

import json
import unittest
from pathlib import Path

from case import Case

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "update"
TRUTH = json.loads((GOLDEN / "truth.json").read_text())


class Update(Case):
    def test_inspect_lists_what_training_uses(self):
        for name, expected in TRUTH.items():
            with self.subTest(name):
                update = self.answer("inspect", GOLDEN / f"{name}.mlmodel")["update"]
                self.assertEqual([f["name"] for f in update["trainingInputs"]], expected["trainingInputs"])
                self.assertEqual({layer["name"]: layer["type"] for layer in update["layers"]}, expected["layers"])
                self.assertEqual([[x["name"], x["type"], x["input"], x["target"]] for x in update["losses"]], expected["losses"])
                self.assertEqual(update["parameters"], expected["parameters"])
                self.assertEqual(update.get("optimizer"), expected.get("optimizer"))
                self.assertEqual(update.get("nearestNeighbors"), expected.get("nearestNeighbors"))
                shown = self.ends(0, "inspect", GOLDEN / f"{name}.mlmodel").stdout
                for text in [*expected["trainingInputs"], *expected["layers"], *expected["parameters"], *(x[1] for x in expected["losses"])]:
                    self.assertIn(text, shown)

    def test_inspect_and_compile_say_which_rule_is_broken(self):
        broken, data = self.folder / "broken.mlmodel", (GOLDEN / "plain.mlmodel").read_bytes()
        self.assertEqual(data[:2], b"\x08\x04")
        broken.write_bytes(b"\x08\x03" + data[2:])
        self.assertIn("update: an updatable model needs specification version 4 or later, got 3", self.ends(0, "inspect", broken).stdout)
        self.assertIn("got 3", self.answer("inspect", broken)["update"]["fault"])
        self.assertIn("got 3", self.ends(3, "compile", broken, self.folder / "out").stderr)

    def test_compiled_models_keep_it(self):
        for name in TRUTH:
            with self.subTest(name):
                model = GOLDEN / f"{name}.mlmodel"
                self.ends(0, "compile", model, self.folder)
                compiled = self.folder / f"{name}.mlmodelc"
                self.assertEqual(self.answer("inspect", compiled)["update"], self.answer("inspect", model)["update"])
                self.assertEqual(json.loads((compiled / "metadata.json").read_text())[0]["isUpdatable"], "1")
                back = self.folder / f"{name}_back.mlmodel"
                self.ends(0, "decompile", compiled, back)
                self.assertEqual(self.answer("inspect", back)["update"], self.answer("inspect", model)["update"])

    def test_edit_marks(self):
        out = self.folder / "marked.mlmodel"
        done = self.ends(0, "edit", GOLDEN / "plain.mlmodel", "--updatable", "first", "--loss", "mse,input=h,name=error", "--optimizer",
                         "adam", "--learning-rate", "0.001,min=0,max=0.1", "--mini-batch", "8,allowed=4:8", "--epochs", "2", "--shuffle",
                         "0", "--seed", "5", "-o", out)
        self.assertIn("--learning-rate 0.001,min=0,max=0.1", done.stdout)
        update = self.answer("inspect", out)["update"]
        self.assertEqual([layer["name"] for layer in update["layers"]], ["first", "second"])
        self.assertEqual(update["losses"][0]["target"], "h_true")
        self.assertEqual(update["trainingInputs"][1]["shape"], [4])
        self.assertEqual(update["parameters"]["learningRate"], {"default": 0.001, "range": [0, 0.1]})
        self.assertEqual(update["parameters"]["miniBatchSize"], {"default": 8, "allowed": [4, 8]})
        self.assertEqual(update["parameters"]["shuffle"], {"default": False})
        self.assertEqual(update["remarks"], ["layer 'second' (innerProduct) is updatable, but the loss 'error' does not depend on it"])

    def test_edit_refuses(self):
        plain, out = GOLDEN / "plain.mlmodel", self.folder / "refused.mlmodel"
        for arguments, message in [
            (["--updatable", "nosuch"], "--updatable nosuch: the network has no layer 'nosuch'"),
            (["--updatable", "relu"], "layer 'relu' (activation): expected a convolution"),
            (["--loss", "hinge"], "expected cross-entropy or mse, got 'hinge'"),
            (["--loss", "cross-entropy"], "expected a network with one softmax, or the input, got 0"),
            (["--optimizer", "rmsprop"], "expected the optimizer sgd or adam, got 'rmsprop'"),
            (["--beta1", "0.9"], "parameter 'beta1': sgdOptimizer does not have it"),
            (["--learning-rate", "5"], "expected a number from 0 to 1, got 5"),
            (["--learning-rate", "1,min=0"], "expected NUMBER, NUMBER,min=NUMBER,max=NUMBER"),
            (["--epochs", "2,allowed=1e300"], "allowed: expected integers"),
            (["--mini-batch", "2,allowed=4"], "expected one of the allowed integers, got 2"),
            (["--neighbors", "3"], "only a nearest-neighbors classifier has the parameter 'numberOfNeighbors'"),
        ]:
            with self.subTest(arguments):
                done = self.ends(2, "edit", plain, *arguments, "-o", out)
                self.assertIn(message, done.stderr)
        self.assertFalse(out.exists())


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""`moka tune` and `moka rates`: measured times of kernels and rates of units."""

import json
import unittest

from case import Case, moka


class Tune(Case):
    def tuned(self, *arguments):
        """The output of `moka tune`, repeated while other processes disturb it."""
        for _ in range(20):
            answer = self.answer("tune", *arguments)
            if answer["disturbedOperations"] == 0:
                break
        return answer

    def test_measures_writes_and_is_used(self):
        model, cache = self.convolution(), self.folder / "cache" / "kernels.json"
        tuned = self.tuned(model, "--threads", "1", "--kernels", cache)
        self.assertEqual(tuned["file"], str(cache))
        self.assertEqual(tuned["measured"], 1)
        shape = tuned["shapes"][0]
        self.assertEqual((shape["operation"], shape["operations"], shape["chosenBy"]), ("z", 1, "measured"))
        self.assertIn(shape["kernel"], shape["seconds"])
        self.assertGreaterEqual(len(shape["seconds"]), 2)
        self.assertEqual(json.loads(cache.read_text())["machines"][0]["entries"][0]["shape"], shape["shape"])
        self.assertEqual(self.answer("tune", model, "--threads", "1", "--kernels", cache)["measured"], 0)
        self.assertEqual(self.tuned(model, "--threads", "1", "--kernels", cache, "--again")["measured"], 1)
        planned = self.answer("explain", model, "--threads", "1", "--kernels", cache)["operations"][0]
        self.assertEqual((planned["chosenBy"], planned["shape"]), ("cache", shape["shape"]))
        self.assertIn("the others", self.ends(0, "explain", model, "--threads", "1", "--kernels", cache).stdout)
        self.assertNotIn("candidates", self.answer("explain", model, "--threads", "1")["operations"][0])

    def test_for_people(self):
        done = self.ends(0, "tune", self.convolution(), "--kernels", self.folder / "kernels.json")
        self.assertEqual(done.stderr, "moka tune: timing kernels takes up to a third of a second for each shape, and longer beside other work\n")
        shown = done.stdout
        for text in ("operation", "chosen", "the rules'", "measured", str(self.folder / "kernels.json")):
            self.assertIn(text, shown)

    def test_wrong_shapes(self):
        model = self.convolution()
        for shape in ("x", "q=1x2", "x=0x4", "x=2x", "x=axb", "x=3x4"):
            done = moka("tune", model, "--kernels", "off", "--shape", shape)
            self.assertEqual(done.returncode, 2, done.stderr)
            # Loading the model has timed kernels, of which the first line tells.
            self.assertTrue(done.stderr.splitlines()[-1].startswith("moka tune: ") and done.stderr.count("\n") <= 2, done.stderr)

    def test_damaged_cache(self):
        cache = self.folder / "kernels.json"
        cache.write_text("{")
        done = self.ends(0, "predict", self.convolution(), "--input", "random", "--kernels", cache)
        self.assertEqual(done.stderr.count("kernel cache"), 1)


class Rates(Case):
    def test_rates(self):
        file = self.folder / "rates.json"
        answer = json.loads(self.ends(0, "rates", "--rates", file, "--threads", "1", "--json").stdout)
        cpu = answer["units"][0]
        self.assertEqual((answer["file"], cpu["device"], cpu["unit"]), (str(file), "cpu", "cpu"))
        self.assertGreater(cpu["fp32"], 1e8)
        known = json.loads(self.ends(0, "rates", "--rates", file, "--threads", "1", "--known", "--json").stdout)
        self.assertEqual(known["units"], answer["units"])
        self.assertIn("GF/s", self.ends(0, "rates", "--rates", file, "--threads", "1", "--known").stdout)


if __name__ == "__main__":
    unittest.main()

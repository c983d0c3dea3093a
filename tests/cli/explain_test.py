# SPDX-License-Identifier: Apache-2.0
"""`moka explain`: the plan, pins, and what stays off a unit."""

import json
import os
import unittest
import unittest.mock

from case import Case


class Explain(Case):
    def test_json(self):
        plan = self.answer("explain", self.affine(), "--measure", "--device", "reference")
        self.assertEqual(plan["operationsInSource"], 3)
        self.assertGreaterEqual(plan["measuredSeconds"], 0)
        memory = plan["memory"]
        self.assertGreaterEqual(memory["unsharedBytes"], memory["arenaBytes"])
        held = sum(memory[k] for k in ("mappedBytes", "packedBytes", "cachedBytes", "constantBytes", "sessionBytes", "heapBytes"))
        self.assertEqual(memory["totalBytes"], held)
        self.assertGreater(memory["sessionBytes"], 0)
        named = {name for o in plan["operations"] for name in [o["name"], *o["fused"]]}
        self.assertLessEqual({"z"}, named)
        self.assertEqual({o["device"] for o in plan["operations"] if o["type"] in ("add", "relu")}, {"reference"})

    def test_for_people(self):
        model = self.affine()
        for options in ([], ["--all"], ["--measure"], ["--measure", "--input", "random"]):
            shown = self.ends(0, "explain", model, *options).stdout
            self.assertIn("device", shown)
            self.assertIn("operation", shown)

    def test_stages(self):
        model = self.affine()
        for stage, expected in (("resolve", "compute "), ("claim", "reference reference"), ("arrange", "run "), ("memory", "arena of ")):
            shown = self.ends(0, "explain", model, "--stage", stage, "--device", "reference").stdout
            self.assertIn(expected, shown)
            self.assertEqual(self.answer("explain", model, "--stage", stage, "--device", "reference")["text"], shown)
        self.ends(2, "explain", model, "--stage", "claim", "--measure")
        self.ends(2, "explain", model, "--stage", "emit")

    def test_state(self):
        plan = self.answer("explain", self.accumulator(), "--measure")
        types = {o["type"] for o in plan["operations"]}
        self.assertIn("write_state", types)
        self.assertNotIn("read_state", types)  # the value that is read is a view of the state


class Pins(Case):
    def test_pins(self):
        model = self.convolution()
        planned = self.answer("explain", model, "--pin", "z=reference")["operations"][0]
        self.assertEqual((planned["kernel"], planned["chosenBy"]), ("reference", "pin"))
        self.assertIn("does not exist", self.ends(2, "explain", model, "--pin", "z=cpu.conv.fast").stderr)
        self.assertIn("'y', pinned", self.ends(2, "explain", model, "--pin", "y=cpu.conv.onednn").stderr)
        self.assertIn("expected OPERATIONS=DEVICE", self.ends(2, "explain", model, "--pin", "z").stderr)

    def test_pins_of_devices(self):
        model = self.convolution()
        pins = self.folder / "my.pins"
        pins.write_text("# all\n*=reference\ntype:conv = simulator\n")
        plan = self.answer("explain", model, "--pins", pins)
        planned = next(o for o in plan["operations"] if o["name"] == "z")
        self.assertEqual((planned["device"], planned["chosenBy"], planned["region"]), ("simulator", "pin", 0))
        self.assertEqual({u["device"] for u in planned["units"]}, {"cpu", "simulator"})
        self.assertEqual([r["device"] for r in plan["regions"]], ["simulator"])
        self.assertEqual([(p["operations"], p["device"], p["matched"], p["decided"]) for p in plan["pins"]],
                         [("*", "reference", 1, 0), ("type:conv", "simulator", 1, 1)])
        reasons = [(o["bytes"] > 0, o["reason"]) for o in plan["operations"] if o["type"] == "transfer"]
        self.assertIn((True, "an input"), reasons)
        self.assertEqual(plan["rates"], "table")
        shown = self.ends(0, "explain", model, "--pins", pins, "--all").stdout
        for text in ("later pins count for 1", "the choice between units", "region", "transfer", "* where it runs"):
            self.assertIn(text, shown)
        # Nothing is refused, and no kernel was measured.
        for text in ("refused, since", "kernel chosen for"):
            self.assertNotIn(text, shown)
        self.assertIn("line 1: expected OPERATIONS=DEVICE", self.ends(2, "explain", model, "--pin", "conv").stderr)
        self.assertIn("got 'tpu'", self.ends(2, "explain", model, "--pin", "*=tpu").stderr)
        self.assertIn("cannot be read", self.ends(2, "explain", model, "--pins", self.folder / "none").stderr)
        self.assertIn("not among the compute units",
                      self.ends(2, "explain", model, "--pin", "*=simulator", "--compute-units", "cpuOnly").stderr)


    def test_pins_that_match_nothing(self):
        model = self.convolution()
        pins = self.folder / "my.pins"
        pins.write_text("type:convolution = reference\n")
        text = ("pin 'type:convolution=reference' matches no operation; did you mean 'type:conv'? "
                "The model has the types 'conv'")
        for options in (["--pin", "type:convolution=reference"], ["--pins", pins]):
            done = self.ends(0, "explain", model, *options)
            self.assertEqual(done.stderr, f"moka: {text}\n")
            self.assertIn(text, done.stdout)
            refused = self.ends(2, "predict", model, "--input", "random", *options, "--strict").stderr
            self.assertEqual(refused, f"moka predict: {text}\n")


class StaysOff(Case):
    def test_what_stays_off_the_neural_engine(self):
        model = self.convolution()
        shown = self.ends(0, "explain", model, "--unit", "neuralEngine").stdout
        self.assertIn("there is no Neural Engine off Apple's chips", shown)
        answer = self.answer("explain", model, "--unit", "neuralEngine")
        self.assertEqual(answer["unit"], "neuralEngine")
        self.assertEqual(answer["takes"], 0)
        self.assertIn("ct.precision.FLOAT16", answer["staysOff"][0]["remedy"])
        self.assertIn("https://", answer["staysOff"][0]["source"])
        shown = self.ends(0, "explain", model, "--compute-units", "cpuAndNeuralEngine").stdout
        self.assertIn("refused, since", shown)

    def test_what_stays_off_a_gpu_that_has_no_driver(self):
        model = self.convolution()
        with unittest.mock.patch.dict(os.environ, VK_ICD_FILENAMES="/nonexistent", VK_DRIVER_FILES="/nonexistent"):
            answer = self.answer("explain", model, "--unit", "gpu")
            self.assertIn("device 'vulkan' is not used: no GPU", answer["staysOff"][0]["reason"])
            self.ends(0, "predict", model, "--input", "random", "--device", "vulkan")
            refused = self.ends(3, "predict", model, "--input", "random", "--device", "vulkan", "--strict").stderr
            self.assertIn("device 'vulkan' is not used: no GPU", refused)


class Rates(Case):
    def test_a_prediction_measures_nothing(self):
        model, rates = self.convolution(), self.folder / "rates.json"
        for options in ([], ["--compute-units", "cpuAndGPU"], ["--device", "vulkan"]):
            done = self.ends(0, "predict", model, "--input", "random", "--rates", rates, *options)
            self.assertEqual(done.stderr, "")
        self.assertFalse(rates.exists())
        plan = self.answer("explain", model, "--device", "vulkan", "--rates", rates)
        self.assertEqual(plan["rates"], "table")
        for o in plan["operations"]:
            for u in o.get("units", []):
                self.assertTrue(u["unit"] == "cpu" or "software" not in self.description(), u)

    def description(self):
        units = self.answer("rates", "--known", "--rates", "off", "--device", "vulkan")["units"]
        return next((u["description"] for u in units if u["device"] == "vulkan"), "")

    def test_a_software_driver_is_no_gpu(self):
        if not self.description().endswith(", a software driver"):
            self.skipTest("this machine has no software driver for the device vulkan, or a GPU as well")
        model = self.convolution()
        text = "device 'vulkan' is used only when it is named, as the device or in a pin: "
        why = " is a software driver, which computes on the CPU"
        answer = self.answer("explain", model, "--unit", "gpu")
        self.assertEqual(answer["takes"], 0)
        for found in (answer["staysOff"][0]["reason"], self.ends(0, "explain", model, "--compute-units", "cpuAndGPU").stdout,
                      self.ends(3, "predict", model, "--input", "random", "--pin", "z=gpu", "--strict").stderr):
            self.assertIn(text, found)
            self.assertIn(why, found)
        named = self.answer("explain", model, "--pin", "z=vulkan", "--strict")
        self.assertEqual({o["device"] for o in named["operations"] if o["name"] == "z" and o["kernel"]}, {"vulkan"})

    def test_rates_say_that_they_measure(self):
        rates = self.folder / "rates.json"
        done = self.ends(0, "rates", "--rates", rates, "--json")
        self.assertEqual(done.stderr, "moka rates: measuring takes a second or two for each unit\n")
        self.assertGreater(json.loads(done.stdout)["units"][0]["fp32"], 1e8)
        known = self.ends(0, "rates", "--rates", rates, "--known", "--json")
        self.assertEqual(known.stderr, "")
        self.assertEqual(json.loads(known.stdout)["units"], json.loads(done.stdout)["units"])
        self.assertIn("got 'tpu'", self.ends(2, "rates", "--known", "--device", "tpu").stderr)


if __name__ == "__main__":
    unittest.main()

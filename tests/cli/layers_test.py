# SPDX-License-Identifier: Apache-2.0
"""What `moka inspect --layers` and `moka compile --verbose` say of layers: sizes, windows, weights and preprocessing."""

import json
import shutil
import unittest
from pathlib import Path

import layer_files
from case import MODELS, Case


class Layers(Case):
    def layers(self, model, kind="layers"):
        return {node["name"]: node for node in self.answer("inspect", model, "--layers")[kind]["list"]}

    def expect(self, node, **fields):
        self.assertEqual({key: node.get(key) for key in fields}, fields)

    def test_network(self):
        nodes = self.layers(layer_files.network(self.folder / "m.mlmodel"))
        # (10 + 2 - 3) / 2 + 1 rows; 5 taps with dilation 2 span 9 of 6 + 8 columns
        self.expect(nodes["conv"], inputSizes=[[4, 10, 6]], outputSizes=[[6, 5, 6]], kernelSize=[3, 5], stride=[2, 1],
                    dilation=[1, 2], padding={"mode": "custom", "amounts": [1, 1, 4, 4]}, inputChannels=4, outputChannels=6,
                    groups=2, parameters=186, bytes=90 + 24)
        self.assertEqual([(w["name"], w["shape"], w["storage"]) for w in nodes["conv"]["weights"]],
                         [("conv.weights", [6, 2, 3, 5], "palette of 4 bits"), ("conv.bias", [6], "float32")])
        self.expect(nodes["pool"], outputSizes=[[6, 3, 3]], kernelSize=[2, 2], stride=[2, 2], padding={"mode": "same"}, weights=[])
        self.expect(nodes["dense"], inputSizes=[[54]], outputSizes=[[5]], inputChannels=54, outputChannels=5, bytes=270)
        self.assertEqual([(w["shape"], w["storage"]) for w in nodes["dense"]["weights"]], [([5, 54], "linear 8 bits")])
        shown = self.ends(0, "inspect", self.folder / "m.mlmodel", "--layers").stdout
        self.assertIn("3 x 5, stride 2 x 1, dilation 1 x 2, padding 1 1 4 4, 4 to 6 channels, 2 groups", shown)
        self.assertIn("6 x 2 x 3 x 5 palette of 4 bits, 6 float32", shown)

    def test_bits_that_fill_the_last_byte_are_no_elements(self):
        nodes = self.layers(layer_files.packed_biases(self.folder / "m.mlmodel"))
        self.assertEqual([(w["shape"], w["parameters"], w["bytes"]) for w in nodes["dense"]["weights"]], [([6, 4], 24, 9), ([6], 6, 3)])
        self.assertEqual([(w["shape"], w["parameters"], w["bytes"]) for w in nodes["conv"]["weights"]], [([9, 6, 1, 1], 54, 21), ([9], 9, 4)])
        self.assertEqual([w["parameters"] for w in nodes["norm"]["weights"]], [9, 9, 9, 9])

    def test_sizes_behind_a_custom_layer_are_not_known(self):
        nodes = self.layers(layer_files.network(self.folder / "m.mlmodel", custom=True))
        self.expect(nodes["middle"], inputSizes=[[6, 3, 3]], outputSizes=[None])
        self.expect(nodes["dense"], inputSizes=[None], outputSizes=[None], inputChannels=54)
        self.assertIn("m ?", self.ends(0, "inspect", self.folder / "m.mlmodel", "--layers").stdout)

    def test_flexible_sizes_are_the_default(self):
        self.expect(self.layers(layer_files.flexible_network(self.folder / "m.mlmodel"))["relu"], outputSizes=[[3, 8, 8]])
        nodes = self.layers(layer_files.flexible_program(self.folder / "m.mlmodelc"), "operations")
        self.expect(nodes["c"], inputSizes=[[1, 2, 9]], outputSizes=[[1, 4, 5]], kernelSize=[3], stride=[2], dilation=[1],
                    padding={"mode": "custom", "amounts": [1, 1]}, inputChannels=2, outputChannels=4, groups=2, bytes=48)
        self.expect(nodes["y"], inputSizes=[[1, 5, 4]], outputSizes=[[1, 5, 2]], bytes=8, parameters=8)
        self.assertEqual([(w["shape"], w["storage"]) for w in nodes["y"]["weights"]], [([4, 2], "linear 8 bits")])

    def test_a_bias_of_one_element_is_a_weight(self):
        compiled = layer_files.one_channel_program(self.folder / "m.mlmodelc")
        self.ends(0, "decompile", compiled, self.folder / "m.mlpackage")
        for model in (compiled, self.folder / "m.mlpackage"):
            nodes = self.layers(model, "operations")
            self.assertEqual(sorted(w["shape"] for w in nodes["c"]["weights"]), [[1], [1, 2, 1]])
            self.expect(nodes["c"], parameters=3, bytes=12)
            self.expect(nodes["y"], parameters=10, bytes=40)
            self.expect(nodes["m"], weights=[])
        self.assertRegex(self.ends(0, "compile", model, self.folder / "out", "--verbose").stdout, r"(?m)^c +conv .* +3 +12$")

    def test_compiled_network_without_weights(self):
        model = self.folder / "m.mlmodelc"
        layer_files.compiled(model)
        node = self.layers(model)["conv"]
        self.expect(node, inputSizes=[[3, 8, 8]], outputSizes=[[2, 3, 3]], kernelSize=[3, 4], stride=[2, 1], dilation=[1, 1],
                    padding={"mode": "custom", "amounts": [0, 1, 0, 0]}, inputChannels=3, outputChannels=2, groups=1)
        facts = self.answer("inspect", model)
        self.assertEqual(facts["preprocessing"], [{"input": "x", "stored": "scaler", "channels": "BGR", "scale": 2, "bias": [3, 2, 1]}])

    @unittest.skipUnless(MODELS.is_dir(), "no folder of published models: MOKA_TEST_MODELS names one")
    def test_the_sizes_are_those_that_apples_compiler_writes(self):
        model = MODELS / "card_detector/SSDOcr.mlmodelc"
        shapes = json.loads((model / "model.espresso.shape").read_text())["layer_shapes"]
        compared = 0
        for node in self.layers(model).values():
            for name, size in zip(node["outputs"], node["outputSizes"]):
                if name not in shapes:
                    continue  # between a convolution and its activation, which the compiler fuses
                shape = [shapes[name].get(axis, 1) for axis in ("seq", "n", "k", "h", "w")]
                size = size if len(size) == 5 else [1, 1, *size] + [1] * (3 - len(size))
                self.assertEqual(size, shape, name)
                compared += 1
        self.assertGreater(compared, 90)


class Preprocessing(Case):
    def test_network(self):
        model = layer_files.scaled_pictures(self.folder / "m.mlmodel")
        self.assertEqual(self.answer("inspect", model)["preprocessing"],
                         [{"input": "photo", "stored": "scaler", "channels": "BGR", "scale": 0.5, "bias": [-1, -2, -3]},
                          {"input": "drawing", "stored": "mean image", "channels": "RGB", "meanImage": 12}])
        shown = self.ends(0, "inspect", model).stdout
        self.assertRegex(shown, r"photo +BGR +0\.5 +-1 -2 -3 +scaler")
        self.assertRegex(shown, r"drawing +RGB +minus 12 numbers +mean image")

    def test_program(self):
        facts = self.answer("inspect", layer_files.scaled_program(self.folder / "m.mlmodelc"))
        self.assertEqual(facts["preprocessing"], [{"input": "photo", "stored": "operations", "function": "main", "channels": "RGB",
                                                   "scale": 1 / 256, "bias": [-1, -0.5, -0.25]}])

    def test_operations_of_a_program_are_taken_together(self):
        channels = layer_files.PER_CHANNEL
        vector = "tensor<fp32, [3]>([0x1p+0, 0x1p+1, 0x1p+2])"
        half, one, quarter, zero, row = "fp32(0x1p-1)", "fp32(0x1p+0)", "fp32(0x1p-2)", "fp32(0x0p+0)", "tensor<fp32, [4]>([0x1p+0, 0x1p+1, 0x1p+2, 0x1p+3])"
        for steps, scale, bias in (
            # (image + b) * 0.5
            ((f"add(x = $, y = {channels})", f"mul(x = {half}, y = $)"), 0.5, [0.5, 1, 2]),
            # 1 - 0.25 * image
            ((f"mul(x = $, y = {quarter})", f"sub(x = {one}, y = $)"), -0.25, [1]),
            # (image - b) / b
            ((f"sub(x = $, y = {channels})", f"real_div(x = $, y = {channels})"), [1, 0.5, 0.25], [-1, -1, -1]),
            # 0.5 * (0.25 * image) + 0.25 + 1
            ((f"mul(x = $, y = {quarter})", f"mul(x = $, y = {half})", f"add(x = $, y = {quarter})", f"add(x = $, y = {one})"), 0.125, [1.25]),
            # (image - mean) / sqrt(variance) * gamma + beta
            ((f"batch_norm(x = $, mean = {vector}, variance = tensor<fp32, [3]>([0x1p+0, 0x1p+2, 0x1p+4]), epsilon = {zero}, "
              f"gamma = {vector}, beta = tensor<fp32, [3]>([0x1p+1, 0x1.8p+1, 0x1.4p+2]))",), [1, 1, 1], [1, 1, 1]),
            # What is not a scale and a bias of each channel ends it.
            ((f"real_div(x = {one}, y = $)",), None, None),
            (("mul(x = $, y = $)",), None, None),
            ((f"mul(x = $, y = {row})",), None, None),
            ((f"add(x = $, y = {one})", f"real_div(x = {one}, y = $)"), 1, [1]),
        ):
            model = layer_files.picture_program(self.folder / "m.mlmodelc", *steps)
            found = self.answer("inspect", model).get("preprocessing", [])
            expected = [] if scale is None else [{"input": "photo", "stored": "operations", "function": "main", "channels": "RGB", "scale": scale, "bias": bias}]
            self.assertEqual(found, expected, steps)
            shutil.rmtree(model)
        model = layer_files.picture_program(self.folder / "m.mlmodelc", f"mul(x = $, y = {channels})")
        self.assertRegex(self.ends(0, "inspect", model).stdout, r"photo +RGB +1 2 4 +operations")

    def test_the_viewers_page_has_it(self):
        page = self.folder / "page.html"
        self.ends(0, "view", layer_files.scaled_pictures(self.folder / "m.mlmodel"), "-o", page)
        self.assertIn('"preprocessing":[{"input":"photo"', "".join(page.read_text().split()))


class Verbose(Case):
    def test_network(self):
        model = layer_files.network(self.folder / "m.mlmodel")
        done = self.ends(0, "compile", model, self.folder / "out", "--verbose").stdout.splitlines()
        self.assertEqual(done[-1], str(self.folder / "out/m.mlmodelc/coremldata.bin"))
        self.assertEqual(done[0].split(), ["layer", "kind", "input", "output", "weights", "bytes"])
        self.assertEqual(done[2].split("  ")[0], "conv")
        self.assertRegex(done[2], r"^conv +convolution +4 x 10 x 6 +6 x 5 x 6 +186 +114$")
        self.assertRegex(done[-2], r"^all +5 layers +456 +384$")
        facts = self.answer("compile", model, self.folder / "out", "--verbose")
        self.assertEqual([layer["name"] for layer in facts["layers"]], ["conv", "pool", "middle", "flat", "dense"])
        self.assertEqual((facts["layers"][0]["type"], facts["layers"][0]["outputSizes"], facts["layers"][0]["bytes"]),
                         ("convolution", [[6, 5, 6]], 114))
        self.assertNotIn("layers", self.answer("compile", model, self.folder / "out"))

    def test_program(self):
        compiled = layer_files.flexible_program(self.folder / "m.mlmodelc")
        self.ends(0, "decompile", compiled, self.folder / "m.mlpackage")
        shown = self.ends(0, "compile", self.folder / "m.mlpackage", self.folder / "out", "--verbose").stdout
        self.assertRegex(shown, r"(?m)^c +conv +fp32 1 x 2 x 9 +fp32 1 x 4 x 5 +12 +48$")
        self.assertRegex(shown, r"(?m)^y +matmul +fp32 1 x 5 x 4 +fp32 1 x 5 x 2 +8 +8$")
        self.assertRegex(shown, r"(?m)^all +3 operations +20 +56$")

    def test_pipeline(self):
        model = Path(__file__).parent.parent / "golden/detectors/program.mlpackage"
        lines = self.ends(0, "compile", model, self.folder, "--verbose").stdout.splitlines()
        self.assertEqual([line for line in lines if line.startswith("model")],
                         ["model0  mlProgram", "model1  nonMaximumSuppression"])
        facts = self.answer("compile", model, self.folder, "--verbose")
        self.assertEqual([(m["name"], m["type"]) for m in facts["models"]],
                         [("model0", "mlProgram"), ("model1", "nonMaximumSuppression")])
        self.assertGreater(len(facts["models"][0]["operations"]), 1)


if __name__ == "__main__":
    unittest.main()

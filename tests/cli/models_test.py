# SPDX-License-Identifier: Apache-2.0
"""Published models: answers, files of sound and pictures, and every command on small models."""

import unittest

from case import MODELS, Case
from model_files import read_npy


@unittest.skipUnless(MODELS.is_dir(), "no folder of published models: MOKA_TEST_MODELS names one")
class RealModels(Case):
    def test_sleep_from_a_table(self):
        (self.folder / "nights.csv").write_text("wake,estimatedSleep,coffee\n6,8,2\n7,7,1\n")
        model = MODELS / "glm_sleep/SleepCalculator.mlmodel"
        rows = self.answer("predict", model, "-i", f"@{self.folder}/nights.csv")["batch"]
        one = self.answer("predict", model, "-i", "wake=6", "-i", "estimatedSleep=8", "-i", "coffee=2")["outputs"]
        self.assertEqual(rows[0]["actualSleep"], one["actualSleep"])

    def test_words_from_json(self):
        model = MODELS / "sentiment_glm/SentimentPolarity.mlmodel"
        good = self.answer("predict", model, "-i", 'input={"excellent": 3, "wonderful": 2}')["outputs"]
        self.assertEqual(good["classLabel"]["value"], "Pos")
        self.assertAlmostEqual(sum(good["classProbability"]["value"].values()), 1, places=6)

    def test_sound_wants_the_right_length(self):
        model, sound = MODELS / "basic_pitch/nmp.mlpackage", MODELS / "basic_pitch/vocadito_10.wav"
        message = self.ends(2, "predict", model, "-i", f"input_2=@{sound}").stderr
        self.assertIn("expected 43844 samples", message)
        done = self.ends(0, "predict", model, "-i", f"@{sound}", "--rate", "22050", "--pad", "-o", self.folder)
        self.assertIn("using the first 43844", done.stderr)
        self.assertEqual(read_npy(self.folder / "Identity_1.npy")[0], (1, 172, 88))

    def test_picture_in_and_out(self):
        model, picture = MODELS / "custom_and_image_io/Image2Image.mlmodel", MODELS / "card_detector/quickread.jpg"
        for fit in ("scaleFill", "scaleFit", "centerCrop"):
            self.ends(0, "predict", model, "-i", picture, "--fit", fit, "-o", self.folder / fit)
            written = (self.folder / fit / "generatedImage.png").read_bytes()
            self.assertEqual(written[16:24], (256).to_bytes(4, "big") * 2)

    def test_what_cannot_run_says_so(self):
        for name, word in (("nsfw_visionfeatureprint/NSFW.mlmodel", "visionFeaturePrint"), ("rules_apple_samples/sample.mlmodel", "textClassifier")):
            self.assertIn(word, self.ends(3, "predict", MODELS / name, "-i", "random").stderr)

    def test_every_command_on_every_small_model(self):
        for name in ("silero_vad/unified_int8.mlmodelc", "random_forest/RandomForest.mlmodel", "rnn_forecast/MyModel.mlpackage",
                     "dtln_aec/DTLN_AEC_128_Part1.mlpackage", "compiled_weightless/add_model.mlmodelc"):
            with self.subTest(name):
                self.answer("inspect", MODELS / name, "--layers", "--weights", "--mil")
                self.answer("predict", MODELS / name, "-i", "random")
                self.answer("explain", MODELS / name, "--measure")
                self.answer("bench", MODELS / name, "-n", "2")


if __name__ == "__main__":
    unittest.main()

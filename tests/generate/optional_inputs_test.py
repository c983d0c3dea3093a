# SPDX-License-Identifier: Apache-2.0
"""Inputs that may be absent in generated code: what is not set is not sent, and the model's own value counts."""

import json
import math
import os
import re
import shutil
import sys
import unittest

from case import ROOT, Case, run
from sources import LSTM_WEIGHTS, write_defaults, write_detector, write_lstm

DETECTORS = ROOT / "tests" / "golden" / "detectors"
# What NumPy finds in two pictures: with the detector's own thresholds, and with given ones.
TRUTH = json.loads((DETECTORS / "truth.json").read_text())

CPP_DETECTOR = """#include "$class$.hpp"
#include <cstdio>
int main() {
  uint8_t pixels[] = {$pixels$};
  $class$Input input;
  input.image = moka::Image(pixels, 4, 4, moka::PixelFormat::rgb8);
  $set$
  const auto output = $class$("$model$").prediction(input);
  for (int64_t i = 0; i < output.confidence().count(); ++i) std::printf("%.5f ", output.confidence().at(i));
  const auto called = $class$("$model$").prediction(input.image$passed$);
  return called.confidence().count() == output.confidence().count() ? 0 : 1;
}
"""

C_DETECTOR = """#include "$class$.h"
#include <stdio.h>
int main(void) {
  unsigned char pixels[] = {$pixels$};
  $class$* model = NULL;
  $class$Input input = {0};
  $class$Output output;
  size_t i, count = 1;
  input.image.pixels = pixels;
  input.image.width = input.image.height = 4;
  input.image.format = MOKA_RGB8;
  $set$
  if ($class$_load("$model$", NULL, &model) != MOKA_OK) return 1;
  if ($class$_predict(model, &input, NULL, &output) != MOKA_OK) return 2;
  for (i = 0; i < output.confidence.rank; ++i) count *= (size_t)output.confidence.shape[i];
  for (i = 0; i < count; ++i) printf("%.5f ", (double)((float*)output.confidence.data)[i]);
  $class$_free(model);
  return 0;
}
"""

CPP_LSTM = """#include "Lstm.hpp"
#include "Defaults.hpp"
#include <cstdio>
int main() {
  const auto of = [](float v) { return moka::MultiArray::of(std::vector<float>{v}, {1}); };
  const Lstm model("$lstm$");
  const auto first = model.prediction(of(0.5f));
  std::printf("%.6f ", first.y().at(0));
  std::printf("%.6f ", model.prediction(of(0.5f), first.h_out(), first.c_out()).y().at(0));
  uint8_t pixels[] = {10, 20, 30, 40};
  const Defaults filled("$defaults$");
  DefaultsInput input{of(2)};
  std::printf("%g %g ", filled.prediction(input).z().at(0), filled.prediction(input).gray().at(3));
  input.y = of(5);
  input.picture = moka::Image(pixels, 2, 2, moka::PixelFormat::gray8);
  std::printf("%g %g", filled.prediction(input).z().at(0), filled.prediction(input).gray().at(3));
}
"""

C_LSTM = """#include "Lstm.h"
#include "Defaults.h"
#include <stdio.h>
#define FIRST(a) ((double)((float*)(a).data)[0])
int main(void) {
  float half = 0.5f, two = 2, five = 5, hidden, cell;
  unsigned char pixels[] = {10, 20, 30, 40};
  int64_t one[] = {1};
  moka_array x = {&half, MOKA_FLOAT32, 1, one, NULL}, h, c;
  Lstm* lstm = NULL;
  Defaults* defaults = NULL;
  LstmInput step = {0};
  LstmOutput next;
  DefaultsInput input = {0};
  DefaultsOutput output;
  if (Lstm_load("$lstm$", NULL, &lstm) != MOKA_OK || Defaults_load("$defaults$", NULL, &defaults) != MOKA_OK) return 1;
  step.x = x;
  if (Lstm_predict(lstm, &step, NULL, &next) != MOKA_OK) return 2;
  printf("%.6f ", FIRST(next.y));
  hidden = (float)FIRST(next.h_out);
  cell = (float)FIRST(next.c_out);
  h = c = x;
  h.data = &hidden;
  c.data = &cell;
  step.h_in = h;
  step.c_in = c;
  if (Lstm_predict(lstm, &step, NULL, &next) != MOKA_OK) return 3;
  printf("%.6f ", FIRST(next.y));
  x.data = &two;
  input.x = x;
  if (Defaults_predict(defaults, &input, NULL, &output) != MOKA_OK) return 4;
  printf("%g %g ", FIRST(output.z), (double)((float*)output.gray.data)[3]);
  x.data = &five;
  input.y = x;
  input.picture.pixels = pixels;
  input.picture.width = input.picture.height = 2;
  input.picture.format = MOKA_GRAY8;
  if (Defaults_predict(defaults, &input, NULL, &output) != MOKA_OK) return 5;
  printf("%g %g", FIRST(output.z), (double)((float*)output.gray.data)[3]);
  Lstm_free(lstm);
  Defaults_free(defaults);
  return 0;
}
"""


# Prints y of every step; the states of a step are the outputs of the last one.
C_FED_BACK = """#include "Lstm.h"
#include <stdio.h>
int main(void) {
  float half = 0.5f;
  int64_t one[] = {1};
  int i;
  moka_array x = {&half, MOKA_FLOAT32, 1, one, NULL};
  Lstm* model = NULL;
  LstmInput input = {0}, wrong = {0};
  LstmOutput output;
  if (Lstm_load("$lstm$", NULL, &model) != MOKA_OK) return 1;
  input.x = x;
  for (i = 0; i < 6; ++i) {
    if (Lstm_predict(model, &input, NULL, &output) != MOKA_OK) return 2;
    printf("%.6f ", (double)((float*)output.y.data)[0]);
    input.h_in = output.h_out;
    input.c_in = output.c_out;
    if (Lstm_predict(model, &wrong, NULL, &output) == MOKA_OK) return 3;
  }
  Lstm_free(model);
  return 0;
}
"""


def filled(text, **words):
    return re.sub(r"\$(\w+)\$", lambda m: str(words[m[1]]), text)


def interleaved(case):
    """The pixels of a picture row by row; the truth has them plane by plane."""
    return ", ".join(str(case["pixels"][c * 16 + p]) for p in range(16) for c in range(3))


def lstm_steps(x, steps):
    """The outputs of the cell in plain arithmetic, with x in every step."""
    i, f, z, o = LSTM_WEIGHTS
    h = c = 0.0
    out = []
    sigmoid = lambda v: 1 / (1 + math.exp(-v))
    for _ in range(steps):
        c = sigmoid(f[0] * x + f[1] * h) * c + sigmoid(i[0] * x + i[1] * h) * math.tanh(z[0] * x + z[1] * h)
        h = sigmoid(o[0] * x + o[1] * h) * math.tanh(c)
        out.append(h)
    return out


class OptionalInputs(Case):
    def check_detector(self, build, main, set_words):
        names = ("iouThreshold", "confidenceThreshold")
        both = next(case for case in TRUTH if all(case.get(name) is not None for name in names))
        for case in (TRUTH[0], both):
            given = {name: case[name] for name in names if case.get(name) is not None}
            words = {"class": "pipeline", "model": DETECTORS / "pipeline.mlmodel", "pixels": interleaved(case),
                     "set": " ".join(set_words(k, v) for k, v in given.items()),
                     "passed": "".join(f", {v}" for v in given.values())}
            build(filled(main, **words))
            found = [float(v) for v in run(self.folder / "main").split()]
            self.assertEqual(len(found), len(case["confidence"]))
            for value, expected in zip(found, case["confidence"]):
                self.assertAlmostEqual(value, expected, delta=2e-5)

    def test_cpp_leaves_the_thresholds_of_a_detector_to_the_model(self):
        (header,) = self.generate(DETECTORS / "pipeline.mlmodel", "C++")
        self.assertIn("/// iouThreshold as optional double value, by default 0.45\n", header.read_text())
        self.check_detector(self.build_cpp, CPP_DETECTOR, lambda name, value: f"input.{name} = {value};")

    def test_c_leaves_the_thresholds_of_a_detector_to_the_model(self):
        source, _ = sorted(self.generate(DETECTORS / "pipeline.mlmodel", "C"))
        self.assertIn("/* confidenceThreshold as optional double value, by default 0.25 */", source.with_suffix(".h").read_text())
        self.check_detector(lambda main: self.build_c(main, source), C_DETECTOR,
                            lambda name, value: f"input.{name} = {value}; input.has_{name} = 1;")

    def test_python_leaves_the_thresholds_of_a_detector_to_the_model(self):
        (module,) = self.generate(DETECTORS / "pipeline.mlmodel", "Python")
        text = module.read_text()
        self.assertIn("    #: iouThreshold as optional double value, by default 0.45\n    iouThreshold: Optional[float] = None\n", text)
        self.assertIn("def predict(self, *, image: Any, iouThreshold: Optional[float] = None, confidenceThreshold", text)

    def test_thresholds_that_are_arrays_are_optional(self):
        (header,) = self.generate(DETECTORS / "arrays.mlmodel", "C++")
        self.assertIn("std::optional<moka::MultiArray> iouThreshold = std::nullopt;", header.read_text())
        self.build_cpp(filled('#include "arrays.hpp"\n#include <cstdio>\nint main() { uint8_t pixels[] = {$pixels$};\n'
                              'std::printf("%lld", (long long)arrays("$model$").prediction(moka::Image(pixels, 4, 4, '
                              "moka::PixelFormat::rgb8)).confidence().count()); }\n",
                              pixels=interleaved(TRUTH[0]), model=DETECTORS / "arrays.mlmodel"))
        self.assertEqual(int(run(self.folder / "main")), len(TRUTH[0]["confidence"]))

    def check_states_and_defaults(self, build, main, models):
        build(filled(main, lstm=models[0], defaults=models[1]))
        *steps, z, gray, given, drawn = [float(v) for v in run(self.folder / "main").split()]
        for value, expected in zip(steps, lstm_steps(0.5, 2), strict=True):
            self.assertAlmostEqual(value, expected, delta=2e-6)
        self.assertEqual((z, gray, given, drawn), (2.25, 0, 7, 40))

    def test_cpp_leaves_out_arrays_and_images(self):
        models = write_lstm(self.folder / "Lstm.mlmodel"), write_defaults(self.folder / "Defaults.mlmodel")
        headers = [self.generate(model, "C++")[0] for model in models]
        self.assertIn("/// y as optional 1 element vector of floats, by default filled with 0.25\n", headers[1].read_text())
        self.check_states_and_defaults(self.build_cpp, CPP_LSTM, models)

    def test_c_leaves_out_arrays_and_images(self):
        models = write_lstm(self.folder / "Lstm.mlmodel"), write_defaults(self.folder / "Defaults.mlmodel")
        sources = [sorted(self.generate(model, "C"))[0] for model in models]
        self.check_states_and_defaults(lambda main: self.build_c(main, *sources), C_LSTM, models)

    def test_c_takes_the_outputs_of_a_prediction_as_inputs_of_the_next(self):
        model = write_lstm(self.folder / "Lstm.mlmodel")
        source, _ = sorted(self.generate(model, "C"))
        self.build_c(filled(C_FED_BACK, lstm=model), source)
        # Memory that is given back is overwritten, so that a use of it is seen.
        found = run(self.folder / "main", env={**os.environ, "MALLOC_PERTURB_": "165"}).split()
        for value, expected in zip(map(float, found), lstm_steps(0.5, 6), strict=True):
            self.assertAlmostEqual(value, expected, delta=2e-6)

    def test_core_ml_decides_for_swift_and_objective_c(self):
        """Published classes of detectors have Double? where the file says optional, else Double (YOLOv3, yolov8n)."""
        for optional, swift, objective_c in (
            (True, "var iouThreshold: Double? = nil", "nullable, strong) NSNumber *iouThreshold;"),
            (False, "var iouThreshold: Double\n", "@property (readwrite, nonatomic) double iouThreshold;"),
        ):
            model = write_detector(self.folder / "Boxes.mlmodel", optional)
            (file,) = self.generate(model, "Swift")
            self.assertIn(swift, file.read_text())
            about = "as optional double value, by default 0.45" if optional else "as double value; the model's own is 0.45"
            self.assertIn(f"/// iouThreshold {about}\n", file.read_text())
            if shutil.which("clang"):
                header, _ = self.objective_c(model)
            else:
                header = self.generate(model, "Objective-C")[0].read_text()
            self.assertIn(objective_c, header)


if __name__ == "__main__":
    sys.exit(unittest.main())

# SPDX-License-Identifier: Apache-2.0
"""Generated code, compiled by each language's compiler and run."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

from case import CC, CXX, HERE, MODELS, PROGRAM, ROOT, Case, run
from sources import write_accumulator, write_alike, write_everything, write_pictures, write_sum

CPP_MAIN = """#include "Sum_of_two.hpp"
#include "Accumulator.hpp"
#include <cstdio>
#include <iostream>
int main() {
  auto of = [](float a, float b) { return moka::MultiArray::of(std::vector<float>{a, b}, {2}); };
  Sum_of_two model;  // beside this program
  std::printf("%g", model.prediction(of(1, 2), of(3, 5)).z().at(1));
  Sum_of_twoInput input{of(1, 2), of(10, 20)};
  std::printf(" %g", model.prediction_async(input).get().z().at(0));
  std::printf(" %zu\\n", model.predictions({input, input}).size());
  Accumulator adder(Accumulator::path_of_model());
  moka::State state = adder.new_state();
  moka::PredictionOptions options;
  options.state = &state;
  AccumulatorInput three{moka::MultiArray::of(std::vector<float>{1, 2, 3}, {3}).converted(moka::DataType::float16)};
  adder.prediction(three, options);
  std::printf("%g\\n", adder.prediction(three, options).sum().at(2));
}
"""

C_MAIN = """#include "Sum_of_two.h"
#include <stdio.h>
int main(int argc, char** argv) {
  float a[] = {1, 2}, b[] = {3, 5};
  int64_t shape[] = {2};
  moka_array x = {a, MOKA_FLOAT32, 1, shape, NULL}, y = {b, MOKA_FLOAT32, 1, shape, NULL};
  Sum_of_two* model = NULL;
  Sum_of_twoInput input = {x, y};
  Sum_of_twoOutput output;
  if (argc < 2 || Sum_of_two_load(argv[1], NULL, &model) != MOKA_OK) return 1;
  if (Sum_of_two_predict(model, &input, NULL, &output) != MOKA_OK) return 2;
  printf("%g\\n", ((float*)output.z.data)[1]);
  Sum_of_two_free(model);
  return Sum_of_two_load("absent.mlmodelc", NULL, &model) == MOKA_NOT_FOUND ? 0 : 3;
}
"""


def prepare_package(folder):
    """examples/swiftpm with its model and class."""
    shutil.copytree(ROOT / "examples" / "swiftpm", folder / "swiftpm")
    (folder / "cmake").mkdir()
    shutil.copy(ROOT / "examples" / "cmake" / "Plane.mlmodel", folder / "cmake")
    run(folder / "swiftpm" / "prepare", env={**os.environ, "MOKA": PROGRAM})
    return folder / "swiftpm"


class Generate(Case):
    def test_cpp_compiles_and_predicts(self):
        for model in (write_sum(self.folder), write_accumulator(self.folder)):
            self.generate(model, "C++")
        self.build_cpp(CPP_MAIN)
        self.assertEqual(run(self.folder / "main", cwd="/"), "7 11 2\n6\n")
        found = {**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}"}
        self.assertEqual(run("sh", "-c", "main", cwd="/", env=found), "7 11 2\n6\n")

    def test_c_compiles_and_predicts(self):
        model = write_sum(self.folder)
        header, source = sorted(self.generate(model, "c"), reverse=True)
        self.assertEqual((header.name, source.name), ("Sum_of_two.h", "Sum_of_two.c"))
        self.build_c(C_MAIN, source)
        self.assertEqual(run(self.folder / "main", model), "7\n")

    def test_every_kind_of_feature_and_strange_names_compile(self):
        model = write_everything(self.folder)
        (header,) = self.generate(model, "C++")
        run(CXX, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I", ROOT / "include", "-x", "c++",
            "-include", header, "/dev/null")
        text = header.read_text()
        for name in ("int64_t class_ = 0;", "double _1st_value = 0;", "std::optional<int64_t> count_ = std::nullopt;", "int64_t count__2 = 0;",
                     "moka::MultiArray caf_;", "& features_() const", "& return_() const"):
            self.assertIn(name, text)
        for source in self.generate(model, "C"):
            run(CC, "-std=c99", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-pedantic-errors", "-I", ROOT / "include", source)
        (module,) = self.generate(model, "Python")
        tree = ast.parse(module.read_text())
        self.assertEqual([node.name for node in tree.body if isinstance(node, ast.ClassDef)],
                         ["Everything_2Input", "Everything_2Output", "Everything_2"])

    def test_comments_name_the_pixels_of_the_language(self):
        model = write_pictures(self.folder)
        for language, names in (
            ("C", ("MOKA_RGBA8", "MOKA_GRAY8", "MOKA_GRAY_FLOAT32")),
            ("C++", ("rgba8", "gray8", "gray_float32")),
            ("Python", ("RGBA", "L", "F")),
            ("Swift", ("kCVPixelFormatType_32BGRA", "kCVPixelFormatType_OneComponent8", "kCVPixelFormatType_OneComponent16Half")),
            ("Objective-C", ("kCVPixelFormatType_32BGRA", "kCVPixelFormatType_OneComponent8",
                             "kCVPixelFormatType_OneComponent16Half")),
        ):
            text = "".join(source.read_text() for source in self.generate(model, language))
            for name, words, pixels in zip(("color", "gray", "half"), ("color", "grayscale", "grayscale"), names, strict=True):
                self.assertIn(f"{name} as {words} ({pixels}) image buffer, 4 pixels wide by 2 pixels high", text)

    def test_c_of_a_model_called_as_the_library_compiles(self):
        for name in ("moka", "moka_model"):
            model = shutil.copytree(write_sum(self.folder / f"of_{name}"), self.folder / f"{name}.mlmodelc")
            for source in self.generate(model, "C"):
                run(CC, "-std=c99", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I", ROOT / "include", source)

    @unittest.skipUnless(shutil.which("clang"), "clang is not installed (tools/setup --fuzz)")
    def test_objective_c_compiles(self):
        header, _ = self.objective_c(write_accumulator(self.folder))
        self.assertIn("predictionFromFeatures:(AccumulatorInput *)input usingState:(MLState *)state error:", header)
        header, source = self.objective_c(write_everything(self.folder))
        self.assertIn("@property (readwrite, nonatomic) int64_t class_;", header)
        self.assertIn("@property (readwrite, nonatomic, nullable, strong) NSNumber *maybe;", header)
        self.assertIn('@"quo\\"ted \\\\(name)"', source)

    @unittest.skipUnless(shutil.which("clang") and MODELS.is_dir(), "no clang, or no folder of published models: MOKA_TEST_MODELS names one")
    def test_real_models_compile(self):
        for name in ("card_detector/SSDOcr.mlmodelc", "silero_vad/silero-vad-unified-v6.0.0.mlpackage",
                     "image_nn/MNIST.mlmodel", "sentiment_glm/SentimentPolarity.mlmodel", "random_forest/RandomForest.mlmodel"):
            self.objective_c(MODELS / name)
            (header,) = self.generate(MODELS / name, "C++")
            run(CXX, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I", ROOT / "include", "-x", "c++",
                "-include", header, "/dev/null")

    def test_a_swift_package_has_what_its_manifest_names(self):
        package = prepare_package(self.folder)
        self.assertIn('.copy("Resources/Plane.mlmodelc")', (package / "Package.swift").read_text())
        compiled = package / "Sources" / "plane" / "Resources" / "Plane.mlmodelc"
        answer = json.loads(run(PROGRAM, "predict", compiled, "--json", "-i", "x=[1, 2]"))
        self.assertEqual(answer["outputs"]["y"]["value"], 9)
        self.assertIn("convenience init(contentsOf modelURL: URL) throws {", (package / "Sources" / "plane" / "Plane.swift").read_text())

    def test_swift_has_the_names_that_apps_use(self):
        (file,) = self.generate(write_sum(self.folder), "Swift", "--public-access")
        self.assertEqual(file.name, "Sum_of_two.swift")
        text = file.read_text()
        for declaration in (
            "public class Sum_of_twoInput : MLFeatureProvider {",
            "public convenience init(x: MLShapedArray<Float>, y: MLShapedArray<Float>)",
            "public var z: MLMultiArray {",
            "public var zShapedArray: MLShapedArray<Float> {",
            "public class Sum_of_two {",
            'return bundle.url(forResource: "Sum of-two", withExtension:"mlmodelc")!',
            "public convenience init(configuration: MLModelConfiguration = MLModelConfiguration()) throws {",
            "public class func load(contentsOf modelURL: URL, configuration: MLModelConfiguration = MLModelConfiguration()) async throws"
            " -> Sum_of_two {",
            "public func prediction(x: MLMultiArray, y: MLMultiArray) throws -> Sum_of_twoOutput {",
            "public func predictions(inputs: [Sum_of_twoInput], options: MLPredictionOptions = MLPredictionOptions()) throws"
            " -> [Sum_of_twoOutput] {",
            "@available(macOS 15.0, iOS 18.0, tvOS 18.0, watchOS 11.0, visionOS 2.0, *)",
        ):
            self.assertIn(declaration, text)
        self.assertNotIn("deprecated", text)
        (file,) = self.generate(write_everything(self.folder, spec_version=3), "Swift", "--swift-version", "6", "--globalmodule")
        text = file.read_text()
        for declaration in (
            "@objc(Everything_2Input)",
            "class Everything_2Input : NSObject, MLFeatureProvider {",
            "init(features: any MLFeatureProvider) {",
            "var maybe: Double? = nil",
            "override convenience init() {",
            "var caf\u00e9: MLMultiArray",
            "pictureWith picture: CGImage",
            "func setPicture(with picture: URL) throws {",
            "@available(macOS, unavailable)",
        ):
            self.assertIn(declaration, text)

    @unittest.skipUnless(shutil.which("clang"), "clang is not installed (tools/setup --fuzz)")
    def test_fields_of_objective_c_have_setters_of_their_own(self):
        header, source = self.objective_c(write_alike(self.folder))
        for name in ("picture", "Picture_2", "x", "X_2", "y", "yShapedArray"):
            self.assertEqual(len(re.findall(rf"@property .*\b{name};", header)), 1, name)
        for name in ("setPicture", "setPicture_2"):
            self.assertEqual(source.count(f"- (void){name}:("), 1, name)

    def test_fields_of_swift_have_names_of_their_own(self):
        (file,) = self.generate(write_alike(self.folder), "Swift")
        text = file.read_text()
        for name in ("picture", "Picture_2", "x", "X", "y", "yShapedArray", "yShapedArray_2", "yShapedArray_2ShapedArray"):
            self.assertEqual(len(re.findall(f"    var {name}: ", text)), 1, name)
        for name in ("setPicture", "setPicture_2"):
            self.assertEqual(text.count(f"func {name}(with "), 2, name)

    def test_lines_without_a_language_give_objective_c(self):
        printed = run(PROGRAM, "generate", write_sum(self.folder), self.folder / "out")
        files = [Path(line).name for line in printed.splitlines()]
        self.assertEqual(files, ["Sum_of_two.h", "Sum_of_two.m"])

    def test_a_dry_run_writes_nothing_and_flags_of_build_systems_are_taken(self):
        model = write_sum(self.folder)
        out = self.folder / "out"
        printed = run(PROGRAM, "generate", model, out, "--deployment-target", "17.0", "--sdkroot", "/", "--platform", "ios",
                      "--output-partial-info-plist", out / "i.plist", "--container", "bundle-resources", "--language", "Swift",
                      "--swift-version", "5", "--dry-run")
        self.assertEqual(printed, f"{out}/Sum_of_two.swift\n")
        self.assertFalse(out.exists())
        done = subprocess.run([PROGRAM, "generate", model, out, "--language", "Fortran"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--language Fortran: expected Swift", done.stderr)


if __name__ == "__main__":
    sys.exit(unittest.main())

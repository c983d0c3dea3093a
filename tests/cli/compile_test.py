# SPDX-License-Identifier: Apache-2.0
"""`moka compile` under its names, `metadata` and `decompile`."""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

from case import MODELS, PROGRAM, Case, moka
from model_files import array_feature, field, write_program


class Compile(Case):
    def source(self):
        if not MODELS.is_dir():
            self.skipTest("no folder of published models: MOKA_TEST_MODELS names one")
        return MODELS / "silero_vad/silero-vad-encoder-v6.0.0.mlpackage"

    def test_the_compiled_model_is_in_the_folder(self):
        out = self.folder / "silero-vad-encoder-v6.0.0.mlmodelc"
        for _ in range(2):  # an older one is replaced
            done = self.ends(0, "compile", self.source(), self.folder, "--platform", "macOS", "--sdkroot", "/")
            self.assertEqual(done.stdout.strip(), str(out / "coremldata.bin"))
        names = {str(p.relative_to(out)) for p in out.rglob("*") if p.is_file()}
        self.assertEqual(names, {"coremldata.bin", "metadata.json", "model.mil", "weights/weight.bin", "analytics/coremldata.bin"})
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), [out.name])
        self.assertIn("encoder_output", self.answer("predict", out, "-i", "random")["outputs"])

    def test_what_killed_processes_left_goes(self):
        out = self.folder / "silero-vad-encoder-v6.0.0.mlmodelc"
        mine = self.folder / f".{out.name}.{os.getpid()}"  # of a process that runs
        for left in (mine, self.folder / f".{out.name}.999999999", self.folder / f".{out.name}.kept"):
            left.mkdir()
        for _ in range(2):
            self.ends(0, "compile", self.source(), self.folder)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), sorted([out.name, mine.name, f".{out.name}.kept"]))

    def test_apples_names_and_flags(self):
        plist = self.folder / "partial.plist"
        program = Path(PROGRAM).parent / "coremlcompiler"
        done = moka("compile", self.source(), self.folder, "--output-partial-info-plist", plist, "--deployment-target", "9.0",
                    "--target-device", program=program)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("'--target-device' is not known", done.stderr)
        self.assertIn("needs iOS 15.0 or later", done.stderr)
        self.assertIn("<dict/>", plist.read_text())

    def test_lines_of_xcode(self):
        program = Path(PROGRAM).parent / "coremlc"
        out, plist = self.folder / "App.app" / "Resources", self.folder / "partial.plist"
        flags = ["--deployment-target", "26.0", "--sdkroot", "/sdk", "--platform", "xros", "--output-partial-info-plist", plist]
        done = moka("compile", self.source(), f"{out}/", *flags, "--container", "bundle-resources", program=program)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual([p.name for p in out.iterdir()], ["silero-vad-encoder-v6.0.0.mlmodelc"])
        sources = self.folder / "CoreMLGenerated"
        done = moka("generate", self.source(), sources, "--dry-run", "yes", *flags, "--container", "bundle-resources", "--language",
                    "Swift", "--swift-version", "6.0", "--public-access", "--globalmodule", program=program)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, f"{sources}/silero_vad_encoder_v6_0_0.swift\n")
        self.assertFalse(sources.exists())
        done = moka("compile", "--language", "Swift", self.source(), out, "--swift-version", "4.0", program=program)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        done = moka("compile", self.source(), out, "--deployment-target", "17.0", "--platform", "beos", program=program)
        self.assertIn("'beos' is not known", done.stderr)

    def test_the_benchmark_compiles_what_it_writes(self):
        script = Path(__file__).resolve().parent.parent.parent / "bench" / "compile" / "run.py"
        done = subprocess.run([sys.executable, script, "--program", PROGRAM, "--rounds", "1", "--models", "linear", "--json", "--page",
                               self.folder / "page.md"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        (row,) = json.loads(done.stdout)["rows"]
        self.assertTrue(row["same"])
        self.assertEqual(row["bytes"], 104_963_264)
        self.assertIn("| 25 linear layers | 105 |", (self.folder / "page.md").read_text())

    def test_an_embedded_specification_keeps_every_byte(self):
        source = self.folder / "Plane.mlmodel"
        plane = Path(__file__).resolve().parent.parent.parent / "examples" / "cmake" / "Plane.mlmodel"
        entries = [field(100, field(1, key) + field(2, "value")) for key in ("z", "a", "m", "b")]
        source.write_bytes(plane.read_bytes() + field(2, field(100, b"".join(entries))))
        self.ends(0, "compile", source, self.folder, "--embed-specification")
        self.ends(0, "decompile", self.folder / "Plane.mlmodelc", self.folder / "again.mlmodel")
        self.assertEqual((self.folder / "again.mlmodel").read_bytes(), source.read_bytes())

    @staticmethod
    def clip_specification(x, y):
        """A network whose only layer has no known compiled form."""
        layer = field(1, "limit") + field(2, x) + field(3, y) + field(660, b"")
        description = field(1, array_feature(x, [3])) + field(10, array_feature(y, [3]))
        return field(1, 4) + field(2, description) + field(500, field(1, layer))

    def clip_network(self):
        source = self.folder / "Clip.mlmodel"
        source.write_bytes(self.clip_specification("x", "y"))
        return source

    def clip_pipeline(self):
        source = self.folder / "Clips.mlmodel"
        stages = field(1, self.clip_specification("x", "m")) + field(1, self.clip_specification("m", "y"))
        description = field(1, array_feature("x", [3])) + field(10, array_feature("y", [3]))
        source.write_bytes(field(1, 4) + field(2, description) + field(202, stages))
        return source

    def test_networks_that_keep_their_specification_are_named(self):
        done = self.ends(0, "compile", self.clip_network(), self.folder / "out", "--json")
        self.assertIn("moka compile: remark: the network keeps its specification, a form that only Moka reads: layer 'limit' (clip): "
                      "no compiled form is known of layers of this type\n", done.stderr)
        self.assertEqual(json.loads(done.stdout)["embedded"],
                         [{"model": "", "layer": "limit", "type": "clip", "reason": "layers of this type"}])
        self.assertEqual(self.ends(0, "compile", self.clip_network(), self.folder / "out", "--embed-specification").stderr, "")

    def test_a_stage_that_keeps_its_specification_has_no_analytics(self):
        facts = self.answer("compile", self.clip_pipeline(), self.folder / "out")
        self.assertEqual([network["model"] for network in facts["embedded"]], ["model0", "model1"])
        files = {str(p.relative_to(facts["compiled"])) for p in Path(facts["compiled"]).rglob("*") if p.is_file()}
        self.assertEqual(files, {"coremldata.bin", "metadata.json", "analytics/coremldata.bin", "model0/coremldata.bin", "model1/coremldata.bin"})

    def test_strict_writes_nothing_that_only_moka_reads(self):
        out = self.folder / "a" / "b"
        self.assertIn("layer 'limit' (clip)", self.ends(3, "compile", self.clip_network(), out, "--strict").stderr)
        self.assertFalse((self.folder / "a").exists())
        of = " keeps its specification, a form that only Moka reads: layer 'limit' (clip): no compiled form is known of layers of this type"
        self.assertIn(f": the network 'model0'{of}; the network 'model1'{of}\n", self.ends(3, "compile", self.clip_pipeline(), out, "--strict").stderr)
        plane = Path(__file__).resolve().parent.parent.parent / "examples" / "cmake" / "Plane.mlmodel"
        self.assertEqual(json.loads(self.ends(0, "compile", plane, out, "--strict", "--json").stdout)["embedded"], [])

    def test_operations_without_a_name_get_none(self):
        mil = """program(1.3)
[buildInfo = dict<string, string>({{"moka-version", "%s"}})]
{
    func main<ios17>(tensor<fp32, [2]> x) {
            fp32 half = const()[val = fp32(0x1p-1)];
            tensor<fp32, [2]> scaled = mul(x = x, y = half)[name = string("scale")];
            tensor<fp32, [2]> y = relu(x = scaled);
        } -> (y);
}""" % self.answer("version")["version"]
        model = write_program(self.folder / "a" / "M.mlmodelc", mil, [array_feature("x", [2])], [array_feature("y", [2])])
        self.ends(0, "decompile", model, self.folder / "M.mlpackage")
        self.ends(0, "compile", self.folder / "M.mlpackage", self.folder)
        self.assertEqual((self.folder / "M.mlmodelc" / "model.mil").read_text(), mil)

    def test_wrong_use(self):
        self.ends(2, "compile")
        self.assertIn("encrypt", self.ends(2, "compile", self.source(), self.folder, "--encrypt", "key").stderr)
        other = self.folder / "silero-vad-encoder-v6.0.0.mlmodelc"
        other.mkdir()
        (other / "letter").write_text("keep me")
        self.assertIn("expected a new path, a compiled model", self.ends(2, "compile", self.source(), self.folder).stderr)
        self.assertEqual((other / "letter").read_text(), "keep me")

    def test_metadata(self):
        compiled = MODELS / "silero_vad/unified_int8.mlmodelc"
        if not MODELS.is_dir():
            self.skipTest("no folder of published models: MOKA_TEST_MODELS names one")
        apples = json.loads((compiled / "metadata.json").read_text())
        for model in (compiled, compiled.with_suffix(".mlpackage")):
            self.assertEqual(json.loads(self.ends(0, "metadata", model).stdout), apples)
        refused = json.loads(self.ends(0, "metadata", MODELS / "nsfw_visionfeatureprint/NSFW.mlmodel").stdout)[0]
        self.assertEqual([s["name"] for s in refused["modelType"]["structure"]],
                         ["MLModelType_visionFeaturePrint", "MLModelType_glmClassifier"])

    def test_decompile(self):
        if not MODELS.is_dir():
            self.skipTest("no folder of published models: MOKA_TEST_MODELS names one")
        compiled, again = MODELS / "image_quality/ImageQualityCP20.mlmodelc", self.folder / "again.mlmodel"
        self.ends(0, "decompile", compiled, again)
        answers = [self.answer("predict", m, "-i", "random")["outputs"] for m in (compiled, again)]
        # The weights are the same, but their position in the file decides which kernel reads them.
        for a, b in zip(answers[0]["Identity"]["values"][0], answers[1]["Identity"]["values"][0], strict=True):
            self.assertAlmostEqual(a, b, places=6)
        (self.folder / "text.mlmodel").write_text("keep me")
        self.assertIn("got another file", self.ends(2, "decompile", compiled, self.folder / "text.mlmodel").stderr)
        program = MODELS / "silero_vad/unified_int8.mlmodelc"
        self.assertIn("ends with .mlpackage", self.ends(2, "decompile", program, self.folder / "p.mlmodel").stderr)
        self.ends(0, "decompile", program, self.folder / "p.mlpackage")
        answers = [self.answer("predict", m, "-i", "random")["outputs"] for m in (program, self.folder / "p.mlpackage")]
        self.assertEqual(answers[0], answers[1])


if __name__ == "__main__":
    unittest.main()

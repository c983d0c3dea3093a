# SPDX-License-Identifier: Apache-2.0
"""Messages and exit codes that all commands share."""

import json
import os
import re
import subprocess
import unittest
from pathlib import Path

from case import AFFINE, PROGRAM, Case
from model_files import array_feature, field, write_program


class General(Case):
    def test_overview_version_help(self):
        overview = self.ends(0).stdout
        for command in ("inspect", "predict", "explain", "bench", "tune", "cache"):
            self.assertIn(f"$ moka {command}", overview)
            self.assertIn("Example", self.ends(0, command, "--help").stdout)
        self.assertRegex(self.ends(0, "--version").stdout, r"^moka \d+\.\d+\.\d+\n$")

    def test_version(self):
        self.assertEqual(self.ends(0, "version").stdout.strip(), self.answer("version")["version"])

    def test_wrong_use(self):
        self.assertIn("did you mean 'inspect'", self.ends(2, "inspct").stderr)
        self.assertIn("moka: no option '--bogus' (moka --help)", self.ends(2, "--bogus").stderr)
        self.assertIn("moka bench: no option '--thread'; did you mean '--threads'? (moka bench --help)",
                      self.ends(2, "bench", "x.mlmodel", "--thread=2").stderr)
        self.assertIn("not expected: y.mlmodel", self.ends(2, "bench", "x.mlmodel", "y.mlmodel").stderr)
        self.ends(2, "inspect")
        self.ends(2, "bench", "x.mlmodel", "--iterations", "0")
        self.ends(2, "predict", "x.mlmodel", "--compute-units", "some")

    def test_values_of_options(self):
        for option, value, message in (
            ("--threads", "many", "--threads: expected a whole number from 1 to 1024, got 'many'"),
            ("--threads", "0", "got '0'"),
            ("--seed", "x", "--seed: expected a whole number"),
            ("--repeat", "1.5", "got '1.5'"),
            ("--compute-units", "cpuonly", "did you mean 'cpuOnly'?"),
            ("--processors", "0,a", "--processors: expected a whole number"),
        ):
            self.assertIn(message, self.ends(2, "predict", "x.mlmodel", option, value).stderr)

    def test_whole_numbers_are_decimal(self):
        model = self.affine()
        answer = self.answer("predict", model, "-i", "random", "--repeat", "010", "--threads", "08", "--seed", "+9")
        self.assertEqual(answer["predictions"], 10)

    def test_folders_instead_of_files(self):
        model, folder = self.affine(), self.folder
        for code, arguments in (
            (2, ("explain", model, "--pins", folder)), (2, ("encrypt", model, "-R", folder)), (3, ("report", "--compare", folder, model)),
            (3, ("trace", "summary", folder)),
        ):
            message = self.ends(code, *arguments).stderr
            self.assertIn(str(folder), message)
            self.assertNotIn("basic_filebuf", message)

    def test_files_at_fault(self):
        self.ends(3, "inspect", self.folder / "absent.mlmodel")
        self.ends(3, "inspect", self.folder)
        (self.folder / "noise.mlmodel").write_bytes(bytes(range(256)) * 8)
        self.ends(3, "predict", self.folder / "noise.mlmodel", "--input", "random")

    def test_other_files_are_named(self):
        for name, content, kind in (
            ("a.mlmodel", b"\x89PNG\r\n\x1a\n" + bytes(64), "a PNG picture"),
            ("b.mlmodel", b"just some words\n", "text ('just some words')"),
            ("c.mlpackage", b"PK\x03\x04" + bytes(60), "a zip archive"),
            ("d.mlmodel", b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", "git lfs pull"),
        ):
            (self.folder / name).write_bytes(content)
            self.assertIn(kind, self.ends(3, "predict", self.folder / name, "-i", "random").stderr)
        model = self.affine()
        self.assertIn("is a part of", self.ends(3, "predict", Path(model) / "model.mil", "-i", "random").stderr)
        self.assertIn("; it holds '", self.ends(3, "predict", self.folder, "-i", "random").stderr)

    def test_models_from_the_future(self):
        feature = field(1, "x") + field(3, field(2, b""))  # a double
        known = field(1, 99) + field(2, field(1, feature) + field(10, feature)) + field(900, b"")
        model = self.folder / "future.mlmodel"
        model.write_bytes(known)
        done = self.ends(0, "predict", model, "-i", "x=2", "--json")
        self.assertEqual(json.loads(done.stdout)["outputs"]["x"]["value"], 2)
        self.assertIn("specification version 99 is newer", done.stderr)
        self.assertIn("specification", [r["pass"] for r in self.answer("explain", model)["remarks"]])
        model.write_bytes(known + field(700, 1))
        self.assertIn("has not: field 700", self.ends(3, "predict", model, "-i", "x=2").stderr)

    def weighty(self):
        weight = 'BLOBFILE(path = string("@model_path/weights/weight.bin"), offset = uint64(64))'
        mil = AFFINE.replace(
            "tensor<fp32, [1, 4]> doubled = add(x = x, y = x)",
            f"tensor<fp32, [4]> w = const()[val = tensor<fp32, [4]>({weight})];\n"
            "        tensor<fp32, [1, 4]> doubled = add(x = x, y = w)")
        features = [array_feature("x", [1, 4]), array_feature("y", [1, 4])]
        return Path(write_program(self.folder / "weighty.mlmodelc", mil, features, [array_feature("z", [1, 4])]))

    def test_weights(self):
        model = self.weighty()
        message = self.ends(3, "predict", model, "-i", "random").stderr
        self.assertRegex(message, r"^moka predict: (model\.mil: )?weight file 'weights/weight.bin' is missing")
        (model / "weights").mkdir()
        for content, kind in ((b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64, "a Git LFS pointer"),
                              (b"\x89PNG\r\n\x1a\n" + bytes(range(200)), "a PNG picture"),
                              (b"", "an empty file")):
            (model / "weights" / "weight.bin").write_bytes(content)
            message = self.ends(3, "predict", model, "-i", "random").stderr
            self.assertIn("weight.bin", message)
            self.assertIn(f"expected Core ML's weights, got {kind}", message)

    def test_no_color_in_a_pipe(self):
        self.assertNotIn("\x1b", self.ends(0, "inspect", self.affine()).stdout)

    @unittest.skipUnless(os.path.exists("/dev/full"), "no /dev/full on this system")
    def test_full_disk(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, "--version"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 3, done.stderr)
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, "completion", "man"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertIn("standard output: No space left on device", done.stderr)

    def test_every_command_answers_in_json(self):
        overview = self.ends(0).stdout
        commands = re.findall(r"^  (\w+) +\S.*\n {14}\$ ", overview, re.M)
        self.assertGreater(len(commands), 20)
        for command in commands:
            self.assertIn("--json", self.ends(0, command, "--help").stdout, command)
        self.assertEqual(self.answer("completion", "bash")["text"], self.ends(0, "completion", "bash").stdout)

    def test_drawings_do_not_count_as_files_of_the_folder(self):
        models = Path(__file__).parents[2] / "examples/models"
        (self.folder / "two.csv").write_text(f"image\n@{models}/square.png\n@{models}/square.png\n")
        out = self.folder / "out"
        done = self.ends(0, "predict", models / "shapes.mlmodel", "-i", f"@{self.folder}/two.csv", "--draw", self.folder / "d.png", "-o", out)
        self.assertIn(f"wrote {len(list(out.iterdir()))} file", done.stdout.replace(f"wrote {out}", "wrote 1 file"))
        done = self.ends(0, "predict", models / "shapes.mlmodel", "-i", f"@{self.folder}/two.csv", "--draw", self.folder / "d.png")
        self.assertNotIn("wrote", done.stdout)
        self.assertEqual(done.stderr.count("drew "), 2)


if __name__ == "__main__":
    unittest.main()

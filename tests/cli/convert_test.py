# SPDX-License-Identifier: Apache-2.0
"""moka convert from outside."""

import json
import os
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from case import Case

# In the place of the package onnx: it notes which file it is asked to check, and refuses what it is told to.
CHECKER = """
import os
__version__ = "test"
class checker:
    class ValidationError(Exception):
        pass
    @staticmethod
    def check_model(path, full_check):
        assert full_check and os.path.exists(path)
        with open(os.environ["CHECKED"], "w") as f:
            f.write(path)
        if os.environ.get("REFUSES"):
            raise checker.ValidationError("no\\ngood")
class shape_inference:
    class InferenceError(Exception):
        pass
"""


class Convert(Case):
    def setUp(self):
        super().setUp()
        package = self.folder / "packages"
        package.mkdir()
        (package / "onnx.py").write_text(CHECKER)
        self.set("MOKA_PYTHON", sys.executable)
        self.set("PYTHONPATH", str(package))
        self.set("CHECKED", str(self.folder / "checked"))
        self.made = self.folder / "made"
        self.made.mkdir()

    def set(self, name, value):
        old = os.environ.get(name)
        os.environ[name] = value
        self.addCleanup(os.environ.__setitem__ if old is not None else os.environ.pop, name, *([old] if old is not None else []))

    def test_a_file_is_checked_before_it_has_its_name(self):
        file = self.made / "a.onnx"
        done = self.ends(0, "convert", self.affine(), "-o", file, "--check", "--external-data")
        self.assertIn(f"wrote {file}\n", done.stdout)
        self.assertIn("which onnx.checker accepts", done.stderr)
        checked = Path((self.folder / "checked").read_text())
        self.assertEqual(checked.name, "a.onnx")
        self.assertNotEqual(checked, file)
        self.assertEqual([p.name for p in self.made.iterdir()], ["a.onnx"])
        answer = self.answer("convert", self.affine(), "-o", file, "--check")
        self.assertEqual((answer["written"], answer["checked"]), ([str(file)], True))

    def test_a_file_that_the_checker_refuses_is_not_written(self):
        file = self.made / "a.onnx"
        self.ends(0, "convert", self.affine(), "-o", file)
        older = file.read_bytes()
        self.set("REFUSES", "1")
        done = self.ends(3, "convert", self.affine(), "-o", file, "--check")
        self.assertIn("a.onnx: onnx.checker test refuses it: no good", done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual([p.name for p in self.made.iterdir()], ["a.onnx"])
        self.assertEqual(file.read_bytes(), older)

    def test_a_checked_file_replaces_only_onnx(self):
        file = self.made / "a.onnx"
        file.write_text("a letter")
        self.assertIn("not replaced", self.ends(2, "convert", self.affine(), "-o", file, "--check").stderr)
        self.assertEqual(file.read_text(), "a letter")
        self.ends(0, "convert", self.affine(), "-o", file, "--check", "--force")
        self.assertNotEqual(file.read_bytes(), b"a letter")

    def test_without_the_package(self):
        self.set("PYTHONPATH", str(self.folder))
        (self.folder / "onnx.py").write_text("raise ImportError('it is not here')")
        done = self.ends(3, "convert", self.affine(), "-o", self.made / "a.onnx", "--check")
        self.assertIn("has no module 'onnx', which checks the file: it is not here", done.stderr)
        self.set("MOKA_PYTHON", str(self.folder / "nothing"))
        self.assertIn("$MOKA_PYTHON", self.ends(3, "convert", self.affine(), "-o", self.made / "a.onnx", "--check").stderr)
        self.assertEqual(list(self.made.iterdir()), [])

    def test_options_that_do_not_go_together(self):
        self.ends(2, "convert", self.affine(), "--check", "--list")
        self.ends(2, "convert", self.folder / "a.onnx", "-o", self.folder / "a.mlpackage", "--check")


if __name__ == "__main__":
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""What the tests of generated code share."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PROGRAM = Path(os.environ["MOKA_PROGRAM"]).resolve()
LIBRARY = Path(os.environ["MOKA_LIBRARY"])
MODELS = Path(os.environ.get("MOKA_TEST_MODELS") or os.environ.get("MOKA_TEST_MODELS_DEFAULT", "models"))
CC, CXX = os.environ.get("CC", "cc"), os.environ.get("CXX", "c++")


WARNINGS = ("-Wall", "-Wextra", "-Werror")
LINKED = ("-I", ROOT / "include", LIBRARY, f"-Wl,-rpath,{LIBRARY.parent}")


def run(*command, **options):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=600, **options)
    if done.returncode:
        raise AssertionError(f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


class Case(unittest.TestCase):
    def setUp(self):
        keeper = tempfile.TemporaryDirectory()
        self.addCleanup(keeper.cleanup)
        self.folder = Path(keeper.name)

    def generate(self, model, language, *flags):
        return [Path(line) for line in run(PROGRAM, "generate", model, self.folder, "--language", language, *flags).splitlines()]

    def build_cpp(self, main):
        """The program `main` in the folder of the test."""
        (self.folder / "main.cpp").write_text(main)
        run(CXX, "-std=c++20", *WARNINGS, "-O0", self.folder / "main.cpp", "-o", self.folder / "main", *LINKED)

    def build_c(self, main, *sources):
        (self.folder / "main.c").write_text(main)
        run(CC, "-std=c99", *WARNINGS, "-pedantic-errors", self.folder / "main.c", *sources, "-o", self.folder / "main", *LINKED)

    def objective_c(self, model):
        header, source = self.generate(model, "Objective-C")
        run("clang", "-x", "objective-c", "-fobjc-arc", "-fblocks", "-fobjc-runtime=macosx", "-fsyntax-only", "-Wall", "-Wextra",
            "-Werror", "-I", HERE / "objective_c", source)
        return header.read_text(), source.read_text()

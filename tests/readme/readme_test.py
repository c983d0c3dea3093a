# SPDX-License-Identifier: Apache-2.0
"""Runs every shell and C++ snippet of README.md and checks that it does what the README shows."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import snippets

BUILD = Path(os.environ["MOKA_BUILD"])


class Readme(unittest.TestCase):
    """The folder of models may lack the net, and a clone has not run `make demo`: its own model stands in then."""

    def setUp(self):
        keeper = tempfile.TemporaryDirectory()
        self.addCleanup(keeper.cleanup)
        self.folder = Path(keeper.name)
        snippets.lay_out(self.folder)
        (self.folder / "build").mkdir(exist_ok=True)
        (self.folder / "build/bin").symlink_to(BUILD / "bin")
        self.environment = {**os.environ, "HOME": str(self.folder / "home"), "XDG_CACHE_HOME": ""}
        self.environment.pop("MOKA_KERNEL_CACHE", None)

    def shell(self, script):
        done = subprocess.run(["bash", "-c", script], cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, f"{script}\n{done.stdout}{done.stderr}")
        return done.stdout

    def test_shell(self):
        path, ran = "", 0
        for command in snippets.commands():
            if command.startswith("export "):
                path = command + "; "
            else:
                with self.subTest(command):
                    self.shell(path + command)
                    ran += 1
        self.assertGreaterEqual(ran, 17)

    def test_the_pictures_class(self):
        out = self.shell("build/bin/moka predict examples/models/shapes.mlmodel --input image=@examples/models/square.png --fit scaleFit")
        self.assertRegex(out, "shape +square")

    def test_a_state_over_steps(self):
        out = self.shell("build/bin/moka predict examples/models/total.mlpackage --input @examples/models/steps.jsonl --state --json")
        self.assertEqual(re.sub(r"\s", "", out).count("[111.0,222.0]"), 1, out)

    def test_what_drawings_teach(self):
        """The tables that the README shows are those that the commands print, but for what machines round differently in 60 steps."""

        def rows(text):
            return [(m[1], float(m[2])) for m in re.finditer(r"(?m)^(\w+) +([\d.]+)%", text)]

        lines = [c.replace("moka ", "build/bin/moka ", 1) for c in snippets.commands() if "out/drawings.mlmodel" in c or "out/mine.mlmodel" in c]
        self.assertEqual(len(lines), 4)
        shown = [text for language, text in snippets.blocks() if text.startswith("class ")]
        printed = [self.shell(line) for line in lines]
        self.assertEqual(len(shown), 2)
        for table, output in zip(shown, (printed[1], printed[3])):
            self.assertEqual([name for name, _ in rows(output)], [name for name, _ in rows(table)])
            for (_, found), (_, expected) in zip(rows(output), rows(table)):
                self.assertAlmostEqual(found, expected, delta=0.5)
        self.assertRegex(printed[2], r"examples +15 from examples/drawings/mine\n")

    def test_make_targets_exist(self):
        makefile = (snippets.ROOT / "Makefile").read_text()
        for target in set(re.findall(r"(?:^|`)make ([a-z-]+)", (snippets.ROOT / "README.md").read_text(), re.M)):
            self.assertRegex(makefile, rf"(?m)^{target}:")

    def test_cpp(self):
        """With CMake's defaults, against an installed library."""
        self.shell(f"cmake --install {BUILD} --prefix {self.folder}/home/.local")
        for language, text in snippets.blocks():
            if language == "cpp":
                (self.folder / "rent.cpp").write_text(text)
            if language == "cmake":
                (self.folder / "CMakeLists.txt").write_text(text)
        sanitize = os.environ.get("MOKA_SANITIZE")
        flags = f'-DCMAKE_CXX_FLAGS="-fsanitize={sanitize}"' if sanitize else ""
        self.shell(f"cmake -B rent -DCMAKE_PREFIX_PATH=$HOME/.local {flags} && cmake --build rent")
        self.assertEqual(self.shell("rent/rent"), "1004\n")


if __name__ == "__main__":
    unittest.main()

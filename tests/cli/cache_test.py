# SPDX-License-Identifier: Apache-2.0
"""`moka cache` and the folder of packed weights, which processes share."""

import json
import os
import random
import shutil
import subprocess
import time
import unittest
import unittest.mock
from pathlib import Path

from case import PROGRAM, Case

MODEL = Path(__file__).resolve().parent.parent / "golden" / "cached" / "model.mlpackage"


class Cache(Case):
    def test_compile_plans_ahead(self):
        cache = self.folder / "packed"
        answer = self.answer("compile", MODEL, self.folder / "out", "--plan", "--cache", cache)
        self.assertEqual(Path(answer["cache"]).parent, cache)
        listed = self.answer("cache", "list", "--cache", cache)["models"]
        self.assertEqual([(m["file"], m["usable"]) for m in listed], [(answer["cache"], True)])
        load = self.answer("bench", answer["compiled"], "--iterations", "1", "--cache", cache)["load"]
        self.assertEqual(load["packedBytes"], 0)
        self.assertGreater(load["cachedBytes"], 0)
        self.assertEqual(self.answer("cache", "clear", "--cache", cache)["removed"], 1)

    def test_compile_plans_for_another_place_and_machine(self):
        cache = self.folder / "packed"
        made = self.answer("compile", MODEL, self.folder / "out", "--plan", "--cache", cache, "--isa", "base", "--threads", "1")
        elsewhere = Path(shutil.copytree(self.folder, self.folder.parent / (self.folder.name + "-copy")))
        self.addCleanup(shutil.rmtree, elsewhere)

        with unittest.mock.patch.dict(os.environ, MOKA_MAX_CPU_ISA="base"):
            there = self.answer("bench", elsewhere / Path(made["compiled"]).relative_to(self.folder), "--iterations", "1",
                                "--threads", "1", "--cache", elsewhere / "packed")["load"]
        self.assertEqual(there["packedBytes"], 0)
        self.assertGreater(there["cachedBytes"], 0)
        self.ends(2, "compile", MODEL, self.folder / "out", "--plan", "--isa", "mmx")
        self.ends(2, "compile", MODEL, self.folder / "out", "--isa", "base")

    def test_processes_share_it_and_may_be_killed(self):
        folder = self.folder / "packed"
        plain = self.answer("predict", MODEL, "--input", "random", "--threads", "1")
        command = [PROGRAM, "predict", str(MODEL), "--input", "random", "--threads", "1", "--json", "--cache", str(folder)]
        chance = random.Random(1)
        for _ in range(8):
            running = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(4)]
            for killed in running[:2]:
                time.sleep(chance.uniform(0, 0.02))
                killed.kill()
            for process in running:
                out, err = process.communicate(timeout=60)
                if process not in running[:2]:
                    self.assertEqual((process.returncode, err), (0, ""))
                    self.assertEqual(json.loads(out)["outputs"], plain["outputs"])
            for file in folder.iterdir():
                if chance.random() < 0.5:
                    file.unlink()
        self.assertEqual(json.loads(subprocess.run(command, capture_output=True, text=True).stdout)["outputs"], plain["outputs"])
        self.assertEqual([m["usable"] for m in self.answer("cache", "list", "--cache", folder)["models"]], [True])
        self.ends(0, "cache", "clear", "--cache", folder)
        self.assertEqual(list(folder.iterdir()), [])

    def test_is_written_used_listed_and_cleared(self):
        folder = self.folder / "packed"
        plain = self.answer("predict", MODEL, "--input", "random")
        first = self.answer("bench", MODEL, "--iterations", "1", "--cache", folder)["load"]
        again = self.answer("bench", MODEL, "--iterations", "1", "--cache", folder)["load"]
        self.assertEqual((first["cachedBytes"], again["packedBytes"]), (0, 0))
        self.assertEqual(first["packedBytes"], again["cachedBytes"])
        self.assertEqual(self.answer("predict", MODEL, "--input", "random", "--cache", folder)["outputs"], plain["outputs"])
        self.assertIn("more from the cache", self.ends(0, "explain", MODEL, "--cache", folder).stdout)
        listed = self.answer("cache", "list", "--cache", folder)["models"]
        self.assertEqual([(m["model"], m["usable"]) for m in listed], [(str(MODEL), True)])
        self.assertIn("1 file", self.ends(0, "cache", "list", "--cache", folder).stdout)
        self.assertEqual(self.answer("cache", "clear", "--cache", folder)["removed"], 1)
        self.assertEqual(self.answer("cache", "list", "--cache", folder)["models"], [])
        self.ends(2, "cache", "remove")


if __name__ == "__main__":
    unittest.main()

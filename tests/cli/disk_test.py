# SPDX-License-Identifier: Apache-2.0
"""Places that cannot be written to, and disks that are full."""

import resource
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from case import PROGRAM, Case

RENT = Path(__file__).parents[2] / "examples/models/rent.mlmodel"
FILE = 3
RECIPIENT = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"


class Disk(Case):
    def fails(self, *arguments, limit):
        """Runs the program, which can write no more than `limit` bytes to a file, and returns its message."""
        ran = subprocess.run(
            [PROGRAM, *map(str, arguments)], capture_output=True, text=True, restore_signals=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        self.assertEqual(ran.returncode, FILE, ran.stderr)
        return ran.stderr

    def test_a_full_disk_leaves_no_half_files(self):
        for command in (["view", RENT], ["encrypt", RENT, "--recipient", RECIPIENT], ["compile", RENT]):
            out = self.folder / command[0]
            place = [out] if command[0] == "compile" else ["-o", out]
            self.assertIn("File too large", self.fails(*command, *place, limit=16))
            self.assertFalse(out.is_file(), command)
            self.assertEqual(list(out.iterdir()) if out.exists() else [], [], command)

    def test_a_trace_fails_before_the_command_runs(self):
        ran = self.folder / "ran"
        message = self.fails("trace", "-o", self.folder / "absent" / "t.pftrace", "--", "touch", ran, limit=1 << 20)
        self.assertIn("t.pftrace: cannot be written: No such file or directory", message)
        self.assertFalse(ran.exists())


if __name__ == "__main__":
    unittest.main()

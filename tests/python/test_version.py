# SPDX-License-Identifier: Apache-2.0
import importlib.metadata
import pathlib
import re
import subprocess
import sys

import moka

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_all_versions_are_that_of_the_build():
    version = re.search(r"^project\(moka VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]
    assert moka.__version__ == version == importlib.metadata.version("moka-coreml")
    newest = re.search(r"^## ([0-9.]+) - [0-9]{4}-[0-9]{2}-[0-9]{2}$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert newest and newest[1] == version, "CHANGELOG.md: expected the version of CMakeLists.txt with its date first"
    printed = subprocess.run([sys.executable, "-m", "moka", "--version"], capture_output=True, text=True, check=True).stdout
    assert printed == f"moka {version}\n"

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""release_flags_test.py SOURCE CXX: CMAKE_BUILD_TYPE=Release compiles every file with -O2 or -O3, and the user's options win."""
import collections
import json
import pathlib
import subprocess
import sys
import tempfile

source, compiler = sys.argv[1:]


def levels(*options):
    """The number of files by their last -O option."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["cmake", "-G", "Ninja", "-S", source, "-B", folder, f"-DCMAKE_CXX_COMPILER={compiler}", *options],
                       check=True, stdout=subprocess.DEVNULL)
        commands = json.loads(pathlib.Path(folder, "compile_commands.json").read_text())
    return collections.Counter([o for o in c["command"].split() if o.startswith("-O")][-1] for c in commands)


def check(what, found, allowed):
    print(what, dict(found))
    if not set(found) <= allowed or sum(found.values()) < 100:
        sys.exit(f"{what}: expected {sorted(allowed)} for at least 100 files, got {dict(found)}")


check("no build type, which is Release", levels(), {"-O2", "-O3"})
check("Release with options of the user", levels("-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-Os"), {"-Os", "-O3"})

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles the C and C++ of the documents, with what a reader of each would have."""

import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = [*sorted((ROOT / "docs").glob("*.md")), ROOT / "python/README.md"]
BLOCK = re.compile(r"^```(cpp|c)\n(.*?)^```$", re.M | re.S)

# Definitions of operations and devices stand in a namespace of Moka's sources.
OPS = ('#include "ir/gradient.h"\n#include "ops/common/common.h"\n#include "base/scalar_math.h"\n#include "ops/common/unary.h"\n#include "ops/common/shapes.h"\n'
       '#include "ops/common/strided.h"\nnamespace moka::ops {\nnamespace {\n%s\n}\n}\n')
INSIDE = {
    "adding-an-operation.md": OPS,
    "adding-a-device.md": '#include "kernel/device.h"\n%s',
    "training.md": OPS % "OpDef define_x() { return OpBuilder(\"x\", \"x.\")\n%s\n.build(); }",
}
# What the surrounding program has.
GIVEN = {
    "building.md": "moka::MultiArray weight;",
    "protecting.md": "std::string fetch_key(const std::string&); void my_decrypt(uint64_t, std::span<std::byte>); uint64_t size;",
    "updatable.md": "size_t count; moka::Features example(size_t);",
    "updatable.md c": "extern moka_array rows[]; extern const char* labels[]; extern size_t count;",
}
STANDARD = "#include <cmath>\n#include <cstdio>\n#include <memory>\n#include <string>\n#include <vector>\n#include <moka/moka.hpp>\n"


def program(document, language, texts):
    """A source file with the blocks. Paragraphs that define something are outside of functions."""
    if document in INSIDE:
        return INSIDE[document] % "\n".join(texts).replace("<name>", "some")
    includes, outside, inside = "", "", ""
    for n, text in enumerate(texts):
        includes += "".join(re.findall(r"^#include .*\n", text, re.M))
        inside += f"void shown{n}(void);\nvoid shown{n}(void) {{\n"
        for paragraph in re.sub(r"^#include .*\n", "", text, flags=re.M).split("\n\n"):
            if re.match(r"\n*(static|class|struct|namespace|template)\b", paragraph):
                outside += paragraph + "\n"
            else:
                inside += paragraph + "\n"
        inside += "}\n"
    head = STANDARD if language == "cpp" else "#include <stdio.h>\n#include <moka/moka.h>\n"
    given = GIVEN.get(document if language == "cpp" else document + " c", "")
    return f"{head}{includes}{given}\n{outside}\n{inside}"


class Documents(unittest.TestCase):
    def test_blocks_compile(self):
        seen = 0
        with tempfile.TemporaryDirectory() as folder:
            for path in DOCUMENTS:
                for language in ("cpp", "c"):
                    texts = [text for of, text in BLOCK.findall(path.read_text()) if of == language]
                    if not texts:
                        continue
                    seen += len(texts)
                    file = Path(folder) / f"{path.stem}.{language}"
                    file.write_text(program(path.name, language, texts))
                    compiler = [os.environ.get("CXX", "c++"), "-std=c++20"] if language == "cpp" else [os.environ.get("CC", "cc"), "-std=c99"]
                    done = subprocess.run([*compiler, "-fsyntax-only", "-w", "-I", ROOT / "include", "-I", ROOT / "src", file],
                                          capture_output=True, text=True)
                    with self.subTest(document=path.name):
                        self.assertEqual(done.returncode, 0, done.stderr[:2000])
        self.assertGreater(seen, 10)


if __name__ == "__main__":
    unittest.main()

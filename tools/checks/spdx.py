# SPDX-License-Identifier: Apache-2.0
"""The line that names the license, in each source file."""
import os
import re

LICENSE = "Apache-2.0"
MARK = "SPDX-License-Identifier:"
LINE = MARK + " " + LICENSE
SLASHES = (".h", ".hpp", ".cpp", ".inc", ".comp", ".glsl", ".proto", ".js", ".mjs", ".ts", ".tsx", ".swift")
STARS = (".c", ".css")
HASHES = (".py", ".pyi", ".cmake", ".sh")
C_HEADERS = tuple("include/moka/%s.h" % name for name in
                  ("moka", "moka_files", "c_core", "c_pixel_buffer", "c_plan", "c_shared", "c_update", "plugin"))
# A first line that has to stay the first one.
FIRST = re.compile(r"#!|#version\b|// swift-tools-version")


def comment(path, text):
    """The line that the file has to have, or None for files without comments."""
    name = os.path.basename(path)
    if path.endswith(STARS) or path in C_HEADERS:
        return "/* %s */" % LINE
    if path.endswith(SLASHES):
        return "// " + LINE
    if path.endswith(HASHES) or name in ("CMakeLists.txt", "Makefile") or text.startswith("#!"):
        return "# " + LINE
    return None


def lacks(path, text):
    wanted = comment(path, text)
    return wanted is not None and wanted not in text.split("\n", 2)[:2]


def added(path, text):
    """The text with the line, which stands first or, behind `#!` and the like, second."""
    line = comment(path, text) + "\n"
    if FIRST.match(text):
        first, _, rest = text.partition("\n")
        return first + "\n" + line + rest
    return line + text


def without(text):
    """The text with an empty line in the place of the license's."""
    return re.sub(r"^.*%s.*$" % MARK, "", text, count=1, flags=re.M)

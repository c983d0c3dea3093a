# SPDX-License-Identifier: Apache-2.0
"""The numbers of lines in docs/libraries.md, behind the files and folders that Moka implements itself."""
import os
import re

PAGE = "docs/libraries.md"
SECTION = "## What Moka implements itself"
CODE = (".h", ".hpp", ".cpp", ".c", ".inc")


def about(count):
    """Two significant digits, so that small changes leave the page alone."""
    step = 10 ** max(0, len(str(count)) - 2)
    return (count + step // 2) // step * step


def lines_of(root, path, files):
    """The lines of a file, or of the code below a folder, without those for the license."""
    inside = [f for f in files if f == path or f.startswith(path.rstrip("/") + "/") and f.endswith(CODE)]
    count = 0
    for f in inside:
        with open(os.path.join(root, f), encoding="utf-8") as text:
            count += sum("SPDX-License-Identifier" not in line for line in text)
    return count if inside else None


def updated(root, page, files):
    """(the page with its numbers, problems as (line, text))"""
    problems, out, here = [], [], False
    for n, line in enumerate(page.split("\n"), 1):
        here = here and not line.startswith("## ") or line.startswith(SECTION)
        cells = line.split("|")
        if here and len(cells) == 5 and "`" in cells[2]:
            for path in re.findall(r"`([^`]+)`", cells[2]):
                count = lines_of(root, path, files)
                if count is None:
                    problems.append((n, "no file or folder %s" % path))
                    continue
                said = "`%s`, %s lines" % (path, format(about(count), ","))
                if said not in cells[2]:
                    problems.append((n, "says not '%s' (tools/check --fix)" % said))
                    cells[2] = re.sub(r"`%s`(, [\d,]+ lines)?" % re.escape(path), said, cells[2])
            line = "|".join(cells)
        out.append(line)
    return "\n".join(out), problems

# SPDX-License-Identifier: Apache-2.0
"""The table of folders in docs/architecture.md, whose last column comes from the arrows of tools/check."""
import re

PAGE = "docs/architecture.md"
SECTION = "## Folders and dependencies"
MOST_NAMED = 11  # a folder that may include more of src shows what it may not


def key_of(cell, arrows):
    """The key of the arrows that the first folder of a cell has; None: it has none."""
    folder = re.sub(r"<\w+>", "*", re.findall(r"`([^`]+)`", cell)[0])
    if folder in arrows:
        return folder
    if folder.endswith("/") and folder + "*" in arrows:
        return folder + "*"
    if folder.rstrip("/") in arrows:
        return folder.rstrip("/")
    for key in sorted(arrows, key=len, reverse=True):
        parts = key.split("/")
        if all(a in (b, "*") for a, b in zip(parts, folder.split("/") + [None] * len(parts))):
            return key
    return None


def shown(folder, key, arrows):
    """What a folder may include, in words."""
    to = [t for t in arrows[key] if t != folder]
    inside = [t[len("src/"):] for t in to if t.startswith("src/")]
    others = ["all of `src`"] if "src" in to else []
    rooms = [k[len("src/"):].removesuffix("/*") for k in arrows if k.startswith("src/") and k != key]
    if len(inside) > MOST_NAMED:
        lacks = [r for r in rooms if r not in inside]
        last = " and ".join(filter(None, [", ".join(lacks[:-1]), lacks[-1]])) if lacks else "nothing"
        inside = ["everything in `src` but " + last] if len(lacks) < MOST_NAMED else inside
    others += ["`%s`" % t for t in to if not t.startswith("src/") and t != "src"]
    return ", ".join(inside + others) or "only itself"


def updated(page, arrows):
    """(the page with its last column, problems as (line, text))"""
    problems, out, here, named = [], [], False, set()
    for n, line in enumerate(page.split("\n"), 1):
        here = here and not line.startswith("## ") or line.startswith(SECTION)
        cells = line.split("|")
        if here and len(cells) == 5 and "`" in cells[1]:
            key = key_of(cells[1], arrows)
            if key is not None:
                named.add(key)
                said = " %s " % shown(re.findall(r"`([^`]+)`", cells[1])[0], key, arrows)
                if cells[3] != said:
                    problems.append((n, "says not '%s' (tools/check --fix)" % said.strip()))
                    line = "|".join(cells[:3] + [said] + cells[4:])
        out.append(line)
    for key in arrows:
        if key.startswith(("src/", "include/")) and key not in named:
            problems.append((1, "the table of folders lacks %s" % key))
    return "\n".join(out), problems


NAMED = re.compile(r"`((?:src|include|tools|tests|python|web|bench|examples|cmake|docs)/[\w./*<>-]*)`")


def missing(page, files):
    """(line, path) of the files and folders in backquotes that do not exist. `*` and `<name>` stand for any text."""
    folders = {f[:i] for f in files for i in range(len(f)) if f[i] == "/"}
    for n, line in enumerate(page.split("\n"), 1):
        for path in NAMED.findall(line):
            plain = path.rstrip("/")
            if re.search(r"[*<]", plain):
                pattern = re.compile("[^/]+".join(re.escape(p) for p in re.split(r"\*|<\w+>", plain)))
                if not any(pattern.fullmatch(f) for f in folders) and not any(pattern.fullmatch(f) for f in files):
                    yield n, path
            elif plain not in files and plain not in folders:
                yield n, path

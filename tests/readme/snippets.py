# SPDX-License-Identifier: Apache-2.0
"""The snippets of README.md, and a folder like Moka's own in which they run."""

import os
import re
import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
NET = "build/demo/nmp.mlpackage"


def blocks():
    """(language, text) of each fenced block; the language is empty for shells and interpreters."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)


BUILD = Path(os.environ.get("MOKA_BUILD", ROOT / "build"))
DEMO = BUILD / "examples/demo/demo"


def net():
    """The model that `make demo` downloads: from this build or from the folder of models; None if neither has it."""
    models = Path(os.environ.get("MOKA_TEST_MODELS") or os.environ.get("MOKA_TEST_MODELS_DEFAULT", ROOT.parent / "shared/models"))
    for path in (BUILD / "demo/nmp.mlpackage", models / "basic_pitch/nmp.mlpackage"):
        if path.is_dir():
            return path
    return None


def lay_out(folder):
    """Puts the files that the snippets read where they expect them. Without the downloaded model, the demo's own stands in for it."""
    for name in ("models", "drawings"):
        shutil.copytree(ROOT / "examples" / name, folder / "examples" / name)
    if net():
        shutil.copytree(net(), folder / NET)
    else:
        (folder / NET).parent.mkdir(parents=True)
        subprocess.run([DEMO, "--save-own", folder / NET], check=True)


def commands():
    """Lines that set variables or call moka."""
    return [l for language, text in blocks() if not language for l in text.splitlines() if l.startswith(("export ", "moka "))]


def sessions(prompt, more):
    """The blocks that begin with `prompt`: lists of (what is typed, what is shown below it)."""
    found = []
    for language, text in blocks():
        if language or prompt not in text:
            continue
        typed = []
        for line in text.splitlines():
            if line.startswith(prompt):
                typed.append([line[len(prompt):], []])
            elif typed and more and line.startswith(more):
                typed[-1][0] += "\n" + line[len(more):]
            elif typed:
                typed[-1][1].append(line)
        found.append(typed)
    return found

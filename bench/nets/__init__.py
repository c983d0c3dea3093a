# SPDX-License-Identifier: Apache-2.0
"""The nets, one per file. README.md describes these files."""

import importlib
import pathlib
import re

from nets import zoo

HERE = pathlib.Path(__file__).resolve().parent
FAMILIES = ("classification", "detection", "segmentation", "image to image", "transformer", "sequence")


def of(folder):
    return sorted(f.stem for f in folder.glob("*.py") if f.stem not in ("__init__", "zoo"))


def names():
    """The nets that a run times by default."""
    return of(HERE)


def when_named():
    """The nets that a run times only on request. The accuracy check uses all of them."""
    return of(HERE / "further")


def every():
    return names() + when_named()


def path(name):
    if name not in every():
        raise ValueError(f"nets: expected one of {', '.join(every())}, got {name}")
    return HERE / f"{name}.py" if name in names() else HERE / "further" / f"{name}.py"


def module(name):
    if name in zoo.names():
        return zoo.module(name)
    return importlib.import_module(".".join(path(name).relative_to(HERE.parent).with_suffix("").parts))


def source(name):
    """Everything that defines the net, for the key of the files made from it."""
    own = zoo.source(name) if name in zoo.names() else path(name).read_bytes()
    shared = {"weights", *re.findall(r"(?m)^from blocks\.(\w+) import", own.decode())}
    return own + b"".join((HERE.parent / "blocks" / f"{block}.py").read_bytes() for block in sorted(shared))

"""The nets, a file each. README.md says what a file holds."""

import importlib
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent
FAMILIES = ("classification", "detection", "segmentation", "image to image", "transformer", "sequence")


def names():
    return sorted(f.stem for f in HERE.glob("*.py") if f.stem != "__init__")


def module(name):
    if name not in names():
        raise ValueError(f"nets: expected one of {', '.join(names())}, got {name}")
    return importlib.import_module(f"nets.{name}")


def source(name):
    """Everything that decides what the net is, for the key of what is made from it."""
    own = (HERE / f"{name}.py").read_bytes()
    shared = {"weights", *re.findall(r"(?m)^from blocks\.(\w+) import", own.decode())}
    return own + b"".join((HERE.parent / "blocks" / f"{block}.py").read_bytes() for block in sorted(shared))

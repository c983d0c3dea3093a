"""The nets, a file each. README.md says what a file holds."""

import importlib
import pathlib

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
    files = [HERE / f"{name}.py", *sorted((HERE.parent / "blocks").glob("*.py"))]
    return b"".join(f.read_bytes() for f in files)

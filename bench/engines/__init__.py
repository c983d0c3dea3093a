# SPDX-License-Identifier: Apache-2.0
"""The engines, one per file. README.md describes these files."""

import importlib
import importlib.metadata
import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent


class Refused(Exception):
    """The reason why an engine refuses a net; the text appears in the table."""


def names():
    """Moka first, then its peers."""
    every = sorted(f.stem for f in HERE.glob("*.py") if f.stem != "__init__")
    return sorted(every, key=lambda name: name != "moka")


def module(name):
    if name not in names():
        raise ValueError(f"engines: expected one of {', '.join(names())}, got {name}")
    return importlib.import_module(f"engines.{name}")


def source(name):
    """Everything that affects the conversion of a net, for the key of the converted model."""
    own = (HERE / f"{name}.py").read_bytes()
    shared = re.findall(r"(?m)^from harness import (\w+)", own.decode())
    return own + b"".join((HERE.parent / "harness" / f"{module}.py").read_bytes() for module in shared)


def versions(name):
    """Package -> version for the packages of an engine; None for one that is not installed."""
    found = {}
    for package in module(name).PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = None
    return found


def unavailable(name, venv=None):
    """Why an engine is not available, or None. `venv`: the environment, where the setup recorded why packages could not be
    installed."""
    missing = [package for package, version in versions(name).items() if version is None]
    if not missing:
        return None
    note = pathlib.Path(venv) / f"{name}.reason" if venv else None
    reason = note.read_text().strip() if note and note.is_file() else ""
    return f"{', '.join(missing)} not installed" + (f": {reason}" if reason else "")

"""Calls the command line in a process of its own."""

import json
import os
import pathlib
import subprocess
import sys
from typing import Any, Dict, List

from . import _moka

_WRONG_USE = 2


def command(*arguments: str) -> List[str]:
    return [sys.executable, "-m", "moka", *arguments]


def environment() -> Dict[str, str]:
    """In which a child finds this package."""
    own = str(pathlib.Path(__file__).resolve().parents[1])
    others = os.environ.get("PYTHONPATH")
    return {"MOKA_PYTHON": sys.executable, **os.environ, "PYTHONPATH": own + (os.pathsep + others if others else "")}


def answer(*arguments: str) -> Dict[str, Any]:
    """The JSON that a command prints. Raises InvalidArgumentError for arguments that it refuses, Error for all else."""
    done = subprocess.run(command(*arguments, "--json"), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode not in (0, 1) or not done.stdout:
        message = done.stderr.decode(errors="replace").strip()
        raise (_moka.InvalidArgumentError if done.returncode == _WRONG_USE else _moka.Error)(message)
    found: Dict[str, Any] = json.loads(done.stdout)
    return found

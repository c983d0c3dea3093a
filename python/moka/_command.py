# SPDX-License-Identifier: Apache-2.0
"""Calls the command line in a process of its own."""

import json
import os
import pathlib
import subprocess
import sys
from typing import Any, Dict, List, Optional

from . import _moka
from ._keys import Key, source_of

_WRONG_USE = 2


def command(*arguments: str) -> List[str]:
    return [sys.executable, "-m", "moka", *arguments]


def environment() -> Dict[str, str]:
    """In which a child finds this package, and the process with which it ends, however that ends."""
    own = str(pathlib.Path(__file__).resolve().parents[1])
    others = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": own + (os.pathsep + others if others else ""), "MOKA_PARENT": str(os.getpid())}


def answer(*arguments: str, key: Optional[Key] = None) -> Dict[str, Any]:
    """The JSON that a command prints, which gets a key of encrypted models through its environment. Raises InvalidArgumentError for
    arguments that it refuses, Error for all else."""
    variables = environment()
    if key is not None:
        for name, is_passphrase in (("MOKA_IDENTITY", False), ("MOKA_PASSPHRASE", True)):
            text = source_of(key)(arguments[1], is_passphrase)
            if text:
                variables[name] = text
    done = subprocess.run(command(*arguments, "--json"), env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode not in (0, 1) or not done.stdout:
        message = done.stderr.decode(errors="replace").strip()
        raise (_moka.InvalidArgumentError if done.returncode == _WRONG_USE else _moka.Error)(message)
    found: Dict[str, Any] = json.loads(done.stdout)
    return found

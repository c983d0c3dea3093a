# SPDX-License-Identifier: Apache-2.0
"""The command line in a process of its own."""

import os
import pathlib
import sys
from typing import Dict, List


def command(*arguments: str) -> List[str]:
    return [sys.executable, "-m", "moka", *arguments]


def environment() -> Dict[str, str]:
    """In which a child finds this package, and the process with which it ends, however that ends."""
    own = str(pathlib.Path(__file__).resolve().parents[1])
    others = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": own + (os.pathsep + others if others else ""), "MOKA_PARENT": str(os.getpid())}

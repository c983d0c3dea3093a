# SPDX-License-Identifier: Apache-2.0
"""The command line: `python -m moka inspect model.mlpackage`."""

import os
import signal
import sys

from typing import List

from . import _moka
from ._custom import load_plugin


def _load_python_plugins(arguments: List[str]) -> List[str]:
    """Runs the Python files that --plugin names. Returns the other arguments."""
    rest, items = [], iter(arguments)
    for item in items:
        value = item[9:] if item.startswith("--plugin=") else next(items, "") if item == "--plugin" else None
        if value is None:
            rest.append(item)
        elif value.endswith(".py"):
            load_plugin(value)
        else:
            rest += ["--plugin", value]
    return rest


def main() -> int:
    # The work happens outside Python, so Ctrl-C and a closed pipe end the program at once, as usual for programs.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.environ.setdefault("MOKA_PYTHON", sys.executable)  # runs ONNX files and PyTorch programs for verify
    try:
        arguments = _load_python_plugins(sys.argv[1:])
    except _moka.Error as error:
        print(f"moka: {error}", file=sys.stderr)
        return 2
    return _moka.main(["moka", *arguments])


if __name__ == "__main__":
    sys.exit(main())

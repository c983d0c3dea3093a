"""The command line: `python -m moka inspect model.mlpackage`."""

import signal
import sys

from . import _moka


def main() -> int:
    # The work happens below Python: let Ctrl-C and a closed pipe end it at once, as for any program.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    return _moka.main(["moka", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())

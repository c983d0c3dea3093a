# SPDX-License-Identifier: Apache-2.0
"""Messages for the logger "moka" of the standard logging module. The module is imported only when there is a message.

Warnings report problems such as an unusable cache, INFO reports loaded models, and DEBUG the time of every prediction:
logging.basicConfig(level=logging.DEBUG) or logging.getLogger("moka").setLevel(logging.DEBUG).
"""

import sys
import time
from typing import Any

_INFO, _DEBUG = 20, 10
_logger: Any = None


def _tells(level: int) -> Any:
    """The logger, if the program configured it and it accepts this level."""
    global _logger
    if _logger is None:
        if "logging" not in sys.modules:
            return None
        _logger = sys.modules["logging"].getLogger("moka")
    return _logger if _logger.isEnabledFor(level) else None


def warning(text: str) -> None:
    import logging

    logging.getLogger("moka").warning("%s", text)


def loaded(model: Any, name: str) -> None:
    logger = _tells(_INFO)
    if logger is not None:
        logger.info("loaded %s: %r", name, model.load_times)


def predicted(started: float) -> None:
    logger = _tells(_DEBUG)
    if logger is not None:
        logger.debug("predicted in %.3f ms", (time.perf_counter() - started) * 1e3)

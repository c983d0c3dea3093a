# SPDX-License-Identifier: Apache-2.0
"""Traces for Perfetto."""

import os
from types import TracebackType
from typing import Optional, Type, Union

from ._moka import Trace, TraceSpan, TraceSummary, summarize_trace


class trace:
    """Records what this process does with models, for Perfetto (ui.perfetto.dev).

        with moka.trace("out.pftrace"):
            model.predict(inputs)

    It begins at once and ends with the block, or with stop(). One at a time. '%p' in the path stands for the number of the
    process. Replaces a trace, and with force every file. Raises moka.IOError, and moka.InvalidArgumentError where a trace is
    being written.
    """

    def __init__(self, path: Union[str, "os.PathLike[str]"], *, force: bool = False) -> None:
        self._trace = Trace(os.fspath(path), force)
        self.path: str = self._trace.path

    def stop(self) -> None:
        """Ends the trace. Raises moka.IOError if some events could not be written."""
        self._trace.stop()

    def summary(self) -> TraceSummary:
        """Ends the trace and reads it: counts, times and bytes."""
        self.stop()
        return summarize_trace(self.path)

    def __enter__(self) -> "trace":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 where: Optional[TracebackType]) -> None:
        self.stop()


class span:
    """Records work of the program itself, such as decoding a picture, on the lane Data.

        with moka.trace_span("decode", reason="JPEG to pixels"):
            picture = Image.open(path).convert("RGB")
    """

    def __init__(self, name: str, bytes: int = 0, reason: str = "") -> None:
        self._span = TraceSpan(name, bytes, reason)

    def __enter__(self) -> "span":
        self._span.enter()
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 where: Optional[TracebackType]) -> None:
        self._span.exit()


__all__ = ["TraceSummary", "span", "summarize_trace", "trace"]

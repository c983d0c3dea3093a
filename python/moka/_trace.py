# SPDX-License-Identifier: Apache-2.0
"""Traces for Perfetto."""

import os
from types import TracebackType
from typing import Optional, Sequence, Type, Union

from ._moka import Trace, TraceConclusions, TraceSpan, TraceSummary, summarize_trace
from ._moka import allow_tracing as _allow
from ._moka import conclude_trace as _conclude
from ._moka import conclusions_page as _page

Path = Union[str, "os.PathLike[str]"]


class trace:
    """Records what this process does with models, for Perfetto (ui.perfetto.dev).

        with moka.trace("out.pftrace"):
            model.predict(inputs)

    It begins at once and ends with the block, or with stop(). One at a time. '%p' in the path stands for the number of the
    process. Replaces a trace, and with force every file. Raises moka.IOError, and moka.InvalidArgumentError where a trace is
    being written.

    ring (bytes of memory) and last (seconds) keep only the newest events, which are written at the end.
    """

    def __init__(self, path: Path, *, force: bool = False, ring: int = 0, last: float = 0) -> None:
        self._trace = Trace(os.fspath(path), force, ring, last)
        self.path: str = self._trace.path

    def stop(self) -> None:
        """Ends the trace. Raises moka.IOError if some events could not be written."""
        self._trace.stop()

    def summary(self) -> TraceSummary:
        """Ends the trace and reads it: counts, times and bytes."""
        self.stop()
        return summarize_trace(self.path)

    def conclusions(self) -> TraceConclusions:
        """Ends the trace and concludes from it, as trace_conclusions does."""
        self.stop()
        return trace_conclusions(self.path)

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


def allow_tracing(where: Path = "") -> str:
    """Lets other processes of the same user record this one while it runs: moka trace --pid N.

    where: the path of a socket, or a folder, where the number of the process names it; empty: the user's own folder. Returns the
    path of the socket, which closes with the process. Raises moka.IOError where something else is there.
    """
    return _allow(os.fspath(where))


def trace_conclusions(path: Path, *, only: Sequence[str] = (), ignore: Sequence[str] = (), rules: Path = "") -> TraceConclusions:
    """What a trace tells about its program: loads that repeat, conversions of each call, waits.

    only, ignore: names of rules. rules: a file of rules of your own. Raises moka.NotFoundError, moka.MalformedModelError.
    """
    return _conclude(os.fspath(path), list(only), list(ignore), os.fspath(rules))


def conclusions_page(path: Path, *, only: Sequence[str] = (), ignore: Sequence[str] = (), rules: Path = "") -> str:
    """The same as a page, the text of one HTML file."""
    return _page(os.fspath(path), list(only), list(ignore), os.fspath(rules))


__all__ = ["TraceConclusions", "TraceSummary", "allow_tracing", "conclusions_page", "span", "summarize_trace", "trace",
           "trace_conclusions"]

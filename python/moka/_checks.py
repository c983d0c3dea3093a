# SPDX-License-Identifier: Apache-2.0
"""Functions for `verify`, `diff` and `report`, which load models and read what was found."""

import contextlib
import os
import tempfile
from typing import Any, Dict, Iterator, Mapping, Optional, Sequence, Tuple, Union

from . import _configuration, _files, _keys, _moka
from ._message import Message
from .build import Source, _source_of
from .edit import Editable

FilePath = Union[str, "os.PathLike[str]"]


class Folder:
    """A temporary folder for models in memory."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._models = 0

    def model(self, model: Editable) -> str:
        """The path of a model. A model in memory is saved first."""
        if not isinstance(model, (Source, Message)):
            return _files.path_of(model)
        self._models += 1
        return _source_of(model).save(os.path.join(self._path, f"model_{self._models}.mlpackage"))


@contextlib.contextmanager
def folder() -> Iterator[Folder]:
    with tempfile.TemporaryDirectory(prefix="moka-check-") as path:
        yield Folder(path)


def configured(
    function: Optional[str],
    key: Optional[_keys.Key],
    device: Optional[str] = None,
    precision: Optional[str] = None,
) -> "_moka.ModelConfiguration":
    """precision: "at-least" or "exact", as the command line writes it."""
    c = _configuration.usual()
    c.function_name = function or ""
    c.device = device or c.device
    if precision not in (None, "at-least", "exact"):
        raise _moka.InvalidArgumentError(f"precision: expected 'at-least' or 'exact', got {precision!r}")
    if precision is not None:
        c.exact_precision = precision == "exact"
    if key is not None:
        _moka.set_key(c, _keys.source_of(key))
    return c


def function_of_other(path: str, function: Optional[str], key: Optional[_keys.Key]) -> str:
    """The function of the other model: the same, or "" if it has only one."""
    if not function:
        return ""
    described = _moka.Model.describe(path) if key is None else loaded(path, None, key).description
    return function if len(described.functions) > 1 else ""


def loaded(path: str, function: Optional[str], key: Optional[_keys.Key]) -> "_moka.Model":
    return _moka.Model.load(path, configured(function, key))


def number_ranges(ranges: Optional[Mapping[str, Sequence[float]]]) -> Dict[str, Tuple[float, float]]:
    return {name: (float(low), float(high)) for name, (low, high) in (ranges or {}).items()}


def number(found: Mapping[str, Any], name: str, equal: bool) -> float:
    """A ratio in dB. JSON has no infinity: a missing value is inf if the results are equal, else -inf."""
    value = found.get(name)
    return float(value) if value is not None else float("inf") if equal else float("-inf")

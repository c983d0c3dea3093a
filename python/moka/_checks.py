# SPDX-License-Identifier: Apache-2.0
"""Functions for `verify` and `diff`: they load both sides and read the comparison, or pass arguments to the command line if plugins
need a process of their own."""

import contextlib
import json
import os
import tempfile
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _configuration, _files, _keys, _moka
from ._message import Message
from .build import Source, _source_of
from .edit import Editable

FilePath = Union[str, "os.PathLike[str]"]


class Folder:
    """A temporary folder for models and inputs that a command reads."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._models = 0

    def model(self, model: Editable) -> str:
        """The path of a model. A model in memory is saved first."""
        if not isinstance(model, (Source, Message)):
            return _files.path_of(model)
        self._models += 1
        return _source_of(model).save(os.path.join(self._path, f"model_{self._models}.mlpackage"))

    def inputs(self, rows: Sequence[Mapping[str, Any]], model: str, function: Optional[str], is_locked: bool = False) -> List[str]:
        """The options for inputs, one row for each prediction. Raises InvalidArgumentError for names that the function does not have.
        Does not check names if the model is locked, because only the command can open it."""
        if not rows:
            return []
        if not is_locked:
            _check_names(rows, model, function)
        steps = [{name: self._value(value, f"{i}_{n}") for n, (name, value) in enumerate(row.items())} for i, row in enumerate(rows)]
        path = os.path.join(self._path, "inputs.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(step) + "\n" for step in steps)
        return ["--input", "@" + path]

    def _value(self, value: Any, name: str) -> Any:
        if isinstance(value, (str, bool, int, dict)):
            return value
        if isinstance(value, (float, list, tuple)):
            with contextlib.suppress(TypeError, ValueError):  # JSON has no NaN, no infinity and no numbers of numpy
                json.dumps(value, allow_nan=False)
                return value
        if hasattr(value, "convert") and hasattr(value, "getbands"):  # a picture of PIL
            value = value if value.mode in ("L", "F") else value.convert("RGB")
        path = os.path.join(self._path, f"{name}.npy")
        np.save(path, np.asarray(value), allow_pickle=False)
        return "@" + path


def _check_names(rows: Sequence[Mapping[str, Any]], model: str, function: Optional[str]) -> None:
    described = _moka.Model.describe(model)
    wanted = function or described.default_function
    taken = {f.name for one in described.functions if one.name == wanted or len(described.functions) == 1 for f in one.inputs}
    for name in sorted({name for row in rows for name in row} - taken):
        raise _moka.InvalidArgumentError(f"the model has no input '{name}'; it takes {', '.join(sorted(taken))}")


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


def option(name: str, value: Optional[Any]) -> List[str]:
    return [] if value is None else [name, str(value)]


def plugin_options(plugins: Sequence[FilePath]) -> List[str]:
    return [text for plugin in plugins for text in ("--plugin", _files.path_of(plugin))]


def random_options(
    runs: Optional[int], seed: int, ranges: Optional[Mapping[str, Sequence[float]]], map: Optional[Mapping[str, str]]
) -> List[str]:
    """The options for random inputs and for names of features that `verify` and `diff` share."""
    out = option("--runs", runs) + option("--seed", seed)
    for name, (low, high) in (ranges or {}).items():
        out += ["--range", f"{name}={float(low)!r}:{float(high)!r}"]
    for name, other in (map or {}).items():
        out += ["--map", f"{name}={other}"]
    return out


def number(found: Mapping[str, Any], name: str, equal: bool) -> float:
    """A ratio in dB. JSON has no infinity: a missing value is inf if the results are equal, else -inf."""
    value = found.get(name)
    return float(value) if value is not None else float("inf") if equal else float("-inf")

# SPDX-License-Identifier: Apache-2.0
"""Performance reports: what `moka report` measures, in this process."""

import contextlib
import io
import os
import zipfile
from typing import Any, BinaryIO, Callable, Iterator, List, Mapping, Optional, Sequence, TypeVar, Union

from . import _checks, _configuration, _files, _keys, _moka
from ._asset import ModelAsset, size_of
from ._message import Message
from ._model import Model
from ._moka import Cancellation
from ._predictor import limits_of
from .build import Source

Report = _moka.report.Report
ReportComparison = _moka.report.Comparison

_Value = TypeVar("_Value")
#: One value, or several that are measured side by side.
Values = Union[_Value, Sequence[_Value]]


def _several(values: Any) -> List[Any]:
    """The values of a list or a tuple; empty for one value."""
    if not isinstance(values, (list, tuple)):
        return []
    if not values:
        raise ValueError("expected a value or a list of values, got an empty list")
    return list(values)


@contextlib.contextmanager
def _subject(model: Any, key: Optional[_keys.Key]) -> Iterator["_moka.report.Subject"]:
    """What loads the model anew, while the context lasts."""
    if _keys.is_reader(model):
        model = Model(model, key=key)
    if isinstance(model, Model):
        path = model._path()
        name = os.path.basename(path) if path else "model in memory"
        yield _moka.report.subject_of_model(name, path, size_of(path) if path else 0, model._core)
        return
    if hasattr(model, "read"):
        model = _files.contents(model)
    model = _files.plain(model)
    if isinstance(model, (Source, Message)):
        with _checks.folder() as folder:
            yield _moka.report.subject_of_path(folder.model(model))
        return
    if isinstance(model, (bytes, bytearray, memoryview)):
        model = bytes(model)
        if _files.is_zip(model):
            model = _files.Unpacked(io.BytesIO(model), "<bytes>")
        else:
            model = ModelAsset(model)
    elif isinstance(model, (str, os.PathLike)):
        model = _files.path_of(model)
        if os.path.isfile(model) and zipfile.is_zipfile(model):
            model = _files.Unpacked(model, model)
    if isinstance(model, ModelAsset):
        yield _moka.report.subject_of_asset("<bytes>", model.specification, model.blobs)
    elif isinstance(model, (str, _files.Unpacked)):
        yield _moka.report.subject_of_path(model if isinstance(model, str) else model.path)
    else:
        raise TypeError(f"expected a model, a path, an open file, bytes or a ModelAsset, got {type(model).__name__}")


def _configured(model: Any, chosen: Mapping[str, Any], options: Mapping[str, Any]) -> "_moka.ModelConfiguration":
    """The configuration of what is not a list in `chosen`, and of `options`. That of a loaded model keeps the rest."""
    known = Model.__init__.__kwdefaults__ or {}
    for name in options:
        if name not in known:
            raise TypeError(f"report: unexpected argument {name!r}")
    given = {**options, **{name: value for name, value in chosen.items() if value is not None and not isinstance(value, (list, tuple))}}
    if not isinstance(model, Model):
        return _configuration.configuration(_configuration.picklable({**known, **given}))
    if options:
        raise TypeError(f"report: a loaded model has its own {', '.join(options)}; give the model's path to choose another")
    c = _moka.ModelConfiguration(model._core.configuration)
    wanted = _configuration.configuration(_configuration.picklable({**known, **given}))
    for name, field in (("compute_units", "compute_units"), ("function", "function_name"), ("precision", "exact_precision"), ("threads", "threads")):
        if name in given:
            setattr(c, field, getattr(wanted, field))
    return c


def _exact(precision: str) -> bool:
    if precision not in ("at_least", "exact"):
        raise ValueError(f"precision: expected 'at_least' or 'exact', got {precision!r}")
    return precision == "exact"


def report(
    model: Union[Model, str, "os.PathLike[str]", bytes, BinaryIO, ModelAsset, Source, Message, Any],
    *,
    compute_units: Optional[Values[Any]] = None,
    threads: Optional[Values[int]] = None,
    precision: Optional[Values[str]] = None,
    function: Optional[Values[str]] = None,
    batch: Values[int] = 1,
    shapes: Optional[Mapping[str, Sequence[int]]] = None,
    inputs: Optional[Mapping[str, Any]] = None,
    seed: int = 1,
    seconds: float = 2.0,
    compile: bool = True,
    key: Optional[_keys.Key] = None,
    timeout: Optional[float] = None,
    cancellation: Optional[Cancellation] = None,
    progress: Optional[Callable[[str, str, int], None]] = None,
    **options: Any,
) -> Report:
    """Measures how long a model takes to load and to predict, which memory it takes, and how long each operation takes.

    Everything runs in this process, with the layers and operations that it registered, and no other one is started. Other work of the
    process takes time from what is measured, and its memory counts in peaks.

    model: whatever `moka.Model` takes, a `moka.build.Source`, a message, or a loaded `moka.Model`. That one is loaded again beside itself,
    with which it shares packed weights, so that it loads faster than from its path.
    compute_units, threads, precision, function: as for `moka.Model`. batch: predictions that are given at once. A list of values of any of
    these is measured side by side; each combination is a setting. Other keyword arguments are those of `moka.Model`.
    shapes: sizes of array inputs by name, which get random values. inputs: of every prediction, by name; None: random ones from `seed`.
    seconds: how long each setting predicts. Stateful models get a new state. compile: also measures compiling, into a temporary folder.
    key: of an encrypted model.

    timeout, cancellation: end measuring with DeadlineExceededError and CancelledError; compiling and measuring the machine's rates come to
    their end first. progress: is called with the setting's name, the stage ("compile", "load", "predict", "rates", "operations",
    "coverage") and how many loads or predictions are done.

    A setting that fails has a `failure`. When all of them fail, the first failure is raised: what Model and predict raise. Also raises
    ValueError and TypeError for arguments.
    """
    chosen = {"compute_units": compute_units, "threads": threads, "precision": precision, "function": function}
    base = _moka.report.Wanted()
    c = _configured(model, chosen, options)
    if key is not None:
        _moka.set_key(c, _keys.source_of(key))
    base.configuration = c
    base.seed, base.seconds = seed, float(seconds)
    base.shapes = {name: [int(n) for n in shape] for name, shape in (shapes or {}).items()}
    one: Any = batch
    if not isinstance(one, (list, tuple)):
        base.batch = one
    settings = _moka.report.combined(
        base,
        _several(function),
        [_configuration.units(u) for u in _several(compute_units)],
        [_exact(p) for p in _several(precision)],
        _several(threads),
        _several(batch),
    )
    limits = limits_of(timeout, cancellation)
    with _subject(model, key) as subject:
        return _moka.report.measure(subject, settings, inputs, compile, limits, progress)

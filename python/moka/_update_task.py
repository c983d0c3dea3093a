# SPDX-License-Identifier: Apache-2.0
"""Trains updatable models on examples."""

from collections.abc import Mapping as AnyMapping
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _arrays, _configuration, _files, _keys, _moka
from ._asset import ModelAsset, SourceAsset
from ._message import Message
from ._model import Model, _restore
from ._moka import UpdateMetrics
from .build import Path, Source, _source_of

#: Values by Core ML's keys: {"learningRate": 0.01, "epochs": 10}.
Parameters = Mapping[str, Union[int, float, bool]]


class UpdateContext:
    """Core ML's MLUpdateContext: what an update has reached. A handler gets one, whose `model`, `weights`, `source` and `save` work
    until the handler returns. The one that UpdateTask.run returns has weights of its own."""

    def __init__(self, core: "_moka.UpdateContext", names: Optional[List[str]]) -> None:
        self._core = core
        self._names = names  # None: nearest neighbors
        self._model: Optional[Model] = None

    @property
    def event(self) -> str:
        """Core ML's MLUpdateProgressEvent: 'trainingBegin', 'miniBatchEnd' or 'epochEnd'."""
        return self._core.event

    @property
    def metrics(self) -> UpdateMetrics:
        """loss, epoch, mini_batch, mini_batches."""
        return self._core.metrics

    @property
    def parameters(self) -> Dict[str, Union[int, float, bool]]:
        """Those of the next mini-batch, by Core ML's keys."""
        return self._core.parameters

    @property
    def is_cancelled(self) -> bool:
        """UpdateTask.cancel ended the run."""
        return self._core.is_cancelled

    @property
    def source(self) -> Source:
        """The model as it can be edited and saved. Raises InvalidArgumentError after the handler."""
        return Source._of(self._core.source())

    @property
    def model(self) -> Model:
        """The model, ready to predict, loaded once. Raises InvalidArgumentError after the handler, and what Model raises."""
        if self._model is None:
            self._model = self.load()
        return self._model

    def load(self, **options: Any) -> Model:
        """The model, ready to predict. options: those of Model."""
        if self._names is None:
            return Model(SourceAsset(self._core.source()), **options)
        source = self.source
        if "parameters" not in options and self._names:
            try:
                return source.load(parameters=self._names, **options)
            except _moka.NotFoundError:
                pass  # weights that predictions do not read
        return source.load(**options)

    @property
    def weights(self) -> Dict[str, np.ndarray]:
        """Copies of the updated weights, as UpdateDescription.layers names them. Empty for nearest neighbors."""
        return {p.name: self.model.parameter(p.name) for p in self.model.parameters}

    def save(self, path: Path, *, force: bool = False) -> str:
        """Writes the model: an .mlmodel file, an .mlpackage or an .mlmodelc folder, by the end of the path. Replaces a model of that
        kind, which may be the one that was trained, and with force every file and model. The file is whole or is not written.

        Returns the path. Raises InvalidArgumentError, IOError."""
        destination = _files.path_of(path)
        self._core.save(destination, force)
        return destination

    def __repr__(self) -> str:
        return f"<moka.UpdateContext {self.event} {self.metrics!r}>"


Progress = Callable[[UpdateContext], Any]
Rows = Union[Sequence[Mapping[str, Any]], Mapping[str, Sequence[Any]], Any]


def _columns(columns: Mapping[str, Any]) -> Tuple[int, Callable[[int], Dict[str, Any]]]:
    """The number of rows, and what makes the dict of one."""
    if not columns:
        raise _moka.InvalidArgumentError("rows: expected columns, got an empty dict")
    counts: Dict[str, int] = {}
    for name, column in columns.items():
        if isinstance(column, (str, bytes)) or not hasattr(column, "__len__") or not hasattr(column, "__getitem__"):
            raise TypeError(f"rows, column {name!r}: expected a list or an array, got {type(column).__name__}")
        try:
            counts[name] = len(column)
        except TypeError:
            raise TypeError(f"rows, column {name!r}: expected an axis of rows, got a number") from None
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{count} in {name!r}" for name, count in counts.items())
        raise _moka.InvalidArgumentError(f"rows: expected columns of the same length, got {listed}")
    return next(iter(counts.values())), lambda i: {name: _plain(column[i]) for name, column in columns.items()}


def _plain(value: Any) -> Any:
    """Numbers of numpy as Python's."""
    return value.item() if isinstance(value, np.generic) else value


def _reader(rows: Rows) -> Tuple[int, Callable[[int], Any], bool]:
    """The number of examples, what gives the dict of one, and whether all dicts are in memory."""
    table = _arrays.as_columns(rows, []) if _arrays._is_of(rows, "pandas") or _arrays._is_of(rows, "pyarrow") else None
    if table is not None:
        return (*_columns(table), True)
    if isinstance(rows, AnyMapping):
        return (*_columns(rows), all(isinstance(column, (list, tuple, np.ndarray)) for column in rows.values()))
    if isinstance(rows, (str, bytes)) or not hasattr(rows, "__len__") or not hasattr(rows, "__getitem__"):
        raise TypeError(f"rows: expected a list of dicts, a dict of columns, or a sequence of dicts, got {type(rows).__name__}")
    return len(rows), lambda i: _arrays.as_inputs(rows[i]), isinstance(rows, (list, tuple))


def _as_given(model: Any) -> Union[str, Source]:
    """A path, or a model in memory as a Source."""
    if isinstance(model, (Source, Message)):
        return _source_of(model)
    if isinstance(model, Model):
        if model._made_by[0] is not _restore or _keys.is_reader(model._made_by[1][0]):
            raise TypeError("expected a model from a path, bytes or a ModelAsset, got MIL text, a reader or replaced parameters")
        model = model._made_by[1][0]
    model = _files.plain(model)
    if isinstance(model, (bytes, bytearray, memoryview)):
        model = ModelAsset(bytes(model))
    if isinstance(model, ModelAsset):
        source = Source(Message.parse("Model", bytes(model.specification)))
        for name, data in model.blobs.items():
            source.set_weights(name, data)
        return source
    if hasattr(model, "__fspath__") or isinstance(model, str):
        return _files.path_of(model)
    raise TypeError(f"expected a path, a model, a Source, a specification or bytes, got {type(model).__name__}")


class UpdateTask:
    """Core ML's MLUpdateTask: trains an updatable network or classifier, or the last model of a pipeline.

        task = moka.UpdateTask("Drawings.mlmodel", [{"drawing": picture, "label": "cat"}, ...], parameters={"epochs": 10})
        context = task.run()
        context.model.predict({"drawing": another})
        context.save("MyDrawings.mlmodel")

    model: the path of an .mlmodel, .mlpackage or .mlmodelc; a moka.Model; a moka.build.Source; a model or specification of
    coremltools; the bytes of an .mlmodel; a ModelAsset. It stays as it is.
    rows: the examples, with the training inputs of the model (Model.update_description.training_inputs): a list of dicts by name, a
    dict of columns (arrays whose first axis counts the rows, or lists), a table of pandas or Arrow, or any object with `__len__` and
    `__getitem__`, which is asked for rows as they are needed. Values are those that Model.predict takes, files too. Labels, numbers and
    arrays of lists, dicts and tables are looked at before the training begins, pictures and files when it reaches them.
    parameters: instead of the model's defaults, by Core ML's keys: "learningRate", "miniBatchSize", "momentum", "beta1", "beta2", "eps",
    "epochs", "shuffle", "seed", "numberOfNeighbors".
    progress: called with an UpdateContext when training begins, after each mini-batch and after each epoch. It may call `resume` and
    `cancel`. What it raises ends the run and reaches its caller.
    threads: as for Model. memory_budget: as for Model. kept_bytes: what may be kept of what the layers in front of the updatable
    ones compute; examples beyond it are computed again in each epoch.
    resize, fit, rate, pad: how files and pictures become values, as for Model.predict.

    Raises InvalidArgumentError (the model is not updatable, a parameter is not allowed, there are no examples), MalformedModelError (the
    model breaks a rule for updates), UnsupportedError (a layer that Moka cannot train), and what opening a model raises; TypeError."""

    def __init__(
        self,
        model: Union[Path, Model, Source, Message, ModelAsset, bytes, Any],
        rows: Rows,
        *,
        parameters: Optional[Parameters] = None,
        progress: Optional[Progress] = None,
        threads: int = 0,
        memory_budget: int = 0,
        kept_bytes: int = 1 << 30,
        resize: bool = False,
        fit: Optional[str] = None,
        rate: int = 0,
        pad: bool = False,
    ) -> None:
        if progress is not None and not callable(progress):
            raise TypeError(f"progress: expected a function, got {type(progress).__name__}")
        count, self._read, self._in_memory = _reader(rows)
        self._rows = rows if type(rows) is list else ()  # examples that may be read without Python
        self._progress = progress
        self._reading = _moka.Reading(resize or fit is not None, fit or "scaleFill", rate, pad)
        configuration = _configuration.usual()
        configuration.threads = _configuration._number("threads", threads, 1024)
        configuration.memory_budget = _configuration._number("memory_budget", memory_budget)
        kept = _configuration._number("kept_bytes", kept_bytes)
        given = _as_given(model)
        changed = _parameters(parameters)
        if isinstance(given, str):
            self._core = _moka.UpdateTask.of_file(given, count, changed, configuration, kept)
        else:
            self._core = _moka.UpdateTask.of_source(given._source, count, changed, configuration, kept)
        description = self._core.description
        self._names = None if description.nearest_neighbors else [name for layer in description.layers for name in layer.parameters]

    @property
    def description(self) -> "_moka.UpdateDescription":
        """What the model can learn: training inputs, layers, losses, parameters with what is allowed."""
        return self._core.description

    def run(self) -> UpdateContext:
        """Trains, and returns the new model. Releases the interpreter lock. After cancel it returns the model as it is then, and another
        call goes on. Ctrl-C ends it before the next mini-batch.

        Raises InvalidArgumentError and TypeError for an example that does not fit, which is named, DataError for a number that is not
        finite and for a loss that diverges, and what `rows` and `progress` raise."""
        return UpdateContext(self._core.run(self._rows, self._read, self._in_memory, self._show, self._reading), self._names)

    def resume(self, parameters: Parameters) -> None:
        """In a handler, or while the task is not running: changes parameters from the next mini-batch on. Raises InvalidArgumentError."""
        self._core.resume(_parameters(parameters))

    def cancel(self) -> None:
        """The training stops before its next mini-batch. Called in a handler or on any thread."""
        self._core.cancel()

    def _show(self, core: "_moka.UpdateContext") -> None:
        if self._progress is not None:
            self._progress(UpdateContext(core, self._names))


def _parameters(given: Optional[Parameters]) -> Dict[str, Any]:
    return {name: _plain(value) for name, value in (given or {}).items()}

# SPDX-License-Identifier: Apache-2.0
"""Loading, copying, pickling and showing models."""

import collections
import io
import os
import zipfile
from typing import Any, BinaryIO, Callable, Dict, Mapping, Optional, Sequence, Union

import numpy as np

from . import _configuration, _files, _keys, _log, _moka, _reports
from ._asset import ModelAsset, SourceAsset, size_of
from ._moka import Cancellation
from ._predictor import Predictor, limits_of
from ._view import View, view_of_asset


class Model(Predictor):
    """A loaded Core ML model. Immutable; predict may be called from many threads at once.

    model: path of an .mlmodel file, of an .mlpackage or an .mlmodelc folder, or of a ZIP archive with one of them; an
    open file of an .mlmodel or an archive, or its bytes; a ModelAsset; coremltools' specification object or model; an encrypted
    model, by path or as bytes; an object with `size` and `read(offset, length)`, with which an application decrypts models in
    its own way.
    compute_units: "ALL", "CPU_ONLY", "CPU_AND_GPU" or "CPU_AND_NE", or coremltools' ComputeUnit. A driver that computes on
    the CPU is not a GPU; `device` or a pin uses it.
    function: name of the function to load; None: the default one.
    precision: "at_least" (types are the minimum precision, as Core ML says) or "exact" (round to each type); None: the
    environment variable MOKA_PRECISION, else "at_least".
    threads: threads per prediction, at most 1024; 0: one per core, or one per entry of processors.
    processors: processor numbers for worker threads; the calling thread stays where it is bound. Empty: the workers run where
    the calling thread may run.
    memory_budget: limit in bytes on moka's allocations for the model; 0: no limit.
    idle_memory: limit in bytes on idle arenas; a second limit of the same size applies to cached plans. None: 256 MiB.
    low_memory: keep weights of convolutions and matrix products as the file stores them, and expand them in every prediction.
    pack_while_loading: pack all weights while loading, so that the first predictions are as fast as later ones. Otherwise the
    first prediction reads fp32 and fp16 weights from the file, and the following ones pack them.
    optimize: run the passes.
    device: use only this device and "reference"; None: the environment variable MOKA_DEVICE, else compute_units decides.
    kernel_cache: file of measured times that choose kernels: a path, "default" (the user's own) or "off"; None: the environment
    variable MOKA_KERNEL_CACHE, else off. A file that is damaged or from another machine or build is ignored, and explain's
    remarks report it.
    measure_kernels: "no"; "missing": time the kernels of shapes that are not in the cache, and save the times; "all": time all
    shapes again.
    cache: folder for packed weights: the first load of a file writes them, later loads map them; a path, "default" (the user's
    own) or "off"; None: the environment variable MOKA_CACHE, else off.
    pinned_kernels: kernels by operation name, or by shape in the form that explain prints.
    pins: devices for operations, as a dict {"conv_*": "cpu"} or as text with one "conv_*=cpu" per line. Operations are names,
    where * matches any text, "type:softmax" or "scope:encoder", of operations or of a neural network's layers. Devices are
    names, "gpu" or "neuralEngine". The last match counts.
    strict: True: the load fails when a pin matches nothing or a device refuses it, and a prediction fails when a device is
    lost; False: the CPU takes over, and remarks report it.
    parameters: names of weights that with_parameters replaces, where * matches any text: "encoder*weight".
    rates: file of the units' measured rates: a path, "default" (the user's own) or "off"; None: the environment variable
    MOKA_RATES, else "default".
    neural_engine_rules: file of additional rules for the Neural Engine preview; None: the environment variable
    MOKA_NEURAL_ENGINE_RULES.

    key: decrypts an encrypted model: the text of an identity ("AGE-SECRET-KEY-1..."), a passphrase, the Path of a file of
    identities, or a function. The function gets the model's path and True for a passphrase or False for an identity. None:
    the environment variables MOKA_IDENTITY, MOKA_PASSPHRASE and MOKA_PASSPHRASE_FILE. The key is not pickled.

    timeout, cancellation: end loading early, with DeadlineExceededError and CancelledError. progress: is called while loading
    goes on, with the stage ("import", "passes", "plan", "pack"), how many of its parts are done, and how many there are.
    Neither is pickled.

    Models can be pickled: by path, or completely if they were loaded from bytes. Copies share the loaded model.

    Raises MalformedModelError, UnsupportedError, NotFoundError, IOError, OutOfBudgetError; TypeError, ValueError.
    """

    def __init__(
        self,
        model: Union[str, "os.PathLike[str]", bytes, BinaryIO, ModelAsset, Any],
        *,
        compute_units: Any = "ALL",
        function: Optional[str] = None,
        precision: Optional[str] = None,
        threads: int = 0,
        processors: Sequence[int] = (),
        memory_budget: int = 0,
        idle_memory: Optional[int] = None,
        low_memory: bool = False,
        pack_while_loading: bool = False,
        optimize: bool = True,
        device: Optional[str] = None,
        kernel_cache: Union[str, "os.PathLike[str]", None] = None,
        measure_kernels: str = "no",
        pinned_kernels: Optional[Mapping[str, str]] = None,
        cache: Union[str, "os.PathLike[str]", None] = None,
        pins: Union[str, Mapping[str, str], None] = None,
        strict: bool = False,
        parameters: Union[str, Sequence[str]] = (),
        rates: Union[str, "os.PathLike[str]", None] = None,
        neural_engine_rules: Union[str, "os.PathLike[str]", None] = None,
        key: Optional[_keys.Key] = None,
        timeout: Optional[float] = None,
        cancellation: Optional[Cancellation] = None,
        progress: Optional[Callable[[str, int, int], None]] = None,
    ) -> None:
        arguments = _configuration.picklable({
            "compute_units": compute_units,
            "function": function,
            "precision": precision,
            "threads": threads,
            "processors": processors,
            "memory_budget": memory_budget,
            "idle_memory": idle_memory,
            "low_memory": low_memory,
            "pack_while_loading": pack_while_loading,
            "optimize": optimize,
            "device": device,
            "kernel_cache": kernel_cache,
            "measure_kernels": measure_kernels,
            "pinned_kernels": pinned_kernels,
            "cache": cache,
            "pins": pins,
            "strict": strict,
            "parameters": parameters,
            "rates": rates,
            "neural_engine_rules": neural_engine_rules,
        })
        c = _configuration.configuration(arguments)
        if key is not None:
            _moka.set_key(c, _keys.source_of(key))
        if timeout is not None or cancellation is not None:
            _moka.set_limits(c, limits_of(timeout, cancellation))
        _moka.set_progress(c, progress)
        self._load(model, c, arguments)

    def _load(self, model: Any, c: "_moka.ModelConfiguration", arguments: Dict[str, Any]) -> None:
        unpacked: Optional[_files.Unpacked] = None
        if _keys.is_reader(model):
            self._set(_moka.load_reader(model, c), (_restore, (model, arguments)))
            _log.loaded(self, "<reader>")
            return
        if hasattr(model, "read"):
            model = _files.contents(model)
        model = _files.plain(model)
        if isinstance(model, (bytes, bytearray, memoryview)):
            model = bytes(model)
            if _files.is_zip(model):
                unpacked = _files.Unpacked(io.BytesIO(model), "<bytes>")
            else:
                model = ModelAsset(model)
        elif isinstance(model, (str, os.PathLike)):
            model = os.path.abspath(_files.path_of(model))
            if os.path.isfile(model) and zipfile.is_zipfile(model):
                unpacked = _files.Unpacked(model, model)
        if unpacked is not None:
            core = _moka.Model.load(unpacked.path, c)
        elif isinstance(model, SourceAsset):
            core = model.source.load(c)
        elif isinstance(model, ModelAsset):
            core = _moka.Model.load_asset(model.specification, model.blobs, c)
        elif isinstance(model, str):
            core = _moka.Model.load(model, c)
        else:
            raise TypeError(
                f"expected a path, an open file, bytes, a specification or a ModelAsset, got {type(model).__name__}"
            )
        self._set(core, (_restore, (model, arguments)), unpacked)
        _log.loaded(self, model if isinstance(model, str) else "<bytes>")

    def _set(self, core: "_moka.Model", made_by: Any, unpacked: Optional["_files.Unpacked"] = None) -> None:
        self._core = core
        self._made_by = made_by
        self._unpacked = unpacked

    def __reduce__(self) -> Any:
        return self._made_by

    def __copy__(self) -> "Model":
        copy = Model.__new__(type(self))
        copy._set(self._core, self._made_by, self._unpacked)
        return copy

    def __deepcopy__(self, memo: Dict[int, Any]) -> "Model":
        return self.__copy__()

    @classmethod
    def from_mil(cls, text: str, blobs: Optional[Mapping[str, bytes]] = None) -> "Model":
        """A program in the text form of MIL; `blobs` are the weight files that BLOBFILE names."""
        self = cls.__new__(cls)
        files = dict(blobs or {})
        self._set(_moka.Model.from_mil(text, files, _configuration.usual()), (cls.from_mil, (text, files)))
        return self

    def with_parameters(self, values: Mapping[str, Any]) -> "Model":
        """The same model with other values of these parameters, as arrays by name; this model stays as it is. Both share the
        program and everything that kernels made from the weights that stay: only new weights are packed again, when they are
        first used. Values are copied and rounded to the parameter's dtype. Raises NotFoundError (the argument `parameters`
        did not name it), InvalidArgumentError (shape), TypeError."""
        copy = Model.__new__(type(self))
        values = {name: _plain_array(value) for name, value in values.items()}
        copy._set(self._core.with_parameters(values), (_restore_parameters, (self, values)), self._unpacked)
        return copy

    def _path(self) -> str:
        """The file or folder that it was loaded from; "" for others."""
        source = self._made_by[1][0] if self._made_by[0] is _restore else None
        return source if isinstance(source, str) else ""

    def __repr__(self) -> str:
        return f"<moka.Model {self._core.description.type} '{self._core.function.name}'>"

    def view(self) -> View:
        """The page of `moka view`: graph, weights and description. A notebook displays it as a frame. View.save writes it to
        a file. View.open shows it in a browser, which can also predict and measure. Raises UnsupportedError for a model from
        MIL text."""
        if self._unpacked:
            return View(self._unpacked.path, self._unpacked)
        source = self._made_by[1][0] if self._made_by[0] is _restore else None
        if not isinstance(source, (str, ModelAsset)):
            raise _moka.UnsupportedError("view: expected a model from a path, bytes or a ModelAsset, got MIL text, a reader or replaced parameters")
        if isinstance(source, ModelAsset):
            return view_of_asset(bytes(source.specification), source.blobs)
        return View(source)

    def _repr_html_(self) -> str:
        structure = self.structure()
        counts = collections.Counter(layer.type for layer in structure.layers)
        for function in structure.functions:
            if function.name == self._core.function.name:
                _count(function.body, counts)
        facts = []
        if self._made_by[0] is _restore and not _keys.is_reader(self._made_by[1][0]):
            facts.append(("size", _reports.size(size_of(self._made_by[1][0]))))
        if counts:
            most = ", ".join(f"{n} {type_}" for type_, n in counts.most_common(8)) + (", ..." if len(counts) > 8 else "")
            facts.append(("layers" if structure.layers else "operations", f"{sum(counts.values())}: {most}"))
        if structure.models:
            facts.append(("models", ", ".join(f"{name} ({part.type})" for name, part in structure.models)))
        return self.description._html(facts)


def _count(block: Any, counts: "collections.Counter[str]") -> None:
    """Adds the types of a block's operations, without constants."""
    for operation in block.operations:
        if operation.type != "const":
            counts[operation.type] += 1
        for inner in operation.blocks:
            _count(inner, counts)


def _plain_array(value: Any) -> np.ndarray:
    """A copy that no caller changes."""
    array = np.array(value)
    return array.astype(np.float32) if array.dtype.kind in "biu" else array


def _restore_parameters(model: Model, values: Mapping[str, np.ndarray]) -> Model:
    """Replaces parameters again: what pickle calls."""
    return model.with_parameters(values)


def _restore(model: Any, arguments: Dict[str, Any]) -> Model:
    """Loads a model again: what pickle calls."""
    return Model(model, **arguments)

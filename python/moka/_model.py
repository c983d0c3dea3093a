"""Loading and predicting."""

import collections
import io
import os
import time
import zipfile
from typing import TYPE_CHECKING, Any, BinaryIO, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Union

import numpy as np

from . import _files, _keys, _log, _moka, _reports
from ._arrays import as_columns, as_inputs
from ._description import ModelDescription
from ._moka import ComputePlan, FeatureDescription, LoadTimes, ModelStructure, State
from ._view import View, view_of_asset

if TYPE_CHECKING:
    import concurrent.futures

_UNITS = {
    "ALL": _moka.ComputeUnits.ALL,
    "CPU_ONLY": _moka.ComputeUnits.CPU_ONLY,
    "CPU_AND_GPU": _moka.ComputeUnits.CPU_AND_GPU,
    "CPU_AND_NE": _moka.ComputeUnits.CPU_AND_NE,
}

_MEASURE = {
    "no": _moka.MeasureKernels.NO,
    "missing": _moka.MeasureKernels.MISSING,
    "all": _moka.MeasureKernels.ALL,
}

_PLAIN = _moka.Reading(False, "scaleFill", 0, False)


def _read_only(name: str, data: Any) -> Union[bytes, memoryview]:
    """The bytes of an object; a copy where they could be written."""
    if isinstance(data, bytes):
        return data
    try:
        view = memoryview(data)
    except TypeError:
        raise TypeError(f"{name}: expected bytes, got {type(data).__name__}") from None
    return view if view.readonly and view.c_contiguous else bytes(view)


class ModelAsset:
    """Core ML's MLModelAsset: a model in memory.

    specification: the bytes of an .mlmodel file, or coremltools' specification object. blobs: weight files by the name that the program gives them, e.g.
    {"weights/weight.bin": data}.

    Data is bytes or another object with a buffer. What is read-only, such as a memoryview of a mapped file, is used where it lies and must not change
    while a model is loaded from it. What can be written is copied.
    """

    def __init__(self, specification: Any, blobs: Optional[Mapping[str, Any]] = None) -> None:
        specification = _files.specification_of(specification) or specification
        self.specification = _read_only("specification", specification)
        self.blobs = {name: _read_only(name, data) for name, data in (blobs or {}).items()}

    def __reduce__(self) -> Any:
        return ModelAsset, (bytes(self.specification), {name: bytes(data) for name, data in self.blobs.items()})


class Intermediate(NamedTuple):
    """The result of one operation: the operation's name in the model, the value's name, the elements."""

    operation: str
    value: str
    array: np.ndarray


def _units(compute_units: Any) -> "_moka.ComputeUnits":
    if isinstance(compute_units, _moka.ComputeUnits):
        return compute_units
    name = getattr(compute_units, "name", compute_units)
    if isinstance(name, str) and name.upper() in _UNITS:
        return _UNITS[name.upper()]
    raise ValueError(f"compute_units: expected one of {', '.join(_UNITS)}, got {compute_units!r}")


class Model:
    """A loaded Core ML model. Immutable; predict may be called from many threads at once.

    model: path of an .mlmodel file, of an .mlpackage or an .mlmodelc folder, or of a ZIP archive with one of them; an
    open file of an .mlmodel or an archive, or its bytes; a ModelAsset; coremltools' specification object or model; an encrypted
    model, by path or as bytes; an object with `size` and `read(offset, length)`, which the application makes to decrypt a model
    in its own way.
    compute_units: "ALL", "CPU_ONLY", "CPU_AND_GPU" or "CPU_AND_NE", or coremltools' ComputeUnit.
    function: name of the function to load; None: the default one.
    precision: "at_least" (types are the minimum precision, as Core ML says) or "exact" (round to each type).
    threads: threads per prediction; 0: one per core, or one per entry of processors.
    processors: processor numbers for worker threads; the calling thread stays where it is bound. Empty: the workers run where
    the calling thread may run.
    memory_budget: limit in bytes on what the model can make moka allocate; 0: no limit.
    idle_memory: bytes that idle arenas may keep, and the same again for plans; None: 256 MiB.
    low_memory: keep weights of convolutions and matrix products as the file stores them, and expand them in every prediction.
    pack_while_loading: pack all weights while loading, so that predictions take equally long from the first one on. Otherwise
    the first prediction reads weights of fp32 and fp16 from the file, and the following ones pack them.
    optimize: run the passes.
    device: use only this device and "reference"; None: compute_units decides.
    kernel_cache: file of measured times that choose kernels: a path, "default" (the user's own) or "off"; None: the environment
    variable MOKA_KERNEL_CACHE, else off. A file that is damaged or from another machine or build is ignored, and explain's
    remarks report it.
    measure_kernels: "no"; "missing": time the kernels of shapes that are not in the cache, and save the times; "all": time all
    shapes again.
    cache: folder for packed weights: the first load of a file writes them, later loads map them; a path, "default" (the user's
    own) or "off"; None: the environment variable MOKA_CACHE, else off.
    pinned_kernels: kernels by operation name, or by shape in the form that explain prints.
    pins: devices for operations, as a dict {"conv_*": "cpu"} or as text with one "conv_*=cpu" per line. Operations are names,
    where * matches any text, "type:softmax" or "scope:encoder". Devices are names, "gpu" or "neuralEngine". The last match
    counts.
    strict: True: the load fails when a device refuses a pin, and a prediction fails when a device is lost; False: the CPU takes
    over, and remarks report it.
    rates: file of the units' measured rates: a path, "default" (the user's own) or "off"; None: the environment variable
    MOKA_RATES, else "default".
    neural_engine_rules: file of additional rules for the Neural Engine preview; None: the environment variable
    MOKA_NEURAL_ENGINE_RULES.

    key: what opens an encrypted model: the text of an identity ("AGE-SECRET-KEY-1..."), a passphrase, a Path of a file of
    identities, or a function of the model's path and of whether a passphrase is wanted. None: the environment variables
    MOKA_IDENTITY, MOKA_PASSPHRASE and MOKA_PASSPHRASE_FILE. The key is not pickled.

    Models can be pickled: by path, or completely if they were loaded from bytes. Copies share the loaded model.

    Raises MalformedModelError, UnsupportedError, NotFoundError, IOError, OutOfBudgetError; TypeError, ValueError.
    """

    def __init__(
        self,
        model: Union[str, "os.PathLike[str]", bytes, BinaryIO, ModelAsset, Any],
        *,
        compute_units: Any = "ALL",
        function: Optional[str] = None,
        precision: str = "at_least",
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
        rates: Union[str, "os.PathLike[str]", None] = None,
        neural_engine_rules: Union[str, "os.PathLike[str]", None] = None,
        key: Optional[_keys.Key] = None,
    ) -> None:
        if precision not in ("at_least", "exact"):
            raise ValueError(f"precision: expected 'at_least' or 'exact', got {precision!r}")
        if measure_kernels not in _MEASURE:
            raise ValueError(f"measure_kernels: expected one of {', '.join(_MEASURE)}, got {measure_kernels!r}")
        c = _moka.ModelConfiguration()
        c.compute_units = _units(compute_units)
        c.function_name = function or ""
        c.exact_precision = precision == "exact"
        c.threads = threads
        c.processors = list(processors)
        c.memory_budget = memory_budget
        if idle_memory is not None:
            c.idle_memory = idle_memory
        c.low_memory = low_memory
        c.pack_while_loading = pack_while_loading
        c.optimize = optimize
        c.device = device or ""
        c.kernel_cache = os.path.expanduser(os.fspath(kernel_cache or ""))
        c.cache = os.path.expanduser(os.fspath(cache or ""))
        c.measure_kernels = _MEASURE[measure_kernels]
        c.pinned_kernels = dict(pinned_kernels or {})
        c.pins = _moka.parse_pins(pins) if isinstance(pins, str) else [_moka.Pin(*p) for p in (pins or {}).items()]
        c.strict = strict
        c.rates = os.path.expanduser(os.fspath(rates or ""))
        c.neural_engine_rules = os.path.expanduser(os.fspath(neural_engine_rules or ""))
        options = {
            "compute_units": c.compute_units.name,
            "function": function,
            "precision": precision,
            "threads": threads,
            "processors": tuple(processors),
            "memory_budget": memory_budget,
            "idle_memory": idle_memory,
            "low_memory": low_memory,
            "pack_while_loading": pack_while_loading,
            "optimize": optimize,
            "device": device,
            "kernel_cache": c.kernel_cache or None,
            "measure_kernels": measure_kernels,
            "pinned_kernels": c.pinned_kernels,
            "cache": c.cache or None,
            "pins": pins,
            "strict": strict,
            "rates": c.rates or None,
            "neural_engine_rules": c.neural_engine_rules or None,
        }
        if key is not None:
            _moka.set_key(c, _keys.source_of(key))
        self._load(model, c, options)

    def _load(self, model: Any, c: "_moka.ModelConfiguration", options: Dict[str, Any]) -> None:
        unpacked: Optional[_files.Unpacked] = None
        if _keys.is_reader(model):
            self._set(_moka.load_reader(model, c), (_restore, (model, options)))
            _log.loaded(self, "<reader>")
            return
        if hasattr(model, "read"):
            model = _files.contents(model)
        converted = _files.of_coremltools(model)
        if converted is not None:
            model = converted[0] or converted[1]
        specification = _files.specification_of(model)
        if specification is not None:
            model = specification
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
        elif isinstance(model, ModelAsset):
            core = _moka.Model.load_asset(model.specification, model.blobs, c)
        elif isinstance(model, str):
            core = _moka.Model.load(model, c)
        else:
            raise TypeError(
                f"expected a path, an open file, bytes, a specification or a ModelAsset, got {type(model).__name__}"
            )
        self._set(core, (_restore, (model, options)), unpacked)
        _log.loaded(self, model if isinstance(model, str) else "<bytes>")

    def _set(self, core: "_moka.Model", made_by: Any, unpacked: Optional["_files.Unpacked"] = None) -> None:
        self._core = core
        self._made_by = made_by
        self._unpacked = unpacked
        self._plain: Optional[_moka.Model] = None

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
        self._set(_moka.Model.from_mil(text, files, _moka.ModelConfiguration()), (cls.from_mil, (text, files)))
        return self

    @property
    def inputs(self) -> List[FeatureDescription]:
        """Names, types and shapes of predict's inputs."""
        return self._core.function.inputs

    @property
    def outputs(self) -> List[FeatureDescription]:
        """Names, types and shapes of predict's outputs."""
        return self._core.function.outputs

    @property
    def states(self) -> List[FeatureDescription]:
        """Names, types and shapes of the buffers that new_state creates."""
        return self._core.function.states

    @property
    def description(self) -> ModelDescription:
        """Inputs, outputs, states and metadata; a table in notebooks."""
        return ModelDescription(self._core.description, self._core.function)

    @property
    def load_times(self) -> LoadTimes:
        """Where the time of loading went, in seconds."""
        return self._core.load_times

    @property
    def kernel_cache_file(self) -> str:
        """The kernel cache in use; empty: none."""
        return self._core.kernel_cache_file

    @property
    def cache_file(self) -> str:
        """The file that keeps this model's packed weights; empty: none."""
        return self._core.cache_file

    def predict(
        self,
        inputs: Union[Mapping[str, Any], Sequence[Mapping[str, Any]]],
        *,
        outputs: Union[Mapping[str, np.ndarray], Sequence[str], None] = None,
        state: Optional[State] = None,
        resize: bool = False,
        fit: Optional[str] = None,
        rate: int = 0,
        pad: bool = False,
    ) -> Any:
        """Predicts. Releases the interpreter lock while it computes.

        inputs: a dict of values by feature name, or an object with such names: a row of a pandas table, a named tuple, a
        record. A list of these is a batch, whose items are predicted in parallel. Multi-arrays accept numpy arrays of any
        type, byte order and strides (used without a copy if they are row-major and of the model's own type), tensors,
        objects with DLPack or the buffer protocol, lists, numbers, and files of sound (.wav) and numbers (.npy, .json,
        .txt). Images accept PIL images, uint8 arrays of shape (H, W) or (H, W, 3 or 4), and picture files. A file is a path,
        an open file or, for pictures, its bytes. Strings, dictionaries and sequences accept str, dict and list. None means
        no value, for optional inputs.
        outputs: names of the wanted outputs; operations that only other outputs need do not run. Or writable arrays of the
        declared element type and shape to write to (output backings).
        state: from new_state(); required by stateful models.
        resize: resize pictures to a size that the model accepts. fit: how to resize, "scaleFill" (the default), "scaleFit" or
        "centerCrop"; implies resize.
        rate: resample sound files to this many samples per second; 0: keep their rate.
        pad: append silence to sounds that are too short for the model, and cut the end of longer ones.

        Returns a dict of every output, or a list of dicts. Multi-arrays are numpy arrays of the declared element type,
        images PIL images (arrays without Pillow), classes int or str, probabilities a dict.
        Raises TypeError (kind of a value), InvalidArgumentError (a ValueError: names, shapes, sizes), DataError.
        """
        started = time.perf_counter()
        names, backings = ((), None) if outputs is None else _wanted(outputs)
        reading = _PLAIN
        if resize or fit is not None or rate or pad:
            reading = _moka.Reading(resize or fit is not None, fit or "scaleFill", rate, pad)
        if type(inputs) is not dict:
            inputs = as_inputs(inputs)
        if not isinstance(inputs, (list, tuple)):
            result: Any = self._core.predict(inputs, backings, state, names, reading)
        elif backings is not None:
            raise TypeError("outputs: expected names or None for a list of inputs")
        else:
            result = self._core.predict_batch([as_inputs(item) for item in inputs], state, names, reading)
        _log.predicted(started)
        return result

    def predict_rows(self, table: Any) -> Dict[str, Any]:
        """Predicts every row of a table. Releases the interpreter lock while it computes.

        table: a pandas or Arrow table or a mapping, with a column for each input by name; optional inputs may be
        missing. Columns are arrays whose first axis counts the rows, or lists of strings. Or a 2-D array, whose columns
        are the model's single array or its numbers in order. Row-major arrays of the model's own element type, which
        is float64 for most classic models, are used without a copy.

        Returns a dict of columns: arrays of shape (rows,) or (rows, ...), lists of strings, and for the probabilities
        of a classifier an array of shape (rows, classes) in the order of class_labels. The results are those of predict
        for each row. Classic models compute many rows at once.
        Raises TypeError, InvalidArgumentError (a ValueError: names, shapes, numbers of rows), DataError.
        """
        started = time.perf_counter()
        columns = as_columns(table, self._core.function.inputs)
        if columns is None:
            columns = as_inputs(table)
        if not isinstance(columns, dict):
            raise TypeError(f"table: expected columns by name or a 2-D array, got {type(table).__name__}")
        result = self._core.predict_rows(columns)
        _log.predicted(started)
        return result

    def predict_future(
        self, inputs: Mapping[str, Any], **options: Any
    ) -> "concurrent.futures.Future[Dict[str, Any]]":
        """Starts a prediction on another thread and returns its Future. Options are those of predict."""
        return _executor().submit(self.predict, inputs, **options)

    def predict_stream(
        self, inputs: Iterable[Mapping[str, Any]], *, ahead: int = 4, **options: Any
    ) -> Iterator[Dict[str, Any]]:
        """Predicts the items of `inputs` in order and yields the results. While predictions run, `inputs` already prepares
        the next items, at most `ahead` of them: it decodes and resizes pictures while a net computes on a device.
        options: those of predict, except a state and arrays to write to, which concurrent predictions cannot share.
        Raises ValueError (`ahead` below 1), TypeError (options), and for each input what predict raises."""
        if ahead < 1:
            raise ValueError(f"ahead: expected at least 1, got {ahead}")
        if options.get("state") is not None or isinstance(options.get("outputs"), Mapping):
            raise TypeError("predict_stream takes no state and no arrays to write to: its predictions run at the same time")
        return self._stream(inputs, ahead, options)

    def _stream(
        self, inputs: Iterable[Mapping[str, Any]], ahead: int, options: Dict[str, Any]
    ) -> Iterator[Dict[str, Any]]:
        running: List["concurrent.futures.Future[Dict[str, Any]]"] = []
        try:
            for item in inputs:
                running.append(self.predict_future(item, **options))
                if len(running) > ahead:
                    yield running.pop(0).result()
            while running:
                yield running.pop(0).result()
        finally:
            for future in running:
                future.cancel()

    async def predict_async(self, inputs: Mapping[str, Any], **options: Any) -> Dict[str, Any]:
        """As predict, but does not block the event loop."""
        import asyncio  # with ssl it takes eight megabytes, and most programs do not need it

        return await asyncio.wrap_future(self.predict_future(inputs, **options))

    def new_state(self) -> State:
        """New zero-filled buffers for a stateful model. Core ML's make_state."""
        return self._core.new_state()

    state = new_state

    def explain(
        self,
        inputs: Optional[Mapping[str, Any]] = None,
        *,
        measure: bool = False,
        outputs: Optional[Sequence[str]] = None,
    ) -> ComputePlan:
        """Where every operation runs, which devices refused it and why, and which operations were folded and fused.
        Applies to the shapes of `inputs` (None: the default shapes) and to the wanted `outputs` (None: all). measure:
        also times predictions and reports the medians. Displays as a table in notebooks."""
        names, _ = _wanted(outputs)
        return self._core.compute_plan(None if inputs is None else as_inputs(inputs), measure, names)

    def intermediates(
        self, inputs: Mapping[str, Any], *, state: Optional[State] = None, optimized: bool = False
    ) -> Iterator[Intermediate]:
        """Predicts and returns the result of every operation, in order. optimized: the operations after the passes and
        the planner, without fused and folded ones."""
        if optimized:
            core = self._core
        else:
            if self._plain is None:
                c = _moka.ModelConfiguration()
                own = self._core.configuration
                c.function_name = own.function_name
                c.memory_budget = own.memory_budget
                c.exact_precision = own.exact_precision
                c.optimize = False
                c.reuse_buffers = False
                c.device = "reference"
                c.kernel_cache = "off"
                c.cache = "off"
                self._plain = self._core.configured(c)
            core = self._plain
        return (Intermediate(*item) for item in core.intermediates(as_inputs(inputs), state))

    def structure(self) -> ModelStructure:
        """Functions and operations, layers, or the models of a pipeline, as in the file."""
        return self._core.structure()

    def mil(self, *, optimized: bool = False) -> str:
        """The program as MIL text: as imported, or after the passes."""
        return self._core.mil(optimized)

    def random_inputs(self, seed: int = 1) -> Dict[str, Any]:
        """Reproducible inputs that the model can run, of the default shapes if the model can run those."""
        return self._core.random_inputs(seed)

    def __repr__(self) -> str:
        return f"<moka.Model {self._core.description.type} '{self._core.function.name}'>"

    def view(self) -> View:
        """The page of `moka view`, which a notebook displays as a frame: graph, weights and description. Its methods `save` a
        file, and `open` a browser with predictions and times too. Raises UnsupportedError for a model from MIL text."""
        if self._unpacked:
            return View(self._unpacked.path, self._unpacked)
        source = self._made_by[1][0] if self._made_by[0] is _restore else None
        if not isinstance(source, (str, ModelAsset)):
            raise _moka.UnsupportedError("view: expected a model from a path, bytes or a ModelAsset, got MIL text or a reader")
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
            facts.append(("size", _reports.size(_bytes_of(self._made_by[1][0]))))
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


def _bytes_of(source: Union[str, ModelAsset, bytes]) -> int:
    """The size of what a model was loaded from."""
    if isinstance(source, ModelAsset):
        return len(source.specification) + sum(len(data) for data in source.blobs.values())
    if isinstance(source, bytes):
        return len(source)
    if os.path.isfile(source):
        return os.path.getsize(source)
    return sum(os.path.getsize(os.path.join(folder, f)) for folder, _, files in os.walk(source) for f in files)


def _wanted(outputs: Any) -> Any:
    """The names of the outputs to compute (() for all), and arrays to write to or None."""
    if outputs is None:
        return (), None
    if isinstance(outputs, Mapping):
        return (), dict(outputs)
    names = tuple(outputs) if isinstance(outputs, Iterable) and not isinstance(outputs, str) else None
    if not names or not all(isinstance(name, str) for name in names):
        raise TypeError(f"outputs: expected a list of names or a dict of arrays, got {outputs!r}")
    return names, None


def _restore(model: Any, options: Dict[str, Any]) -> Model:
    """The arguments with which pickle creates a model."""
    return Model(model, **options)


_shared_executor: Optional["concurrent.futures.ThreadPoolExecutor"] = None
_executor_owner = 0


def _executor() -> "concurrent.futures.ThreadPoolExecutor":
    """Threads for background predictions, started on first use. A forked child starts its own."""
    global _shared_executor, _executor_owner
    if _shared_executor is None or _executor_owner != os.getpid():
        import concurrent.futures

        _shared_executor = concurrent.futures.ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="moka")
        _executor_owner = os.getpid()
    return _shared_executor


def compile_model(model: Union[str, "os.PathLike[str]", ModelAsset], destination: Union[str, "os.PathLike[str]"]) -> str:
    """Compiles a model into the folder `destination` (X.mlmodelc; new or empty), which is complete in itself.

    Returns the folder's path. Raises what loading raises; InvalidArgumentError, IOError."""
    folder = os.fspath(destination)
    if isinstance(model, ModelAsset):
        _moka.compile_asset(model.specification, model.blobs, folder)
    else:
        _moka.compile_model(os.path.expanduser(os.fspath(model)), folder)
    return folder


__all__: List[str] = ["Intermediate", "Model", "ModelAsset", "compile_model"]

"""Loading and predicting."""

import os
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Union

import numpy as np

from . import _moka
from ._description import ModelDescription
from ._moka import ComputePlan, LoadTimes, ModelStructure, State

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


class ModelAsset:
    """Core ML's MLModelAsset: a model in memory.

    specification: the bytes of an .mlmodel file. blobs: weight files by the name that the program gives them, e.g.
    {"weights/weight.bin": data}.
    """

    def __init__(self, specification: bytes, blobs: Optional[Mapping[str, bytes]] = None) -> None:
        if not isinstance(specification, (bytes, bytearray, memoryview)):
            raise TypeError(f"specification: expected bytes, got {type(specification).__name__}")
        self.specification = bytes(specification)
        self.blobs = {name: bytes(data) for name, data in (blobs or {}).items()}


class Intermediate(NamedTuple):
    """What one operation computed: its name in the model, the name of the value, the elements."""

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
    """A Core ML model, loaded. Immutable; predict may be called from many threads at once.

    model: path of an .mlmodel file, an .mlpackage or an .mlmodelc folder; the bytes of an .mlmodel; or a ModelAsset.
    compute_units: "ALL", "CPU_ONLY", "CPU_AND_GPU" or "CPU_AND_NE", or coremltools' ComputeUnit.
    function: name of the function to load; None: the default one.
    precision: "at_least" (types are the minimum precision, as Core ML says) or "exact" (round to each type).
    threads: of one prediction; 0: one for each core, or of processors.
    processors: numbers of those where threads run that help the calling one, which stays where it is bound; empty: where
    that one may run.
    memory_budget: bytes that the model's own numbers may make moka allocate; 0: no limit.
    optimize: run the passes.
    device: only this device and "reference"; None: by compute_units.
    kernel_cache: file of measured times by which kernels are chosen: a path, "default" (the user's own) or "off"; None:
    what the environment variable MOKA_KERNEL_CACHE says, else off. A file that is damaged or of another machine or build
    is not used; explain's remarks tell.
    measure_kernels: "no"; "missing": time the kernels of shapes that the cache does not have, and write it; "all": anew.
    cache: folder that keeps weights packed for kernels: the first load of a file writes them, later ones map them; a path,
    "default" (the user's own) or "off"; None: what the environment variable MOKA_CACHE says, else off.
    pinned_kernels: kernels by names of operations, or by shapes as explain says them.

    Raises MalformedModelError, UnsupportedError, NotFoundError, IOError, OutOfBudgetError; TypeError, ValueError.
    """

    def __init__(
        self,
        model: Union[str, "os.PathLike[str]", bytes, ModelAsset],
        *,
        compute_units: Any = "ALL",
        function: Optional[str] = None,
        precision: str = "at_least",
        threads: int = 0,
        processors: Sequence[int] = (),
        memory_budget: int = 0,
        optimize: bool = True,
        device: Optional[str] = None,
        kernel_cache: Union[str, "os.PathLike[str]", None] = None,
        measure_kernels: str = "no",
        pinned_kernels: Optional[Mapping[str, str]] = None,
        cache: Union[str, "os.PathLike[str]", None] = None,
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
        c.optimize = optimize
        c.device = device or ""
        c.kernel_cache = os.path.expanduser(os.fspath(kernel_cache or ""))
        c.cache = os.path.expanduser(os.fspath(cache or ""))
        c.measure_kernels = _MEASURE[measure_kernels]
        c.pinned_kernels = dict(pinned_kernels or {})
        if isinstance(model, (bytes, bytearray, memoryview)):
            model = ModelAsset(bytes(model))
        if isinstance(model, ModelAsset):
            core = _moka.Model.load_asset(model.specification, model.blobs, c)
        elif isinstance(model, (str, os.PathLike)):
            core = _moka.Model.load(os.path.expanduser(os.fspath(model)), c)
        else:
            raise TypeError(f"expected a path, bytes or a ModelAsset, got {type(model).__name__}")
        self._set(core)

    def _set(self, core: "_moka.Model") -> None:
        self._core = core
        self._plain: Optional[_moka.Model] = None

    @classmethod
    def from_mil(cls, text: str, blobs: Optional[Mapping[str, bytes]] = None) -> "Model":
        """A program in the text form of MIL; `blobs` are the weight files that BLOBFILE names."""
        self = cls.__new__(cls)
        self._set(_moka.Model.from_mil(text, dict(blobs or {}), _moka.ModelConfiguration()))
        return self

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
        """The file that kernel_cache stands for; empty: none."""
        return self._core.kernel_cache_file

    @property
    def cache_file(self) -> str:
        """The file that keeps this model's packed weights; empty: none."""
        return self._core.cache_file

    def predict(
        self,
        inputs: Union[Mapping[str, Any], Sequence[Mapping[str, Any]]],
        *,
        outputs: Optional[Mapping[str, np.ndarray]] = None,
        state: Optional[State] = None,
    ) -> Any:
        """Predicts; the interpreter lock is released meanwhile.

        inputs: a dict of values by feature name, or a list of such dicts. Multi-arrays take numpy arrays of any type
        and strides (used in place when row-major and of the model's own type), whatever has DLPack or the buffer
        protocol, lists and numbers; images take PIL images or uint8 arrays of shape (H, W), (H, W, 3 or 4); strings,
        dictionaries and sequences take str, dict and list. None: no value, for optional inputs.
        outputs: writable arrays of the declared element type and shape to write to (output backings).
        state: from new_state(); required by stateful models.

        Returns a dict of every output, or a list of dicts. Multi-arrays are numpy arrays of the declared element type,
        images PIL images (arrays without Pillow), classes int or str, probabilities a dict.
        Raises TypeError (kind of a value), InvalidArgumentError (a ValueError: names, shapes, sizes), DataError.
        """
        if isinstance(inputs, (list, tuple)):
            if outputs is not None:
                raise TypeError("outputs: expected None for a list of inputs")
            return [self._core.predict(item, None, state) for item in inputs]
        if not isinstance(inputs, dict) and isinstance(inputs, Mapping):
            inputs = dict(inputs)
        return self._core.predict(inputs, outputs if outputs is None else dict(outputs), state)

    def predict_future(
        self, inputs: Mapping[str, Any], *, state: Optional[State] = None
    ) -> "concurrent.futures.Future[Dict[str, Any]]":
        """Starts a prediction on another thread and returns its Future."""
        return _executor().submit(self.predict, inputs, state=state)

    async def predict_async(self, inputs: Mapping[str, Any], *, state: Optional[State] = None) -> Dict[str, Any]:
        """As predict, without blocking the event loop."""
        import asyncio  # with ssl eight megabytes, which most programs do without

        return await asyncio.wrap_future(self.predict_future(inputs, state=state))

    def new_state(self) -> State:
        """New buffers for a stateful model, zero-filled. Core ML's make_state."""
        return self._core.new_state()

    state = new_state

    def explain(self, inputs: Optional[Mapping[str, Any]] = None, *, measure: bool = False) -> ComputePlan:
        """Where every operation runs, which devices refused it and why, what was folded and fused, for the shapes of
        `inputs` (None: the default ones). measure: also times one prediction."""
        return self._core.compute_plan(None if inputs is None else dict(inputs), measure)

    def intermediates(
        self, inputs: Mapping[str, Any], *, state: Optional[State] = None, optimized: bool = False
    ) -> Iterator[Intermediate]:
        """Predicts and gives what every operation computed, in order. optimized: what runs after the passes and the
        planner, where fused and folded operations no longer show."""
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
        return (Intermediate(*item) for item in core.intermediates(dict(inputs), state))

    def structure(self) -> ModelStructure:
        """Functions and operations, layers, or the models of a pipeline, as the file says it."""
        return self._core.structure()

    def mil(self, *, optimized: bool = False) -> str:
        """The program as MIL text: as imported, or after the passes."""
        return self._core.mil(optimized)

    def random_inputs(self, seed: int = 1) -> Dict[str, Any]:
        """Inputs of the default shapes filled with reproducible numbers."""
        return _moka.random_inputs(self._core.function, seed)

    def __repr__(self) -> str:
        return f"<moka.Model {self._core.description.type} '{self._core.function.name}'>"

    def _repr_html_(self) -> str:
        return self.description._repr_html_()


_shared_executor: Optional["concurrent.futures.ThreadPoolExecutor"] = None
_executor_owner = 0


def _executor() -> "concurrent.futures.ThreadPoolExecutor":
    """Threads for predictions in the background, started when first needed; a forked child starts its own."""
    global _shared_executor, _executor_owner
    if _shared_executor is None or _executor_owner != os.getpid():
        import concurrent.futures

        _shared_executor = concurrent.futures.ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="moka")
        _executor_owner = os.getpid()
    return _shared_executor


def compile_model(model: Union[str, "os.PathLike[str]", ModelAsset], destination: Union[str, "os.PathLike[str]"]) -> str:
    """Compiles a model into the folder `destination` (X.mlmodelc; new or empty), which needs no other file.

    Returns the folder's path. Raises what loading raises; InvalidArgumentError, IOError."""
    folder = os.fspath(destination)
    if isinstance(model, ModelAsset):
        _moka.compile_asset(model.specification, model.blobs, folder)
    else:
        _moka.compile_model(os.path.expanduser(os.fspath(model)), folder)
    return folder


__all__: List[str] = ["Intermediate", "Model", "ModelAsset", "compile_model"]

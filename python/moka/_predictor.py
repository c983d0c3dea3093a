# SPDX-License-Identifier: Apache-2.0
"""The functions of a loaded model: its description, predictions, and how they run."""

import functools
import time
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Union

import numpy as np

from . import _log, _moka
from ._arrays import as_columns, as_inputs
from ._description import ModelDescription
from ._moka import Cancellation, ComputePlan, FeatureDescription, LoadTimes, ModelStructure, State

if TYPE_CHECKING:
    import concurrent.futures

#: Files are read as they are: pictures and sounds must fit the model.
_PLAIN = _moka.Reading(False, "scaleFill", 0, False)


class _Deadline(float):
    """A timeout in seconds that counts from when it was made."""

    def __init__(self, timeout: float) -> None:
        self.time = time.monotonic() + float(timeout)


def limits_of(timeout: Optional[float], cancellation: Optional[Cancellation]) -> "_moka.Limits":
    """Raises ValueError (a timeout that is negative or not a number), TypeError."""
    if cancellation is not None and not isinstance(cancellation, Cancellation):
        raise TypeError(f"cancellation: expected a moka.Cancellation, got {type(cancellation).__name__}")
    if timeout is None:
        return _moka.Limits(cancellation, None)
    if not isinstance(timeout, (int, float)) or isinstance(timeout, bool):
        raise TypeError(f"timeout: expected seconds, got {timeout!r}")
    if not timeout >= 0:
        raise ValueError(f"timeout: expected seconds, got {timeout}")
    end = timeout.time if isinstance(timeout, _Deadline) else time.monotonic() + timeout
    return _moka.Limits(cancellation, min(end, 9e9))


class Intermediate(NamedTuple):
    """The result of one operation: the operation's name in the model, the value's name, the elements."""

    operation: str
    value: str
    array: np.ndarray


class Predictor:
    """Model's methods that need the loaded model alone, and not the file that it came from."""

    _core: "_moka.Model"
    #: The same model without passes, which intermediates() loads on first use.
    _plain: "Optional[_moka.Model]" = None

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
    def parameters(self) -> "List[_moka.ParameterDescription]":
        """The weights that the argument `parameters` names and the function reads."""
        return self._core.parameters

    def parameter(self, name: str) -> np.ndarray:
        """A copy of a parameter's value. Raises NotFoundError."""
        return self._core.parameter(name)

    @property
    def description(self) -> ModelDescription:
        """Inputs, outputs, states and metadata; a table in notebooks."""
        return ModelDescription(self._core.description, self._core.function)

    @property
    def update_description(self) -> Optional["_moka.UpdateDescription"]:
        """What the model can learn: layers, losses, parameters with their ranges, training inputs. None unless it is updatable.

        Raises MalformedModelError where the file breaks a rule of Core ML for updates."""
        return self._core.description.update

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
        timeout: Optional[float] = None,
        cancellation: Optional[Cancellation] = None,
    ) -> Any:
        """Predicts. Releases the interpreter lock while it computes.

        inputs: a dict of values by feature name, or an object with such names: a row of a pandas table, a named tuple, a
        record. A list of these is a batch, whose items are predicted in parallel. Multi-arrays accept numpy arrays of any
        type, byte order and strides (used without a copy if they are row-major and of the model's own type), tensors,
        objects with DLPack or the buffer protocol, lists, numbers, and files of sound (.wav) and numbers (.npy, .json,
        .txt); integers take whole numbers that fit. Images accept PIL images, uint8 arrays of shape (H, W) or (H, W, 3 or 4),
        float16 and float32 arrays of shape (H, W), picture files, and moka.PixelBuffer in any size, which has a fit of its own. A file is a path, an open file or, for pictures, its bytes. Strings, dictionaries and sequences accept str, dict and list. None means
        no value, for optional inputs.
        outputs: names of the wanted outputs; operations that only other outputs need do not run. Or writable arrays of the
        declared element type and shape to write to (output backings); images are written as input images are given.
        state: from new_state(); required by stateful models.
        resize: resize pictures to a size that the model accepts. fit: how to resize, "scaleFill" (the default), "scaleFit" or
        "centerCrop"; implies resize.
        rate: resample sound files to this many samples per second; 0: keep their rate.
        pad: append silence to sounds that are too short for the model, and cut the end of longer ones.
        timeout: seconds from this call on after which the prediction raises DeadlineExceededError, a TimeoutError.
        cancellation: what ends the prediction with CancelledError, on another thread's request. Both are looked at between
        operations on the CPU and before each submission to a GPU, and leave a state as it was before.

        Returns a dict of every output, or a list of dicts. Multi-arrays are numpy arrays of the declared element type,
        images PIL images (arrays without Pillow; mode F for half floats), classes int or str, probabilities a dict.
        Raises TypeError (kind of a value), InvalidArgumentError (a ValueError: names, shapes, sizes), DataError.
        """
        started = time.perf_counter()
        names, backings = ((), None) if outputs is None else _wanted(outputs)
        reading = _PLAIN
        if resize or fit is not None or rate or pad:
            reading = _moka.Reading(resize or fit is not None, fit or "scaleFill", rate, pad)
        limits = None if timeout is None and cancellation is None else limits_of(timeout, cancellation)
        if type(inputs) is not dict:
            inputs = as_inputs(inputs)
        if inputs is None:
            raise TypeError("expected a dict of inputs by name, got None")
        if not isinstance(inputs, (list, tuple)):
            result: Any = self._core.predict(inputs, backings, state, names, reading, limits)
        elif backings is not None:
            raise TypeError("outputs: expected names or None for a list of inputs")
        else:
            result = self._core.predict_batch([as_inputs(item) for item in inputs], state, names, reading, limits)
        _log.predicted(started)
        return result

    def predict_rows(
        self,
        table: Any,
        *,
        outputs: Optional[Sequence[str]] = None,
        state: Optional[State] = None,
        timeout: Optional[float] = None,
        cancellation: Optional[Cancellation] = None,
    ) -> Dict[str, Any]:
        """Predicts every row of a table. Releases the interpreter lock while it computes.

        table: a pandas or Arrow table or a mapping, with a column for each input by name; optional inputs may be
        missing. Columns are arrays whose first axis counts the rows, or lists of strings. Or a 2-D array, whose columns
        are the model's single array or its numbers in order. Row-major arrays of the model's own element type, which
        is float64 for most classic models, are used without a copy.

        outputs: names of the wanted columns. state: of stateful models, whose rows then run one after another. timeout,
        cancellation: as in predict, for the whole table.

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
        limits = None if timeout is None and cancellation is None else limits_of(timeout, cancellation)
        names, backings = _wanted(outputs)
        if backings is not None:
            raise TypeError("outputs: expected names of columns, got a dict")
        result = self._core.predict_rows(columns, state, names, limits)
        _log.predicted(started)
        return result

    def predict_future(
        self, inputs: Mapping[str, Any], **options: Any
    ) -> "concurrent.futures.Future[Dict[str, Any]]":
        """Queues a prediction, which a thread of the library makes, and returns its Future. Options are those of predict; a
        timeout counts from this call and also ends the waiting. Predictions with the same state run one after another.
        Cancelling the Future helps only before the prediction begins: a cancellation ends it later, too. Custom layers and
        inputs must not wait for another Future: all threads of the queue may then wait for one that has not begun."""
        from concurrent.futures import Future  # slow to import, and most programs do not need it

        if options.get("timeout") is not None:
            options["timeout"] = _Deadline(options["timeout"])
        limits = limits_of(options.get("timeout"), options.get("cancellation"))
        future: "concurrent.futures.Future[Dict[str, Any]]" = Future()
        _moka.queue_work(functools.partial(_run, future, self.predict, inputs, options), options.get("state"), limits)
        return future

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
        """As predict, but does not block the event loop. Cancelling the task, as asyncio.wait_for and asyncio.timeout do,
        ends the prediction, too."""
        import asyncio  # with ssl it takes eight megabytes, and most programs do not need it

        cancellation = options.pop("cancellation", None) or Cancellation()
        try:
            return await asyncio.wrap_future(self.predict_future(inputs, cancellation=cancellation, **options))
        except asyncio.CancelledError:
            cancellation.cancel()
            raise

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
        ranges: Optional[Mapping[str, Sequence[float]]] = None,
    ) -> ComputePlan:
        """Where every operation runs, which devices refused it and why, and which operations were folded and fused.
        Applies to the shapes of `inputs` (None: the default shapes) and to the wanted `outputs` (None: all). measure:
        also times predictions and reports the medians. ranges: the lowest and highest number that array inputs may
        have, by name; remarks tell which ones a narrower integer type lacks. Displays as a table in notebooks."""
        names, _ = _wanted(outputs)
        given = None if inputs is None else as_inputs(inputs)
        numbers = {name: (float(low), float(high)) for name, (low, high) in (ranges or {}).items()}
        return self._core.compute_plan(given, measure, names, numbers)

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
        """Reproducible inputs that the model can run, of the default shapes if the model can run those. Raises what predict
        raises for the default shapes when no others are found either."""
        return self._core.random_inputs(seed)


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


def _run(
    future: "concurrent.futures.Future[Any]",
    predict: Callable[..., Any],
    inputs: Any,
    options: Dict[str, Any],
    raise_refusal: Callable[[], None],
) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        raise_refusal()
        result = predict(inputs, **options)
    except BaseException as error:
        future.set_exception(error)
        del future  # the error's traceback holds this frame
    else:
        future.set_result(result)

# SPDX-License-Identifier: Apache-2.0
"""The classes with which coremltools loads and predicts."""

# mypy: disable-error-code="import-untyped,import-not-found"

import os
import shutil
import tempfile
import time
import weakref
from typing import Any, Dict, List, Optional, Tuple

import numpy as np

from .. import _moka
from .._asset import compile_quietly
from .._configuration import units, usual
from . import _devices, _plan
from ._values import checked, from_moka, outputs, runtime_errors

__all__ = ["_MLModelProxy", "_MLModelAssetProxy", "_State"]

#: iOS 26.
_SPECIFICATION_VERSION = 10
_SMALL = 64 << 10  # bytes
_HINTS = {
    "reshapeFrequency": ("Frequent", "Infrequent"),
    "specializationStrategy": ("Default", "FastPrediction"),
    "allowLowPrecisionAccumulationOnGPU": ("True", "False"),
}


def _remove(folder: str, owner: int) -> None:
    # A forked child also drops its copies, but only the process that created the files removes them.
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def _new_folder(stem: str) -> str:
    return os.path.join(tempfile.mkdtemp(prefix="moka_"), (stem or "model") + ".mlmodelc")


def _stem(path: str) -> str:
    return os.path.splitext(os.path.basename(path.rstrip("/")))[0]


def _compile(path: str) -> str:
    """A new temporary folder with the compiled model."""
    folder = _new_folder(_stem(path))
    try:
        with runtime_errors():
            compile_quietly(path, folder)
            return folder
    except RuntimeError as e:
        shutil.rmtree(os.path.dirname(folder), ignore_errors=True)
        raise RuntimeError(f'Error compiling model: "{e}".') from e


def _state(path: str) -> Tuple[Tuple[Any, ...], ...]:
    """What changes whenever the content of the model does; empty where that cannot be told. Each file's entry ends with
    the time of its last change in ns. Small files count by what they hold, because coremltools writes the manifest of a
    package whenever it opens the package."""
    found: List[Tuple[Any, ...]] = []
    try:
        for folder, folders, files in os.walk(path) if os.path.isdir(path) else [("", [], [path])]:
            if any(os.path.islink(os.path.join(folder, name)) for name in folders):
                return ()
            for name in (os.path.join(folder, name) for name in files):
                s = os.stat(name)
                if s.st_size <= _SMALL:
                    with open(name, "rb") as file:
                        found.append((name, file.read(), 0))
                else:
                    found.append((name, (s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns), s.st_ctime_ns))
    except OSError:
        return ()
    return tuple(sorted(found, key=lambda entry: entry[0]))


def _is_settled(state: Tuple[Tuple[Any, ...], ...]) -> bool:
    """Whether the next change of a file will have another time stamp than its last one."""
    now = time.time_ns()
    # Some file systems keep whole seconds, or every other one.
    return bool(state) and all(now - s[-1] > (20_000_000 if s[-1] % 1_000_000_000 else 2_500_000_000) for s in state)


class _Compiled:
    """A compiled model in a temporary folder, which goes with the last model that was loaded from it. The models of an
    unchanged package have one, because models of one file share their weights."""

    _all: "weakref.WeakValueDictionary[Any, _Compiled]" = weakref.WeakValueDictionary()

    def __init__(self, path: str) -> None:
        self.folder = _compile(path)
        self.state = _state(self.folder)
        self.models = 1
        self.is_handed_out = False
        weakref.finalize(self, _remove, os.path.dirname(self.folder), os.getpid())

    @classmethod
    def of(cls, path: str) -> "_Compiled":
        source = os.path.realpath(path)
        state = _state(source)
        there = cls._all.get((os.getpid(), state))
        if there is not None and not there.is_handed_out and there.state == _state(there.folder):
            there.models += 1
            return there
        settled = _is_settled(state)
        made = cls(path)
        if settled and _state(source) == state:
            cls._all[os.getpid(), state] = made
        return made


class _MLModelAssetProxy:
    """A compiled model by path, or a specification and weight files in memory."""

    def __init__(self, path: str = "", specification: bytes = b"", blobs: Optional[Dict[str, bytes]] = None) -> None:
        self.path = path
        self.specification = specification
        self.blobs = dict(blobs or {})


class _State:
    """The buffers of a stateful model."""

    def __init__(self, state: _moka.State) -> None:
        self._state = state

    def read_state(self, name: str) -> np.ndarray:
        """A copy of the buffer `name`; float16 is converted to float32."""
        value: np.ndarray = from_moka(self._state.read(name))
        return value

    def write_state(self, name: str, value: np.ndarray) -> None:
        """Converts and copies `value` into the buffer `name`."""
        if not isinstance(value, np.ndarray):
            raise RuntimeError(f"state '{name}': expected an array, got {type(value).__name__}")
        with runtime_errors():
            self._state.write(name, value)


class _MLModelProxy:
    def __init__(
        self,
        path: str,
        compute_units: str,
        function_name: str,
        optimization_hints: Dict[str, str],
        asset: Any = None,
    ) -> None:
        started = time.perf_counter_ns()
        if not isinstance(path, str):
            raise TypeError(f"path: expected str, got {type(path).__name__}")
        for key, value in (optimization_hints or {}).items():
            if value not in _HINTS.get(key, (value,)):
                raise RuntimeError(f"optimization hint '{key}': expected one of {_HINTS[key]}, got '{value}'")
        with runtime_errors():
            configuration = usual()
            configuration.compute_units = units(compute_units)
            configuration.function_name = function_name or ""
        asset = getattr(asset, "__proxy__", asset)
        self._compiled: Optional[_Compiled] = None
        if asset is None and not path.rstrip("/").endswith(".mlmodelc"):
            # A copy: the file may be deleted or overwritten while the model is in use.
            self._compiled = _Compiled.of(path)
            path = self._compiled.folder
        if asset is None:
            asset = _MLModelAssetProxy(path)
        if not isinstance(asset, _MLModelAssetProxy):
            raise TypeError(f"asset: expected a model asset, got {type(asset).__name__}")
        self._asset, self._path = asset, asset.path
        with runtime_errors():
            if self._path:
                self._model = _moka.Model.load(self._path, configuration)
            else:
                self._model = _moka.Model.load_asset(asset.specification, asset.blobs, configuration)
        self._load_duration = time.perf_counter_ns() - started
        self._predict_duration: Optional[int] = None

    def _owned(self, folder: str) -> str:
        weakref.finalize(self, _remove, os.path.dirname(folder), os.getpid())
        return folder

    def predict(self, data: Dict[str, Any], state: Optional[_State] = None) -> Dict[str, Any]:
        started = time.perf_counter_ns()
        data = checked(data)
        if state is not None and not isinstance(state, _State):
            raise TypeError(f"state: expected one made by make_state, got {type(state).__name__}")
        with runtime_errors():
            try:
                values = outputs(self._model.predict(data, None, None if state is None else state._state))
            except _moka.DataError as e:
                program = self._model.description.type == "mlProgram"
                kind = "ML Program" if program else "a neural network model"
                raise RuntimeError(f"Unable to compute the prediction using {kind}. {e}") from e
        self._predict_duration = time.perf_counter_ns() - started
        return values

    def batchPredict(self, data: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
        if not isinstance(data, (list, tuple)):
            raise TypeError(f"expected a list of dicts, got {type(data).__name__}")
        started = time.perf_counter_ns()
        if data and all(isinstance(item, dict) for item in data):
            try:
                values = [outputs(v) for v in self._model.predict_batch([checked(item) for item in data])]
                self._predict_duration = time.perf_counter_ns() - started
                return values
            except Exception:
                pass  # predicting items one by one shows which one failed, as Core ML does
        results = []
        total = 0
        for i, item in enumerate(data):
            try:
                results.append(_MLModelProxy.predict(self, item))
            except RuntimeError as e:
                raise RuntimeError(f"batch item {i}: {e}") from e
            total += self._predict_duration or 0
        if results:
            self._predict_duration = total
        return results

    def newState(self) -> _State:
        return _State(self._model.new_state())

    def get_compiled_model_path(self) -> str:
        """The folder of the loaded model. A temporary folder lives as long as this object, and is its own: callers may
        move it away."""
        if not self._path:
            folder = _new_folder("model")
            with runtime_errors():
                _moka.compile_asset(self._asset.specification, self._asset.blobs, folder)
            self._path = self._owned(folder)
        elif self._compiled is not None and self._compiled.models > 1:
            self._path = self._owned(shutil.copytree(self._path, _new_folder(_stem(self._path))))
            self._compiled = None
        elif self._compiled is not None:
            self._compiled.is_handed_out = True
        return self._path

    def get_load_duration_in_nano_seconds(self) -> Optional[int]:
        return self._load_duration

    def get_last_predict_duration_in_nano_seconds(self) -> Optional[int]:
        return self._predict_duration

    @staticmethod
    def compileModel(path: str) -> str:
        return _compile(path)

    @staticmethod
    def maximum_supported_specification_version() -> int:
        return _SPECIFICATION_VERSION

    @staticmethod
    def auto_set_specification_version(specification: bytes) -> bytes:
        """The specification with the lowest version that supports it. Core ML's own rule is not public, so this keeps the
        version that the converter wrote."""
        if not isinstance(specification, bytes):
            raise TypeError(f"expected the bytes of a specification, got {type(specification).__name__}")
        return specification

    @staticmethod
    def create_model_asset_from_path(path: str) -> Any:
        from coremltools.models.model import MLModelAsset

        if not os.path.isdir(path):
            raise RuntimeError(f"'{path}': expected the folder of a compiled model, found none")
        return MLModelAsset(_MLModelAssetProxy(path))

    @staticmethod
    def create_model_asset_from_memory(spec_data: bytes, blob_mapping: Optional[Dict[str, bytes]] = None) -> Any:
        from coremltools.models.model import MLModelAsset

        if not isinstance(spec_data, bytes):
            raise TypeError(f"expected the bytes of a specification, got {type(spec_data).__name__}")
        return MLModelAsset(_MLModelAssetProxy("", spec_data, blob_mapping))

    @staticmethod
    def get_available_compute_devices() -> List[Any]:
        return _devices.all_devices()

    @staticmethod
    def get_all_compute_devices() -> List[Any]:
        return _devices.all_devices()

    @staticmethod
    def get_model_structure(path: str) -> Any:
        with runtime_errors():
            return _plan.structure_of(_moka.Model.structure_of(path))

    @staticmethod
    def get_compute_plan(path: str, compute_units: str) -> Any:
        with runtime_errors():
            configuration = usual()
            configuration.compute_units = units(compute_units)
            return _plan.plan_of(_moka.Model.load(path, configuration))

# SPDX-License-Identifier: Apache-2.0
"""Converts numbers of other libraries to numpy arrays that the compiled part accepts."""

import sys
from collections.abc import Mapping
from typing import Any, Dict, List, Optional, Sequence

import numpy as np


def _is_of(value: Any, package: str) -> bool:
    """Whether the value's class comes from a package. Does not import the package."""
    return package in sys.modules and type(value).__module__.partition(".")[0] == package


def _of_torch(tensor: Any) -> np.ndarray:
    """A torch tensor as a numpy array. torch has element types, devices and gradients that numpy lacks."""
    tensor = tensor.detach()
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.layout != sys.modules["torch"].strided:
        tensor = tensor.to_dense()
    if tensor.is_floating_point() and tensor.element_size() <= 2 and tensor.dtype is not sys.modules["torch"].float16:
        tensor = tensor.float()
    array: np.ndarray = tensor.cpu().resolve_conj().resolve_neg().numpy()
    return array


def as_array(value: Any) -> np.ndarray:
    """An aligned array of a type that multi-arrays support, in the machine's byte order. Raises TypeError, ValueError."""
    if hasattr(value, "detach") and _is_of(value, "torch"):
        value = _of_torch(value)
    elif hasattr(value, "toarray") and not hasattr(value, "__array__"):
        value = value.toarray()
    elif not isinstance(value, np.ndarray) and hasattr(value, "__dlpack__"):
        try:
            value = np.from_dlpack(value)
        except (BufferError, RuntimeError, TypeError):
            pass  # for example bfloat16, or memory on another device
    if isinstance(value, (list, tuple)) and any(hasattr(v, "detach") for v in value):
        value = [as_array(v) for v in value]
    array = np.asarray(value)
    kind = array.dtype.kind
    if kind == "O":
        if any(isinstance(v, (complex, np.complexfloating)) for v in array.flat):
            raise TypeError("numbers expected, got complex ones")
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"numbers expected, got objects such as {_first_strange(array)!r}") from None
    elif kind == "V" and array.dtype.names is None:
        array = array.astype(np.float32)  # bfloat16, float8 and small integers of ml_dtypes
    elif kind not in "biufV" or array.dtype.names is not None:
        raise TypeError(f"numbers expected, got an array of {array.dtype}")
    elif kind == "f" and array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if not array.flags.aligned:
        array = array.copy()
    return np.ascontiguousarray(array) if array.ndim else array


def _first_strange(array: np.ndarray) -> Any:
    for item in array.flat:
        try:
            float(item)
        except (TypeError, ValueError):
            return item
    return None


def as_dict(value: Any) -> Optional[Dict[Any, Any]]:
    """A mapping or a pandas Series as a dict; None for other values."""
    if isinstance(value, Mapping):
        return dict(value)
    if _is_of(value, "pandas") and hasattr(value, "to_dict") and getattr(value, "ndim", 0) == 1:
        return dict(value.to_dict())
    return None


def as_list(value: Any) -> Optional[List[Any]]:
    """A one-dimensional array or a pandas Series as a list; None for other values."""
    if getattr(value, "ndim", 0) == 1 and hasattr(value, "tolist"):
        return list(value.tolist())
    return None


def as_inputs(value: Any) -> Any:
    """The inputs of one prediction as a dict. Accepts mappings, rows of pandas tables, records and named tuples, by their
    fields. Returns anything else unchanged."""
    if isinstance(value, dict):
        return value
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "_asdict"):
        return value._asdict()
    if isinstance(value, np.void) and value.dtype.names:
        return {name: value[name] for name in value.dtype.names}
    if _is_of(value, "pandas"):
        if getattr(value, "ndim", 0) == 2:
            if len(value) != 1:
                raise ValueError(f"expected a table of one row, got {len(value)}; predict_rows takes tables")
            value = value.iloc[0] if value.dtypes.nunique() == 1 else {c: value[c].iloc[0] for c in value.columns}
        missing = sys.modules["pandas"].NA
        return {name: float("nan") if item is missing else item for name, item in value.items()}
    return value


def _column(values: Any) -> Any:
    """A column of a table: an array of numbers or a list of strings."""
    if not isinstance(values, np.ndarray) and _is_of(values, "pandas"):
        values = values.to_numpy(dtype=np.float64, na_value=np.nan) if values.dtype.kind in "biuf" else values.to_numpy()
    array = np.asarray(values)
    if array.dtype.kind in "OUST":
        return [str(v) for v in array] if array.ndim == 1 and all(isinstance(v, str) for v in array) else as_array(array)
    return array if array.dtype.kind in "biuf" and array.dtype.isnative and array.flags.aligned else as_array(array)


def _of_matrix(matrix: Any, inputs: Sequence[Any]) -> Dict[str, Any]:
    """The columns of a matrix: the single array of the model, or its numbers in order."""
    matrix = matrix if isinstance(matrix, np.ndarray) else as_array(matrix)
    if len(inputs) == 1 and inputs[0].type == "MultiArray":
        return {inputs[0].name: matrix}
    if len(inputs) != matrix.shape[1]:
        raise ValueError(f"a table of {matrix.shape[1]} columns: the model has {len(inputs)} inputs")
    return {f.name: matrix[:, i] for i, f in enumerate(inputs)}


def as_columns(value: Any, inputs: Sequence[Any]) -> Optional[Dict[str, Any]]:
    """The columns of a pandas or Arrow table, or of a 2-D array, by input name. None for other values.
    A table without a column for the model's single array is that array."""
    if type(value) is np.ndarray and value.ndim == 2:
        return _of_matrix(value, inputs)
    if _is_of(value, "pandas") and getattr(value, "ndim", 0) == 2:
        if len(inputs) == 1 and inputs[0].name not in value.columns:
            return _of_matrix(value.to_numpy(), inputs)
        return {str(name): _column(value[name]) for name in value.columns}
    if _is_of(value, "pyarrow") and hasattr(value, "column_names"):
        columns = {n: np.asarray(value.column(n)) for n in value.column_names}
        if len(inputs) == 1 and inputs[0].name not in columns:
            return _of_matrix(np.column_stack(list(columns.values())), inputs)
        return {n: _column(c) for n, c in columns.items()}
    if not isinstance(value, (list, tuple, Mapping, str, bytes)) and getattr(value, "ndim", 0) == 2:
        return _of_matrix(value, inputs)
    return None

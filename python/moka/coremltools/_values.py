# SPDX-License-Identifier: Apache-2.0
"""Converts values between coremltools and moka. Core ML's own module supports fewer types of arrays."""

from contextlib import contextmanager
from typing import Any, Dict, Iterator

import numpy as np

from .. import _moka

_NO_VALUE = "value type not convertible"


@contextmanager
def runtime_errors() -> Iterator[None]:
    """Raises RuntimeError, as Core ML's own module does for every invalid value or model."""
    try:
        yield
    except _moka.Error as e:
        # Messages name moka's functions, but users of coremltools know its own names.
        text = str(e).replace("new_state", "make_state")
        if text == str(e):
            raise
        raise type(e)(text) from e
    except (TypeError, ValueError, OSError) as e:
        raise RuntimeError(str(e)) from e


def from_moka(value: Any) -> Any:
    """Converts float16 arrays to float32."""
    if isinstance(value, np.ndarray) and value.dtype == np.float16:
        return value.astype(np.float32)
    return value


def outputs(values: Dict[str, Any]) -> Dict[str, Any]:
    return {name: from_moka(value) for name, value in values.items()}


def checked(data: Any) -> Dict[str, Any]:
    """The inputs of a prediction: a dict with values of kinds that a feature can have."""
    if not isinstance(data, dict):
        raise TypeError(f"expected a dict of inputs by name, got {type(data).__name__}")
    for name, value in data.items():
        if isinstance(value, np.ndarray) and value.dtype.kind not in "biuf":
            raise RuntimeError(f"input '{name}': Unsupported array type: {value.dtype}.")
        if value is not None and not isinstance(value, (np.ndarray, np.generic, int, float, str, bytes, dict, list, tuple)):
            if not (hasattr(value, "mode") or hasattr(value, "__array__") or hasattr(value, "__dlpack__")):
                try:
                    memoryview(value)
                except TypeError:
                    raise RuntimeError(f"input '{name}': {_NO_VALUE}: {type(value).__name__}") from None
    return data

# SPDX-License-Identifier: Apache-2.0
"""The other sides of `verify`."""

import os
import shutil
import sys
from typing import Any, Callable, Dict, List, Mapping, Optional

from . import _checks, _moka, _reference
from ._keys import Key


def function(model: "_moka.Model", predict: Callable[[Dict[str, Any]], Mapping[str, Any]]) -> "_moka.verify.Reference":
    """A function with the inputs and outputs of the model."""
    name = getattr(predict, "__name__", type(predict).__name__)
    return _moka.verify.reference_like(model, name, lambda inputs: dict(predict(inputs)))


def same_model(
    path: str, function: Optional[str], device: Optional[str], precision: Optional[str], key: Optional[Key]
) -> "_moka.verify.Reference":
    name = "the same model" + (f", device {device}" if device else "") + (f", precision {precision}" if precision else "")
    return _moka.verify.reference_of_model(_moka.Model.load(path, _checks.configured(function, key, device, precision)), name)


def opened(path: str, model: "_moka.Model", function: Optional[str], key: Optional[Key]) -> "_moka.verify.Reference":
    """A model, a program of another framework or a recording, by the path's ending."""
    if path.lower().endswith((".onnx", ".pt2")) and not _is_for_another_python():
        return _program(path, {feature.name for feature in model.function.inputs})
    if key is None or not function:
        return _moka.verify.open_reference(path, model, _checks.configured(function, key), "")
    try:
        other = _checks.function_of_other(path, function, key)
    except _moka.Error:  # not a model, or one that the next line refuses too
        other = ""
    return _moka.verify.open_reference(path, model, _checks.configured(None, key), other)


def _is_for_another_python() -> bool:
    """Whether MOKA_PYTHON names another interpreter. Links stay: those of virtual environments lead to the same program."""
    named = os.environ.get("MOKA_PYTHON", "")
    return named != "" and os.path.abspath(shutil.which(named) or named) != os.path.abspath(sys.executable)


def _program(path: str, names: "set[str]") -> "_moka.verify.Reference":
    """names: the model's inputs. Optional inputs of the program that are not among them are left out."""
    if not os.path.isfile(path):
        raise _moka.IOError(f"{path}: no such file")
    try:
        program = _reference.opened(path)
        inputs, outputs = program.describe()
    except Exception as e:
        reason = str(e) if isinstance(e, _reference.RefusedError) else f"{type(e).__name__}: {' '.join(str(e).split())[:600]}"
        raise _moka.IOError(f"{path}: {reason}") from e
    numbers = {one["name"]: n for n, one in enumerate(inputs) if not one.get("optional") or one["name"] in names}

    def predict(values: Dict[str, Any]) -> Dict[str, Any]:
        # Programs of PyTorch take their inputs in order.
        found = program.run({n: values[name] for name, n in numbers.items() if name in values})
        return {one["name"]: value for one, value in zip(outputs, found)}

    def arrays(features: List[Dict[str, Any]]) -> List[Any]:
        return [(one["name"], one["type"], one["shape"], bool(one.get("optional"))) for one in features]

    kept = [one for one in inputs if one["name"] in numbers]
    return _moka.verify.reference_of_arrays(f"{path} ({program.engine})", arrays(kept), arrays(outputs), predict)

# SPDX-License-Identifier: Apache-2.0
"""Compares a model's answers with those of another model or a recording.

    from moka import verify

    result = verify.against("small.mlpackage", "net.onnx", min_snr=40)
    assert result.passed, result.failures
"""

import json
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from . import _checks, _custom, _moka, _references
from ._keys import Key
from .edit import Editable

#: A function that gets one prediction's inputs by name and returns its outputs by name.
Predict = Callable[[Dict[str, Any]], Mapping[str, Any]]


@dataclass(frozen=True)
class OutputError:
    """How an output differs from the reference's."""

    name: str
    #: The name that the reference has for it.
    reference: str
    elements: int
    equal: bool
    #: Signal to noise in dB, infinite for equal outputs; None without numbers.
    snr: Optional[float]
    #: Absolute, and relative to the reference's element; None without numbers.
    largest_error: Optional[float]
    largest_relative_error: Optional[float]
    #: Elements that are NaN or infinite on one side only.
    unlike: int
    #: Compared labels, and those that are the same.
    labels: int
    same_labels: int
    #: In which part of the predictions the reference's best class is the best, and among the best five; None without classes.
    top_1: Optional[float]
    top_5: Optional[float]
    #: What cannot be compared, such as shapes that differ.
    faults: List[str]

    @classmethod
    def _of(cls, found: Mapping[str, Any]) -> "OutputError":
        labels, classes, faults = found.get("labels", {}), found.get("agreement", {}), found.get("faults", [])
        counted, same = labels.get("compared", 0), labels.get("same", 0)
        has_numbers = "largestError" in found
        equal = bool(found["equal"]) if has_numbers else counted == same and not faults
        return cls(
            name=found["name"],
            reference=found["reference"],
            elements=found["elements"],
            equal=equal,
            snr=_checks.number(found, "snr", equal) if has_numbers else None,
            largest_error=found.get("largestError"),
            largest_relative_error=found.get("largestRelativeError"),
            unlike=found.get("unlike", 0),
            labels=counted,
            same_labels=same,
            top_1=classes.get("top1"),
            top_5=classes.get("top5"),
            faults=faults,
        )


@dataclass(frozen=True)
class Shape:
    """The comparison for inputs of one shape."""

    #: "" for given and recorded inputs.
    name: str
    predictions: int
    outputs: List[OutputError]
    #: Why the model or the reference cannot predict; "" if both can.
    fault: str


@dataclass(frozen=True)
class Verification:
    """The result of `against`."""

    reference: str
    passed: bool
    #: The least signal to noise in dB, and whether it follows from the precision of the models.
    min_snr: float
    min_snr_is_default: bool
    shapes: List[Shape]
    #: Outputs without a partner.
    uncompared: List[str]
    #: A sentence for each missed threshold.
    failures: List[str]
    #: All that `moka verify --json` prints.
    facts: Dict[str, Any] = field(repr=False)


def against(
    model: Editable,
    reference: Union[Editable, Predict, None] = None,
    *,
    device: Optional[str] = None,
    precision: Optional[str] = None,
    inputs: Sequence[Mapping[str, Any]] = (),
    runs: int = 3,
    seed: int = 1,
    ranges: Optional[Mapping[str, Tuple[float, float]]] = None,
    shapes: str = "default",
    map: Optional[Mapping[str, str]] = None,
    pixel_scale: float = 1.0,
    pixel_bias: float = 0.0,
    min_snr: Optional[float] = None,
    max_error: Optional[float] = None,
    top_k: Optional[int] = None,
    function: Optional[str] = None,
    plugins: Sequence[_checks.FilePath] = (),
    key: Optional[Key] = None,
) -> Verification:
    """Predicts with both sides and compares every output.

    model: a path, a `moka.build.Source` or a message. reference: another one, the path of an ONNX file (which needs onnxruntime), of a
    PyTorch program (.pt2), or of answers in .npz, a folder of .npy, or .json; or a function that gets a dict of inputs and returns a dict
    of outputs with the model's names. device, precision: without a reference, the same model on this device, such as "reference", or by this
    rule, "at-least" or "exact".
    inputs: dicts of arrays, images, numbers, texts or dicts; without them, `runs` random ones of each shape from `seed`, in `ranges`, low and high
    by name. shapes: "default", or "all" for every enumerated shape and the corners of ranges. map: names of the reference's features, by
    names of the model's. pixel_scale, pixel_bias: what pixels become where the reference takes an array for an image.
    min_snr: in dB; by default 80, 40 with float16, 20 with compressed weights. max_error: absolute. top_k: the reference's best class must be
    among the k best. function: of the model and, where it has several, of the reference. key: of encrypted models, as for `moka.Model`.

    Everything runs in this process, and no other one is started: custom layers and operations that it registered work on both sides, and
    ONNX files and PyTorch programs run here. Only where the environment variable MOKA_PYTHON names another interpreter, that one runs them.
    plugins: Python files or shared libraries that register more layers, as `moka.load_plugin` does; their registrations end with the call.
    An exception of the reference is a fault of the shape. Raises InvalidArgumentError for arguments that do not fit the model, Error for a
    model or reference that cannot be loaded, and what `moka.load_plugin` raises."""
    if (reference is not None) == (device is not None or precision is not None):
        raise _moka.InvalidArgumentError("expected either a reference (--against), or device or precision (--against-device, --against-precision)")
    if shapes not in ("default", "all"):
        raise _moka.InvalidArgumentError(f"shapes: expected 'default' or 'all', got {shapes!r}")
    with _checks.folder() as folder, _custom.plugins(plugins):
        path = folder.model(model)
        loaded = _checks.loaded(path, function, key)
        if callable(reference):
            other = _references.function(loaded, reference)
        elif reference is not None:
            other = _references.opened(folder.model(reference), loaded, function, key)
        else:
            other = _references.same_model(path, function, device, precision, key)
        how = _moka.verify.Options()
        how.runs, how.seed, how.all_shapes = runs, seed, shapes == "all"
        how.map, how.ranges = dict(map or {}), _checks.number_ranges(ranges)
        how.pixels = (float(pixel_scale), float(pixel_bias))
        how.min_snr, how.max_error, how.top_k = min_snr, max_error, top_k or 0
        return _of({"model": path, **json.loads(_moka.verify.verify(loaded, other, list(inputs), how))})


def _of(found: Dict[str, Any]) -> Verification:
    return Verification(
        reference=found["reference"],
        passed=found["passed"],
        min_snr=found["minSnr"],
        min_snr_is_default=found["minSnrIsDefault"],
        shapes=[
            Shape(one["shape"], one["predictions"], [OutputError._of(output) for output in one["outputs"]], one.get("fault", ""))
            for one in found["shapes"]
        ],
        uncompared=found["uncompared"],
        failures=found["failures"],
        facts=found,
    )

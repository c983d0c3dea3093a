# SPDX-License-Identifier: Apache-2.0
"""Shows where two models differ.

    from moka import diff

    found = diff.structure("net.mlpackage", "other.mlpackage")
    for difference in found.differences:
        print(found.a[difference.a].name, difference.parameter, difference.first, difference.second)

    values = diff.values("net.mlpackage", "small.mlpackage", inputs=[{"x": array}])
    if values.first:
        print(values.first.operation, values.first.difference)
"""

import json
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from . import _checks, _custom, _moka
from ._keys import Key
from .edit import Editable
from .verify import OutputError

Comparison = _moka.diff.Comparison
Difference = _moka.diff.Difference
Feature = _moka.diff.Feature
NumberDifference = _moka.diff.NumberDifference
Operation = _moka.diff.Operation


@dataclass(frozen=True)
class ComparedValue:
    """A value of the first model beside its partner."""

    operation: str
    value: str
    #: The partner's name; "" without one.
    other: str
    #: Beyond the tolerance.
    differs: bool
    #: Without a partner, and for values that are not arrays, the rest is None.
    equal: Optional[bool]
    #: The largest absolute difference, and that relative to the greatest magnitude of the value.
    difference: Optional[float]
    relative: Optional[float]
    #: Signal to noise in dB, infinite for equal values.
    snr: Optional[float]

    @classmethod
    def _of(cls, found: Mapping[str, Any]) -> "ComparedValue":
        has_form = "equal" in found
        return cls(
            operation=found["operation"],
            value=found["value"],
            other=found["other"],
            differs=found["differs"],
            equal=found.get("equal"),
            difference=found.get("difference"),
            relative=found.get("relative"),
            snr=_checks.number(found, "snr", found["equal"]) if has_form else None,
        )


@dataclass(frozen=True)
class ValueDiff:
    """Values side by side."""

    #: Whether both predict and no value differs.
    same: bool
    predictions: int
    #: The largest difference that a value may have, relative to its greatest magnitude.
    tolerance: float
    #: Values of the first model that have a partner, and those of them that are equal, and that differ.
    compared: int
    equal: int
    differ: int
    #: The first value that differs although nothing that it is computed from does; None when all are equal.
    first: Optional[ComparedValue]
    #: All such values.
    origins: List[ComparedValue]
    #: Values from the first one to an output.
    trail: List[ComparedValue]
    outputs: List[OutputError]
    #: Outputs that differ in shape or labels.
    failures: List[str]
    #: Why a model cannot predict; "" if both can.
    fault: str
    #: All that `moka diff --json` prints.
    facts: Dict[str, Any] = field(repr=False)


def structure(a: Editable, b: Editable, *, function_a: str = "", function_b: str = "") -> Comparison:
    """Compares operations and weights of two models, or of two functions. Predicts nothing.

    a, b: paths of models of any kind, `moka.build.Source`s or messages. function_a, function_b: the default functions if empty.
    Raises what opening a model raises, and NotFoundError for a function."""
    with _checks.folder() as folder:
        return _moka.diff.compare_models(folder.model(a), folder.model(b), function_a, function_b, _moka.ModelConfiguration())


def values(
    a: Editable,
    b: Optional[Editable] = None,
    *,
    device: Optional[str] = None,
    precision: Optional[str] = None,
    inputs: Sequence[Mapping[str, Any]] = (),
    runs: int = 1,
    seed: int = 1,
    ranges: Optional[Mapping[str, Tuple[float, float]]] = None,
    map: Optional[Mapping[str, str]] = None,
    pixel_scale: float = 1.0,
    pixel_bias: float = 0.0,
    tolerance: Optional[float] = None,
    optimized: bool = False,
    function: Optional[str] = None,
    other_function: Optional[str] = None,
    plugins: Sequence[_checks.FilePath] = (),
    key: Optional[Key] = None,
) -> ValueDiff:
    """Predicts with both sides and finds the first operation whose value differs.

    a, b: as for `structure`. device, precision: the other side runs on this device, such as "reference", or by this rule, "at-least" or
    "exact"; without b it is the same model. inputs, runs, seed, ranges, map, pixel_scale, pixel_bias: as for `moka.verify.against`.
    tolerance: the largest difference of a value, relative to its greatest magnitude; by default what rounding and compression explain.
    optimized: compares the optimized programs, in which operations are fused. function, other_function: of a and b.

    Everything runs in this process, and no other one is started: custom layers and operations that it registered work on both sides.
    plugins: Python files or shared libraries that register more, as `moka.load_plugin` does; their registrations end with the call. key: of
    encrypted models, as for `moka.Model`. Raises InvalidArgumentError for arguments that do not fit the models, Error for a model that
    cannot be loaded, and what `moka.load_plugin` raises."""
    if b is None and device is None and precision is None and other_function is None:
        raise _moka.InvalidArgumentError("expected another model, or device, precision or other_function for the same one")
    if tolerance is not None and not tolerance >= 0:
        raise _moka.InvalidArgumentError(f"tolerance: expected a number of at least 0, got {tolerance!r}")
    with _checks.folder() as folder, _custom.plugins(plugins):
        models = [folder.model(a)] + ([] if b is None else [folder.model(b)])
        has_structure = b is not None or other_function is not None
        ours = _checks.configured(function, key)
        wanted = other_function or (_checks.function_of_other(models[-1], function, key) if b is not None else function)
        theirs = _checks.configured(wanted, key, device, precision)
        found = _moka.diff.compare_models(models[0], models[-1], ours.function_name, theirs.function_name, ours)
        if found.fault:
            raise _moka.UnsupportedError(found.fault)
        # Every operation is computed, so that each value of one model has one in the other.
        ours.optimize = theirs.optimize = optimized or not has_structure
        how = _moka.diff.Options()
        how.runs, how.seed, how.tolerance, how.same_names = runs, seed, tolerance, not has_structure
        how.map, how.ranges = dict(map or {}), _checks.number_ranges(ranges)
        how.pixels = (float(pixel_scale), float(pixel_bias))
        one, two = _moka.Model.load(models[0], ours), _moka.Model.load(models[-1], theirs)
        return _of(json.loads(_moka.diff.values(one, two, found, list(inputs), how)))


def _of(found: Dict[str, Any]) -> ValueDiff:
    listed = {name: [ComparedValue._of(one) for one in found.get(name, [])] for name in ("origins", "trail")}
    return ValueDiff(
        same=found["same"],
        predictions=found["predictions"],
        tolerance=found["tolerance"],
        compared=found.get("compared", 0),
        equal=found.get("equal", 0),
        differ=found.get("differ", 0),
        first=ComparedValue._of(found["first"]) if "first" in found else None,
        outputs=[OutputError._of(one) for one in found.get("outputs", [])],
        failures=found.get("failures", []),
        fault=found.get("fault", ""),
        facts=found,
        **listed,
    )

# SPDX-License-Identifier: Apache-2.0
"""How a model is loaded: Model's keyword arguments become a ModelConfiguration."""

import operator
import os
from typing import Any, Dict, List, Mapping, Sequence, Tuple, Union

from . import _moka

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

_PRECISIONS = ("at_least", "exact")

#: Fields of ModelConfiguration that have the argument's name and type.
_SAME = ("low_memory", "pack_while_loading", "optimize", "strict")
#: Arguments that are a path, a word or None.
_PATHS = ("kernel_cache", "cache", "rates", "neural_engine_rules")


def units(compute_units: Any) -> "_moka.ComputeUnits":
    if isinstance(compute_units, _moka.ComputeUnits):
        return compute_units
    name = getattr(compute_units, "name", compute_units)
    if isinstance(name, str) and name.upper() in _UNITS:
        return _UNITS[name.upper()]
    raise ValueError(f"compute_units: expected one of {', '.join(_UNITS)}, got {compute_units!r}")


def _number(name: str, value: Any, most: int = 2**63 - 1) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: expected a whole number, got {value!r}") from None
    if not 0 <= number <= most:
        raise ValueError(f"{name}: expected a number from 0 to {most}, got {number}")
    return number


def _pins(pins: Union[str, Mapping[str, str], None]) -> List["_moka.Pin"]:
    if isinstance(pins, str):
        return _moka.parse_pins(pins)
    if pins is not None and not isinstance(pins, Mapping):
        raise TypeError(f"pins: expected a dict of devices by operations, or text, got {type(pins).__name__}")
    return [_moka.Pin(*pin) for pin in (pins or {}).items()]


def _names(names: Union[str, Sequence[str]]) -> Tuple[str, ...]:
    names = (names,) if isinstance(names, str) else tuple(names)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"parameters: expected names, got {name!r}")
    return names


def picklable(arguments: Dict[str, Any]) -> Dict[str, Any]:
    """The same arguments as plain values: names instead of enumerators, paths as text with the user's folder in full."""
    return {
        **arguments,
        "compute_units": units(arguments["compute_units"]).name,
        "processors": tuple(arguments["processors"]),
        "parameters": _names(arguments["parameters"]),
        "pinned_kernels": dict(arguments["pinned_kernels"] or {}),
        **{name: os.path.expanduser(os.fspath(arguments[name] or "")) or None for name in _PATHS},
    }


def usual() -> "_moka.ModelConfiguration":
    """The configuration where nothing is chosen: environment variables decide. Raises ValueError."""
    precision = os.environ.get("MOKA_PRECISION") or "at_least"
    if precision not in _PRECISIONS:
        raise ValueError(f"MOKA_PRECISION: expected {' or '.join(_PRECISIONS)}, got '{precision}'")
    c = _moka.ModelConfiguration()
    c.exact_precision = precision == "exact"
    c.device = os.environ.get("MOKA_DEVICE", "")
    return c


def configuration(arguments: Dict[str, Any]) -> "_moka.ModelConfiguration":
    """arguments: from picklable()."""
    precision, measure = arguments["precision"], arguments["measure_kernels"]
    if precision not in (None, *_PRECISIONS):
        raise ValueError(f"precision: expected 'at_least' or 'exact', got {precision!r}")
    if measure not in _MEASURE:
        raise ValueError(f"measure_kernels: expected one of {', '.join(_MEASURE)}, got {measure!r}")
    c = usual()
    for name in _SAME:
        setattr(c, name, arguments[name])
    for name in _PATHS:
        setattr(c, name, arguments[name] or "")
    c.compute_units = _UNITS[arguments["compute_units"]]
    c.function_name = arguments["function"] or ""
    if precision is not None:
        c.exact_precision = precision == "exact"
    c.threads = _number("threads", arguments["threads"], 1024)
    c.processors = [_number("processors", processor, 2**31 - 1) for processor in arguments["processors"]]
    c.memory_budget = _number("memory_budget", arguments["memory_budget"])
    if arguments["idle_memory"] is not None:
        c.idle_memory = _number("idle_memory", arguments["idle_memory"])
    c.device = arguments["device"] or c.device
    c.measure_kernels = _MEASURE[measure]
    c.pinned_kernels = arguments["pinned_kernels"]
    c.pins = _pins(arguments["pins"])
    c.parameters = list(arguments["parameters"])
    return c

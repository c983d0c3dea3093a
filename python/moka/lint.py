# SPDX-License-Identifier: Apache-2.0
"""Finds what will go wrong in a model before it ships.

    from moka import lint

    report = lint.check("net.mlpackage", ranges={"x": (-1, 1)}, target="ios16")
    for finding in report.findings:
        print(finding.level, finding.rule, finding.place, finding.reason)

The arguments of `check` and `fix`:
    model: the path of a model of any kind.
    only, ignore: names of rules; without `only`, all of `rules()`.
    target: the system that must run the model, such as "ios16"; without it, that of its specification version.
    float16: judges float32 values and weights of ML programs as if they were converted to float16.
    ranges: the numbers that array inputs may have, low and high by name.
    inputs: dicts of values, as for Model.predict, with which values are measured; without them, random ones.
    predict: False runs nothing, so that nothing is measured and no sizes are tried.
    function: only this one of an ML program.

They raise NotFoundError, IOError or MalformedModelError when there is no model at all, and InvalidArgumentError for a rule, target,
range or function that does not exist.
"""

from typing import Any, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from . import _files, _moka
from .build import Path, Source

Finding = _moka.lint.Finding
Report = _moka.lint.Report
Rule = _moka.lint.Rule


class Repair(NamedTuple):
    """A repaired model, and what was done: rules and texts."""

    model: Source
    done: List[Tuple[str, str]]


def _options(only: Sequence[str], ignore: Sequence[str], target: Optional[str], float16: bool,
             ranges: Optional[Mapping[str, Tuple[float, float]]], predict: bool, function: Optional[str]) -> "_moka.lint.Options":
    options = _moka.lint.Options()
    options.only = list(only)
    options.ignore = list(ignore)
    options.target = target or ""
    options.as_float16 = float16
    options.ranges = {name: (float(low), float(high)) for name, (low, high) in (ranges or {}).items()}
    options.predict = predict
    options.function = function or ""
    return options


def rules() -> List[Rule]:
    """All rules, by name."""
    return list(_moka.lint.rules())


def check(model: Path, *, only: Sequence[str] = (), ignore: Sequence[str] = (), target: Optional[str] = None, float16: bool = False,
          ranges: Optional[Mapping[str, Tuple[float, float]]] = None, inputs: Sequence[Mapping[str, Any]] = (), predict: bool = True,
          function: Optional[str] = None) -> Report:
    """The findings about a model, the worst first. A model that cannot be loaded is a finding."""
    options = _options(only, ignore, target, float16, ranges, predict, function)
    return _moka.lint.check(_files.path_of(model), options, [dict(item) for item in inputs])


def fix(model: Path, *, only: Sequence[str] = (), ignore: Sequence[str] = (), target: Optional[str] = None, float16: bool = False,
        ranges: Optional[Mapping[str, Tuple[float, float]]] = None, inputs: Sequence[Mapping[str, Any]] = (), predict: bool = True,
        function: Optional[str] = None) -> Repair:
    """Repairs what the rules find and can repair. The result predicts the same, which is tested unless predict is False."""
    options = _options(only, ignore, target, float16, ranges, predict, function)
    source, done = _moka.lint.fix(_files.path_of(model), options, [dict(item) for item in inputs])
    return Repair(Source._of(source), done)

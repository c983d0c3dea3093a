# SPDX-License-Identifier: Apache-2.0
"""Plans, their steps and times as text, and as HTML for notebooks."""

from html import escape
from typing import Any, List, Sequence, Tuple

#: Steps that a plan shows at each end when it has more.
_ENDS = 20
_HEADERS = ("operation", "type", "device", "kernel", "time", "result")


def duration(seconds: float) -> str:
    """'1.25 ms': three digits and a unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def size(count: int) -> str:
    """'12.5 MB'."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.3g} {unit}"
    return f"{count} bytes"


def _time(step: Any) -> str:
    if step.measured_seconds >= 0:
        return duration(step.measured_seconds)
    return f"~{duration(step.estimated_seconds)}" if step.estimated_seconds > 0 else ""


def _row(step: Any) -> Tuple[str, ...]:
    name = "  " * step.depth + step.name
    kernel = step.kernel + "".join(f" + {f}" for f in step.fused)
    return name, step.type, step.device, kernel, _time(step), ", ".join(step.outputs)


def _rows(plan: Any) -> Tuple[List[Tuple[str, ...]], int]:
    """The rows to show, and how many are left out in their middle."""
    steps = plan.operations
    left_out = len(steps) - 2 * _ENDS
    if left_out <= 0:
        return [_row(s) for s in steps], 0
    return [_row(s) for s in [*steps[:_ENDS], *steps[-_ENDS:]]], left_out


def _summary(plan: Any) -> str:
    parts = [f"{len(plan.operations)} steps for {plan.operations_in_source} operations"]
    if plan.folded:
        parts.append(f"{plan.folded} folded")
    parts += [f"arena {size(plan.arena_bytes)}", f"packed weights {size(plan.packed_bytes)}"]
    if plan.measured_seconds >= 0:
        parts.append(f"measured {duration(plan.measured_seconds)}")
    return ", ".join(parts)


def _text_table(rows: Sequence[Tuple[str, ...]], left_out: int) -> List[str]:
    widths = [max(len(r[i]) for r in [_HEADERS, *rows]) for i in range(len(_HEADERS))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(r, widths)).rstrip() for r in [_HEADERS, *rows]]
    if left_out:
        lines.insert(1 + _ENDS, f"... {left_out} more")
    return lines


def plan_text(plan: Any) -> str:
    return "\n".join(["ComputePlan: " + _summary(plan), *_text_table(*_rows(plan))])


def plan_html(plan: Any) -> str:
    rows, left_out = _rows(plan)
    head = "".join(f"<th>{h}</th>" for h in _HEADERS)
    body = ["<tr>" + "".join(f"<td>{escape(c)}</td>" for c in r) + "</tr>" for r in rows]
    if left_out:
        body.insert(_ENDS, f"<tr><td colspan={len(_HEADERS)}>... {left_out} more</td></tr>")
    return f"<table><caption>{escape(_summary(plan))}</caption><tr>{head}</tr>{''.join(body)}</table>"


def step_text(step: Any) -> str:
    kernel = f" ({step.kernel})" if step.kernel else ""
    time = _time(step)
    return f"{step.type} '{step.name}' on {step.device}{kernel}" + (f", {time}" if time else "")


def _facts_html(facts: Sequence[Tuple[str, str]]) -> str:
    return "<table>" + "".join(f"<tr><th>{k}</th><td>{escape(v)}</td></tr>" for k, v in facts) + "</table>"


def step_html(step: Any) -> str:
    facts = [(h, c.strip()) for h, c in zip(_HEADERS, _row(step)) if c.strip()]
    facts += [(k, v) for k, v in (("layout", step.layout), ("note", step.note), ("chosen by", step.chosen_by)) if v]
    facts += [("unit", f"{b.device}: {b.refusal or duration(b.seconds)}") for b in step.bids if len(step.bids) > 1]
    if step.reason:
        facts.append(("because", step.reason))
    return _facts_html(facts + [("refused", r) for r in step.refusals])


def _time_facts(times: Any) -> List[Tuple[str, str]]:
    names = ("open", "import", "passes", "plan", "pack", "total")
    facts = [(n, duration(getattr(times, n + "_" if n == "import" else n))) for n in names]
    held = (("packed", times.packed_bytes), ("from cache", times.cached_bytes), ("shared", times.shared_bytes))
    facts += [(n, size(b)) for n, b in held if b]
    return facts


def times_text(times: Any) -> str:
    return "LoadTimes: " + ", ".join(f"{k} {v}" for k, v in _time_facts(times))


def times_html(times: Any) -> str:
    return _facts_html(_time_facts(times))


def feature_html(feature: Any) -> str:
    facts = [("name", feature.name), ("type", feature.formatted_type), ("description", feature.description)]
    return _facts_html([(k, v) for k, v in facts if v] + [("optional", "yes")] * feature.optional)

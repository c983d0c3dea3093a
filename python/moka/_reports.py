# SPDX-License-Identifier: Apache-2.0
"""Plans, reports and times as text, and as HTML for notebooks."""

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


def _settings(report: Any) -> List[Tuple[str, ...]]:
    """A heading, and a row for each setting."""
    rows: List[Tuple[str, ...]] = [("setting", "load", "first", "prediction", "p90", "peak memory", "slowest operation")]
    for s in report.settings:
        if s.failure:
            rows.append((s.name, s.failure, "", "", "", "", ""))
            continue
        slowest = max(s.operations, key=lambda o: o.share or 0.0, default=None)
        told = f"{slowest.name} ({slowest.type}), {slowest.share or 0.0:.0%}" if slowest else ""
        times = [duration(t) for t in (s.load.median, s.first, s.steady.median, s.steady.p90)]
        rows.append((s.name, *times, size(s.memory.peak_bytes), told))
    return rows


def _aligned(rows: Sequence[Tuple[str, ...]]) -> List[str]:
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    return ["  ".join(c.ljust(w) for c, w in zip(r, widths)).rstrip() for r in rows]


def report_text(report: Any) -> str:
    return "\n".join([f"Report of {report.model.name}, {report.date}", *_aligned(_settings(report))])


def frame(page: str, title: str) -> str:
    """A page in a cell of a notebook."""
    return (
        f'<iframe srcdoc="{escape(page)}" sandbox="allow-scripts" title="{escape(title)}" '
        'style="width: 100%; height: 640px; border: 1px solid #8884; border-radius: 8px"></iframe>'
    )


def report_html(report: Any) -> str:
    return frame(report.page, f"Report of {report.model.name}")


def _changes(comparison: Any) -> List[Tuple[str, ...]]:
    rows: List[Tuple[str, ...]] = [("setting", "", "before", "after", "change", "noise", "verdict")]
    for c in comparison.changes:
        before, after = (duration(v) if c.unit == "s" else size(round(v)) for v in (c.before, c.after))
        rows.append((c.setting, c.what, before, after, f"{c.change:+.1%}", f"{c.noise:.1%}", c.verdict))
    return rows


def _result(comparison: Any) -> str:
    count = comparison.regressions
    return "nothing is worse beyond noise" if count == 0 else f"{count} regression" + "s" * (count > 1)


def comparison_text(comparison: Any) -> str:
    return "\n".join(["Comparison: " + _result(comparison), *_aligned(_changes(comparison)), *comparison.remarks])


def comparison_html(comparison: Any) -> str:
    head, *body = _changes(comparison)
    rows = ["<tr>" + "".join(f"<th>{escape(c)}</th>" for c in head) + "</tr>"]
    rows += ["<tr>" + "".join(f"<td>{escape(c)}</td>" for c in r) + "</tr>" for r in body]
    remarks = "".join(f"<li>{escape(text)}</li>" for text in comparison.remarks)
    return f"<table><caption>{_result(comparison)}</caption>{''.join(rows)}</table><ul>{remarks}</ul>"

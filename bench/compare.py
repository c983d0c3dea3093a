#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares two results files of the same machine. Exits with 1 when something became slower, larger or wrong.

compare.py OLD.json NEW.json               Moka
compare.py OLD.json NEW.json --engines all --json

A change counts when it exceeds both a floor and three times the noise of the two runs. Noise is the standard error of the
median, from the spread between a run's rounds (for loads: between processes). If both files have peers of the same version,
their drift shows whether the machine itself changed.
"""

import argparse
import json
import math
import sys

from harness import samples, stats
from harness.samples import MOKA

TIMES_NOISE = 3
FLOORS = {"steady": 0.02, "first answer": 0.10, "peak memory": 0.05}  # relative; smaller changes do not count
UNKNOWN_NOISE = 0.05  # for a value that was measured once


def measure(sample, what):
    """(value, relative noise) of one measure of a sample."""
    if what == "steady":
        return samples.p50(sample), stats.noise(sample["steady"]["rounds"])
    if what == "first answer":
        return samples.first_answer(sample), stats.noise([a + b for a, b in zip(sample["load"], sample["first"])])
    return sample["peak"], 0.0


def change(old, new, what, floor):
    """The change of one measure, with the verdict "same", "worse" or "better"."""
    (before, noise_before), (after, noise_after) = measure(old, what), measure(new, what)
    noise = math.hypot(*(UNKNOWN_NOISE if n is None else n for n in (noise_before, noise_after)))
    ratio = after / before
    limit = max(floor, TIMES_NOISE * noise)
    verdict = "worse" if ratio > 1 + limit else "better" if ratio < 1 / (1 + limit) else "same"
    return {"measure": what, "old": before, "new": after, "ratio": ratio, "limit": limit, "verdict": verdict}


def outcome(sample):
    if sample["status"] == "failed":
        return "failed"
    return "right" if samples.is_right(sample) else "wrong"


def changes_of(old, new, floors=FLOORS):
    """The changes of one sample that both files have."""
    found = []
    rank = {"right": 0, "wrong": 1, "failed": 2}
    before, after = outcome(old), outcome(new)
    if rank[after] != rank[before]:
        found.append({"measure": "answer", "old": before, "new": after, "ratio": None, "limit": None,
                      "verdict": "worse" if rank[after] > rank[before] else "better", "reason": new.get("reason", "")})
    if old["status"] == new["status"] == "measured":
        found += [change(old, new, what, floor) for what, floor in floors.items()]
    return found


def compared(old, new, engines, floors=FLOORS):
    """(changes, lost): the changes of samples in both files, and the keys of samples that the new run should have and lacks."""
    before, after = ({samples.key(s): s for s in data["samples"] if s["engine"] in engines} for data in (old, new))
    changes = []
    for key, sample in before.items():
        if key in after:
            net, engine, threads, precision = key
            for found in changes_of(sample, after[key], floors):
                changes.append({"net": net, "engine": engine, "threads": threads, "precision": precision, **found})
    asked = set(new["settings"]["threads"]), set(new["settings"]["precision"])
    lost = [k for k in before if k not in after and k[0] in new["nets"] and k[1] in new["engines"] and k[2] in asked[0] and k[3] in asked[1]]
    return changes, lost


def drift(old, new):
    """The geometric mean of the changes of unchanged peers' steady times, and the number of samples; None without any."""
    same = [e for e in old["engines"] if e != MOKA and old["engines"][e]["versions"] == new["engines"].get(e, {}).get("versions")]
    moved = [c["ratio"] for c in compared(old, new, same, {"steady": 0})[0] if c["measure"] == "steady"]
    return (stats.geometric_mean(moved), len(moved)) if moved else None


def amount(value, what):
    if isinstance(value, str):
        return value
    return f"{value / 1e6:.1f} MB" if what == "peak memory" else f"{value * 1000:.3f} ms"


def aligned(rows):
    width = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    left = 3
    return "\n".join("  ".join(c.ljust(w) if i < left else c.rjust(w) for i, (c, w) in enumerate(zip(row, width))).rstrip() for row in rows)


def text(changes, lost, machine_drift, every):
    shown = [c for c in changes if every or c["verdict"] != "same"]
    lines = []
    if shown:
        rows = [("net", "sample", "measure", "old", "new", "change", "noise limit", "")]
        for c in shown:
            rows.append((c["net"], f"{c['engine']} {c['precision']} x{c['threads']}", c["measure"], amount(c["old"], c["measure"]),
                         amount(c["new"], c["measure"]), f"{(c['ratio'] - 1) * 100:+.1f} %" if c["ratio"] else "",
                         f"{c['limit'] * 100:.1f} %" if c["limit"] else "", c["verdict"]))
        lines.append(aligned(rows))
    lines += [f"missing in the new file: {net} on {engine}, {threads} threads, {precision}" for net, engine, threads, precision in lost]
    steady = [c["ratio"] for c in changes if c["measure"] == "steady"]
    if steady:
        lines.append(f"steady predictions, geometric mean of {len(steady)}: x{stats.geometric_mean(steady):.3f}")
    if machine_drift:
        lines.append(f"peers that did not change, geometric mean of {machine_drift[1]}: x{machine_drift[0]:.3f}")
    worse = sum(c["verdict"] == "worse" for c in changes) + len(lost)
    lines.append(f"{worse} worse, {sum(c['verdict'] == 'better' for c in changes)} better, {sum(c['verdict'] == 'same' for c in changes)} within noise")
    return "\n".join(lines)


def main(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--engines", default=MOKA, help="names with commas, or all")
    parser.add_argument("--floor", type=float, help="of steady predictions, relative; 0.02 unless given")
    parser.add_argument("--all", action="store_true", help="also what stayed within noise")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(given)
    try:
        old, new = samples.read(options.old), samples.read(options.new)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    floors = dict(FLOORS, **({"steady": options.floor} if options.floor is not None else {}))
    engines = list(old["engines"]) if options.engines == "all" else options.engines.split(",")
    changes, lost = compared(old, new, engines, floors)
    if not changes and not lost:
        parser.error(f"no sample of {', '.join(engines)} is in both files")
    moved = drift(old, new)
    other = {name: (old["machine"].get(name), new["machine"].get(name)) for name in ("cpu", "cpu_model", "cores", "isa", "kernel")
             if old["machine"].get(name) != new["machine"].get(name)}
    if options.json:
        print(json.dumps({"changes": changes, "lost": lost, "drift": moved, "machines_differ": other}, indent=1))
    else:
        for name, (a, b) in other.items():
            print(f"the machines differ in {name}: {a}, {b}")
        print(text(changes, lost, moved, options.all))
    return 1 if lost or any(c["verdict"] == "worse" for c in changes) else 0


if __name__ == "__main__":
    sys.exit(main())

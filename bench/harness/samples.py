# SPDX-License-Identifier: Apache-2.0
"""The format of a results file, and the choice of the best peer in it.

A results file is {"format", "command", "date", "machine", "settings", "engines": {name: {"title", "versions", "reason"}},
"nets": {name: {"title", "family", "goals", "relative_to", "input"}}, "samples": [...], "earlier": {date: command}}. Samples of
earlier runs have the "date" of their run.

A sample is one net on one engine with one number of threads in one precision. Its "status" is "measured", "checked" (outputs
compared, not timed) or "failed" with a "reason". "allowed" is set if rounding the weights alone (the net's "floor") causes a
larger error than the usual limit. Measured samples have "error", "import", "load" and "first" (lists of seconds), "steady"
(stats.summary), "peak" (bytes) and "size". Engines that save data between processes have "cached": the seconds of loads and
first predictions that use the saved data.
"""

import json
import os
import pathlib

FORMAT = 1
MOKA = "moka"
NEAR_FLOOR = 1.1  # relative to the floor: a file's constants differ slightly from those that PyTorch rounds
# Allowed error of outputs against PyTorch's float32, relative to the largest output.
TOLERANCE = {"fp32": 5e-4, "fp16": 2e-3, "nn": 5e-4, "int8": 2e-3, "int4": 2e-3}
# A peer may use its usual precision where the row measures something else.
STANDS_FOR = {"fp32": ("fp32",), "fp16": ("fp16", "fp32"), "nn": ("fp32",), "int8": ("fp16", "fp32"), "int4": ("fp16", "fp32")}
ONLY_WITH_GOAL = ("int8", "int4")  # precisions that are measured only for nets with a goal for them
ANSWERS = "outputs.npz"  # PyTorch's outputs, in a net's folder and in that of a model whose weights were rounded first


def key(sample):
    return sample["net"], sample["engine"], sample["threads"], sample["precision"]


def begin(old, data):
    """Adds what a results file has to the data of a run that begins. Results of other instruction sets, and checks beside times, are dropped.
    So are those of a peer's other version."""
    if old.get("format") != FORMAT or any(old["settings"].get(name) != data["settings"].get(name) for name in ("isa", "check")):
        return data

    def stays(sample):
        engine = sample["engine"]
        return engine == MOKA or engine not in data["engines"] or old["engines"][engine]["versions"] == data["engines"][engine]["versions"]

    kept = [{"date": old["date"], **sample} for sample in old["samples"] if stays(sample)]
    runs = {**old.get("earlier", {}), old["date"]: old["command"]}
    settings = {name: [v for v in every if v in {*old["settings"][name], *data["settings"][name]}]
                for name, every in (("precision", list(TOLERANCE)), ("threads", sorted({*old["settings"]["threads"], *data["settings"]["threads"]})))}
    return {**data, "settings": {**data["settings"], **settings}, "engines": {**old["engines"], **data["engines"]}, "nets": dict(old["nets"]),
            "samples": kept, "earlier": {date: runs[date] for date in runs if any(s["date"] == date for s in kept)}}


def add(data, sample):
    """Adds a sample in place of the one that is there."""
    data["samples"] = [s for s in data["samples"] if key(s) != key(sample)] + [sample]


def allowed(sample, precision=None):
    """The allowed error of the outputs in `precision` (by default the sample's own)."""
    if precision in (None, sample["precision"]) and "allowed" in sample:
        return sample["allowed"]
    return TOLERANCE[precision or sample["precision"]]


def is_right(sample, precision=None):
    error = sample.get("error")
    return error is not None and error <= allowed(sample, precision)


def p50(sample):
    return sample["steady"]["p50"]


def first_answer(sample):
    """Seconds from a file to the first outputs: loading plus the first prediction, the median over the tries."""
    tries = sorted(a + b for a, b in zip(sample["load"], sample["first"]))
    return tries[len(tries) // 2]


def cached_answer(sample):
    """The same in a process that uses data saved by an earlier one. None: the engine saves nothing."""
    tries = sorted(sample.get("cached", ()))
    return tries[len(tries) // 2] if tries else None


def best_peer(samples, net, threads, precision, measure=p50):
    """The peer with the smallest measure among those with correct outputs, or None."""
    candidates = [
        s for s in samples
        if s["net"] == net and s["threads"] == threads and s["engine"] != MOKA and s["precision"] in STANDS_FOR[precision]
        and s["status"] == "measured" and is_right(s, precision)
    ]
    return min(candidates, key=measure, default=None)


def find(samples, net, engine, threads, precision):
    return next((s for s in samples if key(s) == (net, engine, threads, precision)), None)


def read(path):
    data = json.loads(pathlib.Path(path).read_text())
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        found = data.get("format") if isinstance(data, dict) else type(data).__name__
        raise ValueError(f"{path}: expected results of format {FORMAT}, got {found}")
    return data


def rows_of(path):
    """The rows of an earlier run; none where the file does not exist."""
    try:
        return json.loads(pathlib.Path(path).read_text())["rows"]
    except FileNotFoundError:
        return []


def write(path, data):
    """Replaces the file atomically, so that an interrupted run keeps the old one."""
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".part")
    beside.write_text(json.dumps(data, indent=1) + "\n")
    os.replace(beside, path)

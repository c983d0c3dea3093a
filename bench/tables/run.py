#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times predictions of classic models for one row and for a table, on Moka and on the libraries that trained them.

run.py [--out FILE] [--rows 1,10000] [--threads N] [--seconds S] [--rounds N] [--models NAME,...] [--isa SET] [--json]

All engines predict in one process with the same number of threads and take turns, in another order each round. Every answer
is compared with that of the library which trained the model. A table goes in as a row-major array of the type that the engine
likes best (float64 for Moka and scikit-learn, float32 for XGBoost and onnxruntime) and comes out as arrays. The answer for
one row stays what each library returns: numbers and dictionaries of probabilities from Moka, as from Core ML, and arrays from
the others. Exit status 1 when an answer of Moka is wrong.
"""
import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", help="write results here as JSON")
    parser.add_argument("--rows", default="1,10000")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seconds", type=float, default=0.3, help="of each turn of an engine")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--models", default="")
    parser.add_argument("--isa", choices=["base", "avx2", "avx512"], help="the best instruction set that Moka may use")
    parser.add_argument("--page", help="write the tables here as Markdown")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


chosen = options()
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = str(chosen.threads)  # before the libraries are imported
if chosen.isa:
    os.environ["MOKA_MAX_CPU_ISA"] = chosen.isa

import numpy as np  # noqa: E402

from harness import machine, output  # noqa: E402
from models import CASES, data, is_xgboost, to_coreml, to_onnx  # noqa: E402


def library(case, estimator, x):
    """(name, a function that predicts). Probabilities where the model has them, else classes or numbers."""
    if is_xgboost(estimator):
        booster, table = estimator.get_booster(), np.ascontiguousarray(x, np.float32)
        booster.set_param({"nthread": chosen.threads})
        return "xgboost", lambda: booster.inplace_predict(table)
    for part in [estimator, *(step for _, step in getattr(estimator, "steps", []))]:
        if "n_jobs" in part.get_params():
            part.set_params(n_jobs=chosen.threads)
    call = estimator.predict_proba if case.classifier and not case.decides else estimator.predict
    return "scikit-learn", lambda: call(x)


def moka_engine(case, path, x):
    import moka

    model = moka.Model(path, threads=chosen.threads)
    d = model.description
    name = (d.predicted_probabilities_name if not case.decides else d.predicted_feature_name) if case.classifier else model.outputs[0].name
    if len(x) > 1:
        return "moka", lambda: model.predict_rows(x)[name]
    numbers = [f.name for f in model.inputs]
    feed = dict(zip(numbers, x[0])) if len(numbers) > 1 else {numbers[0]: x[0]}
    return "moka", lambda: model.predict(feed)[name]


def onnx_engine(case, path, x):
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = chosen.threads
    session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
    outputs = [o.name for o in session.get_outputs()]
    wanted, table = [outputs[1 if case.classifier and not case.decides else 0]], np.ascontiguousarray(x, np.float32)
    return "onnxruntime", lambda: session.run(wanted, {"x": table})[0]


def error(case, got, expected):
    """The largest difference over the largest magnitude expected; of classes the share that differs."""
    got, expected = np.asarray(list(got.values()) if isinstance(got, dict) else got), np.asarray(expected)
    if got.size != expected.size:
        return float("inf")
    got = got.reshape(expected.shape)
    if case.votes:
        got = got / got.sum(axis=1, keepdims=True)
    if expected.dtype.kind in "iub":
        return float(np.mean(got.astype(np.int64) != expected))
    return float(np.max(np.abs(got - expected)) / max(np.max(np.abs(expected)), 1e-30))


def turn(call, seconds):
    call()
    times, end = [], time.perf_counter() + seconds
    while True:
        begin = time.perf_counter()
        call()
        now = time.perf_counter()
        times.append(now - begin)
        if now >= end:
            return times


def measure(case, folder, rows):
    x, y, classes = data(case.training_rows, 1, case.columns, case.classes)
    estimator = case.train(x, y, classes)
    table = data(max(rows), 2, case.columns, case.classes)[0]
    if case.single:
        table = table.astype(np.float32)
    coreml, onnx = str(folder / f"{case.name}.mlmodel"), str(folder / f"{case.name}.onnx")
    reasons = {}
    try:
        to_coreml(case, estimator, coreml)
    except Exception as e:  # noqa: BLE001
        return [{"model": case.name, "title": case.title, "rows": n, "failed": f"coremltools: {e}"} for n in rows]
    try:
        to_onnx(case, estimator, onnx)
    except Exception as e:  # noqa: BLE001
        reasons["onnxruntime"] = str(e).splitlines()[0]
    out = []
    for n in rows:
        part = np.ascontiguousarray(table[:n])
        engines = dict([library(case, estimator, part), moka_engine(case, coreml, part)])
        if "onnxruntime" not in reasons:
            engines.update([onnx_engine(case, onnx, part)])
        expected = next(iter(engines.values()))()
        times = {name: [] for name in engines}
        shuffled = random.Random(f"{case.name} {n}")
        for _ in range(chosen.rounds):
            for name in shuffled.sample(list(engines), len(engines)):
                times[name] += turn(engines[name], chosen.seconds)
        row = {"model": case.name, "title": case.title, "rows": n, "engines": {}, "reasons": reasons}
        for name, call in engines.items():
            row["engines"][name] = {"p50": statistics.median(times[name]), "min": min(times[name]), "runs": len(times[name]),
                                    "error": error(case, call(), expected)}
        best = min(v["p50"] for k, v in row["engines"].items() if k != "moka")
        row["ratio"] = row["engines"]["moka"]["p50"] / best
        row["right"] = row["engines"]["moka"]["error"] <= case.tolerance
        out.append(row)
        if not chosen.json:
            print(shown(row), flush=True)
    return out


def seconds(v):
    return f"{v * 1e6:.1f} us" if v < 1e-3 else f"{v * 1e3:.2f} ms"


def shown(row):
    cells = "  ".join(f"{k} {seconds(v['p50'])}" for k, v in row["engines"].items())
    return f"{row['model']:18} {row['rows']:>6} rows  {row['ratio']:.2f}  {cells}{'' if row['right'] else '  WRONG'}"


def section(result):
    text = "| model | rows | Moka | XGBoost or scikit-learn | onnxruntime | ratio |\n|---|---:|---:|---:|---:|---:|\n"
    for row in result["rows"]:
        if "failed" in row:
            text += f"| {row['title']} | {row['rows']:,} | {row['failed']} | | | |\n"
            continue
        engines = row["engines"]
        other = engines.get("xgboost") or engines["scikit-learn"]
        onnx = seconds(engines["onnxruntime"]["p50"]) if "onnxruntime" in engines else "does not convert"
        text += (f"| {row['title']} | {row['rows']:,} | {seconds(engines['moka']['p50'])}{'' if row['right'] else ' (wrong)'} | "
                 f"{seconds(other['p50'])} | {onnx} | {row['ratio']:.2f} |\n")
    return text


def page(result):
    facts = result["machine"]
    text = "# Tables of rows\n\n<!-- Made by `make bench-tables`; do not edit. -->\n\n"
    threads = f"{result['threads']} thread{'s' if result['threads'] > 1 else ''}"
    text += (f"Classic models for one row and for a table of {max(r['rows'] for r in result['rows']):,} rows of 20 columns if the model says no other number, on "
             f"{threads} of {facts['cpu']} ({result['date']}; load {result['load']:.1f} when it began). Median times; the ratio is Moka's over "
             f"the fastest other's. `bench/tables/run.py` says how it is measured.\n\n{section(result)}")
    if result["avx2"]:
        text += ("\n## AVX2\n\nThe same with `MOKA_MAX_CPU_ISA=avx2`, in another run. The other libraries use what the processor has.\n\n"
                 f"{section(result['avx2'])}")
    return text


def on_avx2():
    """The result of another process in which Moka uses no more than AVX2; None if it does not here either."""
    with open("/proc/cpuinfo") as f:
        if chosen.isa or " avx512f " not in f.read():
            return None
    again = [sys.executable, __file__, *(a for a in sys.argv[1:] if a != "--json"), "--isa", "avx2", "--json", "--out", "", "--page", ""]
    ran = subprocess.run(again, stdout=subprocess.PIPE, text=True)
    if ran.returncode:
        sys.exit(ran.returncode)
    return json.loads(ran.stdout)


def main():
    import datetime

    cases = [c for c in CASES if not chosen.models or c.name in chosen.models.split(",")]
    result = {"machine": machine.facts(), "threads": chosen.threads, "load": os.getloadavg()[0],
              "date": datetime.date.today().isoformat(), "rows": []}
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            result["rows"] += measure(case, pathlib.Path(folder), [int(n) for n in chosen.rows.split(",")])
    result["avx2"] = on_avx2() if chosen.page else None
    output.write(result, page, chosen)
    wrong = [f"{r['model']} ({r['rows']} rows)" for r in result["rows"] if not r.get("right")]
    if wrong:
        sys.exit(f"wrong or not predicted: {', '.join(wrong)}")


if __name__ == "__main__":
    main()

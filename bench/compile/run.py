#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times compiling models and loading the result, with the program `moka`.

run.py [--program FILE] [--rounds N] [--models NAME,...] [--out FILE] [--page FILE] [--json]

A round compiles each model in a fresh process, writes a copy of its weights file, and loads the compiled model in fresh
processes: without saved packed weights, and with those of an earlier process. Files are in the page cache. Times are medians.
The exit status is 1 when the compiled weights differ from the source.
"""
import argparse
import datetime
import filecmp
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from harness import machine, output  # noqa: E402
from models import MODELS  # noqa: E402

PIECE = 1 << 20  # bytes


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(HERE.parents[1] / "build" / "bin" / "moka"))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--out", help="write results here as JSON")
    parser.add_argument("--page", help="write the table here as Markdown")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def timed(call):
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def copy(source, destination):
    """Writes the bytes anew, as a compiler does; copying within the file system may only link them."""
    with open(source, "rb") as read, open(destination, "wb") as write:
        while piece := read.read(PIECE):
            write.write(piece)


def measure(name, folder, program, rounds):
    def moka(*arguments):
        done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"moka {arguments[0]}: {done.stderr.strip()}")
        return done.stdout

    title, write = MODELS[name]
    first, source, out = folder / f"{name}.mlmodelc", folder / f"{name}.mlpackage", folder / "out"
    write(first)
    moka("decompile", first, source)
    shutil.rmtree(first)
    weights, compiled, cache = source / "Data/com.apple.CoreML/weights/weight.bin", out / first.name, folder / "cache"

    def load(*flags):
        found = json.loads(moka("bench", compiled, "--iterations", "1", "--json", *flags))["load"]
        return found["total"], found["cachedBytes"]

    times = {"compile": [], "copy": [], "load": [], "cached": []}
    for _ in range(rounds):
        shutil.rmtree(out, ignore_errors=True)
        times["compile"].append(timed(lambda: moka("compile", source, out)))
        times["copy"].append(timed(lambda: copy(weights, folder / "copy.bin")))
        (folder / "copy.bin").unlink()
        times["load"].append(load("--cache", "off")[0])
        load("--cache", cache)
        seconds, cached = load("--cache", cache)
        times["cached"].append(seconds)
    same = filecmp.cmp(weights, compiled / "weights" / "weight.bin", shallow=False)
    return {"model": name, "title": title, "bytes": weights.stat().st_size, "same": same, "cachedBytes": cached,
            **{key: {"p50": statistics.median(v), "min": min(v), "runs": len(v)} for key, v in times.items()}}


def milliseconds(summary):
    return f"{summary['p50'] * 1e3:.0f}"


def page(result):
    text = "# Compiling and loading\n\n<!-- Made by `make bench-compile`; do not edit. -->\n\n"
    text += (f"ML programs with float32 weights on {result['threads']} threads of {result['machine']['cpu']} ({result['date']}; load "
             f"{result['load']:.1f} when it began). Median times in milliseconds; `bench/compile/run.py` says how they are measured. Apple's "
             "row is the published time of YOLOv3 on an iPhone.\n\n"
             "| model | weights, MB | compile | copying the weights | load | load with packed weights saved |\n|---|---:|---:|---:|---:|---:|\n")
    for row in result["rows"]:
        text += (f"| {row['title']} | {row['bytes'] / 1e6:.0f} | {milliseconds(row['compile'])} | {milliseconds(row['copy'])} | "
                 f"{milliseconds(row['load'])} | {milliseconds(row['cached'])} |\n")
    return text + "| YOLOv3, Core ML on an iPhone | 248 | 940 | | 400 | |\n"


def main():
    chosen = options()
    result = {"machine": machine.facts(), "threads": len(os.sched_getaffinity(0)), "load": os.getloadavg()[0],
              "date": datetime.date.today().isoformat(), "rows": []}
    for name in chosen.models.split(","):
        with tempfile.TemporaryDirectory() as folder:
            row = measure(name, pathlib.Path(folder), chosen.program, chosen.rounds)
        result["rows"].append(row)
        if not chosen.json:
            print(f"{row['title']:18} compile {milliseconds(row['compile'])}  copy {milliseconds(row['copy'])}  "
                  f"load {milliseconds(row['load'])}  cached {milliseconds(row['cached'])} ms", flush=True)
    output.write(result, page, chosen)
    if wrong := [row["title"] for row in result["rows"] if not row["same"]]:
        sys.exit(f"the compiled weights differ: {', '.join(wrong)}")


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""What the functions of one file cost in memory and in time to load: eight functions that share 67 MB of weights.

run.py [--threads N] [--rounds N] [--folder FOLDER]

Each row is a process that loads the given number of functions, one after the other, and predicts six times with each. Times are of
loading a function and its first prediction, medians of all rounds. The rows "two processes" are two that hold all functions at the
same time.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import moka
import numpy as np
from moka import build

CHANNELS = 4096
LENGTHS = (1, 2, 4, 8, 16, 32, 64, 128)
PREDICTIONS = 6


def save(path):
    rng = np.random.default_rng(1)
    weights = [(rng.standard_normal((CHANNELS, CHANNELS, 1)) * 0.01).astype(np.float16) for _ in range(2)]
    program = build.Program("ios18")
    for length in LENGTHS:
        program.function(f"length_{length}")
        value = program.input("x", build.array((1, CHANNELS, length), np.float16))
        for weight in weights:
            value = program.conv(x=value, weight=weight)
        program.output(value, "y")
    program.save(path)


def memory():
    """MB by name."""
    lines = (line.split() for line in pathlib.Path("/proc/self/smaps_rollup").read_text().splitlines())
    return {name[0].rstrip(":"): int(name[1]) / 1e3 for name in lines if name[0] in ("Rss:", "Pss:", "Private_Dirty:")}


def hold(path, cache, count, threads):
    """Loads the functions and prints what they cost; waits for a line before and after."""
    models, times = [], []
    for length in LENGTHS[:count]:
        start = time.perf_counter()
        model = moka.Model(path, function=f"length_{length}", cache=cache, threads=threads)
        inputs = model.random_inputs()
        model.predict(inputs)
        times.append(time.perf_counter() - start)
        for _ in range(PREDICTIONS - 1):
            model.predict(inputs)
        models.append(model)
    print(flush=True)
    sys.stdin.readline()
    print(json.dumps({"memory": memory(), "times": times}), flush=True)
    sys.stdin.readline()


class Process:
    def __init__(self, *arguments):
        command = [sys.executable, __file__, "--hold", *map(str, arguments)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()

    def measure(self):
        print(file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def end(self):
        print(file=self.process.stdin, flush=True)
        self.process.wait()


def row(name, count, rounds):
    m = rounds[-1]["memory"]
    times = [f"{statistics.median(r['times'][i] for r in rounds) * 1e3:.0f}" if i < count else "" for i in range(2)]
    memory = " | ".join(f"{m[n]:.0f}" for n in ("Rss", "Pss", "Private_Dirty"))
    print(f"| {name} | {count} | {memory} | {' | '.join(times)} |", flush=True)


def alone(*arguments):
    # Pages of files that are not written back yet count as dirty.
    subprocess.run(["sync"], check=True)
    process = Process(*arguments)
    measured = process.measure()
    process.end()
    return measured


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", help="for the model and the cache; a temporary one by default")
    parser.add_argument("--hold", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.hold:
        path, cache, count, threads = options.hold
        return hold(path, cache, int(count), int(threads))
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = f"{folder}/functions.mlpackage"
        save(path)
        print("| cache | functions | RSS, MB | PSS, MB | private dirty, MB | first function, ms | second, ms |\n|---|---|---|---|---|---|---|")
        for cache in ("off", "cold", "warm"):
            for count in (1, 2, 4, 8):
                rounds = range(options.rounds)
                places = {"off": lambda i: "off", "cold": lambda i: f"{folder}/cold_{count}_{i}", "warm": lambda i: f"{folder}/cold_8_0"}
                row(cache, count, [alone(path, places[cache](i), count, options.threads) for i in rounds])
        two = [Process(path, f"{folder}/cold_8_0", 8, options.threads) for _ in range(2)]
        for process in two:
            row("warm, two processes", 8, [process.measure()])
        for process in two:
            process.end()


if __name__ == "__main__":
    main()

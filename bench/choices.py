#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether `moka tune` chooses the same kernels beside other work as on an idle machine. README.md explains.

choices.py                                                ten loads of each net of NETS beside three busy loops
choices.py --nets resnet50 --threads 2 --loads 5 --json
choices.py --files a.mlpackage,b.mlpackage                models instead of nets; needs no package of Python's

Exits with 1 if a load's kernels take more than --limit times as long as the best ones.
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

NETS = ("deeplabv3_mobilenet_v3", "mobilenet_v2", "resnet50", "yolov8n")
LOOP = "while True: pass"


def arguments(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", default=",".join(NETS), help="names with commas")
    parser.add_argument("--files", default="", help="files or folders of models with commas, instead of nets")
    parser.add_argument("--program", default="build/bin/moka", help="the command line")
    parser.add_argument("--models", default="build/bench/models", help="where nets are built")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--loads", type=int, default=10, help="loads beside the busy loops, each with an empty kernel cache")
    parser.add_argument("--idle-loads", type=int, default=3, help="loads without them")
    parser.add_argument("--busy", type=int, default=3, help="busy loops beside the loads")
    parser.add_argument("--rounds", type=int, default=7, help="turns in which the sets of kernels are timed")
    parser.add_argument("--seconds", type=float, default=1, help="of predictions in a turn")
    parser.add_argument("--limit", type=float, default=1.03)
    parser.add_argument("--seed", type=int, default=1, help="of the order of turns")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    return parser.parse_args(given)


class Busy:
    """Processes that do nothing but work."""

    def __init__(self, count):
        self.count, self.loops = count, []

    def __enter__(self):
        self.loops = [subprocess.Popen([sys.executable, "-c", LOOP]) for _ in range(self.count)]

    def __exit__(self, *_):
        for loop in self.loops:
            loop.kill()
            loop.wait()


class Net:
    """One model: its loads, and the times of the kernels that they chose."""

    def __init__(self, name, model, options, folder):
        self.name, self.model, self.options, self.folder = name, str(model), options, pathlib.Path(folder)
        self.loads = []

    def moka(self, command, *more):
        done = subprocess.run([self.options.program, command, self.model, "--threads", str(self.options.threads), "--json", *map(str, more)],
                              capture_output=True, text=True, env={**os.environ, "MOKA_KERNEL_CACHE": "off", "MOKA_CACHE": "off"})
        if done.returncode != 0:
            sys.exit(f"choices: moka {command} {self.model}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def load(self, way):
        file = self.folder / f"{self.name}-{len(self.loads)}.json"
        answer = self.moka("tune", "--kernels", file)
        kernels = {s["shape"]: s["kernel"] for s in answer["shapes"]}
        self.loads.append({"way": way, "file": file, "kernels": kernels, "shapes": answer["shapes"], "disturbed": answer["disturbedOperations"]})

    def sets(self):
        """The different sets of kernels, the rules' first: how they differ from it, their loads and a kernel cache that has them."""
        found = {(): {"loads": [], "file": "off"}}
        for i, load in enumerate(self.loads):
            rules = {s["shape"]: s["kernelByRule"] for s in load["shapes"]}
            key = tuple(sorted((shape, kernel) for shape, kernel in load["kernels"].items() if kernel != rules[shape]))
            found.setdefault(key, {"loads": [], "file": load["file"]})["loads"].append(i)
        return found

    def time(self, sets, order):
        """Each turn's shortest prediction of each set."""
        for each in sets.values():
            each["seconds"] = []
        for _ in range(self.options.rounds):
            for each in order.sample(list(sets.values()), len(sets)):
                each["seconds"].append(self.moka("bench", "--kernels", each["file"], "--seconds", self.options.seconds)["steady"]["min"])

    def differing(self):
        """Shape -> kernel -> the loads that chose it, where loads differ."""
        out = {}
        for i, load in enumerate(self.loads):
            for shape, kernel in load["kernels"].items():
                out.setdefault(shape, {}).setdefault(kernel, []).append(i)
        return {shape: kernels for shape, kernels in out.items() if len(kernels) > 1}

    def result(self, order):
        sets = self.sets()
        self.time(sets, order)
        times = {key: statistics.median(each["seconds"]) for key, each in sets.items()}
        best = min(times.values())
        of_load = {i: times[key] / best for key, each in sets.items() for i in each["loads"]}
        return {
            "net": self.name, "threads": self.options.threads, "best": best, "rules": times[()] / best, "sets": len(sets),
            "loads": [{"way": load["way"], "disturbed": load["disturbed"], "ratio": of_load[i]} for i, load in enumerate(self.loads)],
            "differing": self.differing(),
        }


def models_of(options):
    """Names and models."""
    if options.files:
        return [(pathlib.Path(path).stem, path) for path in options.files.split(",")]
    from harness import models

    cache, found = models.Cache(options.models, pathlib.Path(options.models).parent / "logs"), []
    with cache.locked():
        for net in options.nets.split(","):
            folder, reason = cache.net(net)
            if not reason:
                model, done = cache.model(net, folder, "moka", "fp32")
                reason = done.get("reason")
            if reason:
                sys.exit(f"choices: {net}: {reason}")
            found.append((net, model / "model.mlpackage"))
    return found


def measure(name, model, options, folder):
    net = Net(name, model, options, folder)
    for _ in range(options.idle_loads):
        net.load("idle")
    with Busy(options.busy):
        for _ in range(options.loads):
            net.load("busy")
    return net.result(random.Random(options.seed))


def text(row):
    of = {way: [load["ratio"] for load in row["loads"] if load["way"] == way] for way in ("idle", "busy")}
    parts = [f"{row['net']}, threads {row['threads']}: best {1e3 * row['best']:.2f} ms, rules {row['rules']:.3f}, {row['sets']} sets"]
    parts += [f"  {way}: {' '.join(f'{r:.3f}' for r in ratios)}" for way, ratios in of.items() if ratios]
    disturbed = [load["disturbed"] for load in row["loads"]]
    if any(disturbed):
        parts.append(f"  operations left to the rules: {' '.join(map(str, disturbed))}")
    for shape, kernels in row["differing"].items():
        parts.append(f"  {shape}: " + ", ".join(f"{kernel} {len(loads)}" for kernel, loads in kernels.items()))
    return "\n".join(parts)


def main():
    options = arguments()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, model in models_of(options):
            rows.append(measure(name, model, options, folder))
            print(text(rows[-1]), file=sys.stderr if options.json else sys.stdout, flush=True)
    if options.json:
        print(json.dumps(rows, indent=1))
    sys.exit(any(load["ratio"] > options.limit for row in rows for load in row["loads"]))


if __name__ == "__main__":
    main()

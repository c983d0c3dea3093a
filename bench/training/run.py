#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times steps of training: Moka's trainer beside PyTorch, eager and compiled by torch.compile.

run.py --program PROGRAM [--only NET,...] [--batches 1,8,32] [--threads 1,2] [--rounds N] [--seconds S] [--quick] [--kernels] [--json]

A step is the loss of a mini-batch, its gradients, and stochastic gradient descent with momentum. Each engine trains in a process of
its own with the same weights and examples, and the processes take turns, in another order each round. Times are medians. Before they
are timed, the losses of four steps must agree. Memory is the largest resident size of the process beyond what it had before the model;
PyTorch's is the smaller of its two. Batch norms use the statistics in the net, or with --batch-statistics those of the mini-batch. Ratios are Moka's figure over the better one of
PyTorch. --kernels prints the time of each operation in one step of Moka instead. Exit status 1 when losses differ.
"""

import argparse
import hashlib
import json
import os
import pathlib
import random
import select
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from harness import machine, output  # noqa: E402

NETS = ("mlp", "cnn", "lstm", "transformer", "resnet18", "mobilenet_v2")
WITH_NORMS = ("cnn", "resnet18", "mobilenet_v2")
MOKA, EAGER, COMPILED = "moka", "eager", "compiled"
CHECK = {"learning_rate": 0.01, "momentum": 0.9}
# At 0.01 their losses grow, and at 0.001 that of one example becomes 0; either makes differences large that one rectifier makes
CHECK_DEEP = {"learning_rate": 0.0001, "momentum": 0.9}
DEEP = ("resnet18", "mobilenet_v2")
TIMED = {"learning_rate": 1e-6, "momentum": 0.9}  # the loss stays, so that no gradient becomes denormal
TOLERANCE = 1e-4  # of losses, relative
LONGEST = 1200  # seconds of an answer; torch.compile takes minutes


class Failed(Exception):
    """Why an engine gives no answer."""


class Engine:
    """A process that trains one net, restricted to some processors."""

    def __init__(self, name, command, cpus, log):
        self.name = name
        with open(log, "wb") as errors:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                                            preexec_fn=lambda: os.sched_setaffinity(0, cpus))

    def ask(self, do, **more):
        try:
            self.process.stdin.write(json.dumps({"do": do, **more}).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        if not select.select([self.process.stdout], [], [], LONGEST)[0]:
            raise Failed(f"no answer within {LONGEST} s")
        line = self.process.stdout.readline()
        if not line:
            raise Failed(f"ended with status {self.process.wait()}")
        answer = json.loads(line)
        if "reason" in answer:
            raise Failed(answer["reason"])
        return answer

    def steps(self, count, numbers):
        return self.ask("steps", count=count, numbers=numbers)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="the program moka_bench_training")
    parser.add_argument("--only", help="names of nets with commas")
    parser.add_argument("--batches", help="sizes of mini-batches with commas (1,8,32)")
    parser.add_argument("--threads", help="numbers of threads with commas (1,2)")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each turn, which has a step at least")
    parser.add_argument("--quick", action="store_true", help="mini-batches of 8 on one thread, three rounds")
    parser.add_argument("--kernels", action="store_true", help="the time of each operation of Moka's step instead")
    parser.add_argument("--batch-statistics", action="store_true", help="batch norms as in PyTorch's train(); nets with batch norms")
    parser.add_argument("--folder", default="build/bench/training", help="for models and logs")
    parser.add_argument("--out", help="write results here as JSON")
    parser.add_argument("--page", help="write the tables here as Markdown")
    parser.add_argument("--json", action="store_true")
    o = parser.parse_args()
    o.only = o.only.split(",") if o.only else list(WITH_NORMS if o.batch_statistics else NETS)
    for name in o.only:
        if name not in NETS:
            parser.error(f"--only: no net '{name}' (expected {', '.join(NETS)})")
    short = o.quick or o.kernels
    o.batches = [int(n) for n in (o.batches or ("8" if short else "1,8,32")).split(",")]
    o.threads = [int(n) for n in (o.threads or ("1" if short else "1,2")).split(",")]
    o.rounds = o.rounds or (3 if o.quick else 7)
    o.folder = pathlib.Path(o.folder)
    o.folder.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(o.folder.resolve() / "inductor"))
    return o


def processors(threads):
    """One of each core, if there are as many."""
    cores = machine.pick_cpus(os.sched_getaffinity(0))
    cpus = cores if len(cores) >= threads else sorted(os.sched_getaffinity(0))
    if len(cpus) < threads:
        sys.exit(f"run.py: {threads} threads need as many processors, and the process may use {len(cpus)}")
    return cpus[:threads]


def convert(net, batch, folder):
    """The converted model, made anew when what makes it has changed."""
    sources = b"".join(p.read_bytes() for p in (HERE / "trained.py", HERE.parent / "blocks/weights.py"))
    path = folder / f"{net}-{batch}-{hashlib.sha256(sources).hexdigest()[:12]}.mlpackage"
    if not pathlib.Path(f"{path}.json").is_file():
        log = folder / f"convert-{net}.log"
        with open(log, "wb") as out:
            done = subprocess.run([sys.executable, str(HERE / "trained.py"), net, str(batch), str(path)], stdout=out, stderr=out)
        if done.returncode:
            sys.exit(f"run.py: {net} could not be converted: {log}")
    return path


def task(net, batch, threads, o):
    """The description of what Moka trains, written to a file."""
    import trained

    folder = o.folder
    path = convert(net, batch, folder)
    x, target = trained.batch(net, batch)
    arrays = {}
    for name, array, kind in (("x", x.numpy(), "fp32"), ("target", target.numpy().astype("int32"), "int32")):
        file = folder / f"{net}-{batch}-{name}.bin"
        array.tofile(file)
        arrays[name] = {"file": str(file), "type": kind, "shape": list(array.shape)}
    out = folder / f"{net}-{batch}-{threads}.json"
    out.write_text(json.dumps({
        "model": str(path), "parameters": json.loads(pathlib.Path(f"{path}.json").read_text()), "loss": "cross_entropy", "input": "y",
        "target": "target", "optimizer": "sgd", "momentum": True,
        "batch_statistics": 0.1 if o.batch_statistics else None, "threads": threads, "batches": 1, "arrays": arrays}))
    return out


def start(name, net, batch, threads, o):
    log = o.folder / f"{name}-{net}-{batch}-{threads}.log"
    command = ([o.program, str(task(net, batch, threads, o))] if name == MOKA else
               [sys.executable, str(HERE / "torch_step.py"), net, str(batch), str(threads), name, "batch" if o.batch_statistics else "fixed"])
    return Engine(name, command, processors(threads), log)


def differ(losses):
    """What is wrong with the losses of the engines; "" if they agree."""
    expected = losses[EAGER]
    for name, found in losses.items():
        for i, (a, b) in enumerate(zip(found, expected)):
            if not abs(a - b) <= TOLERANCE * abs(b):
                return f"the loss of step {i + 1} is {a:.6g} on {name} and {b:.6g} in eager PyTorch"
    return ""


def add_ratios(row):
    """Ratios of Moka to the better one of PyTorch."""
    found = row["engines"]
    if MOKA in found:
        for ratio, figure in (("ratio", "median"), ("memory", "peak")):
            row[ratio] = found[MOKA][figure] / min(found[name][figure] for name in (EAGER, COMPILED) if name in found)


def measure(net, batch, threads, o):
    row = {"net": net, "batch": batch, "threads": threads, "engines": {}, "reasons": {}}
    engines, losses, counts = [], {}, {}
    try:
        for name in (MOKA, EAGER, COMPILED):
            engine = start(name, net, batch, threads, o)
            engines.append(engine)
            try:
                parameters = engine.ask("load")["parameters"]
                first = engine.steps(4, CHECK_DEEP if net in DEEP else CHECK)
                losses[name], counts[name] = first["losses"], max(1, round(o.seconds / min(first["times"])))
                row["engines"][name] = {"parameters": parameters, "times": []}
            except Failed as e:
                row["reasons"][name] = str(e)
        if EAGER not in losses:  # nothing to compare with
            row["engines"] = {}
            return row
        losses = {name: losses[name] for name in row["engines"]}
        row["losses"], row["wrong"] = losses, differ(losses)
        if len({e["parameters"] for e in row["engines"].values()}) > 1:
            row["wrong"] = "the engines train different numbers of weights"
        working = [e for e in engines if e.name in counts]
        shuffled = random.Random(f"{net} {batch} {threads}")
        for _ in range(o.rounds):
            for engine in shuffled.sample(working, len(working)):
                if counts[engine.name] > 1:
                    engine.steps(1, TIMED)
                row["engines"][engine.name]["times"] += engine.steps(counts[engine.name], TIMED)["times"]
        for engine in working:
            found = row["engines"][engine.name]
            found["median"], found["peak"] = statistics.median(found["times"]), engine.ask("peak")["peak"]
            found["steps"] = len(found.pop("times"))
    finally:
        for engine in engines:
            engine.close()
    add_ratios(row)
    return row


COLUMNS = ("net", "batch", "threads", "Moka, ms", "eager, ms", "compiled, ms", "ratio", "Moka, MB", "eager, MB", "compiled, MB", "ratio")


def cells(row):
    def figure(name, what, unit):
        found = row["engines"].get(name)
        return f"{found[what] / unit:.{2 if found[what] < 10 * unit else 1}f}" if found else ""

    times = [figure(name, "median", 1e-3) for name in (MOKA, EAGER, COMPILED)]
    peaks = [figure(name, "peak", 1e6) for name in (MOKA, EAGER, COMPILED)]
    ratios = [f"{row[what]:.2f}" if what in row else "" for what in ("ratio", "memory")]
    return [row["net"], str(row["batch"]), str(row["threads"]), *times, ratios[0], *peaks, ratios[1]]


def notes(row):
    out = [f"{row['net']}, mini-batches of {row['batch']}, {row['threads']} threads: {name}: {reason}" for name, reason in row["reasons"].items()]
    return out + ([f"{row['net']}, mini-batches of {row['batch']}: WRONG: {row['wrong']}"] if row.get("wrong") else [])


WIDTHS = (13, 6, 8, 10, 10, 13, 7, 9, 10, 13, 6)


def aligned(cells):
    return " ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(cells, WIDTHS)))


def summary(rows):
    """Sentences on all rows in which Moka trains."""
    rows = [r for r in rows if "ratio" in r]
    if not rows:
        return []
    worst = max(rows, key=lambda r: r["ratio"])
    return [f"geometric mean of the ratios of times {statistics.geometric_mean(r['ratio'] for r in rows):.2f}, "
            f"worst {worst['ratio']:.2f} ({worst['net']}, {worst['batch']}, {worst['threads']})",
            f"geometric mean of the ratios of memory {statistics.geometric_mean(r['memory'] for r in rows):.2f}, "
            f"worst {max(r['memory'] for r in rows):.2f}"]


def page(result):
    facts, rows = result["machine"], result["rows"]
    sentences = "  \n".join(f"{s[0].upper()}{s[1:]}." for s in summary(rows))
    text = "# Training\n\n<!-- Made by `make bench-training`; do not edit. -->\n\n"
    text += (f"A step of training on {facts['cpu']}, beside PyTorch {result['torch']} ({result['date']}; load {result['load']:.1f} when it began): the loss of a "
             "mini-batch, its gradients, and stochastic gradient descent with momentum. Median times, and the largest resident memory beyond "
             "what the process had before the model. Ratios are Moka's figure over the better one of PyTorch, eager or compiled by "
             f"torch.compile. `bench/training/run.py` says how it is measured.\n\n{sentences}\n\n")
    text += f"| {' | '.join(COLUMNS)} |\n|---|{'---:|' * (len(COLUMNS) - 1)}\n"
    text += "".join(f"| {' | '.join(cells(row))} |\n" for row in rows)
    return text + "".join(f"\n{note}\n" for row in rows for note in notes(row))


def kernels(net, batch, threads, o):
    """Prints what a step of Moka spends its time on."""
    engine = start(MOKA, net, batch, threads, o)
    try:
        engine.ask("load")
        engine.steps(3, TIMED)
        found = engine.ask("kernels", file=str(o.folder / f"{net}-{batch}-{threads}.pftrace"), numbers=TIMED)
    except Failed as e:
        print(f"{net}, mini-batches of {batch}, {threads} threads: {e}")
        return None
    finally:
        engine.close()
    operations = found["operations"]
    known, total = sum(op["seconds"] for op in operations), found["seconds"]
    print(f"\n{net}, mini-batches of {batch}, {threads} threads: {total * 1e3:.2f} ms a step, of which {known * 1e3:.2f} ms in {len(operations)} operations")
    groups = {}
    for op in operations:
        groups.setdefault((op["type"], op["kernel"]), []).append(op["seconds"])
    print(f"{'type':34} {'kernel':34} {'count':>6} {'ms':>9} {'share':>6}")
    for (kind, kernel), times in sorted(groups.items(), key=lambda g: -sum(g[1])):
        print(f"{kind:34} {kernel:34} {len(times):6} {sum(times) * 1e3:9.3f} {sum(times) / total:6.1%}")
    print(f"\n{'operation':44} {'type':34} {'ms':>9}  shape")
    for op in sorted(operations, key=lambda op: -op["seconds"])[:25]:
        print(f"{op['name'][:44]:44} {op['type']:34} {op['seconds'] * 1e3:9.3f}  {op['shape']}")
    return {"net": net, "batch": batch, "threads": threads, **found}


def main():
    import datetime
    import importlib.metadata

    o = options()
    result = {"machine": machine.facts(), "torch": importlib.metadata.version("torch"), "load": os.getloadavg()[0],
              "date": datetime.date.today().isoformat(), "rows": []}
    cases = [(net, batch, threads) for net in o.only for batch in o.batches for threads in o.threads]
    if o.kernels:
        result["rows"] = [k for case in cases if (k := kernels(*case, o))]
        output.write(result, None, argparse.Namespace(json=o.json, out=o.out, page=None))
        return
    if not o.json:
        print(aligned(COLUMNS), flush=True)
    for case in cases:
        row = measure(*case, o)
        result["rows"].append(row)
        if not o.json:
            print("\n".join([aligned(cells(row)), *notes(row)]), flush=True)
    if not o.json:
        print("\n".join(summary(result["rows"])))
    output.write(result, page, o)
    if any(r.get("wrong") for r in result["rows"]):
        sys.exit("run.py: losses differ")


if __name__ == "__main__":
    main()

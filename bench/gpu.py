#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times of nets on a GPU: Moka's device `vulkan` beside PyTorch on CUDA and ncnn's Vulkan backend, in one run. README.md explains.

gpu.py --nets mobilenet_v2,resnet50              prints the table
gpu.py --page docs/performance/gpu.md            also writes the page

A time is the median of the predictions of a second, with the copies of inputs and outputs between the host and the GPU. PyTorch replays
a CUDA graph and computes float32 without TF32. Exits with 1 where Moka's answers differ from those of its CPU device.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

import engines
import nets
import report
import run
import vulkan
from harness import machine, models, samples, stats

MOKA, PEERS = samples.MOKA, ("torch", "ncnn")
TITLES = {MOKA: "Moka", "torch": "PyTorch", "ncnn": "ncnn"}
PRECISIONS = ("fp32", "fp16")
SECONDS, LEAST, WARM = 1, 20, 5
TIMEOUT = 120  # seconds for one engine and net


def arguments(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", default="all", help="names with commas")
    parser.add_argument("--program", default="build/bin/moka", help="the program moka")
    parser.add_argument("--out", default="build/bench/gpu.json", help="the results")
    parser.add_argument("--worker", nargs=4, metavar=("ENGINE", "NET", "FOLDER", "PRECISION"), help=argparse.SUPPRESS)
    run.add_page(parser)
    options = parser.parse_args(given)
    options.nets = run.chosen(parser, "--nets", options.nets, nets.names(), nets.when_named())
    return options


def timed(predict):
    """The median seconds of `predict`."""
    for _ in range(WARM):
        predict()
    times, start = [], time.perf_counter()
    while len(times) < LEAST or time.perf_counter() - start < SECONDS:
        before = time.perf_counter()
        predict()
        times.append(time.perf_counter() - before)
    return stats.quantile(sorted(times), 0.5)


def torch_sample(net, precision):
    import torch

    if not torch.cuda.is_available():
        return {"reason": "PyTorch finds no CUDA device"}
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False

    def on_gpu(x):
        return (x.half() if precision == "fp16" and x.is_floating_point() else x).cuda()

    model = net.definition.model().eval().cuda()
    model = model.half() if precision == "fp16" else model
    host = [t.pin_memory() for t in net.tensors()]
    given = [on_gpu(t) for t in host]
    with torch.inference_mode():
        beside = torch.cuda.Stream()
        with torch.cuda.stream(beside):
            for _ in range(3):
                model(*given)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            answer = model(*given)
        answers = [a for a in (answer if isinstance(answer, (tuple, list)) else [answer]) if torch.is_tensor(a)]

        def predict():
            for to, x in zip(given, host):
                to.copy_(x, non_blocking=True)
            graph.replay()
            for a in answers:
                a.float().cpu()

        return {"later": timed(predict), "device": torch.cuda.get_device_name(), "versions": {"torch": torch.__version__}}


def ncnn_sample(net, folder, precision):
    begin = time.perf_counter()
    predict = engines.module("ncnn").load(pathlib.Path(folder), os.cpu_count(), precision, "vulkan")
    off = sorted({kind for _, kind, _ in predict.placement()["off"]})
    if off:
        return {"reason": f"on the processor: {', '.join(off)}"}
    inputs = net.inputs
    predict(inputs)
    first = time.perf_counter() - begin
    return {"load_first": first, "later": timed(lambda: predict(inputs)), "versions": engines.versions("ncnn")}


def worker(engine, name, folder, precision):
    from harness import network

    net = network.Network(name, pathlib.Path(folder).parent)
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print
    found = torch_sample(net, precision) if engine == "torch" else ncnn_sample(net, folder, precision)
    print(json.dumps(found), file=answer, flush=True)
    os._exit(0)  # some libraries hang or crash at the end of the process


def asked(command):
    """The JSON that a program prints and an empty text; or None and the reason."""
    try:
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=TIMEOUT, env={**os.environ, **vulkan.ENVIRONMENT})
    except subprocess.TimeoutExpired:
        return None, f"more than {TIMEOUT} s"
    lines = done.stderr.strip().splitlines()
    if done.returncode != 0:
        return None, lines[-1] if lines else f"status {done.returncode}"
    try:
        return json.loads(done.stdout), ""
    except json.JSONDecodeError:
        return None, f"no JSON, but {done.stdout[-80:]!r}"


def moka_sample(program, model):
    found, reason = asked([program, "bench", model, "--device", "vulkan", "--seconds", SECONDS, "--iterations", 100_000, "--json"])
    if found is None:
        return {"reason": reason}
    right, reason = asked([program, "verify", model, "--device", "vulkan", "--against-device", "cpu", "--runs", 1, "--json"])
    sample = {"load_first": found["load"]["total"] + found["first"], "later": found["steady"]["p50"]}
    return {**sample, "wrong": reason} if right is None else sample


class Timer:
    def __init__(self, options):
        self.options = options
        logs = pathlib.Path(options.out).parent / "logs"
        self.cache = models.Cache(options.models, logs)

    def rows(self):
        for name in self.options.nets:
            folder, reason = self.cache.net(name)
            title = nets.module(name).TITLE if reason else models.facts(folder)["title"]
            row = {"net": name, "title": title, "samples": {}}
            for precision in PRECISIONS:
                row["samples"][precision] = {engine: {"reason": reason} if reason else self.sample(name, folder, engine, precision)
                                             for engine in (MOKA, *PEERS)}
            yield row

    def sample(self, name, folder, engine, precision):
        model = folder / "torch"
        if engine != "torch":
            model, done = self.cache.model(name, folder, engine, precision)
            if done.get("reason"):
                return {"reason": done["reason"]}
        if engine == MOKA:
            return moka_sample(self.options.program, model / "model.mlpackage")
        found, reason = asked([sys.executable, __file__, "--worker", engine, name, model, precision])
        return {"reason": reason} if found is None else found


def ratio(row, precision, engine):
    both = [row["samples"][precision][e].get("later") for e in (MOKA, engine)]
    return both[0] / both[1] if all(both) else None


def table(rows, precision):
    head = ["net", "Moka"] + [cell for e in PEERS for cell in (TITLES[e], "ratio")] + ["load + first", "ncnn"]
    lines = []
    for row in rows:
        found = row["samples"][precision]
        cells = [row["title"], shown(found[MOKA], "later")]
        for engine in PEERS:
            cells += [shown(found[engine], "later"), report.ratio_text(ratio(row, precision, engine))]
        lines.append([*cells, shown(found[MOKA], "load_first"), shown(found["ncnn"], "load_first")])
    return report.table(head, lines)


def shown(sample, what):
    return report.milliseconds(sample[what]) if what in sample else "-"


def summary(rows, precision):
    parts = []
    for engine in PEERS:
        ratios = [r for row in rows if (r := ratio(row, precision, engine)) is not None]
        if ratios:
            faster = sum(r < 1 for r in ratios)
            parts.append(f"{stats.geometric_mean(ratios):.2f} of {TITLES[engine]}'s time, less on {faster} of {len(ratios)} nets")
    return "; ".join(parts) + ".\n" if parts else ""


def missing(rows):
    lines = [[row["title"], TITLES[engine], precision, f"`{reason[:100]}`"] for row in rows for precision in PRECISIONS
             for engine in (MOKA, *PEERS) if (reason := row["samples"][precision][engine].get("reason"))]
    return report.table(["net", "engine", "precision", "why"], lines, left=4) if lines else ""


def wrong(rows):
    return [f"{row['net']} in {precision}: {row['samples'][precision][MOKA]['wrong']}" for row in rows for precision in PRECISIONS
            if "wrong" in row["samples"][precision][MOKA]]


def tables(rows):
    return "\n".join(f"## {name}\n\n{table(rows, precision)}\n{summary(rows, precision)}"
                     for precision, name in (("fp32", "float32"), ("fp16", "float16")))


def page(data):
    versions = ", ".join(f"{package} {version}" for package, version in data["versions"].items())
    answers = "Moka's answers agree with those of its CPU device."
    if differ := wrong(data["rows"]):
        answers = f"Answers of Moka differ from those of its CPU device: {'; '.join(differ)}."
    return f"""# Times on a GPU

`make bench-gpu` writes this page: the nets of [the benchmark](../../bench/README.md) on {data["gpu"]}, whose driver compiles
Moka's shaders for Vulkan, beside PyTorch on CUDA and ncnn's Vulkan backend. Milliseconds, with the copies of inputs and outputs between
the host and the GPU; a ratio is Moka's time divided by the other's. PyTorch replays a CUDA graph and computes float32 without TF32; in
float16 it uses matrix units, which Moka does not ([why](../gpu-kernels.md#the-device-vulkan)). The drivers' caches of compiled
shaders are off. {answers}

{tables(data["rows"])}
{missing(data["rows"])}
On {data["machine"]["cpu"]}; {versions}.
"""


def main():
    options = arguments()
    if options.worker:
        worker(*options.worker)
    timer, rows, versions, gpu = Timer(options), [], {}, "a GPU"
    try:
        with timer.cache.locked():
            for row in timer.rows():
                rows.append(row)
                print(row["net"], *(f"{p} {shown(row['samples'][p][MOKA], 'later')}" for p in PRECISIONS), file=sys.stderr, flush=True)
                for found in row["samples"].values():
                    for sample in found.values():
                        versions.update({package: version for package, version in sample.get("versions", {}).items() if version})
                        gpu = sample.get("device", gpu)
                samples.write(options.out, {"machine": machine.facts(), "gpu": gpu, "versions": versions, "rows": rows})
    except models.InUse as error:
        sys.exit(f"gpu: {error}")
    data = {"machine": machine.facts(), "gpu": gpu, "versions": versions, "rows": rows}
    print(json.dumps(rows, indent=1) if options.json else f"{tables(rows)}\n{missing(rows)}")
    if options.page:
        pathlib.Path(options.page).write_text(page(data))
    for line in wrong(rows):
        print(f"gpu: {line}", file=sys.stderr)
    sys.exit(1 if wrong(rows) else 0)


if __name__ == "__main__":
    main()

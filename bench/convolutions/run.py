#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times convolutions of one pixel and of one dimension on Moka and on onnxruntime, each as a model of its own.

run.py --roofs PROGRAM [--only TEXT,...] [--threads N] [--isa avx2] [--seconds S] [--rounds N] [--out FILE] [--json]

Both engines predict in one process with the same number of threads and take turns. Inputs and outputs are row-major arrays,
so the time of Moka includes the conversions from and to its layout. PROGRAM is moka_bench_kernels, which measures the roofs:
multiply-adds in registers with the instructions that Moka uses, and copies in memory. onnxruntime has no switch for
instruction sets, so with --isa the ratio means little on a machine that has more. Exit status 1 when the answers differ.
"""
import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--roofs", required=True, help="the program moka_bench_kernels")
    parser.add_argument("--only", default="", help="texts of which a name must contain one, separated by semicolons")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--isa", help="limits Moka to these instructions")
    parser.add_argument("--seconds", type=float, default=0.5, help="of each convolution")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--out", help="write results here as JSON")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


chosen = options()
if chosen.isa:
    os.environ["MOKA_MAX_CPU_ISA"] = chosen.isa  # before the library is imported

import numpy as np  # noqa: E402

from harness import machine, output  # noqa: E402
from shapes import CONVOLUTIONS  # noqa: E402

TOLERANCE = 1e-4  # relative to the largest magnitude


def arrays(conv):
    rng = np.random.default_rng(1)
    feed = {"x": rng.uniform(-1, 1, conv.x).astype(np.float32)}
    if "add" in conv.after:
        feed["addend"] = rng.uniform(-1, 1, conv.y).astype(np.float32)
    weight = rng.uniform(-0.1, 0.1, conv.weight).astype(np.float32)
    return feed, weight, rng.uniform(-1, 1, conv.outputs).astype(np.float32)


def moka_engine(conv, feed, weight, bias, folder):
    import moka
    from moka import build

    axes = len(conv.size)
    program = build.Program("ios17")
    x, *addend = [program.input(name, build.array(value.shape)) for name, value in feed.items()]
    y = program.conv(x=x, weight=weight, bias=bias, strides=[conv.stride] * axes, dilations=[conv.dilation] * axes,
                     pad_type="custom", pad=[conv.pad] * (2 * axes), groups=conv.groups)
    if addend:
        y = program.add(x=y, y=addend[0])
    if conv.after.endswith(("relu", "silu")):
        y = getattr(program, conv.after.split()[-1])(x=y)
    program.output(y, "y")
    program.save(str(folder / "model.mlpackage"))
    model = moka.Model(str(folder / "model.mlpackage"), threads=chosen.threads, measure_kernels="all")
    return lambda: model.predict(feed)["y"]


def onnx_engine(conv, feed, weight, bias, folder):
    import onnx
    import onnxruntime
    from onnx import helper, numpy_helper

    axes = len(conv.size)
    nodes = [helper.make_node("Conv", ["x", "weight", "bias"], ["v0"], strides=[conv.stride] * axes,
                              dilations=[conv.dilation] * axes, pads=[conv.pad] * (2 * axes), group=conv.groups)]
    if "add" in conv.after:
        nodes.append(helper.make_node("Add", ["v0", "addend"], ["v1"]))
    last = nodes[-1].output[0]
    if conv.after.endswith("relu"):
        nodes.append(helper.make_node("Relu", [last], ["y"]))
    elif conv.after.endswith("silu"):
        nodes += [helper.make_node("Sigmoid", [last], ["s"]), helper.make_node("Mul", [last, "s"], ["y"])]
    else:
        nodes[-1].output[0] = "y"
    value = lambda name, shape: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)  # noqa: E731
    graph = helper.make_graph(nodes, "conv", [value(name, array.shape) for name, array in feed.items()], [value("y", conv.y)],
                              [numpy_helper.from_array(weight, "weight"), numpy_helper.from_array(bias, "bias")])
    path = str(folder / "model.onnx")
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = chosen.threads
    session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, feed)[0]


def measure(engines):
    """The shortest time of each engine. They take turns."""
    best = {name: math.inf for name in engines}
    for _ in range(chosen.rounds):
        for name, call in engines.items():
            end = time.perf_counter() + chosen.seconds / chosen.rounds / len(engines)
            call()
            while True:
                begin = time.perf_counter()
                call()
                now = time.perf_counter()
                best[name] = min(best[name], now - begin)
                if now >= end:
                    break
    return best


def roofs():
    """Operations and bytes a second of one thread."""
    return json.loads(subprocess.run([chosen.roofs, "--roofs"], check=True, capture_output=True, text=True).stdout)


def row(conv, best, error, roof):
    rate, flow = conv.flops / best["moka"], conv.bytes / best["moka"]
    return {"name": conv.name, "net": conv.net, "flops": conv.flops, "bytes": conv.bytes, "seconds": best, "error": error,
            "gflops": rate * 1e-9, "of_peak": rate / (roof["flops"] * chosen.threads), "of_memory": flow / roof["bytes"],
            "ratio": best["moka"] / best["onnxruntime"]}


def mean_ratio(rows):
    return math.exp(sum(math.log(r["ratio"]) for r in rows) / len(rows))


def line(r):
    times = " ".join(f"{r['seconds'][name] * 1e6:10.0f}" for name in ("moka", "onnxruntime"))
    return (f"{r['net'] + ': ' + r['name']:64}{r['flops'] * 1e-6:7.0f} {times} {r['gflops']:9.1f} {r['of_peak']:8.3f} "
            f"{r['of_memory']:9.3f} {r['ratio']:6.2f}" + ("" if r["error"] <= TOLERANCE else f"  WRONG by {r['error']:.1e}"))


def main():
    roof = roofs()
    say = sys.stderr if chosen.json else sys.stdout
    print(f"peak {roof['flops'] * 1e-9:.1f} GFLOP/s and {roof['bytes'] * 1e-9:.1f} GB/s of one thread; {chosen.threads} threads", file=say)
    print(f"{'':64}{'MFLOP':>7} {'Moka us':>10} {'onnxrt us':>10} {'GFLOP/s':>9} {'of peak':>8} {'of memory':>9} {'ratio':>6}", file=say)
    rows, wanted = [], [text for text in chosen.only.split(";") if text]
    for conv in CONVOLUTIONS:
        if wanted and not any(text in conv.net + ": " + conv.name for text in wanted):
            continue
        with tempfile.TemporaryDirectory() as folder:
            case = (conv, *arrays(conv), pathlib.Path(folder))
            engines = {"moka": moka_engine(*case), "onnxruntime": onnx_engine(*case)}
            got, expected = (call() for call in engines.values())
            error = float(np.max(np.abs(got - expected)) / np.max(np.abs(expected)))
            rows.append(row(conv, measure(engines), error, roof))
        print(line(rows[-1]), file=say, flush=True)
    if rows:
        print(f"geometric mean of the ratios {mean_ratio(rows):.2f}, largest {max(r['ratio'] for r in rows):.2f}", file=say)
    output.write({"machine": machine.facts(), "roofs": roof, "threads": chosen.threads, "isa": chosen.isa, "rows": rows}, None,
                 argparse.Namespace(json=chosen.json, out=chosen.out, page=None))
    return int(any(r["error"] > TOLERANCE for r in rows))


if __name__ == "__main__":
    sys.exit(main())

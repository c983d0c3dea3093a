# SPDX-License-Identifier: Apache-2.0
"""What writing a trace costs: MobileNetV2, and a chain of small operations, with and without a trace.

run.py [--rounds N] [--seconds S] [--threads N] [--json FILE] [--page FILE]

Both sides take turns of S seconds, of which the processor time counts, with that of the thread that writes the trace: other work on the machine
is not in it. A row shows the best turn of each side, and the median ratio of neighboring turns. A turn with a trace begins and ends it.
"""
import argparse
import datetime
import json
import os
import pathlib
import statistics
import tempfile
import time

import moka
import numpy as np
from moka import build

#: Expansion, output channels, repetitions and stride of MobileNetV2's bottlenecks.
BOTTLENECKS = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]
SMALL = 200


def mobilenet_v2(picture=False):
    """MobileNetV2 with random weights; batch norms are folded into the convolutions. picture: the input is an image, which is
    scaled to -1 to 1."""
    rng = np.random.default_rng(1)
    program = build.Program("ios16")
    value, channels = program.input("image", build.image(224, 224) if picture else build.array((1, 3, 224, 224))), 3
    if picture:
        value = program.add(x=program.mul(x=value, y=np.float32(1 / 127.5), name="scaled"), y=np.float32(-1), name="shifted")

    def conv(x, inputs, outputs, size, stride=1, groups=1, bounded=True):
        weight = (rng.standard_normal((outputs, inputs // groups, size, size)) * (2 / (inputs // groups * size * size)) ** 0.5)
        y = program.conv(x=x, weight=weight.astype(np.float32), bias=np.zeros(outputs, np.float32), pad_type="custom",
                         pad=[size // 2] * 4, strides=[stride, stride], groups=groups)
        return program.relu6(x=y) if bounded else y

    value, channels = conv(value, 3, 32, 3, 2), 32
    for expansion, outputs, count, stride in BOTTLENECKS:
        for i in range(count):
            inner, step = channels * expansion, stride if i == 0 else 1
            y = conv(value, channels, inner, 1) if expansion > 1 else value
            y = conv(y, inner, inner, 3, step, groups=inner)
            y = conv(y, inner, outputs, 1, bounded=False)
            value = program.add(x=value, y=y) if step == 1 and channels == outputs else y
            channels = outputs
    value = conv(value, channels, 1280, 1)
    value = program.reduce_mean(x=value, axes=[2, 3], keep_dims=False)
    weight = (rng.standard_normal((1000, 1280)) / 36).astype(np.float32)
    program.output(program.linear(x=value, weight=weight, bias=np.zeros(1000, np.float32)), "logits")
    return program, {"image": rng.random((1, 3, 224, 224), np.float32)}


def small_operations():
    program = build.Program("ios16")
    value = program.input("x", build.array((1, 64)))
    for i in range(SMALL):
        value = program.softmax(x=value, axis=-1)
    program.output(value, "y")
    return program, {"x": np.random.default_rng(1).random((1, 64), np.float32)}


def measured(program, inputs, options, folder):
    model = moka.Model(program.save(f"{folder}/net.mlpackage"), compute_units="CPU_ONLY", threads=options.threads)

    def turn():
        count, begin, end = 0, time.process_time(), time.perf_counter() + options.seconds
        while count < 3 or time.perf_counter() < end:
            model.predict(inputs)
            count += 1
        return (time.process_time() - begin) / count

    turn()
    with moka.trace(f"{folder}/one.pftrace") as trace:
        model.predict(inputs)
    events = sum(g.count for g in trace.summary().groups if g.kind != "loaded")
    off, on = [], []
    for i in range(options.rounds):
        sides = [False, True] if i % 2 else [True, False]
        for traced in sides:
            if not traced:
                off.append(turn())
                continue
            trace = moka.trace(f"{folder}/t.pftrace")
            on.append(turn())
            trace.stop()
    return min(off), min(on), statistics.median(b / a for a, b in zip(off, on)), events


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json")
    parser.add_argument("--page")
    options = parser.parse_args()
    load = os.getloadavg()[0]
    results = []
    for name, make in (("MobileNetV2", mobilenet_v2), (f"{SMALL} softmaxes of 64 numbers", small_operations)):
        with tempfile.TemporaryDirectory() as folder:
            off, on, ratio, events = measured(*make(), options, folder)
        results.append({"net": name, "threads": options.threads, "seconds": off, "tracedSeconds": on, "ratio": ratio, "slices": events})
    lines = ["| net | threads | slices in a prediction | without a trace, ms | with a trace, ms | ratio |", "|---|---:|---:|---:|---:|---:|"]
    for r in results:
        lines.append(f"| {r['net']} | {r['threads']} | {r['slices']:.0f} | {1e3 * r['seconds']:.3f} | {1e3 * r['tracedSeconds']:.3f} | {r['ratio']:.3f} |")
    print("\n".join(lines))
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1) + "\n")
    if options.page:
        names = [line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
        processor = names[0] if names else "unknown processor"
        pathlib.Path(options.page).write_text(
            "# The cost of a trace\n\n<!-- Made by `make bench-tracing`; do not edit. -->\n\n"
            f"Predictions with and without a trace take turns of {options.seconds} s, {options.rounds} times ({processor}, {datetime.date.today()}, load {load:.1f} when "
            "it began). Times are processor time of the best turn; the ratio is the median over neighboring turns. While no trace is written, a step costs one branch.\n\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

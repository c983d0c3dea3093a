# SPDX-License-Identifier: Apache-2.0
"""What preparing a picture of a camera costs, beside OpenCV: NV12 of 1920 x 1080 for a model of 224 x 224.

run.py [--rounds N] [--seconds S] [--threads N] [--json FILE] [--page FILE]

Prepare: from the planes of a frame to the numbers of the model's input. OpenCV's are cvtColor, resize and a scale to planes of float32. Moka's are what
its prediction does before the net: the slice `convert` of a trace, and the model's own scale, which runs as operations of it. Stream: frames
through MobileNetV2, one behind another. All sides take turns of S seconds in one run, with one thread each unless --threads says otherwise.
"""
import argparse
import datetime
import json
import pathlib
import statistics
import sys
import tempfile
import time

import cv2
import moka
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from tracing.run import mobilenet_v2  # noqa: E402

WIDTH, HEIGHT, SIDE = 1920, 1080, 224
FRAMES = 8  # different frames, so that no cache holds them all
SCALES = ("scaled", "shifted")  # the operations of the model's own scale


def frames():
    """Smooth pictures with some noise, as NV12 in arrays of HEIGHT * 3 / 2 rows."""
    rng = np.random.default_rng(1)
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    made = []
    for i in range(FRAMES):
        luma = 125 + 60 * np.sin(x / (90 + 7 * i)) + 40 * np.cos(y / (60 + 5 * i)) + rng.normal(0, 4, x.shape)
        chroma = 128 + 40 * np.sin((x[: HEIGHT // 2] + 30 * i) / 150)
        made.append(np.concatenate([luma, chroma]).clip(16, 235).astype(np.uint8))
    return made


class OpenCV:
    """Fills one array of planes, as a program would that predicts again and again."""

    def __init__(self, interpolation):
        self.interpolation = interpolation
        self.rgb = np.empty((HEIGHT, WIDTH, 3), np.uint8)
        self.small = np.empty((SIDE, SIDE, 3), np.uint8)
        self.floats = np.empty((SIDE, SIDE, 3), np.float32)
        self.planes = np.empty((1, 3, SIDE, SIDE), np.float32)

    def prepare(self, nv12):
        cv2.cvtColor(nv12, cv2.COLOR_YUV2RGB_NV12, dst=self.rgb)
        cv2.resize(self.rgb, (SIDE, SIDE), dst=self.small, interpolation=self.interpolation)
        np.multiply(self.small, np.float32(1 / 127.5), out=self.floats)
        np.subtract(self.floats, np.float32(1), out=self.floats)
        cv2.split(self.floats, [self.planes[0, c] for c in range(3)])
        return self.planes


def turn(work, seconds):
    """The median seconds of a call in one turn."""
    times, end = [], time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        begin = time.perf_counter()
        work(len(times) % FRAMES)
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def parts_of(model, buffers, seconds, folder):
    """The mean seconds of a frame's conversion and of the operations of the model's own scale, by a trace."""
    with moka.trace(f"{folder}/camera.pftrace") as trace:
        turn(lambda i: model.predict({"image": buffers[i]}), seconds)
    groups = trace.summary().groups
    convert = sum(g.total / g.count for g in groups if g.lane == "Data" and g.name == "image")
    scale = sum(g.total / g.count for g in groups if g.lane == "Compute" and g.name in SCALES)
    return convert, scale


def measured(options, folder):
    given = frames()
    buffers = [moka.PixelBuffer(f) for f in given]
    load = {"compute_units": "CPU_ONLY", "threads": options.threads}
    pictures = moka.Model(mobilenet_v2(True)[0].save(f"{folder}/pictures.mlpackage"), **load)
    arrays = moka.Model(mobilenet_v2()[0].save(f"{folder}/arrays.mlpackage"), **load)
    linear, area = OpenCV(cv2.INTER_LINEAR), OpenCV(cv2.INTER_AREA)
    difference = np.abs(area.prepare(given[0])[0].transpose(1, 2, 0) - (buffers[0].fitted(SIDE, SIDE) / 127.5 - 1)).max() * 127.5
    sides = {
        "OpenCV, bilinear": lambda i: linear.prepare(given[i]),
        "OpenCV, area": lambda i: area.prepare(given[i]),
        "stream, OpenCV": lambda i: arrays.predict({"image": linear.prepare(given[i])}),
        "stream, Moka": lambda i: pictures.predict({"image": buffers[i]}),
        "net alone": lambda i: arrays.predict({"image": linear.planes}),
    }
    times = {name: [] for name in sides}
    parts = []
    for work in sides.values():
        turn(work, options.seconds)
    for i in range(options.rounds):
        order = list(sides) if i % 2 else list(sides)[::-1]
        for name in order:
            times[name].append(turn(sides[name], options.seconds))
        parts.append(parts_of(pictures, buffers, options.seconds, folder))
    best = {name: min(t) for name, t in times.items()}
    best["Moka, conversion"] = min(convert for convert, _ in parts)
    best["Moka, scale"] = min(scale for _, scale in parts)
    return best, difference


def table(best):
    def row(name, seconds, what):
        return f"| {name} | {1e3 * seconds:.3f} | {what} |"

    moka_all = best["Moka, conversion"] + best["Moka, scale"]
    return ["| prepare a frame | ms | |", "|---|---:|---|",
            row("Moka", moka_all, f"{1e3 * best['Moka, conversion']:.3f} crop, resize and colors, {1e3 * best['Moka, scale']:.3f} the model's scale"),
            row("OpenCV", best["OpenCV, bilinear"], "`cvtColor`, `resize` (bilinear, four pixels for each result), scale, `split`"),
            row("OpenCV, area", best["OpenCV, area"], "the same with `INTER_AREA`, which reads all pixels as Moka does"),
            "", "| a frame through MobileNetV2 | ms | frames a second |", "|---|---:|---:|",
            *(row(name, best[key], f"{1 / best[key]:.0f}") for name, key in
              (("Moka, with `moka.PixelBuffer`", "stream, Moka"), ("OpenCV, then Moka", "stream, OpenCV"), ("the net alone, of an array", "net alone")))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json")
    parser.add_argument("--page")
    options = parser.parse_args()
    cv2.setNumThreads(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        best, difference = measured(options, folder)
    lines = table(best)
    print("\n".join(lines))
    print(f"\nlargest difference of Moka's numbers from those of OpenCV's INTER_AREA: {difference:.1f} of 255")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(best, indent=1) + "\n")
    if options.page:
        names = [line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
        processor = names[0] if names else "unknown processor"
        pathlib.Path(options.page).write_text(
            "# Pictures of cameras\n\n<!-- Made by `make bench-camera`; do not edit. -->\n\n"
            f"NV12 of {WIDTH} x {HEIGHT} for a model of {SIDE} x {SIDE} pixels ({processor}, {options.threads} thread each, OpenCV {cv2.__version__}, "
            f"{datetime.date.today()}). {FRAMES} frames take turns, and so do the sides, for {options.seconds} s, {options.rounds} times; a time is the "
            "median of a side's best turn. [Pictures of cameras](../files.md#pictures-of-cameras) says what Moka computes.\n\n" + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

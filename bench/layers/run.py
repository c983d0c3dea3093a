# SPDX-License-Identifier: Apache-2.0
"""What registered layers cost: an elementwise layer in C beside the built-in one, and ten layers in NumPy beside NumPy alone.

run.py [--rounds N] [--threads N] [--json FILE]

Both sides of a row take turns with the same arrays. The row shows their shortest times, the ratio of these, and the median of the ratios
of single rounds, which is the better one where the memory of a busy machine decides.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

import moka
import numpy as np
from moka import build

HERE = pathlib.Path(__file__).resolve().parent
SIZES = [(16, 64, 64), (64, 128, 128), (64, 512, 512)]
MEGAPIXEL = (1, 1024, 1024)
LAYERS = 10


@moka.register_layer("BenchHalf")
class Half:
    """x / 2 + 1."""

    def __init__(self, parameters):
        pass

    def evaluate(self, inputs, outputs):
        np.multiply(inputs[0], 0.5, out=outputs[0])
        outputs[0] += 1


def network(shape, fill, count=1):
    """A model of `count` layers one after the other; `fill` makes a layer what it is."""
    array = build.array(shape, np.float32)
    spec = build.model("neuralNetwork", {"x": array}, {"y": array}, version=4)
    spec.neuralNetwork.arrayInputShapeMapping = "EXACT_ARRAY_MAPPING"
    names = ["x"] + [f"x{i}" for i in range(1, count)] + ["y"]
    for i in range(count):
        fill(spec.neuralNetwork.layers.add(name=f"layer{i}", input=[names[i]], output=[names[i + 1]]))
    return build.Source(spec)


def custom(name):
    def fill(layer):
        layer.custom = {"className": name}
    return fill


def relu(layer):
    layer.activation = {"ReLU": {}}


def predictor(source, threads, x, y):
    """Predicts y from x. Models that are compared use the same arrays: how the system places their pages changes times by half."""
    with tempfile.TemporaryDirectory() as folder:
        model = moka.Model(source.save(f"{folder}/model.mlmodel"), compute_units="CPU_ONLY", threads=threads)

    def predict():
        model.predict({"x": x}, outputs={"y": y})
        return y
    return predict


def arrays(shape):
    """An input and an output, whose pages are there."""
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32), np.zeros(shape, np.float32) + 1


def compare(left, right, rounds):
    """The shortest times of both in seconds, and the median ratio. Both run in each round, so a slow phase of the machine slows both."""
    times = [], []
    for _ in range(rounds):
        for side, run in enumerate((left, right)):
            begin = time.perf_counter()
            run()
            times[side].append(time.perf_counter() - begin)
    return min(times[0]), min(times[1]), statistics.median(a / b for a, b in zip(*times))


def rows(rounds, threads):
    with tempfile.TemporaryDirectory() as folder:
        plugin = f"{folder}/relu.so"
        subprocess.run(["cc", "-O3", "-march=native", "-shared", "-fPIC", f"-I{HERE.parents[1] / 'include'}", str(HERE / "relu.c"), "-o", plugin], check=True)
        moka.load_plugin(plugin)
        for shape in SIZES:
            x, y = arrays(shape)
            ours, built_in = (predictor(network(shape, fill), threads, x, y) for fill in (custom("BenchRelu"), relu))
            assert np.array_equal(ours().copy(), built_in())
            yield f"ReLU in C, {int(np.prod(shape)):,} elements", "built-in", *compare(ours, built_in, rounds)
    x, y = arrays(MEGAPIXEL)
    python = predictor(network(MEGAPIXEL, custom("BenchHalf"), LAYERS), threads, x, y)
    buffers = [np.empty_like(x), np.empty_like(x)]
    layer = Half({})

    def alone():
        value = x
        for i in range(LAYERS):
            out = y if i == LAYERS - 1 else buffers[i % 2]
            layer.evaluate([value], [out])
            value = out
        return value
    assert np.array_equal(python(), alone())
    yield f"{LAYERS} layers in Python, {int(np.prod(MEGAPIXEL)):,} elements each", "NumPy alone", *compare(python, alone, rounds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=101)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json")
    options = parser.parse_args()
    print(f"{'registered layer':<52} {'seconds':>10}  {'beside':<12} {'seconds':>10} {'ratio':>6} {'median':>6}")
    results = []
    for name, other, ours, theirs, median in rows(options.rounds, options.threads):
        print(f"{name:<52} {ours:>10.6f}  {other:<12} {theirs:>10.6f} {ours / theirs:>6.3f} {median:>6.3f}", flush=True)
        results.append({"layer": name, "beside": other, "seconds": ours, "besideSeconds": theirs, "ratio": ours / theirs, "median": median})
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()

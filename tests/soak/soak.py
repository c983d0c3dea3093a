# SPDX-License-Identifier: Apache-2.0
"""Predicts many times and reports how the memory of the process develops. Fails when it grows.

Usage: soak.py [--predictions 100000] [--stateful 10000] [--loads 1000]
"""

import argparse
import concurrent.futures
import gc
import pathlib
import sys
import tempfile
import time

import numpy as np

import moka

#: What an allocator may keep above the level after warm-up.
ALLOWED_BYTES = 24 << 20


def resident():
    for line in open("/proc/self/status"):
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("no VmRSS")


def small():
    return moka.Model.from_mil(
        """program(1.3)
{
 func main<ios18>(tensor<fp32, [1, 8, 16, 16]> x) {
  tensor<fp32, [16, 8, 3, 3]> w = fill(shape = tensor<int32, [4]>([16, 8, 3, 3]), value = fp32(0x1p-6))[name = string("w")];
  tensor<fp32, [1, 16, 14, 14]> c = conv(x = x, weight = w)[name = string("c")];
  tensor<fp32, [1, 16, 14, 14]> y = relu(x = c)[name = string("y")];
 } -> (y);
}"""
    )


def stateful_palettised(folder):
    """A linear layer with a 4-bit palette whose result is added to a state: built with coremltools."""
    import coremltools as ct
    from coremltools.converters.mil import Builder as mb
    from coremltools.converters.mil.mil import types

    weight = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float16)

    @mb.program(
        input_specs=[mb.TensorSpec(shape=(1, 64), dtype=types.fp16), mb.StateTensorSpec(shape=(1, 64), dtype=types.fp16)],
        opset_version=ct.target.iOS18,
    )
    def prog(x, s):
        y = mb.linear(x=x, weight=weight)
        kept = mb.mul(x=mb.read_state(input=s), y=np.float16(0.5))
        return mb.identity(x=mb.coreml_update_state(state=s, value=mb.add(x=y, y=kept)), name="y")

    model = ct.convert(
        prog, convert_to="mlprogram", minimum_deployment_target=ct.target.iOS18, skip_model_load=True
    )
    config = ct.optimize.coreml.OptimizationConfig(
        global_config=ct.optimize.coreml.OpPalettizerConfig(mode="uniform", nbits=4, weight_threshold=0)
    )
    path = str(pathlib.Path(folder) / "stateful.mlpackage")
    ct.optimize.coreml.palettize_weights(model, config).save(path)
    return moka.Model(path)


def run(name, rounds, step):
    """Runs `step` for a tenth of the rounds at a time. The first three tenths are warm-up."""
    marks = []
    started = time.time()
    for tenth in range(10):
        for _ in range(max(1, rounds // 10)):
            step()
        gc.collect()
        marks.append(resident())
        print(f"\r{name}: {(tenth + 1) * 10} %", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    growth = marks[-1] - marks[2]
    ok = growth <= ALLOWED_BYTES
    print(
        f"{name:34} {rounds:7} rounds {time.time() - started:7.1f} s   "
        f"resident MB {' '.join(f'{m / 1e6:.0f}' for m in marks)}   {'flat' if ok else 'GROWS'}"
    )
    return ok


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--predictions", type=int, default=100_000)
    parser.add_argument("--stateful", type=int, default=10_000)
    parser.add_argument("--loads", type=int, default=1_000)
    options = parser.parse_args()
    model = small()
    x = {"x": np.ones((1, 8, 16, 16), np.float32)}
    expected = model.predict(x)["y"]

    def predict():
        assert np.array_equal(model.predict(x)["y"], expected)

    ok = True
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        ok &= run("predictions from 8 threads, by 100", options.predictions // 100, lambda: list(pool.map(lambda _: predict(), range(100))))
    with tempfile.TemporaryDirectory() as folder:
        decoder = stateful_palettised(folder)
        state = decoder.new_state()
        step = {"x": np.full((1, 64), 0.01, np.float16)}
        ok &= run("stateful, palettised", options.stateful, lambda: decoder.predict(step, state=state))
        path = str(pathlib.Path(folder) / "stateful.mlpackage")
        ok &= run("loads and drops", options.loads, lambda: moka.Model(path))
    print("soak: " + ("passed: the memory stays flat" if ok else "failed: the memory grows"))
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()

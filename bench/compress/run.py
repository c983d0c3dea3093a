# SPDX-License-Identifier: Apache-2.0
"""Compresses nets with moka and with coremltools: sizes, errors and times, and what the search finds.

    python bench/compress/run.py --program build/bin/moka --page docs/performance/compress.md      # make bench-compress
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

NETS = ("mobilenet_v2", "resnet50", "bert_base", "decoder_110m")
GOALS = (40, 20)  # dB
ACTIVATIONS = "linear 8 and activations"
FORMS = ("linear 8, channel", "linear 4, blocks of 32", "palette 6", "palette 4", ACTIVATIONS)
TITLE = "# Compressing\n\nWritten by `make bench-compress`. "


def forms():
    """The name of a form, moka's options, and coremltools' function and configuration."""
    import coremltools.optimize.coreml as cto

    linear, palette = cto.linear_quantize_weights, cto.palettize_weights
    return [
        ("linear 8, channel", ["--linear", "8"], linear, cto.OpLinearQuantizerConfig(mode="linear_symmetric", weight_threshold=2048)),
        ("linear 4, blocks of 32", ["--linear", "4", "--per", "block:32"], linear,
         cto.OpLinearQuantizerConfig(mode="linear_symmetric", dtype="int4", granularity="per_block", block_size=32, weight_threshold=2048)),
        ("palette 6", ["--palette", "6"], palette, cto.OpPalettizerConfig(mode="kmeans", nbits=6, weight_threshold=2048)),
        ("palette 4", ["--palette", "4"], palette, cto.OpPalettizerConfig(mode="kmeans", nbits=4, weight_threshold=2048)),
    ]


def build(name, path):
    """The net as an ML program for iOS 18 with weights of float16."""
    import coremltools as ct
    import numpy as np
    import torch
    import nets
    from blocks import weights

    net = nets.module(name)
    torch.manual_seed(0)
    model, inputs = net.model().eval(), net.inputs(np.random.default_rng(0))
    tensors = tuple(torch.from_numpy(np.asarray(x)) for x in inputs.values())
    with torch.no_grad():
        weights.randomise_batch_norms(model, tensors, getattr(net, "NORM_OFFSET", weights.OFFSET))
        traced = torch.jit.trace(model, tensors, strict=False)
    features = [ct.TensorType(name=n, shape=x.shape, dtype=np.int32 if x.dtype.kind == "i" else np.float32) for n, x in inputs.items()]
    ct.convert(traced, inputs=features, minimum_deployment_target=ct.target.iOS18).save(str(path))


def build_matrices(megabytes, path):
    """A chain of products with 2048 x 2048 float32 matrices, whose elements are heavy-tailed like real weights."""
    import coremltools as ct
    import numpy as np
    from coremltools.converters.mil import Builder as mb

    side, random = 2048, np.random.default_rng(0)

    @mb.program(input_specs=[mb.TensorSpec(shape=(1, side))], opset_version=ct.target.iOS17)
    def program(x):
        for _ in range(max(1, round(megabytes * 1e6 / (4 * side * side)))):
            x = mb.tanh(x=mb.linear(x=x, weight=(random.standard_t(5, (side, side)) * 0.02).astype(np.float32)))
        return x

    ct.convert(program, minimum_deployment_target=ct.target.iOS17, compute_precision=ct.precision.FLOAT32).save(str(path))


def size(package):
    return sum(f.stat().st_size for f in package.rglob("*") if f.is_file())


class Run:
    """Results of earlier runs in the folder are kept."""

    def __init__(self, program, folder):
        self.program, self.folder, self.results = program, folder, folder / "results.json"
        self.rows = json.loads(self.results.read_text()) if self.results.exists() else {}

    def moka(self, *arguments):
        start = time.perf_counter()
        done = subprocess.run([self.program, *map(str, arguments)], capture_output=True, text=True)
        if done.returncode not in (0, 1):
            raise RuntimeError(f"moka {' '.join(map(str, arguments))}: {done.stderr}")
        return done.stdout, time.perf_counter() - start

    def error(self, model, source, seed=1000, runs=5):
        """In dB, of the worst output."""
        answer = json.loads(self.moka("verify", model, "--against", source, "--seed", seed, "--runs", runs, "--min-snr", -1000, "--json")[0])
        found = [o["snr"] for shape in answer["shapes"] for o in shape["outputs"] if o.get("snr") is not None]
        return min(found, default=float("inf"))

    def prediction(self, model):
        """The median of a second of predictions by one thread, in milliseconds."""
        return 1e3 * json.loads(self.moka("bench", model, "--threads", 1, "--seconds", 1, "--json")[0])["steady"]["p50"]

    def add(self, net, form, tool, model, source, seconds, runs=5):
        # Both tools write the same form.
        prediction = self.prediction(model) if tool == "moka" else None
        row = (size(model) / 1e6, self.error(model, source, runs=runs), seconds, prediction)
        self.rows[f"{net}|{form}|{tool}"] = row
        self.results.write_text(json.dumps(self.rows, indent=1))
        print("%-14s %-24s %-11s %8.2f MB %6.1f dB %7.1f s" % (net, form, tool, *row[:3]) + (f" {prediction:8.1f} ms" if prediction else ""), flush=True)

    def activations(self, name, source, out, theirs):
        """Integers of 8 bits for weights and activations, by the ranges of one random input; coremltools predicts with moka."""
        import coremltools as ct
        import coremltools.optimize.coreml as cto
        import moka
        import moka.coremltools  # noqa: F401
        import numpy as np

        sample = moka.Model(str(source)).random_inputs(1)
        np.savez(self.folder / "sample.npz", **sample)
        self.add(name, ACTIVATIONS, "moka", out, source, self.moka("compress", source, "-o", out, "--activations", "int8", "-i", f"@{self.folder / 'sample.npz'}")[1])
        if not theirs:
            return
        model = ct.models.MLModel(str(source), compute_units=ct.ComputeUnit.CPU_ONLY)
        start = time.perf_counter()
        activations = cto.OptimizationConfig(global_config=cto.OpLinearQuantizerConfig(mode="linear_symmetric"))
        weights = cto.OptimizationConfig(global_config=cto.OpLinearQuantizerConfig(mode="linear_symmetric", weight_threshold=2048))
        try:
            rounded = cto.linear_quantize_activations(model, activations, [dict(sample)])
        except ValueError as e:  # additions of whole numbers
            print(f"{name:14} {ACTIVATIONS:24} coremltools: {e}", flush=True)
            return
        cto.linear_quantize_weights(rounded, weights).save(str(out))
        self.add(name, ACTIVATIONS, "coremltools", out, source, time.perf_counter() - start)

    def net(self, name, chosen, goals, theirs):
        import coremltools as ct
        import coremltools.optimize.coreml as cto

        source, out = self.folder / f"{name}.mlpackage", self.folder / "out.mlpackage"
        if not source.exists():
            build(name, source)
        self.rows[f"{name}|source|"] = (size(source) / 1e6, None, None, self.prediction(source))
        for form, options, function, config in forms():
            if form not in chosen:
                continue
            self.add(name, form, "moka", out, source, self.moka("compress", source, "-o", out, *options)[1])
            if theirs:
                model = ct.models.MLModel(str(source), skip_model_load=True)
                start = time.perf_counter()
                made = function(model, cto.OptimizationConfig(global_config=config))
                made.save(str(out))
                self.add(name, form, "coremltools", out, source, time.perf_counter() - start)
        if ACTIVATIONS in chosen:
            self.activations(name, source, out, theirs)
        for goal in goals:
            answer, seconds = self.moka("compress", source, "-o", out, "--max-error", goal, "--json")
            self.add(name, f"--max-error {goal}dB", "moka", out, source, seconds, runs=20)
            found = json.loads(answer)
            print(f"{'':14} checked {found['signalToNoise']:.1f} dB, bound {found['bound']:.1f} dB, prediction {1e3 * found['secondsBefore']:.1f} ms before, "
                  f"{1e3 * found['secondsAfter']:.1f} ms after", flush=True)


def time_kmeans(run, megabytes, bits, theirs):
    """Palettes of matrices, in seconds of the clock and of the processors."""
    import coremltools as ct
    import coremltools.optimize.coreml as cto

    source, out = run.folder / f"matrices_{megabytes}.mlpackage", run.folder / "out.mlpackage"
    if not source.exists():
        build_matrices(megabytes, source)

    def timed(tool, work):
        before, start = os.times(), time.perf_counter()
        work()
        seconds, after = time.perf_counter() - start, os.times()
        print("%-11s %4d MB, %d bits: %7.1f s, processors %7.1f s" % (tool, megabytes, bits, seconds, sum(after[:4]) - sum(before[:4])), flush=True)

    timed("moka", lambda: run.moka("compress", source, "-o", out, "--palette", bits))
    if theirs:
        model = ct.models.MLModel(str(source), skip_model_load=True)
        config = cto.OptimizationConfig(global_config=cto.OpPalettizerConfig(mode="kmeans", nbits=bits))
        timed("coremltools", lambda: cto.palettize_weights(model, config).save(str(out)))


def page(rows):
    out = [TITLE + "Random weights in float16 for iOS 18; errors are those of five inputs, and of twenty after a search, none of which\nthe search or the ranges of activations have seen. Times are wall-clock seconds "
           "with writing. Predictions are Moka's with one thread, medians in milliseconds.", "",
           "A search without times ran beside other work.", "",
           f"Machine: {os.cpu_count()} processors, load {os.getloadavg()[0]:.0f} at the end.", "",
           "| net | form | by | size, MB | signal to noise, dB | time, s | prediction, ms |", "|---|---|---|---:|---:|---:|---:|"]
    order = [*(f"{form}|{tool}" for form in ("source", *FORMS) for tool in ("", "moka", "coremltools")), *(f"--max-error {g}dB|moka" for g in GOALS)]
    for key in sorted(rows, key=lambda k: (NETS.index(k.split("|")[0]), order.index(k.split("|", 1)[1]))):
        net, form, tool = key.split("|")
        megabytes, error, seconds, prediction = rows[key]
        form = f"`{form}`" if form.startswith("--") else form
        error, seconds = ("" if x is None else f"{x:.1f}" for x in (error, seconds))
        prediction = "" if prediction is None else f"{prediction:.3g}"
        out.append(f"| {net} | {form} | {tool} | {megabytes:.2f} | {error} | {seconds} | {prediction} |")
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True, type=pathlib.Path)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("build/bench/compress"))
    parser.add_argument("--nets", nargs="+", default=NETS, choices=NETS)
    parser.add_argument("--forms", nargs="*", default=FORMS, choices=FORMS)
    parser.add_argument("--goals", nargs="*", type=int, default=GOALS, choices=GOALS, help="dB of the searches")
    parser.add_argument("--alone", action="store_true", help="without coremltools")
    parser.add_argument("--kmeans", type=int, metavar="MB", help="only time k-means on a model of this size")
    parser.add_argument("--bits", type=int, default=4, help="of --kmeans")
    parser.add_argument("--page", type=pathlib.Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    run = Run(options.program.resolve(), options.folder)
    if options.kmeans:
        time_kmeans(run, options.kmeans, options.bits, not options.alone)
        return
    for name in options.nets:
        run.net(name, options.forms, options.goals, not options.alone)
    if options.page:
        options.page.write_text(page(run.rows))


if __name__ == "__main__":
    main()

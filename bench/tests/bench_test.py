# SPDX-License-Identifier: Apache-2.0
"""Tests the benchmark's own logic: statistics, best peer, pages. No engine runs here."""

import importlib.util
import pathlib
import random
import re
import statistics
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import accuracy
import engines
import exported
import gpu
import loads
import nets
import plot
import report
import run
import vulkan
from harness import client, isa, samples, stats
from made_up import failed, results, sample

try:
    import numpy as np
except ImportError:
    np = None
try:
    import matplotlib
except ImportError:
    matplotlib = None


class Reasons(unittest.TestCase):
    def behind(self, entries):
        data = results(sample("a", "moka", ms=20), sample("a", "left", ms=10), sample("a", "moka", ms=10, threads=2),
                       sample("a", "left", ms=8, threads=2), nets={"a": {"parameters": 25_000_000}}, threads=[1, 2])
        return [report.behind_table(data, threads, "fp32", entries) for threads in (1, 2)]

    def test_numbers_of_a_reason_are_those_of_the_run(self):
        one, two = self.behind([{"net": "b", "text": "no"},
                                {"net": "a", "threads": 2, "text": "{speedup} and {peer_speedup}"},
                                {"net": "a", "text": "{megabytes} MB at {rate} GB/s"}])
        self.assertIn("100 MB at 5 GB/s", one)
        self.assertIn("2.00 and 1.25", two)

    def test_a_row_without_a_reason_says_so(self):
        self.assertIn("not known", self.behind([])[0])

    def test_all_reasons_are_about_nets_and_have_known_numbers(self):
        known = {"megabytes": "1", "rate": "1", "speedup": "1", "peer_speedup": "1"}
        for entry in report.tomllib.loads(report.REASONS.read_text())["reason"]:
            self.assertIn(entry["net"], nets.every() + nets.zoo.names())
            self.assertTrue(entry["text"].format(**known))


class Gpu(unittest.TestCase):
    @staticmethod
    def row(**more):
        times = {"moka": {"later": 0.001, "load_first": 0.5}, "torch": {"later": 0.002, "device": "a GPU"},
                 "ncnn": {"later": 0.004, "load_first": 2}}
        return {"net": "resnet50", "title": "a net", "samples": {"fp32": {**times, **more}, "fp16": {**times, "ncnn": {"reason": "no shader"}}}}

    def test_tables_compare_times_of_both_engines(self):
        rows = [self.row(), self.row(torch={"reason": "PyTorch finds no CUDA device"})]
        self.assertRegex(gpu.table(rows, "fp32"), r"a net +\| +1.00 +\| +2.00 +\| +0.50 +\| +4.00 +\| +0.25 +\| +500 +\| +2000")
        self.assertIn("0.50 of PyTorch's time, less on 1 of 1 nets; 0.25 of ncnn's time, less on 2 of 2 nets", gpu.summary(rows, "fp32"))
        self.assertIn("no CUDA device", gpu.missing(rows))
        self.assertIn("no shader", gpu.missing(rows))
        self.assertEqual(gpu.missing([]), "")

    def test_an_answer_that_differs_is_told(self):
        row = self.row(moka={"later": 0.001, "load_first": 0.5, "wrong": "the answers differ"})
        self.assertEqual(gpu.wrong([self.row()]), [])
        self.assertEqual(gpu.wrong([row]), ["resnet50 in fp32: the answers differ"])

    def test_the_page_names_the_gpu_and_what_was_measured(self):
        data = {"rows": [self.row()], "machine": {"cpu": "a processor"}, "gpu": "a fast GPU", "versions": {"torch": "2.7.1"}}
        self.assertIn("on a fast GPU", gpu.page(data))
        self.assertIn("On a processor; torch 2.7.1.", gpu.page(data))


class Vulkan(unittest.TestCase):
    @staticmethod
    def sample(regions=1, off=(), dispatches=60, **more):
        counts = {"dispatches": dispatches, "waits": 50, "bytes": 2_000_000}
        placement = {"regions": [{}] * regions, "off": [list(o) for o in off]}
        return {"counts": counts, "placement": placement, "driver": "a driver", "error": 1e-6, "load": 0.5, "first": 1.5, "later": 0.2, "run": "r",
                **more}

    def row(self, mine, peer):
        return {"net": "resnet50", "title": "a net", "date": "d", "moka": mine, "ncnn": peer}

    def test_a_net_is_good_in_one_region_with_all_operations_and_a_right_answer(self):
        peer = self.sample()
        self.assertTrue(vulkan.is_good(self.row(self.sample(), peer)))
        self.assertFalse(vulkan.is_good(self.row(self.sample(regions=2), peer)))
        self.assertFalse(vulkan.is_good(self.row(self.sample(off=[("a", "sort", "too long")]), peer)))
        self.assertFalse(vulkan.is_good(self.row(self.sample(error=1e-3), peer)))
        self.assertFalse(vulkan.is_good(self.row({"reason": "it did not load"}, peer)))

    def test_the_tables_show_counts_ratios_times_and_what_is_missing(self):
        rows = [self.row(self.sample(), self.sample(dispatches=100)),
                self.row(self.sample(off=[("a", "sort", "too long")]), self.sample()),
                self.row(self.sample(), {"reason": "no conversion"})]
        self.assertIn("a (sort): too long", vulkan.placement_table(rows))
        self.assertRegex(vulkan.counts_table(rows), r"60 +\| +100 +\| +0.60")
        self.assertIn("at most 0.6 on 1 of 1 nets", vulkan.counts_line(rows))
        self.assertRegex(vulkan.times_table(rows), r"2000 +\| +2000 +\| +1.00 +\| +200 +\| +200 +\| +1.00")
        self.assertIn("load + first: 1.00 of ncnn's, at most 0.5 on 0 of 2 nets. More than 0.5: a net (1.00); a net (1.00). later",
                      vulkan.times_line(rows))
        self.assertNotIn("More than", vulkan.goals_line(rows, [("bytes", lambda row: 0.5, 0.5)]))
        self.assertIn("no conversion", vulkan.missing(rows))
        data = {"rows": rows, "machine": {"cpu": "a processor"}, "versions": {"ncnn": "1"}, "driver": "a driver"}
        self.assertIn("a driver", vulkan.page(data))
        environment = vulkan.environment(pathlib.Path("layer"), False)
        self.assertEqual(environment["MESA_SHADER_CACHE_DISABLE"], "true", "else a second run would not compile")

    def test_a_net_that_is_partly_on_the_processor_is_not_compared(self):
        row = self.row(self.sample(), self.sample(off=[("a", "LSTM", "")]))
        self.assertIsNone(vulkan.ratio(row, "dispatches"))
        self.assertIn("on the processor: LSTM", vulkan.missing([row]))

    def test_a_new_row_replaces_what_it_has_of_an_old_one(self):
        old = self.row({"reason": "old"}, self.sample())
        new = {"net": "resnet50", "title": "a net", "date": "e", "moka": self.sample()}
        merged = vulkan.together([old], [new])
        self.assertEqual(len(merged), 1)
        self.assertIn("counts", merged[0]["moka"])
        self.assertIn("counts", merged[0]["ncnn"])

    def test_times_stay_where_a_run_only_counts(self):
        counted = self.sample(dispatches=50)
        for name in vulkan.TIMES:
            counted.pop(name, None)
        merged = vulkan.together([self.row(self.sample(), self.sample())], [self.row(counted, counted)])
        self.assertEqual((merged[0]["moka"]["counts"]["dispatches"], merged[0]["moka"]["later"]), (50, 0.2))
        failed = vulkan.together(merged, [self.row({"reason": "no"}, counted)])
        self.assertEqual(failed[0]["moka"], {"reason": "no"})

    def test_times_of_two_runs_are_not_compared(self):
        row = self.row(self.sample(), {**self.sample(), "run": "another"})
        self.assertIsNone(vulkan.time_ratio(row, vulkan.seconds_to_first))
        self.assertRegex(vulkan.times_table([row]), r"2000 +\| +2000 +\| +- ")


def training_run():
    """bench/training/run.py, whose name is that of another module."""
    spec = importlib.util.spec_from_file_location("training_run", HERE.parent / "training" / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Training(unittest.TestCase):
    bench = training_run()

    def row(self, net, moka, eager, compiled):
        """Times in milliseconds; None: the engine failed. Peaks are the same numbers in MB."""
        times = {"moka": moka, "eager": eager, "compiled": compiled}
        found = {name: {"median": t / 1e3, "peak": t * 1e6} for name, t in times.items() if t is not None}
        row = {"net": net, "batch": 8, "threads": 1, "engines": found, "reasons": {n: "why" for n, t in times.items() if t is None}}
        self.bench.add_ratios(row)
        return row

    def test_ratio_to_the_better_one(self):
        self.assertAlmostEqual(self.row("cnn", 3, 6, 12)["ratio"], 0.5)
        self.assertAlmostEqual(self.row("cnn", 3, 6, 1.5)["ratio"], 2)
        self.assertAlmostEqual(self.row("cnn", 3, 6, None)["memory"], 0.5)
        self.assertNotIn("ratio", self.row("cnn", None, 6, 3))

    def test_summary(self):
        rows = [self.row("cnn", 4, 2, 8), self.row("mlp", 1, 2, 2), self.row("lstm", None, 2, 2)]
        self.assertEqual(self.bench.summary(rows), ["geometric mean of the ratios of times 1.00, worst 2.00 (cnn, 8, 1)",
                                                  "geometric mean of the ratios of memory 1.00, worst 2.00"])
        self.assertEqual(self.bench.summary(rows[2:]), [])

    def test_cells(self):
        self.assertEqual(self.bench.cells(self.row("cnn", 4, 25, 8)), ["cnn", "8", "1", "4.00", "25.0", "8.00", "0.50", "4.00", "25.0", "8.00", "0.50"])
        self.assertEqual(self.bench.notes(self.row("lstm", None, 2, 2)), ["lstm, mini-batches of 8, 1 threads: moka: why"])

    def test_losses_differ(self):
        same = {"moka": [2.0, 1.00005], "eager": [2.0, 1.0], "compiled": [2.0, 1.0]}
        self.assertEqual(self.bench.differ(same), "")
        self.assertEqual(self.bench.differ({**same, "moka": [2.0, 1.5]}), "the loss of step 2 is 1.5 on moka and 1 in eager PyTorch")
        self.assertIn("nan", self.bench.differ({**same, "moka": [float("nan"), 1.0]}))


class Nets(unittest.TestCase):
    def test_a_name_of_a_folder_is_no_name_of_a_function(self):
        """Importing a net binds its folder's name in the package."""
        functions = {name for name, what in vars(nets).items() if callable(what)}
        self.assertTrue(nets.when_named())
        self.assertFalse(functions & {f.name for f in nets.HERE.iterdir() if f.is_dir()})


    def test_a_run_takes_nets_of_libraries_by_name_or_all(self):
        zoo = nets.zoo.names()
        self.assertGreater(len(zoo), 60)
        self.assertEqual(run.arguments(["--nets", "zoo", "--threads", "1"]).nets, zoo)
        self.assertEqual(run.arguments(["--nets", "timm.mixnet_s,resnet50", "--threads", "1"]).nets, ["resnet50", "timm.mixnet_s"])
        self.assertFalse(set(zoo) & set(nets.every()))
        made = nets.module("torchvision.r3d_18")
        self.assertEqual((made.TITLE, made.OUTPUTS), ("r3d_18 (torchvision)", ("output",)))
        self.assertIn(made.FAMILY, nets.FAMILIES)
        self.assertNotEqual(nets.source("timm.mixnet_s"), nets.source("timm.tinynet_a"))

    def test_a_page_of_one_run_says_what_limits_it(self):
        data = results(sample("n", "moka"), sample("n", "left"), sample("n", "right", error=1))
        page = report.page(data)
        for part in ("# On another processor", "First answer, 1 thread", "## What is missing, and why", "off by 1e+00"):
            self.assertIn(part, page)
        data["settings"]["isa"] = "avx2"
        self.assertIn("# Limited to AVX2", report.page(data))
        self.assertIn("# Nets of libraries", report.page(results(sample("timm.mixnet_s", "moka"), sample("timm.mixnet_s", "left"))))

    def test_engines_are_limited_by_their_own_switches(self):
        self.assertEqual(isa.variables(None, "onnxruntime"), {})
        self.assertIsNone(isa.variables("avx2", "onnxruntime"))
        self.assertEqual(isa.variables("avx2", samples.MOKA), {"MOKA_MAX_CPU_ISA": "avx2"})
        for switches in isa.SWITCHES.values():
            self.assertLessEqual(set(switches), set(engines.names()))

    def test_an_engine_beyond_its_switch_does_not_count(self):
        self.assertEqual([isa.checked(*of) for of in (("avx2", "openvino"), ("avx2", "moka"), (None, "openvino"))], [True, False, False])
        self.assertIsNone(isa.unlimited("avx2", "openvino", {"brgemm_avx2_f32": 0.97, "jit_avx512_f32": 0.03}))
        reason = isa.unlimited("avx2", "openvino", {"brgemm_avx2_f32": 1.0, "jit_avx512_f32": 0.1, "gemm_mlas_f32": 0.9})
        self.assertEqual(reason, "its switch does not limit gemm_mlas_f32: 50% of its time are not avx2")


class Accuracy(unittest.TestCase):
    @staticmethod
    def row(net="resnet50", precision="fp16", **more):
        made = {"net": net, "title": net, "precision": precision, "limit": accuracy.LIMITS[precision], "build": "b", "date": "d",
                "error": 1e-3, "same_bits": True, "floor": 1e-3, **more}
        return {**made, "verdict": accuracy.verdict(made)}

    def test_what_is_further_away_than_allowed_is_good_only_at_the_floor(self):
        self.assertEqual(self.row()["verdict"], "within")
        self.assertEqual(self.row(error=3e-3, floor=2.9e-3)["verdict"], "the weights' rounding")
        self.assertEqual(self.row(error=3e-3, floor=2e-3)["verdict"], "too far")
        self.assertEqual(self.row(precision="fp32", error=3e-4, floor=None)["verdict"], "too far")
        self.assertEqual(self.row(same_bits=False)["verdict"], "not the same bits")
        self.assertEqual(self.row(reason="why")["verdict"], "failed")
        self.assertEqual([accuracy.is_good(self.row(**m)) for m in ({}, {"error": 1}, {"same_bits": False})], [True, False, False])

    def test_results_of_other_nets_stay(self):
        old = [self.row("yolov3"), self.row("resnet50"), self.row("resnet50", "fp32")]
        every = accuracy.together(old, [self.row("resnet50", error=2e-3)])
        self.assertEqual([(r["net"], r["precision"], r["error"]) for r in every],
                         [("resnet50", "fp32", 1e-3), ("resnet50", "fp16", 2e-3), ("yolov3", "fp16", 1e-3)])

    def test_the_page_counts(self):
        rows = [self.row(), self.row(precision="fp32", error=1e-6, floor=None), self.row("yolov3", error=1)]
        text = accuracy.page({"rows": rows, "versions": {"torch": "1"}, "machine": {"cpu": "A", "isa": ["avx2"]}})
        self.assertIn("fp32: 1 of 1 nets within 1e-04. fp16: 1 of 2 nets within 2e-03.", text)
        self.assertIn("too far", text)


class Exported(unittest.TestCase):
    @staticmethod
    def row(net, difference=1e-6, **more):
        made = {"net": net, "title": net, "inputs": 3, "nodes": 9, "operations": 5, "errors": dict(zip(exported.PAIRS, (difference, 2e-6, 3e-6)))}
        return {"net": net, "title": net, "reason": more["reason"]} if more else made

    def test_nets_that_differ_or_fail_are_not_equal(self):
        rows = [self.row("resnet50"), self.row("yolov3", 2e-4), self.row("bert_base", reason="no")]
        self.assertEqual([exported.verdict(row) for row in rows], ["equal", "differs", "failed"])
        text = exported.page({"rows": rows, "versions": {"onnxruntime": "1"}, "machine": {"cpu": "A"}, "date": "d", "opset": 17})
        self.assertIn("1 of 3 nets are equal.", text)
        self.assertIn("3 sets of inputs", text)
        self.assertIn("2.0e-04", text)

    def test_results_of_other_nets_stay(self):
        every = exported.together([self.row("yolov3"), self.row("resnet50")], [self.row("resnet50", 1)])
        self.assertEqual([(r["net"], r["errors"][exported.PAIRS[0]]) for r in every], [("resnet50", 1), ("yolov3", 1e-6)])


class Loads(unittest.TestCase):
    @staticmethod
    def result(engine, cold, warm, **more):
        return {"engine": engine, "cold": [[c, 0.1] for c in cold], "warm": [[w, 0.1] for w in warm], "error": 1e-6, **more}

    def row(self, *results, net="resnet50"):
        return {"net": net, "title": net, "precision": "fp32", "threads": 2, "engines": list(results)}

    def test_the_best_peer_is_another_one_cold_and_warm_and_never_a_wrong_one(self):
        row = self.row(self.result("moka", [0.4, 0.5, 9], [0.1]), self.result("onnxruntime", [0.9], [0.9]), self.result("ncnn", [1.9], [0.3]),
                       self.result("openvino", [0.01], [0.01], error=1), self.result("mnn", [], [], reason="no"))
        self.assertAlmostEqual(loads.ratio(row, "cold"), 0.6)
        self.assertAlmostEqual(loads.ratio(row, "warm"), 0.5)
        self.assertRegex(loads.table([row], "cold"), r"600 +\| +500 to 9100 +\| +3 +\| +1000 +\| +onnxruntime")
        self.assertIn("**0.600** over 1 nets (goal 0.6). Ahead on each.", loads.summary([row], "cold"))
        self.assertEqual(loads.left_out([row]).count("\n- "), 2)
        self.assertIn("OpenVINO: off by 1e+00\n", loads.left_out([row]))

    def test_a_wrong_answer_of_moka_has_no_ratio(self):
        row = self.row(self.result("moka", [0.1], [0.1], error=1), self.result("ncnn", [1], [1]))
        self.assertIsNone(loads.ratio(row, "cold"))
        self.assertFalse(loads.is_good(row))
        self.assertIn("off by 1e+00", loads.table([row], "warm"))
        self.assertIn("no net has a peer", loads.summary([row], "warm"))

    def test_nets_that_are_behind_are_named(self):
        row = self.row(self.result("moka", [1.9], [0.1]), self.result("ncnn", [0.9], [0.9]))
        self.assertIn("Behind: resnet50.", loads.summary([row], "cold"))

    def test_a_new_row_replaces_an_old_one(self):
        old, new = self.row(self.result("moka", [1], [1])), self.row(self.result("moka", [2], [2]))
        other = self.row(self.result("moka", [3], [3]), net="bert_base")
        self.assertEqual(loads.together([old], [new, other]), [other, new])

    def test_a_round_is_one_cold_load_and_then_warm_ones_each_in_a_new_process(self):
        for behaviour, ways, reason in (("works", {"cold": [[0.2, 0.05]], "warm": [[0.2, 0.05]] * 2}, None),
                                        ("refuses", {"cold": [], "warm": []}, "ValueError: not this model")):
            with tempfile.TemporaryDirectory() as folder:
                made = []

                def start(behaviour=behaviour, folder=folder, made=made):
                    made.append(client.Worker(behaviour, folder, folder, 1, "fp32", [0], pathlib.Path(folder) / "log", HERE / "fake_worker.py"))
                    return made[-1]

                of = loads.Loads(behaviour, start)
                of.round(0, 2)
            self.assertEqual({way: of.result[way] for way in loads.WAYS}, ways)
            self.assertEqual(of.result.get("reason"), reason)
            self.assertEqual(len(made), 1 if reason else 3)
            self.assertTrue(all(worker.process.poll() is not None for worker in made))


class Statistics(unittest.TestCase):
    def test_quantiles_are_those_of_the_standard_library(self):
        values = sorted(random.Random(3).random() for _ in range(41))
        percentiles = statistics.quantiles(values, n=100, method="inclusive")
        for p in (1, 10, 50, 90, 99):
            self.assertAlmostEqual(stats.quantile(values, p / 100), percentiles[p - 1], places=12)
        self.assertEqual(stats.quantile([4.0], 0.9), 4.0)
        with self.assertRaises(ValueError):
            stats.quantile([], 0.5)

    def test_a_summary_pools_the_times_and_keeps_the_rounds_medians(self):
        made = stats.summary([[3.0, 1.0, 2.0], [], [10.0]])
        self.assertEqual((made["n"], made["min"], made["p50"], made["max"], made["mean"]), (4, 1.0, 2.5, 10.0, 4.0))
        self.assertEqual(made["rounds"], [2.0, 10.0])

    def test_noise_covers_how_medians_really_scatter(self):
        draw = random.Random(5)
        runs = [[draw.gauss(1, 0.05) for _ in range(10)] for _ in range(400)]
        scatter = statistics.stdev(statistics.median(r) for r in runs)
        estimated = statistics.median(stats.noise(r) for r in runs)
        self.assertGreater(estimated, 0.9 * scatter)
        self.assertLess(estimated, 2 * scatter)

    def test_noise_of_one_value_is_unknown_and_of_equal_ones_none(self):
        self.assertIsNone(stats.noise([1.0]))
        self.assertEqual(stats.noise([2.0, 2.0, 2.0, 2.0]), 0)

    def test_the_geometric_mean(self):
        self.assertAlmostEqual(stats.geometric_mean([0.5, 2.0, 8.0]), 2.0)
        self.assertIsNone(stats.geometric_mean([]))

    @unittest.skipIf(np is None, "numpy is not installed")
    def test_errors_are_relative_to_the_scale_of_the_outputs(self):
        self.assertAlmostEqual(stats.relative_error([1.0, -4.0], [1.0, -4.4]), 0.4 / 4.4)
        self.assertEqual(stats.relative_error(np.zeros((2, 3)), np.zeros((1, 6))), 0)
        self.assertEqual(stats.relative_error([1.0], [0.0]), float("inf"))
        self.assertEqual(stats.relative_error([1.0, 2.0], [1.0]), float("inf"))
        self.assertEqual(stats.relative_error([float("nan"), 2.0], [1.0, 2.0]), float("inf"))
        self.assertEqual(stats.relative_error([float("inf"), 2.0], [float("inf"), 2.0]), 0)
        self.assertEqual(stats.relative_error([float("-inf"), 2.0], [float("inf"), 2.0]), float("inf"))


class WhoIsBest(unittest.TestCase):
    def test_wrong_outputs_are_never_best_however_fast(self):
        every = [sample("a", "moka", 8), sample("a", "left", 3, error=1e-2), sample("a", "right", 10)]
        self.assertEqual(samples.best_peer(every, "a", 1, "fp32")["engine"], "right")
        row = report.Row(results(*every), "a", 1, "fp32")
        self.assertAlmostEqual(row.ratio(), 0.8)
        self.assertIn("(off by 1e-02)", report.steady_table(results(*every), 1, "fp32"))

    def test_float32_stands_for_float16_and_not_the_other_way(self):
        every = [sample("a", "left", 10), sample("a", "left", 7, precision="fp16", error=1e-3),
                 sample("a", "right", 8), sample("a", "right", 3, precision="fp16", error=1e-1)]
        self.assertEqual(samples.key(samples.best_peer(every, "a", 1, "fp16")), ("a", "left", 1, "fp16"))
        self.assertEqual(samples.key(samples.best_peer(every, "a", 1, "fp32")), ("a", "right", 1, "fp32"))
        self.assertEqual(samples.key(report.Row(results(*every), "a", 1, "fp16").peers["right"]), ("a", "right", 1, "fp32"))

    def test_rounding_the_weights_may_take_answers_further(self):
        moka = sample("a", "moka", precision="fp16", error=3e-3, allowed=3.2e-3)
        other = sample("a", "left", precision="fp32", error=3e-3)
        self.assertTrue(samples.is_right(moka))
        self.assertFalse(samples.is_right({**moka, "error": 4e-3}))
        self.assertFalse(samples.is_right(other, "fp16"))
        data = results(moka, other, nets={"a": {"floor": 2.9e-3}}, precision=["fp16"])
        self.assertIn("may be as far off: A 3e-03", report.results_text(data, 1, "fp16"))

    def test_threads_are_not_mixed(self):
        every = [sample("a", "left", 5, threads=2), sample("a", "right", 10)]
        self.assertEqual(samples.best_peer(every, "a", 1, "fp32")["engine"], "right")
        self.assertIsNone(samples.best_peer(every, "a", 4, "fp32"))

    def test_the_first_answer_is_the_median_of_the_sums(self):
        made = sample("a", "moka", load=[1.0, 2.0, 9.0], first=[0.5, 0.1, 0.1])
        self.assertAlmostEqual(samples.first_answer(made), 2.1)


class Pages(unittest.TestCase):
    def verdict(self, moka, *others, net=None):
        every = ([moka] if moka else []) + list(others)
        return report.Row(results(*every, nets={"a": net or {}}), "a", 1, "fp32").verdict()

    def test_a_row_says_where_moka_is(self):
        peer = sample("a", "left", 10)
        self.assertEqual(self.verdict(sample("a", "moka", 7.9), peer), "ahead, goal met")
        self.assertEqual(self.verdict(sample("a", "moka", 9), peer), "ahead")
        self.assertEqual(self.verdict(sample("a", "moka", 10.5), peer), "behind")
        self.assertEqual(self.verdict(sample("a", "moka", 1, error=1e-2), peer), "wrong")
        self.assertEqual(self.verdict(failed("a", "moka", "no"), peer), "does not run")
        self.assertEqual(self.verdict(sample("a", "moka", 7), sample("a", "left", 3, error=1)), "no peer")
        self.assertEqual(self.verdict(sample("a", "moka", 7), peer, net={"goals": {}}), "ahead")

    def test_a_goal_may_be_another_net_on_moka(self):
        data = results(sample("a", "moka", 10), sample("a", "left", 20), sample("b", "moka", 10.1), sample("b", "left", 20),
                       nets={"b": {"goals": {"fp32": 1.02}, "relative_to": "a"}})
        row = report.Row(data, "b", 1, "fp32")
        self.assertAlmostEqual(row.goal_ratio(), 1.01, places=3)
        self.assertEqual((row.verdict(), row.goal_text()), ("ahead, goal met", "1.02 of A"))
        data["samples"][0] = sample("a", "moka", 9)
        self.assertEqual(report.Row(data, "b", 1, "fp32").verdict(), "ahead")

    def test_the_mean_leaves_out_what_cannot_be_compared(self):
        data = results(sample("a", "moka", 5), sample("a", "left", 10), sample("b", "moka", 20), sample("b", "left", 10),
                       failed("c", "moka", "no such operation"), sample("c", "left", 10))
        line = report.goals_line(data, 1, "fp32")
        self.assertIn("**1.000** over 2 nets", line)
        self.assertIn("Behind, wrong or missing: B; C.", line)

    def test_the_page_shows_everything(self):
        data = results(sample("a", "moka", 20), sample("a", "left", 10), failed("a", "right", "pipes | and `ticks`"), nets={"a": {"title": "A <net>"}})
        data["engines"]["gone"] = {"title": "Gone", "versions": {"gone": None}, "reason": "gone not installed"}
        pages = report.pages(data)
        self.assertEqual(list(pages), ["performance.md", "performance/float32.md", "performance/missing.md"])
        for path, parts in (("performance.md", ("A processor", "behind", "2.00", "`bench/run.py`", "performance.svg", "not known")),
                            ("performance/float32.md", ("p90", "load + first", "2.00")),
                            ("performance/missing.md", ("pipes \\| and 'ticks'", "gone not installed"))):
            for part in parts:
                self.assertIn(part, pages[path])
        for line in re.findall(r"(?m)^\|.*$", "\n".join(pages.values())):
            self.assertTrue(line.endswith("|"), line)
        for link in re.findall(r"\]\((performance/[^)]*)\)", pages["performance.md"]):
            self.assertIn(link, pages)

    def test_findings_count_the_nets_where_moka_is_ahead(self):
        data = results(sample("a", "moka", 5, peak=90e6), sample("a", "left", 10), sample("b", "moka", 20, load=[0.001] * 3, first=[0.002] * 3),
                       sample("b", "left", 10), sample("a", "moka", 8, precision="fp16"), precision=["fp32", "fp16"])
        lines = report.findings(data, [(1, "fp32"), (1, "fp16")], "performance").splitlines()
        cells = [[c.strip() for c in line.split("|")[1:-1]] for line in lines if line.startswith("| [")]
        self.assertEqual(cells, [["[float32](performance/float32.md)", "1", "2", "1.000", "1", "1", "1"],
                                 ["[float16 weights](performance/float16-weights.md)", "1", "1", "0.800", "1", "0", "0"]])
        self.assertEqual(len([line for line in lines if line.startswith("| float32, 1 thread | B ")]), 1)

    @unittest.skipIf(matplotlib is None, "matplotlib is not installed")
    def test_pages_of_an_earlier_run_are_removed(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "performance.md"
            report.write(results(failed("a", "moka", "no"), sample("a", "left"), sample("a", "left", precision="fp16"),
                                 precision=["fp32", "fp16"]), out)
            (out.with_suffix("") / "mine.md").touch()
            report.write(results(sample("a", "moka"), sample("a", "left")), out)
            self.assertEqual(sorted(f.name for f in out.with_suffix("").iterdir()), ["float32.md", "mine.md"])
            self.assertIn("<svg", out.with_suffix(".svg").read_text())

    def test_first_answers_and_memory_are_each_beside_the_peer_that_needs_least(self):
        def started(net, engine, load, first, peak, **more):
            return sample(net, engine, load=[load], first=[first], peak=peak, **more)

        data = results(started("a", "moka", 0.02, 0.01, 90e6), started("a", "left", 0.05, 0.05, 100e6), started("a", "right", 0.1, 0.05, 80e6),
                       started("b", "moka", 0.01, 0.08, 50e6), started("b", "left", 0.05, 0.05, 100e6),
                       started("b", "right", 0.001, 0.001, 1e6, error=1), started("c", "moka", 0.1, 0.1, 1e6))
        text = report.start_table(data, 1, "fp32")
        cells = [[c.strip() for c in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")][2:]
        self.assertEqual(cells, [["A", "30.0", "100", "Left", "0.30", "0.10", "90", "80", "Right", "1.12"],
                                 ["B", "90.0", "100", "Left", "0.90", "0.80", "50", "100", "Left", "0.50"]])
        self.assertIn("on 1 of 2 nets. The first prediction alone takes more than that on B. A peer needs less memory on A.", text)

    def test_tables_are_rectangles(self):
        lines = report.table(["a", "b"], [["x|y", 1], ["", 100]]).splitlines()
        self.assertEqual(len({len(line) for line in lines}), 1)
        self.assertEqual([len(re.findall(r"(?<!\\)\|", line)) for line in lines], [3, 3, 3, 3])

    def test_three_digits(self):
        self.assertEqual([report.milliseconds(s) for s in (0.0000123, 0.00123456, 0.0123456, 0.0999, 0.09999, 1.2345)],
                         ["0.012", "1.23", "12.3", "99.9", "100", "1234"])

    @unittest.skipIf(matplotlib is None, "matplotlib is not installed")
    def test_the_plot_has_a_bar_and_dots_for_each_net(self):
        data = results(sample("a", "moka", 5), sample("a", "left", 10), sample("a", "right", 90), sample("b", "moka", 12),
                       sample("b", "left", 10), sample("b", "right", 8, error=1), nets={"a": {"title": "A <net>"}, "b": {"goals": {}}})
        axes, = plot.figure(data).axes
        self.assertEqual([round(bar.get_width(), 3) for bar in axes.patches], [0.5, 1.2])
        self.assertEqual([label.get_text() for label in axes.get_yticklabels()], ["A <net>", "B"])
        dots = {}
        for line in axes.lines:
            if line.get_marker() == "o":
                dots.setdefault(line.get_label(), []).extend((round(x, 3), y, line.get_markerfacecolor() != "white") for x, y in line.get_xydata())
        self.assertEqual(dots, {"left": [(1.0, 0, True), (1.0, 1, True)], "right": [(plot.LONGEST, 0, True), (0.8, 1, False)]})
        self.assertEqual([line.get_xdata()[0] for line in axes.lines if line.get_color() == plot.INK and len(set(line.get_ydata())) == 2
                          and line.get_linewidth() > 1], [0.8])

    @unittest.skipIf(matplotlib is None, "matplotlib is not installed")
    def test_the_same_results_make_the_same_plot(self):
        data = results(sample("a", "moka", 5), sample("a", "left", 10))
        with tempfile.TemporaryDirectory() as folder:
            files = [pathlib.Path(folder) / name for name in ("first.svg", "second.svg")]
            for file in files:
                plot.write(data, file)
            self.assertEqual(files[0].read_bytes(), files[1].read_bytes())

    def test_checks_show_errors_without_times(self):
        every = [dict(sample("a", "moka", error=3e-7), status="checked"), dict(sample("a", "left", error=0.25), status="checked")]
        text = report.checks(results(*every))
        self.assertIn("3e-07", text)
        self.assertIn("2e-01 wrong", text)


if __name__ == "__main__":
    unittest.main()

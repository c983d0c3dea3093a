# SPDX-License-Identifier: Apache-2.0
"""Tests what runs of the benchmark leave: earlier results, comparison, failing workers, choices, folders. No engine runs here."""

import ast
import contextlib
import importlib.util
import io
import json
import pathlib
import random
import re
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE)]
import compare
import engines
import nets
import report
import run
from harness import client, machine, models, samples, stats
from made_up import failed, results, sample


class EarlierResults(unittest.TestCase):
    def begin(self, old, **settings):
        new = {**results(**{"precision": ["fp16"], "threads": [2], **settings}), "date": "2030-01-02 00:00 UTC"}
        new["engines"]["left"]["versions"] = {"left": "1.1"}
        return samples.begin(old, new)

    def test_what_is_not_measured_again_stays(self):
        data = self.begin(results(sample("a", "moka"), sample("a", "right"), sample("b", "moka", threads=2, precision="fp16")))
        again = sample("b", "moka", 7.0, threads=2, precision="fp16")
        samples.add(data, again)
        self.assertEqual([(s["net"], s["engine"], s.get("date")) for s in data["samples"]],
                         [("a", "moka", "2030-01-01 00:00 UTC"), ("a", "right", "2030-01-01 00:00 UTC"), ("b", "moka", None)])
        self.assertIs(data["samples"][-1], again)
        self.assertEqual((data["settings"]["threads"], data["settings"]["precision"]), ([1, 2], ["fp32", "fp16"]))
        self.assertEqual(data["earlier"], {"2030-01-01 00:00 UTC": "bench/run.py"})
        self.assertIn("| earlier results | 2030-01-01 00:00 UTC: `bench/run.py` |", re.sub(" +", " ", report.machine_text(data)))

    def test_results_of_another_version_of_a_peer_do_not_stay(self):
        data = self.begin(results(sample("a", "left")))
        self.assertEqual((data["samples"], data["earlier"]), ([], {}))

    def test_results_under_other_conditions_do_not_stay(self):
        for settings in ({"check": True}, {"isa": "avx2"}):
            self.assertEqual(self.begin(results(sample("a", "moka")), **settings)["samples"], [])


class Comparison(unittest.TestCase):
    def run_main(self, old, new, *more):
        with tempfile.TemporaryDirectory() as folder:
            for name, data in (("old", old), ("new", new)):
                samples.write(pathlib.Path(folder) / name, data)
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                code = compare.main([f"{folder}/old", f"{folder}/new", *more])
        return code, out.getvalue()

    def test_slower_beyond_noise_is_an_error(self):
        code, text = self.run_main(results(sample("a", "moka", 10)), results(sample("a", "moka", 11)))
        self.assertEqual(code, 1)
        self.assertRegex(text, r"a +moka fp32 x1 +steady +10\.000 ms +11\.000 ms +\+10\.0 %.* worse")
        self.assertEqual(self.run_main(results(sample("a", "moka", 11)), results(sample("a", "moka", 10)))[0], 0)

    def test_noisy_runs_need_a_larger_change(self):
        draw = random.Random(7)

        def noisy(ms):
            rounds = [[ms / 1000 * draw.gauss(1, 0.05)] for _ in range(10)]
            return results(sample("a", "moka", steady=stats.summary(rounds)))

        same = [self.run_main(noisy(10), noisy(10))[0] for _ in range(60)]
        self.assertLessEqual(sum(same), 2)
        slower = [self.run_main(noisy(10), noisy(14))[0] for _ in range(60)]
        self.assertGreaterEqual(sum(slower), 58)

    def test_memory_loading_and_answers_count_too(self):
        old = results(sample("a", "moka"))
        for worse in (sample("a", "moka", peak=120_000_000), sample("a", "moka", load=[0.05, 0.052, 0.049]),
                      sample("a", "moka", error=1e-2), failed("a", "moka", "refused")):
            code, text = self.run_main(old, results(worse))
            self.assertEqual(code, 1, text)
            self.assertIn("1 worse", text)

    def test_a_sample_that_is_gone_is_an_error_unless_nobody_asked_for_it(self):
        old = results(sample("a", "moka"), sample("b", "moka"), sample("b", "moka", threads=2))
        new = results(sample("a", "moka"), sample("b", "moka", threads=2))
        self.assertEqual(self.run_main(old, dict(new, settings={"threads": [1, 2], "precision": ["fp32"]}))[0], 1)
        self.assertEqual(self.run_main(old, dict(new, settings={"threads": [2], "precision": ["fp32"]}))[0], 0)

    def test_peers_show_the_machine_and_do_not_fail(self):
        old = results(sample("a", "moka"), sample("a", "left", 10))
        new = results(sample("a", "moka"), sample("a", "left", 15))
        code, text = self.run_main(old, new)
        self.assertEqual(code, 0)
        self.assertIn("geometric mean of 1: x1.500", text)
        new["engines"]["left"]["versions"] = {"left": "2.0"}
        self.assertIsNone(compare.drift(old, new))
        self.assertEqual(self.run_main(old, new, "--engines", "all")[0], 1)

    def test_json_holds_what_the_text_says(self):
        code, text = self.run_main(results(sample("a", "moka", 10)), results(sample("a", "moka", 20)), "--json")
        steady = next(c for c in json.loads(text)["changes"] if c["measure"] == "steady")
        self.assertEqual((code, steady["verdict"]), (1, "worse"))
        self.assertAlmostEqual(steady["ratio"], 2)

    def test_files_of_another_kind_are_refused(self):
        for content in ({"format": 99}, []):
            with self.assertRaises(SystemExit) as stop, contextlib.redirect_stderr(io.StringIO()) as said:
                self.run_main(content, results(sample("a", "moka")))
            self.assertEqual(stop.exception.code, 2)
            self.assertIn("expected results of format 1, got ", said.getvalue())


class Workers(unittest.TestCase):
    def turn(self, folder, behaviour):
        made = {"net": "a", "engine": behaviour, "threads": 1, "precision": "fp32", "status": "failed", "size": 1}
        turn = run.Turn(made, lambda more=None: client.Worker(behaviour, folder, folder, 1, "fp32", [0], pathlib.Path(folder) / "log",
                                                              HERE / "fake_worker.py", more))
        self.addCleanup(turn.close)
        return turn

    def go(self, behaviour, timed=True):
        with tempfile.TemporaryDirectory() as folder:
            turn = self.turn(folder, behaviour)
            turn.load(3)
            turn.pilot()
            for _ in range(4):
                turn.take(0.01)
            turn.finish(timed)
        return turn.sample

    def test_a_worker_that_answers_gives_a_sample(self):
        made = self.go("works")
        self.assertEqual((made["status"], made["load"], made["peak"], made["error"]), ("measured", [0.2] * 3, 1234, 1e-6))
        self.assertEqual((made["steady"]["n"], made["steady"]["p50"], len(made["steady"]["rounds"])), (12, 0.02, 4))
        self.assertAlmostEqual(made["cpu"], 1.0)

    def test_what_an_engine_keeps_is_there_from_the_second_process_on(self):
        with tempfile.TemporaryDirectory() as folder:
            turn = self.turn(folder, "keeps")
            turn.load_cached(3, "FAKE_CACHE")
            self.assertEqual([round(seconds, 6) for seconds in turn.sample["cached"]], [0.03] * 3)
            turn.load(1)
            self.assertEqual(turn.sample["load"], [0.2])
        self.assertAlmostEqual(samples.cached_answer(turn.sample), 0.03)
        self.assertIsNone(samples.cached_answer(sample("a", "left")))

    def test_a_worker_that_dies_leaves_its_last_words(self):
        made = self.go("dies")
        self.assertEqual(made["status"], "failed")
        self.assertEqual(made["reason"], "killed by signal 11: out of luck")

    def test_a_refusal_is_the_reason(self):
        self.assertEqual(self.go("refuses")["reason"], "ValueError: not this model")

    def test_a_worker_that_hangs_is_ended(self):
        with tempfile.TemporaryDirectory() as folder:
            turn = self.turn(folder, "hangs")
            turn.load(1)
            process = turn.worker.process
            self.assertIsNone(turn.ask("run", timeout=0.2))
            self.assertEqual(turn.sample["reason"], "no answer within 0.2 s")
            self.assertIsNotNone(process.returncode)

    @unittest.skipIf(importlib.util.find_spec("torch") is None, "torch is not installed")
    def test_a_step_that_fails_leaves_a_reason_and_is_remembered(self):
        with tempfile.TemporaryDirectory() as folder:
            cache = models.Cache(f"{folder}/models", f"{folder}/logs")
            target = pathlib.Path(folder) / "models" / "x"
            first = cache.step(target, "x", ["net", "no_such_net", str(target)])
            self.assertIn("ValueError: nets: expected one of", first["reason"])
            self.assertIn("Traceback", (pathlib.Path(folder) / "logs" / "x.log").read_text())
            self.assertEqual(cache.step(target, "x", ["nothing"]), first)

    def test_a_cache_has_one_run_at_a_time(self):
        with tempfile.TemporaryDirectory() as folder:
            cache = models.Cache(f"{folder}/models", f"{folder}/logs")
            with cache.locked(), self.assertRaises(models.InUse):
                with models.Cache(f"{folder}/models", f"{folder}/logs").locked():
                    self.fail("two runs have the cache")
            with cache.locked():
                pass


class Choices(unittest.TestCase):
    def test_one_processor_of_each_core_the_last_first(self):
        pairs = {0: {0, 2}, 2: {0, 2}, 1: {1, 3}, 3: {1, 3}}
        self.assertEqual(machine.pick_cpus({0, 1, 2, 3}, pairs.get), [3, 2])
        self.assertEqual(machine.pick_cpus({0, 1}, lambda cpu: {cpu}), [1, 0])

    def test_unknown_names_are_refused(self):
        for given, said in ((["--nets", "resnet50,nothing"], "got nothing"), (["--engines", "abacus"], "got abacus"),
                            (["--precision", "fp8"], "got fp8"), (["--threads", "0"], "expected 1 to"), (["--threads", "x"], "expected numbers")):
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()) as errors:
                run.arguments(given)
            self.assertIn(said, errors.getvalue())

    def test_names_keep_the_order_of_the_folder(self):
        options = run.arguments(["--nets", "yolov3,espcn", "--engines", "onnxruntime,moka", "--threads", "1"])
        self.assertEqual((options.nets, options.engines, options.threads), (["espcn", "yolov3"], ["moka", "onnxruntime"], [1]))


class Folders(unittest.TestCase):
    """Every file of a registry has the members that the README requires. The nets are read without torch."""

    def definitions(self, path):
        found = {}
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef):
                found[node.name] = [a.arg for a in node.args.args]
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                try:
                    found[node.targets[0].id] = ast.literal_eval(node.value)
                except ValueError:
                    continue
        return found

    def test_nets(self):
        self.assertGreater(len(nets.names()), 0)
        for name in nets.every():
            with self.subTest(net=name):
                has = self.definitions(nets.path(name))
                self.assertEqual((has["model"], has["inputs"]), ([], ["rng"]))
                self.assertTrue(has["TITLE"] and has["OUTPUTS"] and isinstance(has["OUTPUTS"], tuple))
                self.assertIn(has["FAMILY"], nets.FAMILIES)
                self.assertLessEqual(has.get("GOALS", {}).keys(), samples.TOLERANCE.keys())
                self.assertIn(has.get("RELATIVE_TO", name), nets.every())
                if "STATES" in has:
                    self.assertLessEqual(set(has["STATEFUL_OUTPUTS"]), set(has["OUTPUTS"]))
                    self.assertEqual(len(has["stateful"]), 1)

    def test_a_net_is_made_anew_for_its_own_blocks_only(self):
        encoder = (nets.HERE.parent / "blocks" / "bert.py").read_bytes()
        self.assertIn(encoder, nets.source("bert_base"))
        self.assertNotIn(encoder, nets.source("resnet50"))
        for name in nets.every():
            self.assertIn(b"def randomise_batch_norms", nets.source(name))

    def test_a_model_is_made_anew_for_what_its_engine_shares(self):
        shared = (nets.HERE.parent / "harness" / "compressed.py").read_bytes()
        self.assertIn(shared, engines.source(samples.MOKA))
        self.assertNotIn(shared, engines.source("onnxruntime"))

    def test_engines(self):
        self.assertEqual(engines.names()[0], samples.MOKA)
        for name in engines.names():
            with self.subTest(engine=name):
                has = self.definitions(engines.HERE / f"{name}.py")
                self.assertEqual((has["convert"], has["load"][:3]), (["net", "folder", "precision"], ["folder", "threads", "precision"]))
                self.assertIn(has["load"][3:], ([], ["device"]))
                self.assertTrue(has["TITLE"] and has["PACKAGES"] and has["IMPORTS"])
                self.assertLessEqual(set(has["PRECISIONS"]), samples.TOLERANCE.keys())

    def test_every_peer_can_be_installed(self):
        files = {f.name.split(".")[0] for f in (HERE.parent / "peers").glob("*.txt")}
        self.assertEqual(files, set(engines.names()) - {samples.MOKA})

    def test_what_is_not_installed_has_a_reason(self):
        with tempfile.TemporaryDirectory() as venv:
            for name in engines.names():
                missing = [p for p, v in engines.versions(name).items() if v is None]
                if missing:
                    (pathlib.Path(venv) / f"{name}.reason").write_text("ERROR: no such thing\n")
                    self.assertEqual(engines.unavailable(name, venv), f"{', '.join(missing)} not installed: ERROR: no such thing")
                else:
                    self.assertIsNone(engines.unavailable(name, venv))


if __name__ == "__main__":
    unittest.main()

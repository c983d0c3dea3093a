# SPDX-License-Identifier: Apache-2.0
"""The conformance runner's own logic: what counts, lists, groups, tables, forked workers, the pretended Mac."""

import contextlib
import importlib
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import tomllib
import types
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "harness")]
import float16_steps
import forkloop
import mac_gates
import null_engine
import recorder
import report
import results
import run


def record(outcome="passed", needs=True, **more):
    return {"id": more.pop("id", "t"), "outcome": outcome, "needs_engine": needs, "calls": {"load": 1}, "ops": [], **more}


def by_id(*records):
    return {r["id"]: r for r in records}


class WhatCounts(unittest.TestCase):
    def test_questions_count_unless_the_test_is_switched_off(self):
        self.assertTrue(results.asks_engine(record()))
        self.assertTrue(results.asks_engine(record("failed")))
        for outcome in ("skipped", "xfailed", "xpassed"):
            self.assertFalse(results.asks_engine(record(outcome)))
        self.assertFalse(results.asks_engine(record(needs=False)))

    def test_loading_counts_only_when_it_ends_the_test(self):
        refused = {"load": 1, "load_error": 1}
        self.assertTrue(results.asks_engine(record("crashed", needs=False)))
        self.assertTrue(results.asks_engine(record("timeout", needs=False)))
        self.assertTrue(results.asks_engine(record("failed", needs=False, calls=refused)))
        self.assertFalse(results.asks_engine(record("failed", needs=False)))
        self.assertFalse(results.asks_engine(record(needs=False, calls=refused)))
        self.assertFalse(results.asks_engine(record("crashed", needs=False, calls={})))

    def test_the_lists_go_before_what_is_seen(self):
        needs = next(iter(sorted(results.read_ids(results.ENGINE_REQUIRED / "pipeline.txt.gz"))))
        other = next(iter(sorted(results.read_ids(results.ENGINE_REQUIRED / "pipeline.other.txt.gz"))))
        records = by_id(record("skipped", needs=False, id=needs), record("failed", id=other), record("failed", id="new"))
        self.assertEqual(results.required("pipeline", records), {needs, "new"})
        self.assertEqual(results.required("pipeline", records, "null"), {other, "new"})

    def test_no_test_is_in_both_lists(self):
        for suite in tomllib.loads((HERE / "suites.toml").read_text()):
            needs = results.read_ids(results.ENGINE_REQUIRED / f"{suite}.txt.gz")
            self.assertFalse(needs & results.read_ids(results.ENGINE_REQUIRED / f"{suite}.other.txt.gz"), suite)

    def test_one_line(self):
        self.assertEqual(results.one_line("a[1\n2\\n]"), "a[1\\n2\\\\n]")


class Lists(unittest.TestCase):
    def test_files_are_the_same_bytes_for_the_same_ids(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "new" / "ids.txt.gz"
            results.write_ids(path, {"b", "a"})
            first = path.read_bytes()
            results.write_ids(path, ["a", "b"])
            self.assertEqual(path.read_bytes(), first)
            self.assertEqual(results.read_ids(path), {"a", "b"})
            self.assertEqual(results.read_ids(path.parent / "none.txt.gz"), set())

    def test_accepting_only_adds(self):
        records = by_id(record("failed", id="old"), record(id="new"))
        self.assertEqual(results.accept({"old", "unseen"}, {"new"}, records, {"old", "new"}), {"old", "new", "unseen"})

    def test_shrinking_removes_what_fails_and_what_is_gone(self):
        records = by_id(record("failed", id="old"), record(id="new"))
        shrunk = results.accept({"old", "unseen", "gone"}, {"new"}, records, {"old", "new", "unseen"}, shrink=True)
        self.assertEqual(shrunk, {"new", "unseen"})
        self.assertEqual(results.accept({"unseen"}, {"new"}, records, set(), shrink=True), {"new", "unseen"})

    def test_anything_but_passing_is_lost(self):
        records = by_id(record(id="a"), record("skipped", id="b"), record("crashed", id="c"), record("failed", id="d"))
        self.assertEqual(list(results.lost({"a", "b", "c", "unseen"}, records)), ["b", "c"])

    def test_nothing_is_lost_for_want_of_torch(self):
        records = by_id(record("skipped", id="a", message="torch is not installed"), record("skipped", id="b", message="no reason"),
                        record("failed", id="c", error="ModuleNotFoundError", message="No module named 'torch'"),
                        record("failed", id="d", error="NameError", message="name 'x' is not defined"))
        self.assertEqual(list(results.lost({"a", "b", "c", "d"}, records)), ["b", "d"])

    def test_results_survive_a_killed_run(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "s.jsonl"
            path.write_text('{"id": "a", "outcome": "failed"}\n{"id": "a", "outcome": "passed"}\n[1]\n{"id": "b", "outc')
            self.assertEqual(results.load(path), {"a": {"id": "a", "outcome": "passed"}})
            self.assertEqual(results.load_suite("s", [folder, folder + "/none"]), results.load(path))
            self.assertEqual(results.load(folder + "/none"), {})


class Runner(unittest.TestCase):
    """run.py as a program, on made-up results."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def run_report(self, *options):
        command = [sys.executable, "-B", HERE / "run.py", "--report", "--suite", "blob", "--out", self.folder,
                   "--passing", self.folder / "passing", *options]
        done = subprocess.run(command, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def write(self, **outcomes):
        (self.folder / "blob.jsonl").write_text("".join(json.dumps(record(o, id=i)) + "\n" for i, o in outcomes.items()))

    def passing(self):
        return results.read_ids(self.folder / "passing" / "blob.txt.gz")

    def test_accept_then_lose_then_shrink(self):
        self.write(a="passed", b="passed", c="failed")
        status, text = self.run_report("--accept")
        self.assertEqual((status, self.passing()), (0, {"a", "b"}), text)
        self.assertEqual(self.run_report()[0], 0)

        self.write(a="passed", b="failed", c="passed")
        status, text = self.run_report()
        self.assertEqual(status, 1)
        self.assertIn("blob: no longer passes: b", text)
        self.run_report("--accept")
        self.assertEqual(self.passing(), {"a", "b", "c"})
        status, text = self.run_report("--accept", "--shrink")
        self.assertEqual((status, self.passing()), (0, {"a", "c"}), text)

    def test_options_that_make_no_sense(self):
        self.assertEqual(self.run_report("--shrink")[0], 2)
        self.assertEqual(self.run_report("--ci")[0], 2)
        self.assertEqual(self.run_report("--suite", "no_such")[0], 2)

    def test_compare(self):
        self.write(a="passed", b="passed")
        old = self.folder / "old.jsonl"
        (self.folder / "blob.jsonl").rename(old)
        self.write(a="passed", b="failed")
        status, text = self.run_report("--compare", old)
        self.assertEqual(status, 1)
        self.assertIn("1 fail now, 0 pass now, 0 did not run", text)

    def test_the_ci_wants_every_test_that_it_is_promised(self):
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(run.check_ci({"blob": by_id(record())}, {"blob": {"ci": 1}}), 0)
            self.assertEqual(run.check_ci({"blob": by_id(record())}, {"blob": {"ci": 2}}), 1)

    def test_results_of_another_build_are_refused(self):
        args = types.SimpleNamespace(engine="null_engine", device="", fresh=False, retry=False, ci=False)
        self.write(a="passed")
        run.same_engine("blob", args, self.folder)
        run.same_engine("blob", args, self.folder)
        args.engine = "forkloop"
        with self.assertRaises(SystemExit):
            run.same_engine("blob", args, self.folder)
        run.same_engine("pipeline", args, self.folder)
        args.fresh = True
        run.same_engine("blob", args, self.folder)

    def test_results_of_another_device_are_refused(self):
        args = types.SimpleNamespace(engine="null_engine", device="", fresh=False, retry=False, ci=False)
        self.write(a="passed")
        run.same_engine("blob", args, self.folder)
        args.device = "vulkan"
        with self.assertRaises(SystemExit):
            run.same_engine("blob", args, self.folder)
        self.assertEqual(run.environment({}, args.device)["MOKA_DEVICE"], "vulkan")

    def test_what_retry_keeps_of_another_build_is_told(self):
        args = types.SimpleNamespace(engine="null_engine", device="", fresh=False, retry=False, ci=False)
        self.write(a="passed")
        run.same_engine("blob", args, self.folder)
        args.engine, args.retry = "forkloop", True
        for _ in range(2):
            with contextlib.redirect_stdout(io.StringIO()) as text:
                run.same_engine("blob", args, self.folder)
            self.assertIn("blob: what passed with another build", text.getvalue())
        builds = json.loads((self.folder / "engine.json").read_text())["blob"]
        self.assertEqual([part.split()[0] for part in builds.split(run.AND)], ["null_engine", "forkloop"])
        args.retry = False
        with self.assertRaises(SystemExit):
            run.same_engine("blob", args, self.folder)


class Reports(unittest.TestCase):
    def test_reason(self):
        self.assertEqual(report.reason(record("failed", error="AssertionError", message="\n  Not equal\nmore")), "AssertionError: Not equal")
        self.assertEqual(report.reason(record("failed", error="KeyError", message="")), "KeyError")
        self.assertEqual(report.reason(record("crashed", message="signal SIGSEGV")), "the process ended: signal SIGSEGV")
        self.assertEqual(report.reason(record("timeout", message="no end after 300 s")), "timeout: no end after 300 s")

    def test_groups_leave_out_numbers_and_paths_but_not_names(self):
        one = report.group_of("op relu_3 at 0x7f: 1e-05 in /var/x/y.mlmodel, shape (1, 2, 3)")
        self.assertEqual(one, report.group_of("op relu_12 at 0x99: 0.5 in /var/z/q.mlmodel, shape (4, 5)"))
        for name in ("layer conv2d", "ios15.conv", "type fp16", "int32", "1D"):
            self.assertIn(name, report.group_of(f"no {name} here 7"))
        self.assertEqual(report.group_of("1 x 3 x 29 is not 1 x 2"), "# x .. is not # x ..")

    def test_failing_groups(self):
        suites = {
            "s": by_id(record("failed", id="1", message="layer 7 bad", ops=["nn:a", "nn:b"]),
                       record("failed", id="2", message="layer 8 bad", ops=["nn:a"]), record("failed", id="3", message="other 3", ops=["nn:c"]),
                       record(id="4"), record("failed", needs=False, id="5", message="no file")),
        }
        groups = report.failing_groups(suites)
        self.assertEqual([(g["reason"], g["tests"]) for g in groups], [("layer # bad", 2), ("other 3", 1)])
        self.assertEqual(groups[0]["operations"], ["nn:a", "nn:b"])
        self.assertEqual(groups[0]["suites"], {"s": 2})

    def test_wrong_results_are_told_apart_by_class(self):
        wrong = dict(error="AssertionError", message="Not equal to tolerance rtol=0.05")
        suites = {"s": by_id(record("failed", id="f.py::TestA::x[1]", **wrong), record("failed", id="f.py::TestA::y", **wrong),
                             record("failed", id="f.py::TestB::x[a::b]", **wrong), record("failed", id="f.py::test_c[1::2]", **wrong))}
        self.assertEqual([(g["classes"], g["tests"]) for g in report.failing_groups(suites)], [(["TestA"], 2), (["TestB"], 1), (["test_c"], 1)])

    def test_suite_row(self):
        row = report.suite_row("s", by_id(record(id="1"), record("error", id="2"), record("crashed", id="3"), record(needs=False, id="4"),
                                          record("skipped", needs=False, id="5"), record("failed", needs=False, id="6"),
                                          {"id": "f.py", "outcome": "collect_failed", "message": ""}), collected=10)
        self.assertEqual({k: v for k, v in row.items() if v}, {
            "collected": 10, "run": 6, "required": 3, "passed": 1, "failed": 1, "crashed": 1, "other skipped": 1, "no engine": 1,
            "cannot run": 1, "not collected": 1})

    def test_the_rounding_of_float16_is_told_apart(self):
        found = by_id(record("failed", id="1", message="off", float16="neither"), record("failed", id="2", message="off"), record(id="3"))
        self.assertEqual([report.suite_row("s", found)[k] for k in ("failed", "float16")], [2, 1])
        self.assertEqual({g["reason"] for g in report.failing_groups({"s": found})}, {"off", report.FLOAT16["neither"]})

    def test_operations(self):
        suites = {"s": by_id(record(id="1", ops=["mil:add", "mil:mul"]), record("failed", id="2", ops=["mil:add"]),
                             record("failed", needs=False, id="3", ops=["mil:add"]))}
        rows = report.operation_rows(suites)
        self.assertEqual(rows, {"mil:add": [1, 2], "mil:mul": [1, 1]})
        text = report.operations_tables(rows, 2)
        self.assertIn("All tests pass (1 of 2): `mul` 1.", text)
        self.assertRegex(text, r"\| `add` +\| +1 \| +2 \| 50.0 % \|")

    def test_percent_is_not_rounded_up(self):
        self.assertEqual(report.percent(9999, 10000), "99.9 %")
        self.assertEqual(report.percent(1, 1), "100.0 %")
        self.assertEqual(report.percent(0, 0), "-")

    def test_tables_keep_bars(self):
        self.assertIn("a\\|b", report.table(("x",), [["a|b"]]))

    def test_docs_say_the_numbers(self):
        data = report.summary({"s": by_id(record(id="1", ops=["nn:add"]), record("failed", id="2", message="odd", error="E"))}, {"s": 5})
        text = report.docs(json.loads(json.dumps(data)))
        self.assertIn("1 of 2 tests that need an engine pass, 50.0 %", text)
        self.assertIn("`E: odd`", text)
        self.assertIn("`add` 1", text)

    def test_the_page_in_docs_is_that_of_the_results(self):
        self.assertEqual(report.SUMMARY.exists(), report.DOCS.exists())
        if report.SUMMARY.exists():
            self.assertEqual(report.DOCS.read_text(), report.docs(json.loads(report.SUMMARY.read_text())), "run report.py docs")

    def test_explanations_are_regular_expressions_with_a_text(self):
        for pattern, why in report.explanations():
            self.assertTrue(pattern.pattern and why)


class ForkedWorkers(unittest.TestCase):
    def run_tests(self, *bodies, **options):
        items = [types.SimpleNamespace(nodeid=str(n), body=body) for n, body in enumerate(bodies)]

        def run_one(item, following, note):
            note({"calls": {"load": 1}})
            return {"id": item.nodeid, "outcome": item.body() or "passed"}

        written = []
        forkloop.run(items, run_one, written.append, bad=lambda record: record["outcome"] == "failed", **options)
        self.assertEqual(len(written), len({r["id"] for r in written}))
        return {r["id"]: r for r in written}

    def test_each_test_has_a_result(self):
        for chunk in (1, 2, 5):
            found = self.run_tests(*[lambda: None] * 5, jobs=2, chunk=chunk)
            self.assertEqual({i: r["outcome"] for i, r in found.items()}, dict.fromkeys("01234", "passed"))

    def test_a_crash_is_one_failed_test(self):
        found = self.run_tests(lambda: None, os.abort, lambda: None, lambda: os._exit(3), lambda: None, chunk=5)
        self.assertEqual([found[i]["outcome"] for i in "01234"], ["passed", "crashed", "passed", "crashed", "passed"])
        self.assertEqual((found["1"]["message"], found["3"]["message"]), ("signal SIGABRT", "exit status 3"))
        self.assertEqual(found["1"]["calls"], {"load": 1})

    def test_what_fails_after_another_test_runs_again_alone(self):
        ran = []

        def changes_others():
            ran.append(1)

        def fails_after_others():
            return "failed" if ran else "passed"

        def crashes_after_others():
            if ran:
                os.abort()

        found = self.run_tests(changes_others, fails_after_others, changes_others, crashes_after_others, lambda: "failed", chunk=5)
        self.assertEqual([found[i]["outcome"] for i in "01234"], ["passed", "passed", "passed", "passed", "failed"])

    def test_a_failed_test_ends_its_worker(self):
        ran = []

        def fails():
            ran.append(1)
            return "failed"

        found = self.run_tests(fails, lambda: "failed" if ran else "passed", chunk=2)
        self.assertEqual([found[i]["outcome"] for i in "01"], ["failed", "passed"])

    def test_a_hang_is_one_failed_test(self):
        found = self.run_tests(lambda: time.sleep(600), lambda: None, chunk=2, timeout=0.5)
        self.assertEqual(found["0"]["outcome"], "timeout")
        self.assertIn("1", found)


class PretendedMac(unittest.TestCase):
    SOURCE = "import sys, platform\nMAC = sys.platform == 'darwin'\nCPU = platform.machine()\ndef _macos_version():\n    return ()\n"

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        folder = pathlib.Path(temporary.name)
        for package in ("coremltools", "bystander"):
            (folder / package).mkdir()
            (folder / package / "__init__.py").write_text("")
            (folder / package / "host.py").write_text(self.SOURCE)
        self.hook = mac_gates.ImportHook(mac_gates.MacHost((26, 0), "arm64"))
        before = dict(sys.modules)
        for name in [n for n in sys.modules if n.split(".")[0] == "coremltools"]:
            del sys.modules[name]
        sys.path.insert(0, str(folder))
        self.hook.install()

        def undo():
            sys.path.remove(str(folder))
            sys.meta_path.remove(self.hook)
            for name in set(sys.modules) - set(before):
                del sys.modules[name]
            sys.modules.update(before)

        self.addCleanup(undo)

    def test_only_coremltools_is_told(self):
        importlib.invalidate_caches()
        mac, other = importlib.import_module("coremltools.host"), importlib.import_module("bystander.host")
        self.assertEqual((mac.MAC, mac.CPU, mac._macos_version()), (True, "arm64", (26, 0)))
        self.assertEqual((other.MAC, other._macos_version()), (sys.platform == "darwin", ()))
        self.assertEqual(mac.sys.path, sys.path)

    def test_listeners_hear_of_modules(self):
        heard = []
        self.hook.listeners["coremltools.host"] = [heard.append]
        importlib.invalidate_caches()
        self.assertIs(importlib.import_module("coremltools.host"), heard[0])


class Questions(unittest.TestCase):
    def test_the_recorder_counts_what_the_engine_is_asked(self):
        self.addCleanup(sys.modules.pop, recorder.ENGINE_MODULE, None)
        null_engine.install()
        watch = recorder.Recorder()
        watch.wrap_engine()
        proxy = sys.modules[recorder.ENGINE_MODULE]._MLModelProxy("m.mlmodel", "ALL", "", {})
        self.assertEqual((watch.calls, watch.needs_engine), ({"load": 1}, False))
        with self.assertRaises(null_engine.EngineRequired):
            proxy.predict({}, None)
        self.assertEqual((watch.calls, watch.needs_engine), ({"load": 1, "predict": 1}, True))


class Float16Steps(unittest.TestCase):
    def proved(self, actual, desired, dtype="f4", output=65568, given=65568, weight=11, wide=None, exact=None):
        """Of a failed comparison with rtol 1e-5; the reference device answers `wide`, and `exact` when it rounds every value."""
        try:
            import numpy.testing
        except ImportError:
            self.skipTest("numpy is not installed")
        def typed(kind, number):
            return types.SimpleNamespace(type=types.SimpleNamespace(**{kind: types.SimpleNamespace(dataType=number)}))

        arrays = [typed("multiArrayType", number) for number in (given, output)]
        block = types.SimpleNamespace(operations=[types.SimpleNamespace(outputs=[typed("tensorType", weight)])])
        program = types.SimpleNamespace(functions={"main": types.SimpleNamespace(block_specializations={"CoreML5": block})})
        steps, testing = float16_steps.Float16Steps(), types.SimpleNamespace(assert_allclose=numpy.testing.assert_allclose)
        again = {"at_least": actual if wide is None else wide, "exact": actual if exact is None else exact}
        steps.wrap_numpy(testing, lambda precision: [numpy.array(again[precision], "f4")])
        steps.saw(types.SimpleNamespace(description=types.SimpleNamespace(input=arrays[:1], output=arrays[1:]), mlProgram=program))
        try:
            testing.assert_allclose(numpy.array(actual, "f4"), numpy.array(desired, dtype), rtol=1e-5)
        except AssertionError:
            return steps.proof
        return "passed"

    def test_float16_is_of_the_expected_numbers_or_of_the_model(self):
        near, desired = [0.5550, 0.001], [0.5519, 0.0011]
        self.assertIsNone(self.proved(near, desired))
        for half in ({"dtype": "f2"}, {"output": 65552}, {"given": 65552}, {"weight": 10}):
            self.assertEqual(self.proved([1.0], [1.0], **half), "passed")
            self.assertEqual(self.proved(near, desired, **half), "neither")

    def test_a_proof_needs_the_reference(self):
        near, desired = [0.5550, 0.001], [0.5519, 0.0011]
        self.assertIsNone(self.proved(near, desired, "f2", wide=[0.5560, 0.001]))  # another answer
        self.assertIsNone(self.proved(near, desired, "f2", wide=[0.5550]))  # of another shape
        self.assertIsNone(self.proved([1.001], [1.0], output=65552, wide=[1.0]))  # it passes, the engine does not
        self.assertEqual(self.proved([1.0001], [1.0], output=65552, exact=[1.0]), "rounded")

    def test_rounded_answers_may_be_neighbors(self):
        self.assertEqual(self.proved([1.5, 0.5], [1.4, 0.5], output=65552, wide=[1.5009765625, 0.5]), "neither")
        self.assertIsNone(self.proved([1.5, 0.5], [1.4, 0.5], output=65552, wide=[1.501953125, 0.5]))

    def test_what_cannot_be_compared(self):
        self.assertIsNone(self.proved([1.0, 2.0], [1.0], "f2", wide=[1.0]))
        self.assertIsNone(self.proved([float("nan")], [1.0], "f2", wide=[1.0]))


class Configuration(unittest.TestCase):
    def test_suites(self):
        known = {"paths", "sample", "ci", "ci_without", "only", "env", "macos", "ignore", "chunk", "engine"}
        for name, suite in tomllib.loads((HERE / "suites.toml").read_text()).items():
            self.assertTrue(suite["paths"] and not set(suite) - known, name)
            for expression in ("only", "ci_without"):
                re.compile(suite.get(expression, ""))

    def test_versions_are_fixed(self):
        for name in ("requirements.txt", "requirements-ci.txt"):
            for line in (HERE / name).read_text().splitlines():
                self.assertRegex(line, r"^#|^-r requirements-ci.txt$|^[\w-]+==[\w.]+$")


if __name__ == "__main__":
    unittest.main()

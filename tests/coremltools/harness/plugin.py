# SPDX-License-Identifier: Apache-2.0
"""pytest plugin: coremltools' own tests as a conformance suite for an engine. Load with ``-p plugin``.

What it does, in this order:

1. before anything imports coremltools: answers coremltools' questions about the host as a Mac would (mac_gates.py),
   installs the engine (``--engine``), and puts a counting layer over it (recorder.py);
2. after collection: keeps only the wanted tests (``--conf-ids``, ``--conf-sample``, ``--conf-shard``, ... and not those
   already in ``--conf-out``: a stopped run resumes);
3. runs them in forked workers (forkloop.py), so that neither a crash nor a hang of the engine ends the run;
4. appends one JSON line per test to ``--conf-out``.
"""

import hashlib
import importlib
import json
import os
import random
import re
import sys
import time
import zlib

import pytest

import forkloop
import host_shims
import mac_gates
import null_engine
from recorder import ENGINE_MODULE, Recorder

STATE = None


class _State:
    def __init__(self, options):
        version = tuple(int(v) for v in options.macos.split("."))
        self.host = mac_gates.MacHost(version, options.machine)
        self.hook = mac_gates.ImportHook(self.host)
        self.recorder = Recorder()
        self.engine = options.engine
        self.collect_problems = []


def pytest_addoption(parser):
    group = parser.getgroup("conformance")
    group.addoption("--engine", default="moka.coremltools",
                    help="module to import; it must install itself as coremltools.libcoremlpython. 'null': no engine")
    group.addoption("--macos", default="26.0", help="macOS version to pretend")
    group.addoption("--machine", default="best", choices=("best", "arm64", "x86_64", "native"),
                    help="CPU family the tests are told")
    group.addoption("--conf-out", help="append results here (JSON lines)")
    group.addoption("--conf-collected", help="write every collected test id here, one a line")
    group.addoption("--conf-ids", help="run only the test ids in this file")
    group.addoption("--conf-only", help="the suite: test ids in which this regular expression is found (before sampling)")
    group.addoption("--conf-pick", type=int, default=0, help="a fixed sample of those in --conf-ids that are not known to skip")
    group.addoption("--conf-match", help="run only test ids in which this regular expression is found")
    group.addoption("--conf-sample", type=int, default=0, help="a fixed sample of about this many tests")
    group.addoption("--conf-shard", default="", help="I/N: every N-th test, starting with the I-th (1-based)")
    group.addoption("--conf-jobs", type=int, default=1, help="tests run side by side")
    group.addoption("--conf-chunk", type=int, default=1, help="tests a worker process runs before it is replaced")
    group.addoption("--conf-timeout", type=float, default=300, help="seconds one test may take")
    group.addoption("--conf-budget", type=float, default=0, help="stop after so many seconds (0: never)")
    group.addoption("--conf-seed", type=int, default=0, help="changes every test's random seed")
    group.addoption("--conf-explain", help="write here, as JSON, what every coremltools module believes about the host")
    group.addoption("--conf-tmp", help="folder for the workers' logs and temporary files")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config, parser, args):
    global STATE
    if "coremltools" in sys.modules:
        raise pytest.UsageError("conformance: coremltools was imported before the plugin could prepare it")
    options = early_config.known_args_namespace
    STATE = _State(options)
    recorder = STATE.recorder
    STATE.hook.listeners = {
        "coremltools.models.model": [recorder.wrap_model_module],
        "coremltools.models._compiled_model": [recorder.wrap_compiled_module],
        "coremltools.test.utils": [host_shims.replace_load_boston],
    }
    STATE.hook.install()
    host_shims.install_libsvm_names()
    STATE.host.stand_ins = host_shims.stand_ins()
    if options.engine == "null":
        null_engine.install()
    else:
        try:
            importlib.import_module(options.engine)
        except ImportError as e:
            raise pytest.UsageError(f"conformance: cannot import the engine {options.engine!r}: {e}")
        if ENGINE_MODULE not in sys.modules:
            raise pytest.UsageError(f"conformance: {options.engine!r} did not install {ENGINE_MODULE}")
    if "coremltools" in sys.modules:
        raise pytest.UsageError("conformance: importing the engine must not import coremltools (see contract.md)")
    recorder.wrap_engine()
    recorder.float16.wrap_numpy(importlib.import_module("numpy.testing"), recorder.once_more)


def pytest_configure(config):
    if STATE is not None:
        STATE.hook.install()  # stay in front of pytest's assertion rewriter


def pytest_collectreport(report):
    if STATE is None or report.outcome == "passed":
        return
    reason = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else str(report.longrepr)
    STATE.collect_problems.append({"id": report.nodeid, "outcome": "collect_" + report.outcome, "message": reason[-2000:]})


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    option = config.option
    keep = list(items)
    if option.conf_only:
        keep = [i for i in keep if re.search(option.conf_only, i.nodeid)]
    if option.conf_collected:
        with open(option.conf_collected, "w") as f:
            f.writelines(one_line(item.nodeid) + "\n" for item in keep)
    if option.conf_sample:
        wanted = sample([i.nodeid for i in keep], option.conf_sample)
        keep = [i for i in keep if i.nodeid in wanted]
    if option.conf_ids:
        with open(option.conf_ids) as f:
            wanted = {line.rstrip("\n") for line in f}
        keep = [i for i in keep if one_line(i.nodeid) in wanted]
    if option.conf_pick:
        able = [i for i in keep if not known_to_skip(i)]
        wanted = sample([i.nodeid for i in able], option.conf_pick)
        keep = [i for i in able if i.nodeid in wanted]
    if option.conf_match:
        keep = [i for i in keep if re.search(option.conf_match, i.nodeid)]
    if option.conf_shard:
        index, count = (int(x) for x in option.conf_shard.split("/"))
        if not 1 <= index <= count:
            raise pytest.UsageError("--conf-shard: I/N with 1 <= I <= N")
        keep = [i for i in keep if int(digest(i.nodeid), 16) % count == index - 1]
    if option.conf_out:
        done = finished_ids(option.conf_out)
        keep = [i for i in keep if i.nodeid not in done]
    if option.conf_budget:
        keep.sort(key=lambda i: digest(i.nodeid))  # if time runs out, the tests that ran are a fair sample
    gone = set(items) - set(keep)
    if gone:
        config.hook.pytest_deselected(items=list(gone))
    items[:] = keep


def pytest_collection_finish(session):
    path = session.config.option.conf_explain
    if not path:
        return
    facts = {}
    for name, module in sorted(sys.modules.items()):
        if not name.startswith("coremltools") or module is None:
            continue
        seen = {}
        if "_IS_MACOS" in vars(module):
            seen["_IS_MACOS"] = module._IS_MACOS
        for function in ("_is_macos", "_macos_version"):
            if callable(vars(module).get(function)):
                seen[function] = vars(module)[function]()
        for variable in ("platform", "_platform"):
            if hasattr(vars(module).get(variable), "machine"):
                seen["machine"] = vars(module)[variable].machine()
        for variable in ("sys", "_sys"):
            if hasattr(vars(module).get(variable), "platform"):
                seen["sys.platform"] = vars(module)[variable].platform
        if seen:
            facts[name] = seen
    with open(path, "w") as f:
        json.dump({"host": sys.platform, "modules": facts, "changed": STATE.host.touched}, f, indent=1)


def one_line(nodeid):
    """Some parameters are arrays, printed over several lines."""
    return nodeid.replace("\\", "\\\\").replace("\n", "\\n")


def digest(text):
    return hashlib.sha1(text.encode()).hexdigest()


def sample(ids, size):
    """A fixed selection: first one case of every test function, then a second of each, and so on, ordered by hash."""
    families = {}
    for i in ids:
        families.setdefault(i.split("[", 1)[0], []).append(i)
    ranked = []
    for family in families.values():
        ranked += [(rank, digest(i), i) for rank, i in enumerate(sorted(family, key=digest))]
    return {i for _, _, i in sorted(ranked)[:size]}


def known_to_skip(item):
    """Whether the test will certainly skip, for example because a library is missing."""
    if getattr(item.obj, "__unittest_skip__", False) or getattr(getattr(item, "cls", None), "__unittest_skip__", False):
        return True
    conditions = [m.args or (m.kwargs.get("condition"),) for m in item.iter_markers("skipif")]
    return any(True for _ in item.iter_markers("skip")) or any(c for group in conditions for c in group if not isinstance(c, str))


def finished_ids(path):
    done = set()
    if os.path.exists(path):
        with open(path) as f:
            for line in f:
                try:
                    done.add(json.loads(line)["id"])
                except ValueError:
                    pass  # the last line of a killed run
    return done


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    option = session.config.option
    if not option.conf_out:
        return None  # plain pytest, with gates and engine
    if option.collectonly:
        return True
    warm_up(session.items)
    out = open(option.conf_out, "a", buffering=1)
    known = finished_ids(option.conf_out)
    for problem in STATE.collect_problems:
        if problem["id"] not in known:
            out.write(json.dumps(problem) + "\n")
    forkloop.run(
        session.items,
        run_one=lambda item, nextitem, note: run_one(session.config, item, nextitem, note),
        write=lambda record: out.write(json.dumps(record) + "\n"),
        jobs=option.conf_jobs,
        chunk=option.conf_chunk,
        timeout=option.conf_timeout,
        budget=option.conf_budget,
        scratch=option.conf_tmp,
        bad=lambda record: record["outcome"] in ("failed", "error"),
    )
    return True


def warm_up(items):
    """Converts a small model once before workers fork, so that they inherit lazy imports and caches."""
    import numpy.testing  # noqa: F401

    try:
        import coremltools as ct
        from coremltools.converters.mil import Builder as mb

        @mb.program(input_specs=[mb.TensorSpec(shape=(1, 4))])
        def program(x):
            return mb.relu(x=mb.linear(x=x, weight=[[1.0, 2.0, 3.0, 4.0]]))

        for target in ("neuralnetwork", "mlprogram"):
            ct.convert(program, convert_to=target, skip_model_load=True)
        if "torch" in sys.modules and any("torch" in item.nodeid for item in items):
            import torch

            net = torch.jit.trace(torch.nn.Linear(4, 4).eval(), torch.zeros(1, 4))
            ct.convert(net, inputs=[ct.TensorType(shape=(1, 4))], skip_model_load=True)
    except Exception as e:
        print(f"conformance: warm-up failed: {e!r}")
    STATE.recorder.reset()


REPORTS = []  # of the test that this worker runs


def pytest_runtest_logreport(report):
    REPORTS.append(report)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Gives each test fixed random numbers, independent of the tests before it."""
    seed = (zlib.crc32(item.nodeid.encode()) + item.config.option.conf_seed) % 2**32
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if call.excinfo is not None:
        report.conf_error = (call.excinfo.typename, str(call.excinfo.value)[:1000])
    return report


def run_one(config, item, nextitem, note):
    del REPORTS[:]
    recorder = STATE.recorder
    recorder.reset()
    recorder.note = note  # records what the test was doing, in case the engine crashes the process
    start = time.time()
    config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
    return make_record(item.nodeid, REPORTS, recorder, time.time() - start)


def make_record(nodeid, reports, recorder, seconds):
    outcome, message, error, trace, phase = "passed", "", "", "", ""
    for report in reports:
        kind, etext = getattr(report, "conf_error", ("", ""))
        if report.skipped:
            if hasattr(report, "wasxfail"):
                outcome, message, phase = "xfailed", str(report.wasxfail) or etext, report.when
                error = kind
            elif outcome == "passed":
                reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
                outcome, message, phase = "skipped", re.sub(r"^Skipped: ", "", reason), report.when
        elif report.failed:
            outcome = "failed" if report.when == "call" else "error"
            message, error, phase = etext, kind, report.when
            trace = report.longreprtext[-3000:]
            if report.when == "call" or kind:
                break
        elif hasattr(report, "wasxfail") and report.when == "call":
            outcome, message, phase = "xpassed", str(report.wasxfail), report.when
    # pytest remembers a refusal in a class fixture and raises it again for every test of the class.
    needs = recorder.needs_engine or "null engine: " in trace + message
    record = {"id": nodeid, "outcome": outcome, "seconds": round(seconds, 3), "needs_engine": needs,
              "calls": recorder.calls, "models": sorted(recorder.kinds), "ops": sorted(recorder.ops)}
    if outcome != "passed":
        record.update(phase=phase, error=error, message=message[:1000])
        if recorder.float16.proof:
            record["float16"] = recorder.float16.proof
    if trace:
        record["trace"] = trace
    return record

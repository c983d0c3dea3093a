# SPDX-License-Identifier: Apache-2.0
"""moka.report: performance reports in this process."""

import json
import os
import pathlib
import pickle
import signal
import threading

import numpy as np
import pytest
from conftest import relu

import moka
from moka import build

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden"
QUICK = {"seconds": 0.02, "threads": 1}


@pytest.fixture(scope="module", autouse=True)
def rates(tmp_path_factory):
    """A file of the machine's rates, so that not every report measures them."""
    path = tmp_path_factory.mktemp("rates") / "rates.json"
    environment = pytest.MonkeyPatch()
    environment.setenv("MOKA_RATES", str(path))
    for threads in (1, 2):
        assert moka._moka.main(["moka", "rates", "--rates", str(path), "--threads", str(threads), "--json"]) == 0
    yield path
    environment.undo()


@pytest.fixture
def net(tmp_path):
    p = build.Program("ios18")
    x = p.input("x", build.array((1, 64)))
    p.output(p.softmax(x=p.linear(x=x, weight=np.ones((64, 64), np.float32)), axis=-1), "y")
    return p.save(str(tmp_path / "net.mlpackage"))


@moka.register_layer("ReportTwice")
class ReportTwice:
    calls = 0

    def __init__(self, parameters):
        pass

    def output_shapes(self, shapes):
        return shapes

    def evaluate(self, inputs, outputs):
        ReportTwice.calls += 1
        outputs[0][...] = 2 * inputs[0]


def twice(folder):
    """The path of a neural network with a custom layer."""
    spec = build.model("neuralNetwork", {"x": build.array((4,))}, {"y": build.array((4,))}, version=4)
    spec.neuralNetwork.layers.add(name="own", input=["x"], output=["y"]).custom = {"className": "ReportTwice"}
    return build.Source(spec).save(str(folder / "own.mlmodel"))


def test_figures(net, no_process):
    report = moka.report(net, **QUICK)
    assert report.model.name == "net.mlpackage" and report.model.type == "mlProgram" and report.model.bytes > 64 * 64 * 4
    assert report.compilation.seconds > 0 and report.compilation.error == ""
    [setting] = report.settings
    assert (setting.name, setting.threads, setting.precision, setting.failure) == ("default", 1, "at_least", "")
    for times in (setting.load, setting.steady):
        assert 0 < times.minimum <= times.median <= times.p90 <= times.p99 <= times.maximum
        assert len(times.samples) <= times.count
    assert setting.load.count == 3 and setting.first > 0
    assert sum(o.share or 0 for o in setting.operations) == pytest.approx(1)
    linear = next(o for o in setting.operations if o.type == "linear")
    assert linear.arithmetic == 2 * 64 * 64 and linear.bound in ("arithmetic", "memory") and linear.roof > 0
    assert linear.kernel and isinstance(linear, moka.PlannedOperation)
    assert setting.memory.weight_bytes == 64 * 64 * 4
    assert setting.memory.peak_bytes >= setting.memory.peak_after_load_bytes > 0
    assert setting.plan.coverage.error == "" and setting.plan.coverage.predictions == setting.plan.predictions


def test_a_custom_layer_of_this_process(tmp_path, no_process):
    ReportTwice.calls = 0
    report = moka.report(twice(tmp_path), inputs={"x": np.ones(4, np.float32)}, **QUICK)
    [setting] = report.settings
    assert setting.failure == "" and ReportTwice.calls >= setting.steady.count
    [own] = [o for o in setting.operations if o.name == "own"]
    assert 0 < own.share <= 1
    moka.unregister_layer("ReportTwice")
    try:
        with pytest.raises(moka.UnsupportedError, match="ReportTwice"):
            moka.report(twice(tmp_path), **QUICK)
    finally:
        moka.register_layer("ReportTwice", ReportTwice)


def test_settings_side_by_side(net, no_process):
    report = moka.report(net, seconds=0.02, threads=[1, 2], precision=["at_least", "exact"], compile=False)
    assert report.compilation is None
    assert [s.name for s in report.settings] == ["at-least, 1 thread", "at-least, 2 threads", "exact, 1 thread", "exact, 2 threads"]
    assert [(s.precision, s.threads) for s in report.settings][2] == ("exact", 1)
    with pytest.raises(ValueError, match="at most 24"):
        moka.report(net, threads=list(range(1, 26)))
    with pytest.raises(ValueError, match="empty list"):
        moka.report(net, threads=[])


def test_every_kind_of_model(net, tmp_path, no_process):
    content = pathlib.Path(twice(tmp_path)).read_bytes()
    for model in (content, moka.ModelAsset(content), moka.Model(net, threads=1), relu(), build.open(net)):
        report = moka.report(model, seconds=0.01, compile=False)
        assert report.settings[0].steady.count >= 10, model
        assert report.model.type in ("neuralNetwork", "mlProgram") and report.model.name
    own = moka.report(moka.Model(net, threads=1), seconds=0.01)
    assert own.settings[0].threads == 1 and own.model.path == net and own.compilation is None
    assert moka.report(moka.Model(net, threads=1), seconds=0.01, threads=2).settings[0].threads == 2
    with pytest.raises(TypeError, match="low_memory"):
        moka.report(moka.Model(net), low_memory=True)
    with pytest.raises(TypeError, match="unexpected argument 'thread'"):
        moka.report(net, thread=1)
    with pytest.raises(TypeError, match="expected a model"):
        moka.report(3)


def test_an_encrypted_model(net, tmp_path, no_process):
    pair = moka.encryption.generate_key_pair()
    locked = tmp_path / "net.age"
    moka.encryption.encrypt_model(net, locked, recipients=[pair.recipient])
    report = moka.report(locked, key=pair.identity, **QUICK)
    assert report.model.type == "mlProgram" and report.settings[0].steady.count >= 10
    assert "encrypted" in report.compilation.error
    with pytest.raises(moka.Error):
        moka.report(locked, **QUICK)


def test_states_batches_and_shapes(tmp_path):
    steps = moka.Model(str(GOLDEN / "flexible" / "range.mlmodel"))
    name = steps.inputs[0].name
    report = moka.report(str(GOLDEN / "flexible" / "range.mlmodel"), shapes={name: (5, 6)}, batch=[1, 3], **QUICK)
    assert [s.batch for s in report.settings] == [1, 3]
    assert report.settings[0].shapes == [f"{name}=5x6"]
    with pytest.raises(moka.InvalidArgumentError, match="array input"):
        moka.report(steps, shapes={"absent": (1,)}, seconds=0.01)


def test_files(net, tmp_path):
    report = moka.report(net, compile=False, **QUICK)
    path, page = tmp_path / "report.json", tmp_path / "report.html"
    for _ in range(2):
        report.save(path)
        report.html(page)
    assert json.loads(path.read_text())["format"] == "moka-report"
    assert page.read_text() == report.page and 'content="Moka"' in report.page
    assert moka.Report.load(path).to_json() == report.to_json() == pickle.loads(pickle.dumps(report)).to_json()
    foreign = tmp_path / "foreign"
    foreign.write_text("mine")
    for write in (report.save, report.html):
        with pytest.raises(moka.InvalidArgumentError):
            write(foreign)
    assert foreign.read_text() == "mine"
    report.save(foreign, force=True)
    with pytest.raises(moka.MalformedModelError, match="report.html"):
        moka.Report.load(page)
    with pytest.raises(moka.NotFoundError):
        moka.Report.load(tmp_path / "absent")
    assert moka.Report.load(GOLDEN / "report" / "version_1.json").settings[1].failure.startswith("function: ")


def test_comparison(net, tmp_path):
    report = moka.report(net, compile=False, **QUICK)
    same = report.compare(report)
    assert same.regressions == 0 and {c.verdict for c in same.changes} == {"same"}
    changed = json.loads(report.to_json())
    changed["settings"][0]["steady"].update(samples=[1e-6] * 100, median=1e-6, p90=1e-6)
    (tmp_path / "old.json").write_text(json.dumps(changed))
    changed["settings"][0]["steady"].update(samples=[3e-6] * 100, median=3e-6, p90=3e-6)
    (tmp_path / "new.json").write_text(json.dumps(changed))
    found = moka.Report.load(tmp_path / "new.json").compare(tmp_path / "old.json")
    assert found.regressions == 2
    assert [c.change for c in found.changes if c.what == "prediction"] == [pytest.approx(2)]
    assert "worse" in repr(found) and "<table>" in found._repr_html_()
    assert moka.Report.load(tmp_path / "new.json").compare(tmp_path / "old.json", tolerance=3).regressions == 0


def test_how_it_is_shown(net):
    report = moka.report(net, compile=False, **QUICK)
    assert repr(report).startswith("Report of net.mlpackage, 20") and "linear" in repr(report)
    assert report._repr_html_().startswith("<iframe srcdoc=")


def test_progress_and_its_exceptions(net):
    told = []
    moka.report(net, progress=lambda *what: told.append(what), **QUICK)
    stages = [stage for _, stage, _ in told]
    assert stages[0] == "compile" and set(stages) == {"compile", "load", "predict", "operations", "coverage"}
    assert told[-1][0] == "default"

    def interrupted(setting, stage, done):
        if stage == "predict":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        moka.report(net, progress=interrupted, threads=1, seconds=1e6)


def test_stops(net):
    cancellation = moka.Cancellation()
    timer = threading.Timer(0.1, cancellation.cancel)
    timer.start()
    with pytest.raises(moka.CancelledError):
        moka.report(net, threads=1, seconds=1e6, cancellation=cancellation)
    timer.join()
    with pytest.raises(moka.DeadlineExceededError):
        moka.report(net, threads=1, seconds=1e6, timeout=0.1)


def test_an_interrupt_ends_it(net):
    timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        moka.report(net, threads=1, seconds=1e6)
    timer.join()


def test_mistakes(net):
    with pytest.raises(moka.NotFoundError):
        moka.report("/absent.mlpackage")
    with pytest.raises(moka.InvalidArgumentError, match="no input 'z'"):
        moka.report(net, inputs={"z": 1}, **QUICK)
    with pytest.raises(ValueError, match="seconds above 0"):
        moka.report(net, seconds=0)
    with pytest.raises(ValueError, match="batch of 1 to 1024"):
        moka.report(net, batch=0)
    with pytest.raises(ValueError, match="precision"):
        moka.report(net, precision=["half"])
    report = moka.report(net, function=["main", "other"], **QUICK)
    assert report.settings[0].failure == "" and "'other'" in report.settings[1].failure

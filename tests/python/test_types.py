# SPDX-License-Identifier: Apache-2.0
"""The types of the package, as mypy reads them from the installed wheel."""

import importlib.util
import pathlib
import subprocess
import sys

import pytest

import moka

pytest.importorskip("mypy", reason="mypy is not installed")

PROGRAM = """\
from typing import Dict, List

import numpy as np

import moka
from moka import build, compress, diff, edit, encryption, lint, update, verify

x = np.zeros((1, 3), np.float32)
model = moka.Model("net.mlpackage", compute_units="CPU_ONLY", threads=2)
outputs: Dict[str, object] = model.predict({"x": x})
shape: "tuple[int, ...]" = model.inputs[0].shape
kinds: List[str] = [operation.type for operation in model.explain({"x": x}).operations]
elements: List[np.ndarray] = [i.array for i in model.intermediates({"x": x})]

program = build.Program("ios17")
a = program.input("x", build.array((1, 3)))
program.output(program.relu(x=a), "y")
program.output(program.op("exp", x=a), "z")
program.save("net.mlpackage")

source = moka.from_onnx("net.onnx", dimensions={"batch": 1}, absent=["mask"])
edit.rename(source, {"x": "y"}).save("renamed.mlpackage")
made = compress.weights(source, compress.palette(4), layers={"type:gather": compress.linear(8)})
ratios: List[float] = [w.bytes_after / w.bytes_before for w in made.weights]
found = compress.search("net.mlpackage", share=0.4, inputs=[{"x": x}])
best: float = found.signal_to_noise
nodes: int = moka.to_onnx(model, "net.onnx").nodes

report = lint.check("net.mlpackage", ranges={"x": (-1, 1)}, target="ios16")
places: List[str] = [finding.place for finding in report.findings]
same: bool = diff.structure("net.mlpackage", "other.mlpackage").same
agrees: bool = verify.against("net.mlpackage", "net.onnx").passed
measured: moka.Report = moka.report(model, threads=[1, 2], batch=4, seconds=0.5, inputs={"x": x})
shares: List[float] = [operation.share or 0.0 for operation in measured.settings[0].operations]
worse: int = measured.compare("old.json", tolerance=0.1).regressions
measured.save("new.json", force=True)
encryption.encrypt_model("net.mlpackage", "net.age", passphrase="secret")

described = model.update_description
if described is not None:
    losses: List[str] = [loss.type for loss in described.losses]
marked = update.mark("net.mlmodel", ["dense"], learning_rate=(0.1, 0.0, 1.0), epochs=(3, [1, 3]))
update.nearest_neighbors(marked, x, ["a"], k=3).save("knn.mlmodel")


def show(context: moka.UpdateContext) -> None:
    rate: float = context.metrics.loss / context.metrics.mini_batches
    task.resume({"learningRate": rate})


task = moka.UpdateTask("net.mlmodel", [{"x": x, "label": "a"}], parameters={"epochs": 3}, progress=show)
learned: Dict[str, np.ndarray] = task.run().weights

try:
    model.predict({})
except moka.InvalidArgumentError as error:
    as_value: ValueError = error
except moka.DeviceLostError as error:
    as_error: moka.Error = error
"""

#: A line, and what mypy must say of it.
WRONG = [
    ("model.predict(3)", "arg-type"),
    ("model.predicts({})", "attr-defined"),
    ('moka.Model("net.mlpackage", threads="two")', "arg-type"),
    ("text: str = model.inputs[0].shape", "assignment"),
    ("first: str = report.findings[0].evidences", "attr-defined"),
    ('moka.from_onnx("net.onnx", dimensions=[1])', "arg-type"),
    ('compress.weights(source, "palette")', "arg-type"),
    ("number: int = found.curve[0].form", "attr-defined"),
    ('lint.check("net.mlpackage", ranges={"x": 1})', "dict-item"),
    ("rows: int = diff.structure(1, 2).same", "arg-type"),
    ('update.mark("net.mlmodel", ["dense"], epochs="3")', "arg-type"),
    ('moka.report("net.mlpackage", seconds="1")', "arg-type"),
    ("median: str = measured.settings[0].steady.median", "assignment"),
    ("raise moka.NoSuchError", "attr-defined"),
]


def mypy(folder, *arguments):
    """Runs where neither the sources nor the tests are found."""
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(folder / "cache"), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("options", [[], ["--strict"]], ids=["default", "strict"])
def test_the_package_has_no_errors(tmp_path, options):
    done = mypy(tmp_path, *options, "-p", "moka")
    assert done.returncode == 0, done.stdout


def test_a_correct_program(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = mypy(tmp_path, "--strict", "program.py")
    assert done.returncode == 0, done.stdout


def test_mistakes_are_found(tmp_path):
    first = PROGRAM.count("\n") + 1
    (tmp_path / "program.py").write_text(PROGRAM + "\n".join(line for line, _ in WRONG) + "\n")
    told = mypy(tmp_path, "program.py").stdout
    for i, (line, kind) in enumerate(WRONG):
        here = [found for found in told.splitlines() if found.startswith(f"program.py:{first + i}: error:")]
        assert any(f"[{kind}]" in found for found in here), f"{line}: expected [{kind}]\n{told}"


def test_the_wheel_has_the_stubs():
    folder = pathlib.Path(moka.__file__).parent
    extension = importlib.util.find_spec("moka._moka")
    assert extension.origin.endswith(".so")
    assert (folder / "py.typed").is_file()
    parts = {name for name in vars(moka._moka) if type(vars(moka._moka)[name]) is type(moka)}
    assert {path.stem for path in (folder / "_moka").iterdir()} == parts | {"__init__"}

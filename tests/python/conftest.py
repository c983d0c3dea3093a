# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import resource
import subprocess

import numpy as np
import pytest

import moka

ROOT = pathlib.Path(__file__).resolve().parents[2]


def program(inputs, body, outputs, opset="ios18"):
    """A MIL program of one function, as text."""
    return f"program(1.3)\n{{\n func main<{opset}>({inputs}) {{\n{body}\n }} -> ({outputs});\n}}\n"


def convolution(size):
    """A convolution of 16 to 32 channels and exp, for images of size x size."""
    return program(
        f"tensor<fp32, [1, 16, {size}, {size}]> x",
        f"""tensor<string, []> same = const()[name = string("same"), val = string("same")];
           tensor<fp32, [32, 16, 3, 3]> w = fill(shape = tensor<int32, [4]>([32, 16, 3, 3]), value = fp32(0x1p-4))[name = string("w")];
           tensor<fp32, [1, 32, {size}, {size}]> c = conv(x = x, weight = w, pad_type = same)[name = string("c")];
           tensor<fp32, [1, 32, {size}, {size}]> y = exp(x = c)[name = string("y")];""",
        "y",
    )


def relu(dtype="fp32", shape="1, 3"):
    t = f"tensor<{dtype}, [{shape}]>"
    return moka.Model.from_mil(program(f"{t} x", f'{t} y = relu(x = x)[name = string("y_op")];', "y"))


@pytest.fixture
def models():
    """The folder of real models."""
    folder = pathlib.Path(os.environ.get("MOKA_TEST_MODELS", ROOT.parent / "shared" / "models"))
    if not folder.is_dir():
        pytest.skip("no folder of published models: MOKA_TEST_MODELS names one")
    return folder


@pytest.fixture
def numbers():
    return np.array([[-1.0, 0.5, 2.0]], np.float32)


def _children():
    """The processes that this one has started and that have not ended."""
    out = set()
    for folder in pathlib.Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text()
            except OSError:
                continue
            if int(stat.rpartition(")")[2].split()[1]) == os.getpid():
                out.add(folder.name)
    return out


@pytest.fixture
def no_process(monkeypatch):
    """Fails where the test starts a process, be it from Python or not."""

    def refuse(*arguments, **options):
        raise AssertionError(f"a process is started: {arguments}")

    monkeypatch.delenv("MOKA_PYTHON", raising=False)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    for name in ("posix_spawn", "fork"):
        monkeypatch.setattr(os, name, refuse)
    # A child that has ended and was waited for has taken at least one page.
    before = _children(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
    yield
    assert (_children() - before[0], resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt) == (set(), before[1])

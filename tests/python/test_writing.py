# SPDX-License-Identifier: Apache-2.0
"""What functions that write replace: docs/writing.md."""

import pathlib
import subprocess
import sys

import moka
import numpy as np
import pytest
from moka import build, encryption

REPORT = pathlib.Path(__file__).resolve().parents[1] / "golden" / "report" / "version_1.json"
FOREIGN = b"#!/bin/sh\nkeep me\n"


@pytest.fixture
def source():
    program = build.Program("ios16")
    x = program.input("x", build.array((1, 64)))
    program.output(program.linear(x=x, weight=np.ones((3, 64), np.float32)), "y")
    return program


@pytest.fixture
def package(source, tmp_path):
    return source.save(tmp_path / "net.mlpackage")


@pytest.fixture
def writers(source, package, tmp_path):
    """Each function as one of a path, and the end of its path."""
    pair = encryption.generate_key_pair()
    encrypted = tmp_path / "in.age"
    encryption.encrypt_model(package, encrypted, recipients=[pair.recipient])

    def trace(path, force=False):
        with moka.trace(path, force=force):
            moka.Model(package).predict({"x": np.ones((1, 64), np.float32)})

    return {
        "save": (source.source().save, ".mlpackage"),
        "compile": (lambda path, **force: moka.compile_model(package, path, **force), ".mlmodelc"),
        "onnx": (lambda path, **force: moka.to_onnx(package, path, **force), ".onnx"),
        "encrypt": (lambda path, **force: encryption.encrypt_model(package, path, recipients=[pair.recipient], **force), ".age"),
        "decrypt": (lambda path, **force: encryption.decrypt_model(encrypted, path, key=pair.identity, **force), ".mlpackage"),
        "trace": (trace, ".pftrace"),
        "view": (moka.Model(package).view().save, ".html"),
        "report": (moka.Report.load(REPORT).save, ".json"),
        "report page": (moka.Report.load(REPORT).html, ".html"),
    }


def test_only_the_own_kind_is_replaced(writers, tmp_path):
    for name, (write, ending) in writers.items():
        path = tmp_path / (name + ending)
        for _ in range(2):
            write(path)
        other = tmp_path / ("other" + name + ending)
        other.write_bytes(FOREIGN)
        with pytest.raises(moka.InvalidArgumentError, match="expected"):
            write(other)
        assert other.read_bytes() == FOREIGN, name
        if path.is_file():
            write(other, force=True)
            assert other.read_bytes() != FOREIGN, name
            continue
        other.unlink()
        other.mkdir()
        (other / "letter").write_bytes(FOREIGN)
        for force in (False, True):
            with pytest.raises(moka.InvalidArgumentError, match="never replaced"):
                write(other, force=force)
        assert (other / "letter").read_bytes() == FOREIGN, name


def test_inputs_stay(package, tmp_path):
    for write in (lambda path: moka.compile_model(package, path), lambda path: encryption.encrypt_model(package, path, passphrase="x"),
                  lambda path: moka.to_onnx(package, path), lambda path: moka.Model(package).view().save(path)):
        with pytest.raises(moka.InvalidArgumentError):
            write(package)
        with pytest.raises(moka.InvalidArgumentError, match="lies in the model"):
            write(package + "/new")
    build.open(package).save(package)
    moka.Model(package)


def test_a_full_disk_raises_and_leaves_the_previous_file(package, tmp_path):
    script = """
import resource, sys
import moka
from moka import build
package, folder = sys.argv[1:]
source, page = build.open(package), moka.Model(package).view()
page.page
resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16))
trace = moka.trace(folder + "/t.pftrace")
for write, path in ((source.save, "m.mlpackage"), (lambda p: moka.to_onnx(package, p), "m.onnx"), (page.save, "m.html"),
                    (lambda p: moka.compile_model(package, p), "m.mlmodelc"), (lambda p: trace.stop(), "t.pftrace"),
                    (page.save, "/dev/full")):
    try:
        write(path if path[0] == "/" else folder + "/" + path)
        print("no error:", path)
    except moka.IOError as e:
        assert path in str(e) and ("File too large" in str(e) or "No space left" in str(e)), e
"""
    folder = tmp_path / "out"
    folder.mkdir()
    done = subprocess.run([sys.executable, "-c", script, package, str(folder)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert [f.name for f in folder.iterdir()] == ["t.pftrace"]


def test_a_traced_program_that_cannot_write_its_trace_fails(package, tmp_path):
    script = (
        "import sys, resource, moka, numpy as np; resource.setrlimit(resource.RLIMIT_FSIZE, (16, 16));"
        "moka.Model(sys.argv[1]).predict({'x': np.ones((1, 64), np.float32)})"
    )
    out = tmp_path / "t.pftrace"
    done = subprocess.run(
        [sys.executable, "-m", "moka", "trace", "-o", out, "--", sys.executable, "-c", script, package], capture_output=True, text=True
    )
    assert done.returncode == 3, done.stderr
    assert "cannot be written: File too large" in done.stderr
    assert not out.exists()

# SPDX-License-Identifier: Apache-2.0
"""moka among other packages, processes and threads."""

import multiprocessing
import os
import pathlib
import subprocess
import sys
import threading

import numpy as np
import pytest
from conftest import convolution

import moka

CONV = convolution(64)

RANGE = str(pathlib.Path(__file__).parents[1] / "golden" / "flexible" / "range.mlmodel")


def child(model, x, queue):
    queue.put(model.predict({"x": x})["y"].sum())


def test_a_forked_child_predicts():
    model = moka.Model.from_mil(CONV)
    x = np.full((1, 16, 64, 64), 0.01, np.float32)
    expected = model.predict({"x": x})["y"].sum()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=child, args=(model, x, queue))
    process.start()
    try:
        assert queue.get(timeout=60) == expected
    finally:
        process.join(10)
        process.kill()
    assert model.predict({"x": x})["y"].sum() == expected


def test_threads_that_help_can_be_bound():
    processors = os.sched_getaffinity(0)
    x = np.arange(6000, dtype=np.float32).reshape(3, 2000)
    of = [moka.Model(RANGE, threads=2, processors=p) for p in ([], [max(processors)])]
    first, second = (m.predict({m.description.inputs[0].name: x}) for m in of)
    assert all(np.array_equal(first[name], second[name]) for name in first)
    with pytest.raises(ValueError, match="processors: expected numbers from 0 to"):
        moka.Model(RANGE, processors=[1 << 20])
    assert os.sched_getaffinity(0) == processors


QUEUED = f"""
import signal, sys
import numpy as np, moka
model = moka.Model.from_mil({CONV!r})
x = np.zeros((1, 16, 64, 64), np.float32)
done = []
for i in range(int(sys.argv[1])):
    model.predict_future({{"x": x}}).add_done_callback(lambda f: print("." if f.exception() is None else "!", end=""))
if len(sys.argv) > 2:
    import atexit
    atexit.register(lambda: signal.setitimer(signal.ITIMER_REAL, 0.05))
    signal.signal(signal.SIGALRM, signal.default_int_handler)
"""


def test_the_end_of_the_process_waits_for_queued_predictions():
    done = subprocess.run([sys.executable, "-c", QUEUED, "40"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "." * 40, "")


def test_an_interrupt_ends_the_waiting_for_queued_predictions():
    done = subprocess.run([sys.executable, "-c", QUEUED, "100000", "interrupt"], capture_output=True, text=True, timeout=60)
    assert "KeyboardInterrupt" in done.stderr
    assert 0 < done.stdout.count(".") < 100000


def test_a_forked_child_has_a_queue():
    code = QUEUED + """
import os
sys.stdout.flush()
child = os.fork()
result = model.predict_future({"x": x}).result()["y"].shape
if child:
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
os._exit(0 if len(result) == 4 else 1)
"""
    done = subprocess.run([sys.executable, "-c", code, "3"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_forked_child_ends_without_what_its_parent_queued():
    code = QUEUED + """
import os, time
class Slow:
    def __array__(self, dtype=None, copy=None):
        time.sleep(0.3)
        return x
later = [model.predict_future({"x": Slow()}) for _ in range(8)]
sys.stdout.flush()
child = os.fork()
if child == 0:
    sys.exit(0)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-c", code, "0"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_importing_starts_no_thread():
    code = "import threading, os, moka; print(len(os.listdir('/proc/self/task')))"
    # numpy's own library may start threads; one process tells how many.
    numpy_only = "import os, numpy; print(len(os.listdir('/proc/self/task')))"
    run = lambda c: int(subprocess.run([sys.executable, "-c", c], capture_output=True, text=True, check=True).stdout)
    assert run(code) == run(numpy_only)


def test_importing_takes_little_memory():
    heavy = ("asyncio", "concurrent.futures", "logging", "ssl")
    code = f"import numpy, sys; before = set(sys.modules); import moka; print([m for m in {heavy} if m in set(sys.modules) - before])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_predicting_releases_the_interpreter():
    model = moka.Model.from_mil(CONV)
    x = np.zeros((1, 16, 64, 64), np.float32)
    stop, counted = threading.Event(), [0]

    def count():
        while not stop.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    try:
        for _ in range(20):
            model.predict({"x": x})
    finally:
        stop.set()
        thread.join()
    assert counted[0] > 0


def test_a_stream_makes_inputs_while_others_are_predicted():
    model = moka.Model.from_mil(CONV)
    made = []

    def inputs():
        for i in range(8):
            made.append(i)
            yield {"x": np.full((1, 16, 64, 64), i / 100, np.float32)}

    results = model.predict_stream(inputs(), ahead=3, outputs=["y"])
    assert made == []
    first = next(results)
    assert made == [0, 1, 2, 3]
    for i, got in enumerate([first, *results]):
        x = np.full((1, 16, 64, 64), i / 100, np.float32)
        assert np.array_equal(got["y"], model.predict({"x": x})["y"])
    assert made == list(range(8))


def test_a_stream_ends_with_what_its_inputs_or_predictions_raise():
    model = moka.Model.from_mil(CONV)
    x = {"x": np.zeros((1, 16, 64, 64), np.float32)}

    def broken():
        yield x
        raise OSError("the camera is gone")

    with pytest.raises(OSError, match="the camera is gone"):
        list(model.predict_stream(broken()))
    results = model.predict_stream([x, {}])
    assert next(results)["y"].shape == (1, 32, 64, 64)
    with pytest.raises(ValueError, match="input 'x'"):
        next(results)
    with pytest.raises(ValueError, match="ahead: expected at least 1, got 0"):
        model.predict_stream([x], ahead=0)
    with pytest.raises(TypeError, match="no state and no arrays to write to"):
        model.predict_stream([x], outputs={"y": np.zeros((1, 32, 64, 64), np.float32)})


ONNX = """
import numpy as np, onnx, onnxruntime
from onnx import helper, TensorProto
def onnx_predicts():
    w = helper.make_tensor("w", TensorProto.FLOAT, (8, 3, 3, 3), np.full(216, 0.5, np.float32))
    g = helper.make_graph([helper.make_node("Conv", ["x", "w"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, 8, 8))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 8, 6, 6))], [w])
    m = helper.make_model(g, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(m)
    s = onnxruntime.InferenceSession(m.SerializeToString(), providers=["CPUExecutionProvider"])
    assert abs(s.run(None, {"x": np.ones((1, 3, 8, 8), np.float32)})[0] - 13.5).max() < 1e-4
"""
TORCH = """
import torch
def torch_predicts():
    c = torch.nn.Conv2d(3, 8, 3)
    torch.nn.init.constant_(c.weight, 0.5); torch.nn.init.zeros_(c.bias)
    with torch.no_grad():
        assert abs(c(torch.ones(1, 3, 8, 8)) - 13.5).max() < 1e-4
        assert torch.matmul(torch.ones(300, 300), torch.ones(300, 300)).max() == 300
"""
MOKA = f"""
import tempfile
import moka, numpy as np
def moka_predicts():
    m = moka.Model.from_mil({CONV!r})
    y = m.predict({{"x": np.full((1, 16, 64, 64), 0.01, np.float32)}})["y"]
    assert abs(y[0, :, 1:-1, 1:-1] - np.exp(16 * 9 * 0.01 / 16)).max() < 1e-4
    with tempfile.TemporaryDirectory() as folder:
        compiled = moka.compile_model({RANGE!r}, folder + "/m.mlmodelc")
        assert moka.Model(compiled).predict({{"x": np.ones((4, 7), np.float32)}})["y"].shape == (4, 7)
        try:
            moka.Model(folder + "/absent.mlmodelc")
        except moka.NotFoundError:
            return
        raise AssertionError("a model that does not exist was loaded")
"""


@pytest.mark.parametrize("first", ["moka", "others"])
@pytest.mark.parametrize("other", ["onnx", "torch"])
def test_beside_other_packages(other, first):
    """Other packages' protobuf, OpenMP and oneDNN do not conflict with ours, in any order of import."""
    pytest.importorskip("onnxruntime" if other == "onnx" else "torch")
    theirs = ONNX if other == "onnx" else TORCH
    parts = [MOKA, theirs] if first == "moka" else [theirs, MOKA]
    calls = "\nfor _ in range(3):\n    moka_predicts(); %s_predicts()\n" % other
    done = subprocess.run([sys.executable, "-c", "".join(parts) + calls], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_module_exports_its_entry_alone():
    from moka import _moka

    nm = subprocess.run(["nm", "-D", "--defined-only", _moka.__file__], capture_output=True, text=True, check=True).stdout
    assert [line.split()[-1] for line in nm.splitlines()] == ["PyInit__moka"]

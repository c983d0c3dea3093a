# SPDX-License-Identifier: Apache-2.0
"""Selected outputs, batches, tables, copies, logs, display, and the memory of a model."""

import copy
import gc
import logging
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from conftest import ROOT, convolution, program, relu

import moka

GOLDEN = ROOT / "tests" / "golden"

BRANCHES = program(
    "tensor<fp32, [2]> x",
    """tensor<fp32, [2]> shared = mul(x = x, y = x)[name = string("shared")];
       tensor<fp32, [2]> a = exp(x = shared)[name = string("for_a")];
       tensor<fp32, [2]> b = sqrt(x = shared)[name = string("for_b")];""",
    "a, b",
)


def test_only_the_outputs_that_are_asked_for():
    model = moka.Model.from_mil(BRANCHES)
    inputs = {"x": [1, 2]}
    everything = model.predict(inputs)
    only = model.predict(inputs, outputs=["b"])
    assert list(only) == ["b"]
    np.testing.assert_array_equal(only["b"], everything["b"])
    assert {"for_a", "for_b"} <= {p.name for p in model.explain().operations}
    assert "for_a" not in {p.name for p in model.explain(outputs=["b"]).operations}
    assert [list(o) for o in model.predict([inputs] * 3, outputs=("a",))] == [["a"]] * 3
    with pytest.raises(ValueError, match="'c'.*'a', 'b'"):
        model.predict(inputs, outputs=["c"])
    for wrong in ("a", [], [1], 5):
        with pytest.raises(TypeError, match="outputs"):
            model.predict(inputs, outputs=wrong)


def test_what_goes_in_and_out():
    model = moka.Model.from_mil(BRANCHES)
    assert [f.name for f in model.inputs] == ["x"] and [f.name for f in model.outputs] == ["a", "b"]
    assert model.states == [] and model.inputs[0].shape == (2,)


def test_random_inputs_are_of_a_size_that_runs():
    """The model stacks x, described as [1] of 1 to 9 elements, on three."""
    model = moka.Model(GOLDEN / "flexible" / "lowest.mlmodel")
    inputs = model.random_inputs()
    assert inputs["x"].shape == (3,)
    model.predict(inputs)


def test_batches_equal_single_predictions(models):
    model = moka.Model(models / "basic_pitch" / "nmp.mlpackage")
    items = [model.random_inputs(seed) for seed in range(6)]
    for one, many in zip(map(model.predict, items), model.predict(items)):
        assert one.keys() == many.keys()
        for name in one:
            np.testing.assert_array_equal(one[name], many[name])


def test_batches_of_pictures():
    image = pytest.importorskip("PIL.Image")
    model = moka.Model(GOLDEN / "boundary" / "image_rgb.mlmodel")
    pictures = [image.fromarray(np.full((2, 3, 3), i * 10, np.uint8)) for i in range(16)]
    for i, out in enumerate(model.predict([{"x": p} for p in pictures])):
        np.testing.assert_array_equal(np.asarray(out["y"])[..., :3], np.full((2, 3, 3), i * 5))


def test_batches_use_all_threads():
    """Each prediction is too small to share, so additional processor time shows that items run in parallel."""
    steps = 'tensor<fp32, [4096]> next = tanh(x = v);'
    model = moka.Model.from_mil(
        program(
            "tensor<fp32, [4096]> x",
            f"""int32 n, tensor<fp32, [4096]> y = while_loop(loop_vars = (int32(0), x)) {{
                  block test(int32 k, tensor<fp32, [4096]> v) {{ bool more = less(x = k, y = int32(5000)); }} -> (more);
                  block step(int32 k, tensor<fp32, [4096]> v) {{ int32 after = add(x = k, y = int32(1)); {steps} }} -> (after, next);
                }};""",
            "y",
        )
    )
    batch = [{"x": np.full(4096, i, np.float32)} for i in range(8)]
    own, everybody = time.thread_time(), time.process_time()
    model.predict(batch)
    used = time.process_time() - everybody
    if len(os.sched_getaffinity(0)) > 1:
        assert time.thread_time() - own < 0.9 * used


def test_batch_errors_name_the_item(numbers):
    with pytest.raises(ValueError, match="batch item 1: .*'x'"):
        relu().predict([{"x": numbers}, {"x": numbers[:, :2]}])
    with pytest.raises(TypeError, match="batch item 1: .*'x'"):
        relu().predict([{"x": numbers}, {"x": object()}])
    assert relu().predict([]) == []


def test_plans_steps_and_times_are_tables(models):
    model = moka.Model(models / "basic_pitch" / "nmp.mlpackage")
    plan = model.explain(measure=True)
    text, html = repr(plan), plan._repr_html_()
    assert text.startswith("ComputePlan: ") and "conv" in text and " ms" in text or "µs" in text
    assert html.startswith("<table>") and html.count("<tr>") > 10 and "<th>kernel</th>" in html
    step = next(p for p in plan.operations if p.type == "conv")
    assert step.name in repr(step) and step.kernel in repr(step) and step.kernel in step._repr_html_()
    assert "total" in repr(model.load_times) and "total" in model.load_times._repr_html_()
    assert model.inputs[0].name in model.inputs[0]._repr_html_()
    assert "<" not in repr(model.inputs) and model.inputs[0].name in repr(model.inputs)


def test_html_is_escaped():
    model = moka.Model.from_mil(BRANCHES.replace('"for_a"', '"for<script>"'))
    assert "<script>" not in model.explain()._repr_html_()


def test_models_are_pickled_and_copied(tmp_path, numbers):
    path = GOLDEN / "classic" / "glm_exact.mlmodel"
    inputs = {"feature_1": 1.5, "feature_2": 3.0}
    by_path, by_bytes = moka.Model(path, threads=1), moka.Model(path.read_bytes())
    want = by_path.predict(inputs)
    assert len(pickle.dumps(by_path)) < 2000
    for model in (by_path, by_bytes):
        for other in (pickle.loads(pickle.dumps(model)), copy.copy(model), copy.deepcopy(model)):
            assert other.predict(inputs) == want
    assert copy.deepcopy(by_path)._core is by_path._core
    assert pickle.loads(pickle.dumps(by_path))._core.configuration.threads == 1
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(relu())).predict({"x": numbers})["y"], [[0, 0.5, 2]])


def test_models_go_to_other_processes():
    path = GOLDEN / "classic" / "glm_exact.mlmodel"
    model, inputs = moka.Model(path), {"feature_1": 1.5, "feature_2": 3.0}
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(model.predict, (inputs,)) == model.predict(inputs)


def test_states_are_copied():
    model = moka.Model.from_mil(
        program(
            "tensor<fp32, [2]> x, state<tensor<fp32, [2]>> s",
            """tensor<fp32, [2]> old = read_state(input = s)[name = string("r")];
               tensor<fp32, [2]> sum = add(x = old, y = x)[name = string("sum")];
               write_state(data = sum, input = s)[name = string("w")];
               tensor<fp32, [2]> y = identity(x = sum)[name = string("y")];""",
            "y",
        )
    )
    state = model.new_state()
    model.predict({"x": [1, 2]}, state=state)
    for other in (copy.copy(state), copy.deepcopy(state)):
        np.testing.assert_array_equal(model.predict({"x": [1, 2]}, state=other)["y"], [2, 4])
    np.testing.assert_array_equal(state.read("s"), [1, 2])
    assert "'s'" in repr(state)


def test_logging(caplog, tmp_path):
    path = GOLDEN / "classic" / "glm_exact.mlmodel"
    with caplog.at_level(logging.DEBUG, "moka"):
        moka.Model(path).predict({"feature_1": 1.5, "feature_2": 3.0})
    levels = {r.levelname: r.getMessage() for r in caplog.records if r.name == "moka"}
    assert str(path) in levels["INFO"] and "total" in levels["INFO"] and "predicted in" in levels["DEBUG"]
    caplog.clear()
    with caplog.at_level(logging.WARNING, "moka"):
        moka.Model(path).predict({"feature_1": 1.5, "feature_2": 3.0})
        assert not caplog.records
        damaged = tmp_path / "kernels.json"
        damaged.write_text("{")
        moka.Model(path, kernel_cache=damaged)
    assert [r.levelname for r in caplog.records] == ["WARNING"] and "kernels.json" in caplog.text


AT_EXIT = """
import sys, threading, time
import numpy as np
import moka
model = moka.Model.from_mil({text!r})
x = np.zeros((1, 16, 128, 128), np.float32)
class Slow:
    # Its conversion runs Python code, where threads switch.
    def __array__(self, dtype=None, copy=None):
        for _ in range(20000):
            pass
        return x
def go_on():
    while True:
        {call}
for _ in range(3):
    threading.Thread(target=go_on, daemon=True).start()
model.predict({{"x": x}})
time.sleep(0.05)
print("end")
"""


@pytest.mark.parametrize(
    "call",
    [
        'model.predict({"x": x})',
        'model.predict([{"x": x}] * 3)',
        'model.predict({"x": Slow()})',
        "model.explain()",
        "model.mil()",
    ],
)
def test_daemon_threads_at_the_end(call):
    """The interpreter ends while other threads predict: no abort, no crash, no hang."""
    text = convolution(128)
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", AT_EXIT.format(text=text, call=call)], capture_output=True, text=True, timeout=120
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


def test_a_forked_child_ends():
    code = (
        "import os, sys, threading, moka\n"
        f"m = moka.Model.from_mil({BRANCHES!r})\n"
        "def go_on():\n    while True: m.predict({'x': [1, 2]})\n"
        "threading.Thread(target=go_on, daemon=True).start()\n"
        "pid = os.fork()\n"
        "if pid == 0: sys.exit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "7\n" and done.returncode == 0, done.stderr


def resident():
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmRSS")).split()[1]) * 1024


def many_weights(megabytes):
    """A program of linear layers with that much in weights, and the weights."""
    n, layers = 1024, megabytes // 4
    body = "".join(
        f"""tensor<fp32, [{n}, {n}]> w{i} = const()[name = string("w{i}"), val = tensor<fp32, [{n}, {n}]>(BLOBFILE(path = string("@model_path/weights/w{i}.bin"), offset = uint64(64)))];
            tensor<fp32, [1, {n}]> y{i} = linear(x = {'x' if i == 0 else f'y{i - 1}'}, weight = w{i})[name = string("l{i}")];\n"""
        for i in range(layers)
    )
    text = program(f"tensor<fp32, [1, {n}]> x", body, f"y{layers - 1}")
    header = np.array([1, 2], np.uint32).tobytes() + bytes(56)
    record = np.array([0xDEADBEEF, 2], np.uint32).tobytes() + np.array([4 * n * n, 128], np.uint64).tobytes() + bytes(40)
    weights = np.full((n, n), 1e-4, np.float32).tobytes()
    return text, {f"weights/w{i}.bin": header + record + weights for i in range(layers)}


@pytest.mark.parametrize("form", ["path", "text"])
def test_memory_comes_back(form, tmp_path):
    """Deleting a model frees the 64 MB that it holds."""
    text, files = many_weights(64)
    moka.Model.from_mil(BRANCHES).predict({"x": [1, 2]})
    if form == "path":
        ct = pytest.importorskip("coremltools")
        from coremltools.models.neural_network import NeuralNetworkBuilder
        from coremltools.models import datatypes

        builder = NeuralNetworkBuilder([("x", datatypes.Array(1024))], [("y", datatypes.Array(1024))])
        weights = np.full((1024, 1024), 1e-4, np.float32)
        for i in range(16):
            name = "x" if i == 0 else f"y{i}"
            builder.add_inner_product(f"l{i}", weights, None, 1024, 1024, False, name, "y" if i == 15 else f"y{i + 1}")
        path = str(tmp_path / "m.mlmodel")
        ct.utils.save_spec(builder.spec, path)
        del builder
        load = lambda: moka.Model(path)
    else:
        load = lambda: moka.Model.from_mil(text, files)
    gc.collect()
    load().predict({"x": np.ones(1024 if form == "path" else (1, 1024), np.float32)})  # code and tables stay
    gc.collect()
    before = resident()
    for _ in range(2):
        model = load()
        model.predict({"x": np.ones(1024 if form == "path" else (1, 1024), np.float32)})
        assert resident() - before > 30e6
        del model
        gc.collect()
        assert resident() - before < 12e6


CHANGING = """
import sys, threading
import numpy as np
import moka
count = int(sys.argv[1])
model = moka.Model.from_mil({text!r})
def work(k):
    sizes = np.random.default_rng(k).integers(128, 384, 48 // count)
    for n in sizes:
        model.predict({{"x": np.zeros((1, 8, n, n), np.float32)}})
threads = [threading.Thread(target=work, args=(k,)) for k in range(count)]
for t in threads: t.start()
for t in threads: t.join()
print(next(l for l in open("/proc/self/status") if l.startswith("VmHWM")).split()[1])
"""


def test_eight_threads_of_changing_shapes_take_at_most_twice_the_memory_of_one():
    text = program(
        "tensor<fp32, [1, 8, ?, ?]> x",
        """tensor<string, []> same = const()[name = string("same"), val = string("same")];
           tensor<fp32, [32, 8, 3, 3]> w = fill(shape = tensor<int32, [4]>([32, 8, 3, 3]), value = fp32(0x1p-6))[name = string("w")];
           tensor<fp32, [32, 32, 3, 3]> v = fill(shape = tensor<int32, [4]>([32, 32, 3, 3]), value = fp32(0x1p-6))[name = string("v")];
           tensor<fp32, [1, 32, ?, ?]> c = conv(x = x, weight = w, pad_type = same)[name = string("c")];
           tensor<fp32, [1, 32, ?, ?]> d = conv(x = c, weight = v, pad_type = same)[name = string("d")];
           tensor<fp32, [1, 32, 1, 1]> y = reduce_mean(x = d, axes = tensor<int32, [2]>([2, 3]), keep_dims = bool(true))[name = string("y")];""",
        "y",
    )

    def peak(threads):
        code = CHANGING.format(text=text)
        done = subprocess.run([sys.executable, "-c", code, str(threads)], capture_output=True, text=True, check=True)
        return int(done.stdout) / 1024

    bare = int(subprocess.run([sys.executable, "-c", "import moka; print(next(l for l in open('/proc/self/status') if l.startswith('VmHWM')).split()[1])"], capture_output=True, text=True, check=True).stdout) / 1024
    one, eight = peak(1) - bare, peak(8) - bare
    assert eight < 2 * one, (bare, one, eight)

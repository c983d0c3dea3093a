# SPDX-License-Identifier: Apache-2.0
"""moka.verify: answers beside those of a reference."""

import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import moka
from moka import InvalidArgumentError, build, compress, verify

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden"

WEIGHT = np.random.default_rng(6).standard_normal((64, 64)).astype(np.float32)


@pytest.fixture
def net(tmp_path):
    p = build.Program("ios18")
    x = p.input("x", build.array((1, 64)))
    p.output(p.linear(x=x, weight=WEIGHT), "y")
    return p.save(str(tmp_path / "net.mlpackage"))


def test_answers_of_numpy(net, tmp_path):
    inputs = [np.random.default_rng(seed).standard_normal((1, 64)).astype(np.float32) for seed in range(3)]
    cases = [{"inputs": {"x": x.tolist()}, "outputs": {"y": (x @ WEIGHT.T).tolist()}} for x in inputs]
    recorded = tmp_path / "answers.json"
    recorded.write_text(json.dumps({"device": "numpy", "cases": cases}))
    result = verify.against(net, recorded)
    assert result.passed and result.min_snr == 80 and result.min_snr_is_default
    [shape] = result.shapes
    assert shape.predictions == 3 and shape.fault == ""
    assert shape.outputs[0].snr > 100 and shape.outputs[0].largest_error < 1e-4
    cases[1]["outputs"]["y"][0][7] += 0.5
    recorded.write_text(json.dumps({"cases": cases}))
    result = verify.against(net, recorded, max_error=0.1)
    assert not result.passed
    assert result.shapes[0].outputs[0].largest_error == pytest.approx(0.5, rel=1e-4)
    assert any("the largest error is 0.5" in failure for failure in result.failures)


def test_a_compressed_model_and_given_inputs(net):
    small = compress.weights(net, compress.linear(8)).model
    inputs = [{"x": np.random.default_rng(seed).standard_normal((1, 64))} for seed in range(2)]
    result = verify.against(small, net, inputs=inputs)
    assert result.passed and result.min_snr == 20
    [output] = result.shapes[0].outputs
    one, two = build.open(net).load(), small.load()
    before = np.concatenate([one.predict(row)["y"] for row in inputs])
    after = np.concatenate([two.predict(row)["y"] for row in inputs])
    signal = np.square(before, dtype=np.float64).sum() / np.square(before - after, dtype=np.float64).sum()
    assert output.snr == pytest.approx(10 * math.log10(signal), abs=1e-2)
    assert result.shapes[0].predictions == 2 and not output.equal
    assert not verify.against(small, net, inputs=inputs, min_snr=90).passed


def test_inputs_that_json_lacks(net):
    rows = [{"x": [[math.nan, math.inf] + [np.float32(0.5)] * 62]}, {"x": [[0.25] * 64]}]
    result = verify.against(net, net, inputs=rows)
    assert result.passed and result.shapes[0].predictions == 2


def test_a_model_beside_itself(net):
    result = verify.against(net, build.open(net), runs=2, ranges={"x": (-5, 5)})
    assert result.passed and result.shapes[0].outputs[0].equal and result.shapes[0].outputs[0].snr == math.inf
    assert verify.against(net, device="reference").passed


def test_mistakes(net, tmp_path):
    with pytest.raises(InvalidArgumentError, match="--against"):
        verify.against(net)
    with pytest.raises(InvalidArgumentError, match="no input .z.; it takes x"):
        verify.against(net, net, inputs=[{"z": np.zeros(3)}])
    with pytest.raises(InvalidArgumentError, match="z"):
        verify.against(net, net, ranges={"z": (0, 1)})
    with pytest.raises(moka.Error, match="absent"):
        verify.against(str(tmp_path / "absent.mlpackage"), net)


def doubled_picture(folder):
    """The path of a model that doubles the pixels of an image, pixels, and the path of its recorded answer."""
    p = build.Program("ios17")
    p.output(p.mul(x=p.input("image", build.image(4, 3)), y=np.float32(2)), "y")
    path = p.save(str(folder / "picture.mlpackage"))
    pixels = np.random.default_rng(2).integers(0, 256, (3, 4, 3), np.uint8)
    recorded = folder / "answers.npz"
    np.savez(recorded, y=2 * pixels.transpose(2, 0, 1)[None].astype(np.float32))
    return path, pixels, recorded


def test_images_and_texts(tmp_path):
    labels = build.model("categoricalMapping", {"word": build.string()}, {"index": build.int64()})
    labels.categoricalMapping.stringToInt64Map = {"map": {"one": 1, "two": 2}}
    labels.categoricalMapping.int64Value = 0
    path = build.Source(labels).save(str(tmp_path / "words.mlmodel"))
    recorded = tmp_path / "answers.json"
    recorded.write_text(json.dumps({"outputs": {"index": 2}}))
    assert verify.against(path, recorded, inputs=[{"word": "two"}]).passed
    assert not verify.against(path, recorded, inputs=[{"word": "one"}]).passed

    path, pixels, recorded = doubled_picture(tmp_path)
    result = verify.against(path, recorded, inputs=[{"image": pixels}])
    assert result.passed and result.shapes[0].outputs[0].equal


def test_onnxruntime_answers_in_this_python(net, tmp_path, monkeypatch):
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    monkeypatch.delenv("MOKA_PYTHON", raising=False)
    path = str(tmp_path / "net.onnx")
    moka.to_onnx(net, path)
    result = verify.against(net, path)
    assert result.passed and result.shapes[0].outputs[0].snr > 100
    assert "onnx" in result.reference
    monkeypatch.setenv("PATH", str(tmp_path))  # has no python3
    done = subprocess.run([sys.executable, "-m", "moka", "verify", str(net), "--against", path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_optional_inputs_of_onnxruntime(tmp_path):
    """An optional input is an initializer that a caller may override. Some exporters make such initializers of all weights."""
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    p = build.Program("ios18")
    x, shift = p.input("x", build.array((1, 64))), p.input("shift", build.array((1, 64), optional=True))
    p.output(p.add(x=p.linear(x=x, weight=WEIGHT), y=shift), "y")
    model, path = p.save(str(tmp_path / "net.mlpackage")), str(tmp_path / "net.onnx")
    moka.to_onnx(model, path)
    assert verify.against(model, path).passed
    assert verify.against(model, path, inputs=[{"x": WEIGHT[:1]}]).passed
    net = onnx.load(path)
    graph = net.graph
    weights = [w for w in graph.initializer if w.name != "shift"]
    graph.input.extend(onnx.helper.make_tensor_value_info(w.name, w.data_type, w.dims) for w in weights)
    onnx.save(net, path)
    assert verify.against(model, path).passed

    del graph.input[:], graph.initializer[:]
    graph.input.append(onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 64]))
    graph.initializer.extend([*weights, onnx.numpy_helper.from_array(np.zeros((1, 64), np.float32), "shift")])
    onnx.save(net, path)
    result = verify.against(model, path)
    assert not result.passed and result.facts["hint"] == "the reference has no input for 'shift'; --map NAME=OTHER names one"


def test_onnxruntime_multiplies_quantized_weights_in_float32(tmp_path):
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    p = build.Program("ios18")
    p.output(p.matmul(x=p.input("x", build.array((1, 64))), y=WEIGHT), "y")
    small = compress.weights(p.save(str(tmp_path / "net.mlpackage")), compress.linear(4)).model
    model, path = small.save(str(tmp_path / "small.mlpackage")), str(tmp_path / "small.onnx")
    moka.to_onnx(model, path)
    assert verify.against(model, path, min_snr=80).passed


def test_pictures_of_pil(tmp_path):
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    path, pixels, recorded = doubled_picture(tmp_path)
    picture = image.fromarray(pixels).convert("RGBA")
    assert verify.against(path, recorded, inputs=[{"image": picture}]).shapes[0].outputs[0].equal


def test_labels_in_recorded_arrays(tmp_path):
    """An int64 label is an array of one element in a file."""
    model = str(GOLDEN / "classic" / "glm_onevsrest_logit_2.mlmodel")
    inputs = moka.Model(model).random_inputs(1)
    label = moka.Model(model).predict(inputs)["label"]
    for recorded, passed in ((label, True), (label + 1, False)):
        np.savez(tmp_path / "answers.npz", label=np.array([recorded], np.int64), **inputs)
        result = verify.against(model, tmp_path / "answers.npz")
        assert result.passed == passed, result.failures
        [output] = result.shapes[0].outputs
        assert (output.labels, output.same_labels) == (1, int(passed))


def test_a_custom_layer_and_a_key(tmp_path, no_process):
    features = [{"x": build.array((4,))}, {"y": build.array((4,))}]
    spec = build.model("neuralNetwork", *features, version=4)
    spec.neuralNetwork.layers.add(name="own", input=["x"], output=["y"]).custom = {"className": "Thrice"}
    model = build.Source(spec).save(str(tmp_path / "own.mlmodel"))
    plugin = tmp_path / "thrice.py"
    plugin.write_text(
        "import moka, numpy as np\n\n@moka.register_layer('Thrice')\nclass Thrice:\n    def __init__(self, parameters, info):\n        pass\n"
        "    def output_shapes(self, shapes):\n        return shapes\n    def evaluate(self, inputs, outputs):\n        outputs[0][...] = 3 * inputs[0]\n"
    )
    pair = moka.encryption.generate_key_pair()
    locked = tmp_path / "own.mlmodel.age"
    moka.encryption.encrypt_model(model, locked, recipients=[pair.recipient])
    x = np.array([1, 2, 3, 4], np.float32)
    np.savez(tmp_path / "answers.npz", x=x, y=3 * x)
    assert verify.against(locked, tmp_path / "answers.npz", plugins=[plugin], key=pair.identity).passed
    assert verify.against(locked, model, inputs=[{"x": x}], plugins=[plugin], key=lambda path, passphrase: pair.identity).passed
    answers = verify.against(model, lambda inputs: {"y": 3 * inputs["x"]}, inputs=[{"x": x}], plugins=[plugin])
    assert answers.passed and "Thrice" not in moka.registered_layers()
    with pytest.raises(moka.Error, match="Thrice"):
        verify.against(locked, model, key=pair.identity)
    with pytest.raises(moka.NotFoundError, match="absent.py"):
        verify.against(model, model, plugins=[plugin, tmp_path / "absent.py"])
    assert "Thrice" not in moka.registered_layers()
    with pytest.raises(moka.Error):
        verify.against(locked, model, plugins=[plugin])


def thrice(folder):
    """The path of a neural network with a custom layer."""
    spec = build.model("neuralNetwork", {"x": build.array((4,))}, {"y": build.array((4,))}, version=4)
    spec.neuralNetwork.layers.add(name="own", input=["x"], output=["y"]).custom = {"className": "ThriceHere"}
    return build.Source(spec).save(str(folder / "own.mlmodel"))


@moka.register_layer("ThriceHere")
class ThriceHere:
    def __init__(self, parameters):
        pass

    def output_shapes(self, shapes):
        return shapes

    def evaluate(self, inputs, outputs):
        outputs[0][...] = 3 * inputs[0]


def test_a_layer_of_this_process(tmp_path):
    x = np.array([1, 2, 3, 4], np.float32)
    np.savez(tmp_path / "answers.npz", x=x, y=3 * x)
    path = thrice(tmp_path)
    assert verify.against(path, tmp_path / "answers.npz").passed
    assert verify.against(path, path, inputs=[{"x": x}]).shapes[0].outputs[0].equal


def test_no_process_is_started(net, tmp_path, no_process):
    assert verify.against(net, net).passed
    assert verify.against(net, device="reference", runs=1).passed
    assert verify.against(net, precision="exact", shapes="all").passed
    x = np.ones((1, 64), np.float32)
    np.savez(tmp_path / "answers.npz", x=x, y=x @ WEIGHT.T)
    assert verify.against(net, tmp_path / "answers.npz").passed


def test_onnx_starts_no_process(net, tmp_path, no_process, monkeypatch):
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    path = str(tmp_path / "net.onnx")
    moka.to_onnx(net, path)
    assert verify.against(net, path).passed
    monkeypatch.setenv("MOKA_PYTHON", sys.executable)  # this interpreter
    assert verify.against(net, path).passed
    (tmp_path / "damaged.onnx").write_bytes(b"no model")
    with pytest.raises(moka.Error, match="damaged.onnx"):
        verify.against(net, tmp_path / "damaged.onnx")


def test_a_function_as_the_reference(net):
    def numpy_net(inputs):
        return {"y": inputs["x"] @ WEIGHT.T}

    result = verify.against(net, numpy_net)
    assert result.passed and result.reference == "numpy_net" and result.shapes[0].predictions == 3
    assert not verify.against(net, lambda inputs: {"y": inputs["x"] @ WEIGHT.T + 1}).passed
    result = verify.against(net, lambda inputs: {})
    assert result.shapes[0].outputs[0].faults[0] == "the output is missing in a prediction"
    [shape] = verify.against(net, lambda inputs: inputs["z"]).shapes
    assert shape.fault == "the reference: <lambda>: KeyError: 'z'"
    [shape] = verify.against(net, lambda inputs: {"y": "text"}).shapes
    assert shape.fault.startswith("the reference: <lambda>: ")


def test_a_reference_that_is_interrupted(net):
    def interrupted(inputs):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verify.against(net, interrupted)


def test_nothing_that_is_compared_does_not_pass(net):
    for runs in (0, -1):
        with pytest.raises(InvalidArgumentError, match=f"runs: expected at least 1, got {runs}"):
            verify.against(net, net, runs=runs)


def test_an_interrupt_ends_it(tmp_path):
    p = build.Program("ios18")
    y = x = p.input("x", build.array((64, 64)))
    for _ in range(100):
        y = p.tanh(x=p.matmul(x=y, y=x))
    p.output(y, "y")
    slow = p.save(str(tmp_path / "slow.mlpackage"))
    begin = time.monotonic()
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        verify.against(slow, slow, runs=10_000)  # more than 10 seconds
    timer.join()
    assert time.monotonic() - begin < 8


def test_flat_lists(net):
    assert verify.against(net, net, inputs=[{"x": [0.5] * 64}, {"x": np.full(64, 0.25)}]).passed


def test_features_of_other_names(net, tmp_path):
    p = build.Program("ios18")
    p.output(p.linear(x=p.input("a", build.array((1, 64))), weight=WEIGHT), "b")
    other = p.save(str(tmp_path / "other.mlpackage"))
    assert verify.against(net, other, map={"x": "a", "y": "b"}).passed
    with pytest.raises(InvalidArgumentError, match="map of 'q': the model has no input or output"):
        verify.against(net, other, map={"q": "a"})
    with pytest.raises(InvalidArgumentError, match="map of 'x': the reference has no input 'c'; it has 'a'"):
        verify.against(net, other, map={"x": "c"})

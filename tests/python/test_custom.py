# SPDX-License-Identifier: Apache-2.0
"""Custom layers and operations written in Python, against numpy."""

import pathlib
import signal
import subprocess
import sys
import threading

import moka
import numpy as np
import pytest

ct = pytest.importorskip("coremltools")
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples/layers"
rng = np.random.default_rng(7)


@pytest.fixture
def layers():
    """Names to unregister."""
    before = set(moka.registered_layers()), set(moka.registered_operations())
    yield
    for name in set(moka.registered_layers()) - before[0]:
        moka.unregister_layer(name)
    for name in set(moka.registered_operations()) - before[1]:
        moka.unregister_operation(name)


def network(path, inputs, outputs, class_name, parameters=None, weights=(), rank5=False):
    """A network of one custom layer. Inputs and outputs: names and shapes."""
    arrays = ct.models.datatypes.Array
    builder = ct.models.neural_network.NeuralNetworkBuilder(
        [(name, arrays(*shape)) for name, shape in inputs.items()],
        [(name, arrays(*shape) if shape else None) for name, shape in outputs.items()],
        disable_rank5_shape_mapping=not rank5,
    )
    proto = ct.proto.NeuralNetwork_pb2.CustomLayerParams()
    proto.className = class_name
    proto.description = "a layer of the test"
    for key, value in (parameters or {}).items():
        field = {bool: "boolValue", int: "intValue", float: "doubleValue", str: "stringValue"}[type(value)]
        setattr(proto.parameters[key], field, value)
    for weight in weights:
        message = proto.weights.add()
        if weight.dtype == np.float16:
            message.float16Value = weight.tobytes()
        elif weight.dtype == np.uint8:
            message.rawValue = weight.tobytes()
        else:
            message.floatValue.extend(weight.ravel().tolist())
    builder.add_custom("layer", list(inputs), list(outputs), proto)
    ct.models.utils.save_spec(builder.spec, str(path))
    return str(path)


def test_parameters_weights_and_several_arrays(tmp_path, layers):
    seen = {}

    @moka.register_layer("Mix")
    class Mix:
        def __init__(self, parameters, info):
            seen.update(parameters=parameters, info=info)

        def set_weights(self, weights):
            seen["weights"] = weights

        def output_shapes(self, input_shapes):
            return [input_shapes[1], input_shapes[0]]

        def evaluate(self, inputs, outputs):
            seen["writeable"] = [a.flags.writeable for a in [*inputs, *outputs]]
            outputs[0][...] = inputs[1] * seen["weights"][0]
            outputs[1][...] = inputs[0] + seen["parameters"]["shift"]

    weights = [rng.random(4).astype(np.float32), rng.random(3).astype(np.float16), np.arange(5, dtype=np.uint8)]
    path = network(tmp_path / "m.mlmodel", {"a": (2, 3), "b": (3, 4)}, {"p": (3, 4), "q": (2, 3)}, "Mix",
                   {"shift": 2.5, "count": 7, "mode": "odd", "on": True}, weights)
    a, b = rng.random((2, 3)).astype(np.float32), rng.random((3, 4)).astype(np.float32)
    out = moka.Model(path).predict({"a": a, "b": b})
    np.testing.assert_allclose(out["p"], b * weights[0], rtol=1e-6)
    np.testing.assert_allclose(out["q"], a + 2.5, rtol=1e-6)
    assert seen["parameters"] == {"shift": 2.5, "count": 7, "mode": "odd", "on": True}
    assert (seen["info"].name, seen["info"].inputs, seen["info"].outputs) == ("layer", 2, 2)
    assert [w.dtype for w in seen["weights"]] == [np.float32, np.float16, np.uint8]
    for got, given in zip(seen["weights"], weights):
        assert not got.flags.writeable
        np.testing.assert_array_equal(got, given)
    assert seen["writeable"] == [False, False, True, True]


def test_the_legacy_mapping_gives_rank_5(tmp_path, layers):
    shapes = []

    @moka.register_layer("Double")
    class Double:
        def __init__(self, parameters):
            pass

        def evaluate(self, inputs, outputs):
            shapes.append(inputs[0].shape)
            outputs[0][...] = inputs[0] * 2

    path = network(tmp_path / "m.mlmodel", {"x": (3, 4, 5)}, {"y": (3, 4, 5)}, "Double", rank5=True)
    model = moka.Model(path)
    x = rng.random((3, 4, 5)).astype(np.float32)
    np.testing.assert_array_equal(model.predict({"x": x})["y"], x * 2)
    batch = rng.random((2, 6, 3, 4, 5)).astype(np.float32)
    np.testing.assert_array_equal(model.predict({"x": batch})["y"], batch * 2)
    assert shapes == [(1, 1, 3, 4, 5), (2, 6, 3, 4, 5)]


def test_the_examples_of_the_documentation(tmp_path, layers):
    moka.load_plugin(EXAMPLES / "layers.py")
    x = rng.standard_normal((3, 6, 9)).astype(np.float32)
    swish = moka.Model(network(tmp_path / "s.mlmodel", {"x": x.shape}, {"y": x.shape}, "Swish", {"beta": 0.5}))
    np.testing.assert_allclose(swish.predict({"x": x})["y"], x / (1 + np.exp(-0.5 * x)), rtol=1e-5)

    pool = moka.Model(network(tmp_path / "p.mlmodel", {"x": x.shape}, {"y": (3, 3, 4), "i": (3, 3, 4)}, "MaxPoolWithArgmax"))
    out = pool.predict({"x": x})
    for c in range(3):
        for r in range(3):
            for k in range(4):
                window = {(2 * r + u) * 9 + 2 * k + v: x[c, 2 * r + u, 2 * k + v] for u in range(2) for v in range(2)}
                best = max(window, key=window.get)
                assert (out["i"][c, r, k], out["y"][c, r, k]) == (best, window[best])

    gain = rng.random(3).astype(np.float32)
    upsample = moka.Model(network(tmp_path / "u.mlmodel", {"x": x.shape}, {"y": (3, 12, 18)}, "ScaledUpsampling", {"scale": 2}, [gain]))
    np.testing.assert_allclose(upsample.predict({"x": x})["y"], np.kron(x * gain[:, None, None], np.ones((2, 2))), rtol=1e-6)


def test_errors_carry_the_traceback(tmp_path, layers):
    path = network(tmp_path / "m.mlmodel", {"x": (2,)}, {"y": (2,)}, "Fails")
    with pytest.raises(moka.UnsupportedError, match="custom layer 'Fails' \\(a layer of the test\\).*register_layer"):
        moka.Model(path)

    @moka.register_layer("Fails")
    class Fails:
        def __init__(self, parameters):
            self.shape = (2,)

        def output_shapes(self, input_shapes):
            return [self.shape]

        def evaluate(self, inputs, outputs):
            raise ZeroDivisionError("by design")

    with pytest.raises(moka.DataError, match="(?s)custom layer 'Fails'.*Traceback.*test_custom.py.*ZeroDivisionError: by design"):
        moka.Model(path).predict({"x": np.zeros(2, np.float32)})

    class Wrong(Fails):
        def output_shapes(self, input_shapes):
            return [(2,), (3,)]

    moka.register_layer("Fails", Wrong)
    with pytest.raises(moka.DataError, match="expected 1 shapes, got 2"):
        moka.Model(path)

    class Broken(Fails):
        def __init__(self, parameters):
            raise KeyError("beta")

    moka.register_layer("Fails", Broken)
    with pytest.raises(moka.DataError, match="(?s)its factory.*KeyError: 'beta'"):
        moka.Model(path)

    moka.register_layer("Fails", lambda parameters: object())
    with pytest.raises(moka.DataError, match="without the method evaluate"):
        moka.Model(path)
    with pytest.raises(TypeError, match="class or a function"):
        moka.register_layer("Fails", 3)


def test_arrays_must_not_be_kept(tmp_path, layers):
    kept = []

    @moka.register_layer("Keeps")
    class Keeps:
        def __init__(self, parameters):
            pass

        def evaluate(self, inputs, outputs):
            outputs[0][...] = 1
            kept.append(outputs[0][:1])

    model = moka.Model(network(tmp_path / "m.mlmodel", {"x": (2,)}, {"y": (2,)}, "Keeps"))
    with pytest.raises(moka.DataError, match=r"keeps outputs\[0\].*copy"):
        model.predict({"x": np.zeros(2, np.float32)})
    kept.clear()


def test_threads_and_unregistering(tmp_path, layers):
    class Adds:
        def __init__(self, parameters):
            pass

        def evaluate(self, inputs, outputs):
            outputs[0][...] = inputs[0] + 1

    moka.register_layer("Adds", Adds)
    path = network(tmp_path / "m.mlmodel", {"x": (1000,)}, {"y": (1000,)}, "Adds")
    model = moka.Model(path)
    wrong = []

    def predict(seed):
        x = np.full(1000, seed, np.float32)
        for _ in range(50):
            if not (model.predict({"x": x})["y"] == seed + 1).all():
                wrong.append(seed)

    threads = [threading.Thread(target=predict, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for _ in range(50):
        moka.unregister_layer("Adds")
        moka.register_layer("Adds", Adds)
    for t in threads:
        t.join()
    assert wrong == []
    moka.unregister_layer("Adds")
    assert (model.predict({"x": np.zeros(1000, np.float32)})["y"] == 1).all()
    with pytest.raises(moka.UnsupportedError):
        moka.Model(path)


def test_a_layer_may_predict(tmp_path, layers):
    inner = moka.Model.from_mil(
        'program(1.3)\n{\n func main<ios18>(tensor<fp32, [2]> x) {\n tensor<fp32, [2]> y = relu(x = x)[name = string("y")];\n } -> (y);\n}'
    )

    @moka.register_layer("Nested")
    class Nested:
        def __init__(self, parameters):
            pass

        def evaluate(self, inputs, outputs):
            outputs[0][...] = inner.predict({"x": inputs[0].copy()})["y"]

    model = moka.Model(network(tmp_path / "m.mlmodel", {"x": (2,)}, {"y": (2,)}, "Nested"))
    assert model.predict({"x": np.array([-1, 2], np.float32)})["y"].tolist() == [0, 2]


def test_custom_operations_of_the_converter(tmp_path, layers):
    """An operation with is_custom_op, as coremltools converts it."""
    from coremltools.converters.mil import Builder as mb
    from coremltools.converters.mil.mil import Operation, types
    from coremltools.converters.mil.mil.input_type import InputSpec, TensorInputType
    from coremltools.converters.mil.mil.ops.defs._op_reqs import register_op

    @register_op(is_custom_op=True)
    class moka_test_scaled_sum(Operation):
        input_spec = InputSpec(
            x=TensorInputType(type_domain="T"), y=TensorInputType(type_domain="T"),
            factor=TensorInputType(const=True, type_domain=types.fp32),
            table=TensorInputType(const=True, type_domain="T"),
        )
        type_domains = {"T": (types.fp16, types.fp32)}
        bindings = {"class_name": "ScaledSum", "input_order": ["y", "x"], "parameters": ["factor"], "weights": ["table"],
                    "description": "y + factor * x * table"}

        def type_inference(self):
            return self.x.sym_type

    table = rng.random((4, 5)).astype(np.float32)

    @mb.program(input_specs=[mb.TensorSpec((4, 5)), mb.TensorSpec((4, 5))])
    def program(x, y):
        return mb.relu(x=mb.moka_test_scaled_sum(x=x, y=y, factor=np.float32(3), table=table), name="out")

    @moka.register_layer("ScaledSum")
    class ScaledSum:
        def __init__(self, parameters):
            self.factor = parameters["factor"]

        def set_weights(self, weights):
            self.table = weights[0]

        def evaluate(self, inputs, outputs):
            outputs[0][...] = inputs[0] + self.factor * inputs[1] * self.table

    x, y = rng.standard_normal((4, 5)).astype(np.float32), rng.standard_normal((4, 5)).astype(np.float32)
    for precision, tolerance in [(ct.precision.FLOAT32, 1e-6), (ct.precision.FLOAT16, 2e-2)]:
        model = ct.convert(program, convert_to="mlprogram", compute_precision=precision, minimum_deployment_target=ct.target.iOS16)
        path = str(tmp_path / f"{precision.value}.mlpackage")
        model.save(path)
        out = next(iter(moka.Model(path).predict({"x": x, "y": y}).values()))
        np.testing.assert_allclose(out, np.maximum(y + 3 * x * table, 0), atol=tolerance)


def test_the_command_line(tmp_path):
    path = network(tmp_path / "m.mlmodel", {"x": (2,)}, {"y": (2,)}, "Swish", {"beta": 1.0})
    command = [sys.executable, "-m", "moka", "predict", path, "--input", "x=1,2", "--json"]
    run = subprocess.run([*command, "--plugin", str(EXAMPLES / "layers.py")], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "0.7310" in run.stdout
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 3 and "--plugin" in run.stderr
    run = subprocess.run([*command, "--plugin", "absent.py"], capture_output=True, text=True)
    assert run.returncode == 2 and "absent.py" in run.stderr


def test_the_interpreter_ends_quietly(tmp_path):
    path = network(tmp_path / "m.mlmodel", {"x": (2,)}, {"y": (2,)}, "Swish", {"beta": 1.0})
    code = f"import moka; moka.load_plugin({str(EXAMPLES / 'layers.py')!r}); m = moka.Model({path!r}); m.predict({{'x': [1, 2]}})"
    # A layer of the script itself, which refers to the model through the script's globals.
    own = f"""
import moka
@moka.register_layer("Swish")
class Own:
    def __init__(self, parameters): pass
    def evaluate(self, inputs, outputs): outputs[0][...] = 1
model = moka.Model({path!r})
model.predict({{"x": [1, 2]}})
"""
    for script in (code, own):
        run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        assert (run.returncode, run.stderr) == (0, "")


def test_checking_finds_changed_inputs(tmp_path, layers):
    @moka.register_layer("Changes")
    class Changes:
        in_place = 0

        def __init__(self, parameters):
            pass

        def evaluate(self, inputs, outputs):
            inputs[0][...] = 3
            outputs[0][...] = 4

    model = moka.Model(network(tmp_path / "m.mlmodel", {"x": (2,)}, {"y": (2,)}, "Changes"))
    assert model.predict({"x": np.zeros(2, np.float32)})["y"].tolist() == [4, 4]
    moka.check_layers(True)
    try:
        with pytest.raises(moka.DataError, match="changed input 0"):
            model.predict({"x": np.zeros(2, np.float32)})
    finally:
        moka.check_layers(False)


def test_a_published_model_with_a_custom_layer(models, layers):
    """Every layer of the model in float64 numpy."""
    path = str(models / "custom_and_image_io/NeuralMcNeuralNet.mlmodel")
    moka.load_plugin(EXAMPLES / "layers.py")
    picture = rng.integers(0, 256, (256, 256, 3), dtype=np.uint8)
    got = moka.Model(path).predict({"image": picture})["output"]

    spec = ct.proto.Model_pb2.Model()
    with open(path, "rb") as file:
        spec.ParseFromString(file.read())
    conv, swish, _, dense, _ = spec.neuralNetwork.layers

    def numbers(weight):
        return np.array(weight.floatValue, np.float64)

    x = np.pad(picture.astype(np.float64).transpose(2, 0, 1), ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2))
    weights = numbers(conv.convolution.weights).reshape(6, 3, 3, 3)
    h = np.einsum("chwij,ocij->ohw", windows, weights) + numbers(conv.convolution.bias)[:, None, None]
    h = h / (1 + np.exp(-swish.custom.parameters["beta"].doubleValue * h))
    h = numbers(dense.innerProduct.weights).reshape(10, 6) @ h.mean((1, 2)) + numbers(dense.innerProduct.bias)
    expected = np.exp(h - h.max())
    np.testing.assert_allclose(got, expected / expected.sum(), rtol=1e-4, atol=1e-7)


SWISH = """#version 450
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint kTable = 1;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) writeonly buffer Y { float y[]; };
layout(binding = 2) readonly buffer T { float table[]; };
layout(push_constant) uniform P { float beta; };
void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i < uint(y.length())) y[i] = table[i % kTable] * x[i] / (1.0 + exp(-beta * x[i]));
}
"""


def test_a_shader_runs_on_a_gpu(tmp_path, layers):
    table = np.array([1, 2, 3], np.float32)
    said = {}

    @moka.register_layer("Swish")
    class Swish:
        def __init__(self, parameters):
            pass

        def evaluate(self, inputs, outputs):
            x = inputs[0]
            outputs[0][...] = np.resize(table, x.shape) * x / (1 + np.exp(-0.5 * x))

        def shader(self, input_shapes):
            said["shapes"] = input_shapes
            count = int(np.prod(input_shapes[0]))
            return {
                "code": {"msl": "kernel void swish() {}", "glsl": SWISH},
                "groups": ((count + 63) // 64,),
                "constants": [3],
                "parameters": np.float32(0.5).tobytes(),
                "buffers": [table],
            }

    path = network(tmp_path / "m.mlmodel", {"x": (5, 30)}, {"y": (5, 30)}, "Swish", rank5=False)
    try:
        model = moka.Model(path, device="vulkan", strict=True)
    except moka.Error as e:
        if "no GPU" in str(e) or "glslangValidator" in str(e):
            pytest.skip(str(e))
        raise
    assert said["shapes"] == [(5, 30)]
    x = rng.standard_normal((5, 30)).astype(np.float32)
    got = model.predict({"x": x})["y"]
    np.testing.assert_allclose(got, np.resize(table, x.shape) * x / (1 + np.exp(-0.5 * x)), rtol=1e-5, atol=1e-6)
    assert [o.kernel for o in model.explain().operations if o.type == "moka_registered"] == ["vulkan.registered"]


def test_a_device_names_the_kinds_of_shaders_that_it_takes(tmp_path, layers):
    @moka.register_layer("Swish")
    class Swish:
        def __init__(self, parameters):
            pass

        def evaluate(self, inputs, outputs):
            outputs[0][...] = inputs[0]

        def shader(self, input_shapes):
            return {"code": {"msl": "kernel void swish() {}"}}

    path = network(tmp_path / "m.mlmodel", {"x": (5, 30)}, {"y": (5, 30)}, "Swish", rank5=False)
    with pytest.raises(moka.Error) as e:
        moka.Model(path, device="vulkan", strict=True)
    if "no GPU" in str(e.value):
        pytest.skip(str(e.value))
    assert "a shader of kind 'msl'; the device takes 'spirv' and 'glsl'" in str(e.value)
    Swish.shader = lambda self, input_shapes: {"code": {"spirv": 7}}
    with pytest.raises(moka.Error, match="shader, code 'spirv': expected str or bytes, got int"):
        moka.Model(path, device="vulkan", strict=True)


def test_an_interrupt_in_a_layer_is_no_error_of_the_model(tmp_path, layers):
    calls = []

    @moka.register_layer("Interrupted")
    class Interrupted:
        def __init__(self, parameters):
            pass

        def evaluate(self, inputs, outputs):
            calls.append(threading.current_thread())
            signal.raise_signal(signal.SIGINT)

    path = network(tmp_path / "m.mlmodel", {"x": (3,)}, {"y": (3,)}, "Interrupted")
    model = moka.Model(path)
    x = np.zeros(3, np.float32)
    with pytest.raises(KeyboardInterrupt):
        model.predict({"x": x})
    assert calls == [threading.main_thread()]
    with pytest.raises(KeyboardInterrupt):
        moka.report(path, threads=[1, 2], compile=False)
    assert len(calls) == 2  # the second setting is not measured
    calls.clear()

    @moka.register_layer("Interrupted")
    class Raising(Interrupted):
        def evaluate(self, inputs, outputs):
            raise KeyboardInterrupt

    with pytest.raises(moka.DataError, match="KeyboardInterrupt"):  # of another thread
        moka.Model(path).predict_future({"x": x}).result(60)

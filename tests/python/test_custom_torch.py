# SPDX-License-Identifier: Apache-2.0
"""PyTorch models with operations that coremltools does not know: converted as custom layers, registered, and compared with PyTorch."""

import moka
import numpy as np
import pytest

ct = pytest.importorskip("coremltools")
torch = pytest.importorskip("torch", reason="torch is not installed: it is large, and the other tests do without it")


def add_converter():
    """Teaches coremltools to convert shrinking activations as a custom layer. Its registries are global, so once."""
    from coremltools.converters.mil import Builder as mb
    from coremltools.converters.mil import register_torch_op
    from coremltools.converters.mil.frontend.torch.ops import _get_inputs
    from coremltools.converters.mil.frontend.torch.torch_op_registry import _TORCH_OPS_REGISTRY as known
    from coremltools.converters.mil.mil import Operation, types
    from coremltools.converters.mil.mil.input_type import InputSpec, TensorInputType
    from coremltools.converters.mil.mil.ops.defs._op_reqs import register_op

    @register_op(is_custom_op=True)
    class moka_test_shrink(Operation):
        input_spec = InputSpec(
            x=TensorInputType(type_domain="T"),
            limit=TensorInputType(const=True, type_domain=types.fp32),
            mode=TensorInputType(const=True, type_domain=types.str),
        )
        type_domains = {"T": (types.fp16, types.fp32)}
        bindings = {"class_name": "MokaTestShrink", "input_order": ["x"], "parameters": ["limit", "mode"], "weights": [],
                    "description": "Zero between -limit and limit."}

        def type_inference(self):
            return self.x.sym_type

    def convert(mode):
        def converter(context, node):
            inputs = _get_inputs(context, node)
            context.add(mb.moka_test_shrink(x=inputs[0], limit=np.float32(inputs[1].val), mode=mode, name=node.name))

        return converter

    for name in ("hardshrink", "softshrink"):
        if known.get_func(name) is None:
            converter = convert(name[:4])
            converter.__name__ = name
            register_torch_op(converter)


@pytest.fixture(scope="module", autouse=True)
def converter():
    add_converter()


@pytest.fixture
def shrink():
    seen = []

    @moka.register_layer("MokaTestShrink")
    class Shrink:
        def __init__(self, parameters):
            self.limit, self.mode = parameters["limit"], parameters["mode"]
            seen.append((self.mode, self.limit))

        def evaluate(self, inputs, outputs):
            x = inputs[0]
            outside = np.abs(x) > self.limit
            outputs[0][...] = outside * (x if self.mode == "hard" else x - np.sign(x) * self.limit)

    yield seen
    moka.unregister_layer("MokaTestShrink")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Conv2d(3, 8, 3), torch.nn.Conv2d(8, 4, 3, stride=2)
        self.wide, self.narrow = torch.nn.Softshrink(0.25), torch.nn.Softshrink(0.125)

    def forward(self, x):
        return torch.relu(self.second(self.wide(self.first(x)))) + self.narrow(self.second(self.first(x)))


FORMS = [("neuralnetwork", None, 2e-6), ("mlprogram", "FLOAT32", 2e-6), ("mlprogram", "FLOAT16", 4e-3)]


@pytest.mark.parametrize("kind, precision, tolerance", FORMS)
def test_custom_operations_equal_pytorch(tmp_path, shrink, kind, precision, tolerance):
    torch.manual_seed(5)
    net = Net().eval()
    example = torch.randn(1, 3, 16, 20)
    options = {} if precision is None else {"compute_precision": ct.precision[precision], "minimum_deployment_target": ct.target.iOS16}
    model = ct.convert(torch.jit.trace(net, example), inputs=[ct.TensorType("x", example.shape)], convert_to=kind,
                       skip_model_load=True, **options)
    path = str(tmp_path / ("m.mlmodel" if kind == "neuralnetwork" else "m.mlpackage"))
    model.save(path)
    expected = net(example).detach().numpy()
    ours = moka.Model(path).predict({"x": example.numpy()})
    through_coremltools = ct.models.MLModel(path, compute_units=ct.ComputeUnit.CPU_ONLY).predict({"x": example.numpy()})
    for out in (ours, through_coremltools):
        (value,) = out.values()
        np.testing.assert_allclose(value, expected, atol=tolerance)
    assert set(shrink) == {("soft", 0.25), ("soft", 0.125)}


def test_sizes_stay_flexible(tmp_path, shrink):
    net = torch.nn.Sequential(torch.nn.Conv1d(2, 3, 3), torch.nn.Hardshrink(0.5), torch.nn.ReLU()).eval()
    inputs = [ct.TensorType("x", (1, 2, ct.RangeDim(3, 64, default=8)))]
    model = ct.convert(torch.jit.trace(net, torch.randn(1, 2, 8)), inputs=inputs, convert_to="mlprogram",
                       compute_precision=ct.precision.FLOAT32, skip_model_load=True)
    path = str(tmp_path / "m.mlpackage")
    model.save(path)
    loaded = moka.Model(path)
    for length in (8, 3, 64):
        x = torch.randn(1, 2, length)
        (value,) = loaded.predict({"x": x.numpy()}).values()
        np.testing.assert_allclose(value, net(x).detach().numpy(), atol=1e-6)

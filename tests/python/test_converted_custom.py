# SPDX-License-Identifier: Apache-2.0
"""coremltools converts PyTorch models with operations of one's own; Moka runs them like PyTorch."""

import numpy as np
import pytest

import moka

torch = pytest.importorskip("torch", reason="torch is not installed")
ct = pytest.importorskip("coremltools")


@pytest.fixture(scope="module")
def converter():
    """Teaches coremltools two operations of PyTorch that it does not have."""
    from coremltools.converters.mil import Builder as mb
    from coremltools.converters.mil.frontend.torch.ops import _get_inputs
    from coremltools.converters.mil.frontend.torch.torch_op_registry import register_torch_op
    from coremltools.converters.mil.mil import Operation, types
    from coremltools.converters.mil.mil.input_type import InputSpec, TensorInputType
    from coremltools.converters.mil.mil.ops.defs._op_reqs import register_op

    @register_op(is_custom_op=True)
    class moka_test_bessel(Operation):
        input_spec = InputSpec(x=TensorInputType(type_domain="T"))
        type_domains = {"T": (types.fp16, types.fp32)}
        bindings = {"class_name": "Bessel", "input_order": ["x"], "parameters": [], "description": "I0(x)"}

        def type_inference(self):
            return self.x.sym_type

    @register_op(is_custom_op=True)
    class moka_test_renorm(Operation):
        input_spec = InputSpec(
            x=TensorInputType(type_domain="T"),
            p=TensorInputType(const=True, type_domain=types.fp32),
            axis=TensorInputType(const=True, type_domain=types.int32),
            limit=TensorInputType(const=True, type_domain=types.fp32),
        )
        type_domains = {"T": (types.fp16, types.fp32)}
        bindings = {"class_name": "Renorm", "input_order": ["x"], "parameters": ["p", "axis", "limit"], "description": "torch.renorm"}

        def type_inference(self):
            return self.x.sym_type

    @register_torch_op(override=True)
    def i0(context, node):
        x = _get_inputs(context, node, expected=1)[0]
        context.add(mb.moka_test_bessel(x=x, name=node.name))

    @register_torch_op(override=True)
    def renorm(context, node):
        x, p, axis, limit = _get_inputs(context, node, expected=4)
        context.add(
            mb.moka_test_renorm(x=x, p=np.float32(p.val), axis=np.int32(axis.val), limit=np.float32(limit.val), name=node.name)
        )


@pytest.fixture
def layers(converter):
    @moka.register_layer("Bessel")
    class Bessel:
        def __init__(self, parameters):
            assert not parameters

        def evaluate(self, inputs, outputs):
            outputs[0][...] = np.i0(inputs[0])

    @moka.register_layer("Renorm")
    class Renorm:
        def __init__(self, parameters):
            self.p, self.axis, self.limit = (parameters[name] for name in ("p", "axis", "limit"))

        def evaluate(self, inputs, outputs):
            x = inputs[0]
            axes = tuple(i for i in range(x.ndim) if i != self.axis % x.ndim)
            norm = (np.abs(x) ** self.p).sum(axes, keepdims=True) ** (1 / self.p)
            outputs[0][...] = np.where(norm > self.limit, x * (self.limit / (norm + 1e-7)), x)

    yield
    moka.unregister_layer("Bessel")
    moka.unregister_layer("Renorm")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 6, 3, padding=1)
        self.dense = torch.nn.Linear(6, 5)

    def forward(self, x):
        x = torch.special.i0(self.conv(x)).mean((2, 3))
        return torch.renorm(self.dense(x), 3.0, 0, 0.5).softmax(-1)


@pytest.mark.parametrize("form", ["neuralnetwork", "mlprogram"])
def test_a_converted_model_predicts_like_pytorch(tmp_path, layers, form):
    torch.manual_seed(0)
    net = Net().eval()
    x = torch.randn(2, 3, 8, 8)
    traced = torch.jit.trace(net, x)
    options = {"compute_precision": ct.precision.FLOAT32} if form == "mlprogram" else {}
    converted = ct.convert(traced, inputs=[ct.TensorType("x", x.shape)], convert_to=form, skip_model_load=True, **options)
    path = tmp_path / ("m.mlpackage" if form == "mlprogram" else "m.mlmodel")
    converted.save(str(path))
    expected = net(x).detach().numpy()
    got = next(iter(moka.Model(path).predict({"x": x.numpy()}).values()))
    np.testing.assert_allclose(got, expected, atol=2e-6)
    # The same through coremltools' own MLModel, which loads Moka.
    got = next(iter(ct.models.MLModel(str(path)).predict({"x": x.numpy()}).values()))
    np.testing.assert_allclose(got, expected, atol=2e-6)
    # Compiled, and restored from that, the program still has the operations.
    compiled = moka.compile_model(path, tmp_path / "m.mlmodelc")
    back = tmp_path / f"back{path.suffix}"
    assert moka._moka.main(["moka", "decompile", compiled, str(back)]) == 0  # in this process, which has the layers
    for form in (compiled, back):
        got = next(iter(moka.Model(form).predict({"x": x.numpy()}).values()))
        np.testing.assert_allclose(got, expected, atol=2e-6)


@pytest.mark.parametrize("form", ["neuralnetwork", "mlprogram"])
def test_without_the_layer_the_error_names_it(tmp_path, converter, form):
    traced = torch.jit.trace(Net().eval(), torch.randn(2, 3, 8, 8))
    converted = ct.convert(traced, inputs=[ct.TensorType("x", (2, 3, 8, 8))], convert_to=form, skip_model_load=True)
    path = str(tmp_path / ("m.mlpackage" if form == "mlprogram" else "m.mlmodel"))
    converted.save(path)
    with pytest.raises(moka.UnsupportedError, match="Bessel"):
        moka.Model(path)

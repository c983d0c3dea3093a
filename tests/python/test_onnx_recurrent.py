# SPDX-License-Identifier: Apache-2.0
"""RNN, GRU and LSTM of ONNX in each form that the importer writes them in, against onnxruntime."""

import numpy as np
import pytest

import moka

onnx = pytest.importorskip("onnx", reason="needs the package onnx")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime says what is expected")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
BATCH, INPUTS, HIDDEN = 3, 4, 5
LONG = 70  # more steps than are written out


def model(cell, steps=LONG, batch=BATCH, direction="bidirectional", lengths=None, bias=True, **attributes):
    """One operator with random weights. steps or batch as a text: a flexible dimension of that name."""
    random = np.random.default_rng(0)
    directions = 2 if direction == "bidirectional" else 1
    weights = {
        "w": random.normal(size=(directions, GATES[cell] * HIDDEN, INPUTS)),
        "r": random.normal(size=(directions, GATES[cell] * HIDDEN, HIDDEN)) / np.sqrt(HIDDEN),
        "b": random.normal(size=(directions, 2 * GATES[cell] * HIDDEN)),
    }
    if not bias:
        del weights["b"]
    initializers = [numpy_helper.from_array(v.astype(np.float32), name) for name, v in weights.items()]
    if lengths is not None:
        initializers.append(numpy_helper.from_array(np.array(lengths, np.int32), "lengths"))
    inputs = ["x", "w", "r", "b" if bias else "", "lengths" if lengths is not None else ""]
    outputs = ["y", "h"] + (["c"] if cell == "LSTM" else [])
    node = helper.make_node(cell, inputs, outputs, hidden_size=HIDDEN, direction=direction, **attributes)
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node],
        "g",
        [info("x", TensorProto.FLOAT, [steps, batch, INPUTS])],
        [info("y", TensorProto.FLOAT, [steps, directions, batch, HIDDEN])] + [info(o, TensorProto.FLOAT, [directions, batch, HIDDEN]) for o in outputs[1:]],
        initializers,
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(made)
    return made.SerializeToString()


def compare(made, source, shape=(LONG, BATCH, INPUTS)):
    x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    session = onnxruntime.InferenceSession(made, providers=["CPUExecutionProvider"])
    answer = source.load().predict({"x": x})
    for name, expected in zip([o.name for o in session.get_outputs()], session.run(None, {"x": x})):
        np.testing.assert_allclose(answer[name], expected, rtol=1e-5, atol=1e-5, err_msg=name)


def operations(source):
    """The types of the program's operations, those of blocks included."""

    def types(block):
        return [t for op in block.operations for t in [op.type] + [t for inner in op.blocks for t in types(inner)]]

    return types(source.load().structure().functions[0].body)


ONE_OPERATION = [("RNN", {}, "ios17"), ("RNN", {"activations": ["Relu", "Relu"]}, "ios17"), ("LSTM", {}, "ios17"), ("GRU", {}, "ios17"),
                 ("GRU", {"linear_before_reset": 1}, "ios18")]


@pytest.mark.parametrize("cell, attributes, opset", ONE_OPERATION)
@pytest.mark.parametrize("steps, batch", [(LONG, BATCH), ("steps", "batch")])
def test_is_one_operation_of_core_ml(cell, attributes, opset, steps, batch):
    made = model(cell, steps, batch, **attributes)
    source = moka.from_onnx(made, opset=opset)
    compare(made, source)
    found = operations(source)
    assert found.count(cell.lower()) == 2 and "while_loop" not in found


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("steps, batch", [(LONG, BATCH), (3, BATCH), ("steps", "batch")])
def test_gru_of_pytorch_is_a_loop_before_ios18(steps, batch, bias):
    made = model("GRU", steps, batch, linear_before_reset=1, bias=bias)
    source = moka.from_onnx(made, opset="ios17")
    compare(made, source, (3 if steps == 3 else LONG, BATCH, INPUTS))
    assert operations(source).count("while_loop") == 2


def test_the_loop_of_a_gru_runs_as_one_operation():
    optimized = moka.from_onnx(model("GRU", linear_before_reset=1), opset="ios17").load().mil(optimized=True)
    assert optimized.count(" gru<ios18>(") == 2 and "while_loop" not in optimized


UNUSUAL = [
    ("RNN", {"activations": ["Softsign", "Affine"], "activation_alpha": [0.5], "activation_beta": [0.1]}),
    ("RNN", {"clip": 0.5}),
    ("GRU", {"clip": 0.5}),
    ("GRU", {"linear_before_reset": 1, "lengths": [LONG, 2, 9]}),
    ("GRU", {"activations": ["HardSigmoid", "Softsign"] * 2}),
    ("LSTM", {"input_forget": 1}),
    ("LSTM", {"lengths": [1, LONG, 30]}),
]


@pytest.mark.parametrize("cell, attributes", UNUSUAL)
@pytest.mark.parametrize("steps, batch", [(LONG, BATCH), ("steps", BATCH), ("steps", "batch")])
def test_other_cells_become_loops(cell, attributes, steps, batch):
    made = model(cell, steps, batch, **attributes)
    source = moka.from_onnx(made)
    compare(made, source)
    assert operations(source).count("while_loop") == 2


@pytest.mark.parametrize("cell, attributes", UNUSUAL)
def test_short_sequences_are_written_out(cell, attributes):
    if "lengths" in attributes:
        attributes = {**attributes, "lengths": [5, 2, 1]}
    made = model(cell, 5, BATCH, **attributes)
    source = moka.from_onnx(made)
    compare(made, source, (5, BATCH, INPUTS))
    assert "while_loop" not in operations(source)

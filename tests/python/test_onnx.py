"""ONNX models as programs, against the tests of the package onnx and against onnxruntime."""

import numpy as np
import pytest

import moka

onnx = pytest.importorskip("onnx", reason="needs the package onnx")

import onnx_backend  # noqa: E402
from onnx import TensorProto, helper  # noqa: E402



def test_sample_of_the_tests_of_onnx():
    cases = [c for c in onnx_backend.load(("pytorch-converted", "pytorch-operator", "simple"), "") if "add" not in c[0]]
    results = onnx_backend.run_all(cases)
    failed = {name: why for name, (result, why, _) in results.items() if result != "pass"}
    unexpected = {n: w for n, w in failed.items() if not any(known in n for known in ("strnorm", "gradient", "sequence_model8"))}
    assert not unexpected
    assert len(results) - len(failed) > 100  # the others: strings, training, a sequence of unknown length


def perceptron(batch):
    weights = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["out/y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 4])],
        [helper.make_tensor_value_info("out/y", TensorProto.FLOAT, [batch, 3])],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), weights


def test_saves_and_loads(tmp_path):
    model, weights = perceptron("N")
    path = tmp_path / "m.onnx"
    onnx.save_model(model, path, save_as_external_data=True, location="m.data", size_threshold=0)
    source = moka.from_onnx(path)
    assert [(f.name, f.feature, f.type) for f in source.outputs] == [("out/y", "out_y", "float")]
    loaded = moka.Model(source.save(tmp_path / "m.mlpackage"))
    for rows in (1, 5):
        x = np.random.default_rng(rows).standard_normal((rows, 4)).astype(np.float32)
        np.testing.assert_allclose(loaded.predict({"x": x})["out_y"], np.maximum(x @ weights, 0), rtol=1e-6)


def test_fixes_dimensions():
    model, _ = perceptron("N")
    source = moka.from_onnx(model.SerializeToString(), dimensions={"N": 2})
    assert list(source.load().description.inputs[0].shape) == [2, 4]


def test_refuses_what_core_ml_lacks():
    model, _ = perceptron(1)
    model.graph.node[1].op_type = "StringNormalizer"
    with pytest.raises(moka.UnsupportedError, match="StringNormalizer, opset 17"):
        moka.from_onnx(model.SerializeToString())
    with pytest.raises(moka.MalformedModelError):
        moka.from_onnx(model.SerializeToString()[:-5])

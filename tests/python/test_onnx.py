# SPDX-License-Identifier: Apache-2.0
"""ONNX models as programs, against the tests of the package onnx and against onnxruntime."""

import subprocess
import sys

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
    unexpected = {n: w for n, w in failed.items() if not any(known in n for known in ("strnorm",))}
    assert not unexpected
    assert len(results) - len(failed) > 100  # the others: strings


COMPOSED = (
    "adagrad|adam|momentum|binarizer|tree_ensemble|bitcast.*(int8|int16|32)|deform_conv|roialign|tfidf|unique|sequence|optional|loop13_seq|"
    "if_seq|if_opt|identity_opt|range_.*expanded|quantizelinear_(e4m3fn|e5m2|float4e2m1)|cast_e8m0"
)


def test_operators_that_are_composed():
    cases = onnx_backend.load(("node",), COMPOSED)
    results = onnx_backend.run_all(cases)
    assert {name: why for name, (result, why, _) in results.items() if result != "pass"} == {}
    assert len(results) > 90


def convert(source, out, *options):
    return subprocess.run([sys.executable, "-m", "moka", "convert", str(source), "-o", str(out), *options], capture_output=True, text=True)


def sequence_model():
    """The sum of the elements of a sequence, and the sequence with that sum at its end."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["c_out"]), helper.make_node("SequenceAt", ["x", "i"], ["one"]), helper.make_node("Add", ["s", "one"], ["s_out"])],
        "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []), helper.make_tensor_value_info("c", TensorProto.BOOL, []), helper.make_tensor_value_info("s", TensorProto.FLOAT, [2])],
        [helper.make_tensor_value_info("c_out", TensorProto.BOOL, []), helper.make_tensor_value_info("s_out", TensorProto.FLOAT, [2])],
    )
    nodes = [
        helper.make_node("SequenceLength", ["x"], ["n"]),
        helper.make_node("Constant", [], ["zero"], value_floats=[0.0, 0.0]),
        helper.make_node("Loop", ["n", "", "zero"], ["sum"], body=body),
        helper.make_node("SequenceInsert", ["x", "sum"], ["longer"]),
    ]
    sequence = [helper.make_tensor_sequence_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "longer")]
    graph = helper.make_graph(nodes, "g", [sequence[0]], [helper.make_tensor_value_info("sum", TensorProto.FLOAT, [2]), sequence[1]])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()


def test_elements_of_sequences_are_features():
    source = moka.from_onnx(sequence_model(), lengths={"x": 3})
    assert [(f.name, f.feature, f.element) for f in source.inputs] == [("x", "x_0", 0), ("x", "x_1", 1), ("x", "x_2", 2)]
    assert [(f.name, f.element) for f in source.outputs] == [("sum", None)] + [("longer", i) for i in range(4)]
    rows = np.array([[1, 2], [10, 20], [100, 200]], np.float32)
    answer = source.load().predict({"x_%d" % i: row for i, row in enumerate(rows)})
    np.testing.assert_array_equal(answer["sum"], [111, 222])
    np.testing.assert_array_equal(answer[source.outputs[4].feature], [111, 222])
    with pytest.raises(moka.UnsupportedError, match="input 'x': Core ML has no sequences; give its length"):
        moka.from_onnx(sequence_model())


def test_gradients_agree_with_differences():
    """Gradients of the sum of tanh(x w) / (1 + x) against central differences of onnxruntime's answers."""
    onnxruntime = pytest.importorskip("onnxruntime")
    forward = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("Tanh", ["h"], ["t"]),
        helper.make_node("Add", ["x", "one"], ["d"]),
        helper.make_node("Div", ["t", "d"], ["y"]),
    ]
    info = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)  # noqa: E731
    one = onnx.numpy_helper.from_array(np.array([1.5], np.float32), "one")
    step = helper.make_node("Gradient", ["x", "w"], ["dx", "dw"], xs=["x", "w"], y="y", domain="ai.onnx.preview.training")
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.preview.training", 1)]
    inputs = [info("x", [2, 3]), info("w", [3, 3])]
    graph = helper.make_graph(forward + [step], "g", inputs, [info("dx", [2, 3]), info("dw", [3, 3])], [one])
    plain = helper.make_graph(forward, "g", inputs, [info("y", [2, 3])], [one])
    run = onnxruntime.InferenceSession(helper.make_model(plain, opset_imports=opsets[:1], ir_version=8).SerializeToString()).run
    draw = np.random.default_rng(0)
    values = {"x": draw.standard_normal((2, 3)).astype(np.float32) * 0.3, "w": draw.standard_normal((3, 3)).astype(np.float32)}
    answer = moka.from_onnx(helper.make_model(graph, opset_imports=opsets).SerializeToString()).load().predict(values)
    for name in ("x", "w"):
        for at in np.ndindex(values[name].shape):
            sums = []
            for sign in (1, -1):
                moved = {k: v.copy() for k, v in values.items()}
                moved[name][at] += sign * 1e-2
                sums.append(run(None, moved)[0].sum(dtype=np.float64))
            assert abs(answer["d" + name][at] - (sums[0] - sums[1]) / 2e-2) < 2e-3


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


def test_the_command_takes_lengths_of_sequences(tmp_path):
    source, out = tmp_path / "source.onnx", tmp_path / "out.mlpackage"
    onnx.save(sequence_model(), str(source))

    for words, code, options in (("give its length", 3, ()), ("expected NAME=N", 2, ("--length", "x")), ("expected a size", 2, ("--length", "x=-1")),
                                 ("'z': expected the name of an input that is a sequence ('x')", 2, ("--length", "x=2", "--length", "z=1"))):
        done = convert(source, out, *options)
        assert done.returncode == code and words in done.stderr and not out.exists(), done.stderr
    done = convert(source, out, "--length", "x=2")
    assert done.returncode == 0, done.stderr
    got = moka.Model(str(out)).predict({"x_0": np.float32([1, 2]), "x_1": np.float32([10, 20])})
    np.testing.assert_array_equal(got["sum"], [11, 22])


def optional_model():
    """x plus an optional, or x alone."""
    both = [helper.make_node("OptionalGetElement", ["more"], ["element"]), helper.make_node("Add", ["x", "element"], ["sum"])]
    array = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y", "sum", "alone")]
    branches = {
        "then_branch": helper.make_graph(both, "then", [], [array[2]]),
        "else_branch": helper.make_graph([helper.make_node("Neg", ["x"], ["alone"])], "else", [], [array[3]]),
    }
    nodes = [helper.make_node("OptionalHasElement", ["more"], ["has"]), helper.make_node("If", ["has"], ["y"], **branches)]
    more = helper.make_value_info("more", helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2])))
    graph = helper.make_graph(nodes, "g", [array[0], more], [array[1]])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def test_the_command_takes_absent_inputs(tmp_path):
    source, out = tmp_path / "source.onnx", tmp_path / "out.mlpackage"
    onnx.save(optional_model(), str(source))
    done = convert(source, out, "--absent", "x")
    assert done.returncode == 2 and "'x': expected the name of an optional input ('more')" in done.stderr and not out.exists(), done.stderr
    done = convert(source, out, "--absent", "more")
    assert done.returncode == 0, done.stderr
    model = moka.Model(str(out))
    assert [f.name for f in model.inputs] == ["x"]
    np.testing.assert_array_equal(model.predict({"x": np.float32([1, 2])})["y"], [-1, -2])
    done = convert(source, out)
    assert done.returncode == 0, done.stderr
    given = {"x": np.float32([1, 2]), "more": np.float32([10, 20])}
    np.testing.assert_array_equal(moka.Model(str(out)).predict(given)["y"], [11, 22])
    done = convert(out, tmp_path / "back.onnx", "--absent", "more")
    assert done.returncode == 2 and "--absent are for ONNX models" in done.stderr, done.stderr

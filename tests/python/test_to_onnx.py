# SPDX-License-Identifier: Apache-2.0
"""A sample of the cases of onnx_judge.py, which compares all of them (make test-onnx-export)."""

import itertools

import numpy as np
import pytest

import moka
import onnx_judge as judge

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

EVERY = 40  # of the many small cases


def sample():
    small = list(itertools.chain(judge.conformance_cases(), judge.layer_cases()))
    special = [c for c in itertools.chain(small, judge.file_cases()) if c.name.endswith(("affine/shared_matrix", "image_bgr.mlmodel", "batch_norm/fp32_parameters_of_fp16"))]
    return small[::EVERY] + special + list(itertools.islice(judge.classic_cases(), 0, None, 5))


@pytest.mark.parametrize("case", sample(), ids=lambda c: c.name)
def test_answers_are_those_of_onnxruntime(case):
    result = judge.judge(case)
    if result.state in ("refused", "not implemented", "skipped", "edge"):
        pytest.skip(f"{result.state}: {result.reason}")
    assert result.state == "equal", result.reason


def small_cases():
    return itertools.chain(judge.conformance_cases(), judge.layer_cases(), judge.classic_cases())


def test_the_checker_accepts_every_export_of_the_corpora(tmp_path):
    path = tmp_path / "m.onnx"
    refused, checked = {}, 0
    for case in small_cases():
        try:
            moka.to_onnx(case.load(), path)
        except (moka.UnsupportedError, judge.Skip):
            continue
        checked += 1
        try:
            onnx.checker.check_model(path, full_check=True)
        except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as e:
            refused[case.name] = str(e)
    assert not refused
    assert checked > 2400


def test_path_model_and_opset(tmp_path):
    source = judge.GOLDEN / "boundary" / "image_rgb.mlmodel"
    made = moka.to_onnx(source, tmp_path / "a.onnx")
    assert made.opset == 17 and made.files == [str(tmp_path / "a.onnx")]
    assert moka.to_onnx(moka.Model(source), tmp_path / "b.onnx", opset=21).opset == 21
    with pytest.raises(moka.InvalidArgumentError, match="expected 17 to 23, got 9"):
        moka.to_onnx(source, tmp_path / "c.onnx", opset=9)


def test_function_of_a_loaded_model(tmp_path):
    def source(operation):
        program = moka.build.Program("ios18")
        program.output(getattr(program, operation)(x=program.input("x", moka.build.array((2,)))), "y")
        return program.source()

    both = moka.edit.add_function(source("relu"), "other", source("square")).load(function="other")
    path = str(tmp_path / "m.onnx")
    moka.to_onnx(both, path)
    x = np.array([-3, 2], np.float32)
    (y,) = onnxruntime.InferenceSession(path).run(None, {"x": x})
    np.testing.assert_array_equal(y, x * x)


def test_one_error_names_the_operation(tmp_path):
    text = """program(1.0)
{
 func main<ios15>(tensor<int32, [3]> x, tensor<int32, [1]> u) {
  tensor<int32, [3]> y = scatter_along_axis(data = x, indices = tensor<int32, [1]>([0]), updates = u,
    axis = tensor<int32, []>(0), mode = tensor<string, []>("div"))[name = tensor<string, []>("halve")];
 } -> (y);
}
"""
    model = moka.Model.from_mil(text)
    with pytest.raises(moka.UnsupportedError, match=r"operation 'halve' \(scatter_along_axis\)"):
        moka.to_onnx(model, tmp_path / "m.onnx")
    assert [(u.name, u.type) for u in moka.check_onnx(model)] == [("halve", "scatter_along_axis")]


def test_quantized_weights_in_a_loop(tmp_path):
    weight = "tensor<int8, [4, 4]>([[1, -2, 3, 4], [5, 6, -7, 8], [9, 1, 2, -3], [4, 5, 6, 7]])"
    model = moka.Model.from_mil(
        """program(1.0)
{
 func main<ios17>(tensor<fp32, [2, 4]> x, int32 n) {
  tensor<fp32, [2, 4]> y, int32 turns = while_loop(loop_vars = (x, int32(0)))[name = string("loop")] {
   block(tensor<fp32, [2, 4]> now, int32 turn) {
    bool goes_on = less(x = turn, y = n)[name = string("goes_on")];
   } -> (goes_on);
   block(tensor<fp32, [2, 4]> carried, int32 i) {
    tensor<fp32, [4, 4]> w = constexpr_affine_dequantize(axis = int32(0), quantized_data = """
        + weight
        + """, scale = fp32(0.0625), zero_point = int8(0))[name = string("w")];
    tensor<fp32, [2, 4]> z = linear(x = carried, weight = w)[name = string("z")];
    int32 next = add(x = i, y = int32(1))[name = string("next")];
   } -> (z, next);
  };
 } -> (y);
}
"""
    )
    path = str(tmp_path / "m.onnx")
    moka.to_onnx(model, path)
    onnx.checker.check_model(path, full_check=True)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    x = np.random.default_rng(0).standard_normal((2, 4)).astype(np.float32)
    for turns in (0, 1, 3):
        (y,) = session.run(None, {"x": x, "n": np.array(turns, np.int32)})
        np.testing.assert_allclose(y, model.predict({"x": x, "n": turns})["y"], rtol=1e-5, atol=1e-6)


def test_external_data(tmp_path):
    model = moka.Model.from_mil(
        "program(1.0)\n{\n func main<ios17>(tensor<fp32, [1, 64]> x) {\n"
        "  tensor<fp32, [64, 64]> w = const()[name = string(\"w\"), val = tensor<fp32, [64, 64]>("
        + str(np.full((64, 64), 0.25).tolist())
        + ")];\n"
        "  tensor<fp32, [1, 64]> y = linear(x = x, weight = w)[name = string(\"y\")];\n } -> (y);\n}\n"
    )
    made = moka.to_onnx(model, tmp_path / "m.onnx", external_data=True)
    assert sorted(made.files) == [str(tmp_path / "m.onnx"), str(tmp_path / "m.onnx.data")]
    session = onnxruntime.InferenceSession(made.files[-1], providers=["CPUExecutionProvider"])
    x = np.ones((1, 64), np.float32)
    np.testing.assert_allclose(session.run(None, {"x": x})[0], model.predict({"x": x})["y"], rtol=1e-6)

# SPDX-License-Identifier: Apache-2.0
"""Invalid values raise the exception that a Python user expects, with the feature's name, and have no other effect."""

import numpy as np
import pytest
from conftest import program, relu

import moka

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import strategies as st  # noqa: E402
from hypothesis.extra import numpy as hnp  # noqa: E402


@pytest.mark.parametrize(
    "inputs, error, text",
    [
        ({}, ValueError, "'x'.*got nothing"),
        ({"x": None}, ValueError, "'x'.*got nothing"),
        ({"y": np.zeros((1, 3))}, ValueError, "'y'.*not an input"),
        ({"x": np.zeros((1, 4))}, ValueError, "'x'.*1 x 3.*1 x 4"),
        ({"x": np.array([["a", None, 1]], object)}, TypeError, "'x'.*object"),
        ({"x": np.zeros((1, 3), complex)}, TypeError, "'x'.*complex"),
        ({"x": np.array([[1, 2j, 3]], object)}, TypeError, "'x'.*complex"),
        ({"x": "text"}, TypeError, "'x'.*str"),
        ({"x": {1: 2}}, TypeError, "'x'.*dict"),
        ({"x": [[1], [2, 3]]}, TypeError, "'x'"),
        ({1: np.zeros((1, 3))}, TypeError, "names"),
        (5, TypeError, "dict"),
        (None, TypeError, "^expected a dict of inputs by name, got None$"),
        ([5], TypeError, "dict"),
    ],
)
def test_inputs(inputs, error, text):
    with pytest.raises(error, match=text):
        relu().predict(inputs)


@pytest.mark.parametrize(
    "path, error",
    [("/nowhere.mlmodel", moka.NotFoundError), (b"", moka.MalformedModelError), (b"\xff" * 100, moka.MalformedModelError)],
)
def test_models(path, error):
    with pytest.raises(error):
        moka.Model(path)
    assert issubclass(error, RuntimeError)


def test_arguments():
    with pytest.raises(TypeError):
        moka.Model(5)
    with pytest.raises(ValueError, match="TPU"):
        moka.Model(b"", compute_units="TPU")
    with pytest.raises(ValueError, match="precision"):
        moka.Model(b"", precision="double")
    with pytest.raises(moka.Error):
        moka.Model.from_mil("program")


@pytest.mark.parametrize(
    "options, error, text",
    [
        ({"threads": -1}, ValueError, "threads: expected a number from 0 to 1024, got -1"),
        ({"threads": 100000}, ValueError, "threads: expected a number from 0 to 1024, got 100000"),
        ({"threads": "two"}, TypeError, "threads: expected a whole number, got 'two'"),
        ({"processors": ["0"]}, TypeError, "processors: expected a whole number, got '0'"),
        ({"memory_budget": -1}, ValueError, "memory_budget: .*got -1"),
        ({"idle_memory": 0.5}, TypeError, "idle_memory: expected a whole number, got 0.5"),
        ({"pins": ["y_op=cpu"]}, TypeError, "pins: expected a dict of devices by operations, or text, got list"),
    ],
)
def test_options(options, error, text):
    with pytest.raises(error, match=text):
        moka.Model("no_model.mlpackage", **options)


@pytest.mark.parametrize(
    "path, error, text",
    [
        ("", moka.NotFoundError, "expected the path of a file, got an empty text"),
        ("a\0b.mlmodel", ValueError, r"'a\\x00b.mlmodel': expected a path in UTF-8 without zero bytes"),
        ("\udcff.mlmodel", ValueError, r"'\\udcff.mlmodel': expected a path in UTF-8 without zero bytes"),
    ],
)
def test_paths(path, error, text, tmp_path):
    with pytest.raises(error, match=text):
        moka.Model(path)
    with pytest.raises(error, match=text):
        moka.compile_model(path, tmp_path / "m.mlmodelc")
    with pytest.raises(error, match=text):
        moka.compile_model("no_model.mlpackage", path)


def test_closed_files_and_released_buffers(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.zeros((1, 3), np.float32))
    with open(path, "rb") as f:
        pass
    with pytest.raises(TypeError, match="'x'"):
        relu().predict({"x": f})
    view = memoryview(bytearray(12))
    view.release()
    with pytest.raises((TypeError, ValueError)):
        relu().predict({"x": view})


SHAPES = hnp.array_shapes(min_dims=0, max_dims=6, min_side=0, max_side=4)
ANYTHING = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=5),
        st.binary(max_size=5),
        hnp.arrays(hnp.scalar_dtypes(), SHAPES),
        hnp.arrays(object, SHAPES, elements=st.integers()),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.one_of(st.text(max_size=3), st.integers()), inner, max_size=3)),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def every_kind(request):
    """Models with inputs of different kinds."""
    mixed = program(
        "tensor<fp32, [?, 3]> a, tensor<int32, []> b",
        """tensor<fp32, []> c = cast(dtype = string("fp32"), x = b)[name = string("c")];
           tensor<fp32, [?, 3]> y = add(x = a, y = c)[name = string("y")];""",
        "y",
    )
    return [relu(), relu("fp16"), moka.Model.from_mil(mixed)]


@hypothesis.settings(max_examples=1000, deadline=None, derandomize=True)
@hypothesis.given(which=st.integers(0, 2), values=st.dictionaries(st.sampled_from(["x", "a", "b", "y"]), ANYTHING, max_size=3))
def test_a_thousand_calls_with_anything(every_kind, which, values):
    try:
        every_kind[which].predict(values)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        pass

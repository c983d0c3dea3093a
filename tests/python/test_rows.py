# SPDX-License-Identifier: Apache-2.0
"""Tables: compares predict_rows with predict for each row."""

import pathlib

import numpy as np
import pytest

import moka

CLASSIC = pathlib.Path(__file__).resolve().parents[1] / "golden" / "classic"


def load(name):
    return moka.Model(CLASSIC / f"{name}.mlmodel")


def matrix(model, rows, seed=1):
    (feature,) = model.inputs
    return np.random.default_rng(seed).normal(size=(rows, *feature.shape))


def test_two_dimensional_arrays():
    model = load("linear_regression")
    x = matrix(model, 300)
    (name,) = (f.name for f in model.inputs)
    got = model.predict_rows(x)
    (output,) = got
    assert got[output].shape[0] == 300 and got[output].dtype == np.float64
    for i in (0, 127, 128, 299):
        assert got[output][i] == pytest.approx(model.predict({name: x[i]})[output], rel=1e-12)
    # Other types, strides and mappings are the same table.
    wide = np.zeros((300, 2 * x.shape[1]), np.float32)
    wide[:, ::2] = x
    np.testing.assert_allclose(model.predict_rows(wide[:, ::2])[output], got[output], rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(model.predict_rows({name: x})[output], got[output])


def test_probabilities_are_a_matrix():
    model = load("random_forest_multi")
    x = matrix(model, 200)
    (name,) = (f.name for f in model.inputs)
    got = model.predict_rows(x)
    one = model.predict({name: x[7]})
    label, probabilities = model.description.predicted_feature_name, model.description.predicted_probabilities_name
    assert got[label][7] == one[label]
    assert got[probabilities].shape == (200, len(model.description.class_labels))
    for column, name in enumerate(model.description.class_labels):
        assert got[probabilities][7, column] == pytest.approx(one[probabilities][type(next(iter(one[probabilities])))(name)])


def test_tables_of_pandas_and_arrow():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    model = load("pipeline_regressor")
    names = [f.name for f in model.inputs]
    rows = [model.predict_rows({n: np.array([float(i + k)]) for k, n in enumerate(names)}) for i in range(5)]
    frame = pandas.DataFrame({n: [float(i + k) for i in range(5)] for k, n in enumerate(names)})
    got = model.predict_rows(frame)
    for name, column in got.items():
        np.testing.assert_allclose(column, np.concatenate([row[name] for row in rows]))
    with pytest.raises(ValueError, match="predict_rows"):
        model.predict(frame)
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    again = model.predict_rows(arrow.Table.from_pandas(frame))
    for name, column in got.items():
        np.testing.assert_array_equal(again[name], column)


def test_mistakes():
    model = load("linear_regression")
    with pytest.raises(ValueError, match="'wrong'.*not an input"):
        model.predict_rows({"wrong": np.zeros(3)})
    with pytest.raises(ValueError, match="at least one row"):
        model.predict_rows(matrix(model, 0))
    with pytest.raises(TypeError, match="columns by name"):
        model.predict_rows(3)


def test_a_table_with_options():
    model = load("decision_tree_classifier")
    table = np.random.default_rng(1).normal(size=(300, 4))
    full = model.predict_rows(table)
    name = list(full)[0]
    some = model.predict_rows(table, outputs=[name], timeout=60)
    assert list(some) == [name] and list(some[name]) == list(full[name])
    with pytest.raises(ValueError, match="nothing"):
        model.predict_rows(table, outputs=["nothing"])
    with pytest.raises(TypeError, match="names of columns"):
        model.predict_rows(table, outputs={name: np.zeros(300)})
    with pytest.raises(moka.DeadlineExceededError):
        model.predict_rows(table, timeout=0)
    cancellation = moka.Cancellation()
    cancellation.cancel()
    with pytest.raises(moka.CancelledError):
        model.predict_rows(table, cancellation=cancellation)

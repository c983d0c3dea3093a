# SPDX-License-Identifier: Apache-2.0
"""Drawn digits are learned as well as scikit-learn learns them."""

import numpy as np
import pytest

import moka

sklearn = pytest.importorskip("sklearn", reason="compares with scikit-learn")
ct = pytest.importorskip("coremltools", reason="makes models with coremltools")

TRAINED = 1200


@pytest.fixture(scope="module")
def digits():
    from sklearn.datasets import load_digits

    data = load_digits()
    order = np.random.RandomState(0).permutation(len(data.target))
    return (data.images[order] / 16).astype(np.float32).reshape(len(order), 64), data.target[order]


def rows(digits):
    x, y = digits
    return [{"image": x[i], "digit": int(y[i])} for i in range(TRAINED)]


def accuracy(model, digits):
    x, y = digits
    return np.mean(np.ravel(model.predict_rows({"image": x[TRAINED:]})["digit"]) == y[TRAINED:])


def test_a_dense_layer_is_as_accurate_as_logistic_regression(digits, tmp_path):
    from coremltools.models import datatypes
    from coremltools.models.neural_network import NeuralNetworkBuilder
    from sklearn.linear_model import LogisticRegression

    builder = NeuralNetworkBuilder([("image", datatypes.Array(64))], [("p", datatypes.Array(10))], mode="classifier")
    builder.add_inner_product("dense", np.zeros((10, 64)), np.zeros(10), 64, 10, True, "image", "z")
    builder.add_softmax("softmax", "z", "p")
    builder.set_class_labels(list(range(10)), predicted_feature_name="digit", prediction_blob="p")
    source = moka.update.mark(builder.spec, ["dense"], learning_rate=0.1, momentum=0.9, mini_batch=32, epochs=20)
    losses = []
    task = moka.UpdateTask(source, rows(digits), progress=lambda c: losses.append(c.metrics.loss) if c.event == "epochEnd" else None)
    context = task.run()
    assert losses[-1] < losses[0] / 4
    expected = LogisticRegression(max_iter=1000).fit(digits[0][:TRAINED], digits[1][:TRAINED]).score(digits[0][TRAINED:], digits[1][TRAINED:])
    assert accuracy(context.model, digits) >= expected - 0.01
    context.save(tmp_path / "new.mlmodel")
    assert accuracy(moka.Model(tmp_path / "new.mlmodel"), digits) == accuracy(context.model, digits)


def test_nearest_neighbors_are_those_of_scikit_learn(digits):
    from coremltools.models.nearest_neighbors import KNearestNeighborsClassifierBuilder
    from sklearn.neighbors import KNeighborsClassifier

    builder = KNearestNeighborsClassifierBuilder(input_name="image", output_name="digit", number_of_dimensions=64, default_class_label=-1,
                                                 number_of_neighbors=3, weighting_scheme="uniform", index_type="linear")
    model = moka.UpdateTask(builder.spec, rows(digits)).run().model
    expected = KNeighborsClassifier(3).fit(digits[0][:TRAINED], digits[1][:TRAINED]).score(digits[0][TRAINED:], digits[1][TRAINED:])
    assert accuracy(model, digits) == pytest.approx(expected, abs=0.005)  # ties

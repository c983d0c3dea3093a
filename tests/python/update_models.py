# SPDX-License-Identifier: Apache-2.0
"""Networks that learn, and the same training in numpy in double precision. Needs coremltools."""

import numpy as np
from coremltools.models import datatypes, neural_network

import moka

CLASSES = ["ant", "bee", "cow"]


def dense(rows, columns, seed):
    return (np.random.default_rng(seed).normal(size=(rows, columns)) / np.sqrt(columns)).astype(np.float32)


def network(optimizer="sgd", frozen=False, epochs=4, batch=4, rate=0.1, classifier=True, loss="cross-entropy", shuffle=False):
    """A net of two dense layers, 6 -> 5 -> 3, as a Source. frozen: only the second one learns."""
    outputs = datatypes.Array(3)
    b = neural_network.NeuralNetworkBuilder([("x", datatypes.Array(6))], [("p", outputs)], mode="classifier" if classifier else None)
    b.add_inner_product("first", dense(5, 6, 1), np.linspace(-1, 1, 5), 6, 5, True, "x", "h")
    b.add_activation("bend", "TANH", "h", "t")
    last = "p" if loss == "mse" else "q"
    b.add_inner_product("second", dense(3, 5, 2), np.linspace(0.5, -0.5, 3), 5, 3, True, "t", last)
    if loss != "mse":
        b.add_softmax("softmax", "q", "p")
    if classifier:
        b.set_class_labels(CLASSES, predicted_feature_name="label", prediction_blob="p")
    b.make_updatable(["second"] if frozen else ["first", "second"])
    if loss == "mse":
        b.set_mean_squared_error_loss("loss", ("p", outputs))
    else:
        b.set_categorical_cross_entropy_loss("loss", "p")
    if optimizer == "sgd":
        b.set_sgd_optimizer(neural_network.SgdParams(lr=rate, batch=batch, momentum=0.9))
    else:
        b.set_adam_optimizer(neural_network.AdamParams(lr=rate, batch=batch, beta1=0.8, beta2=0.99, eps=1e-6))
    b.set_epochs(epochs, list(range(1, 200)))
    parameters = b.spec.neuralNetworkClassifier.updateParams if classifier else b.spec.neuralNetwork.updateParams
    if shuffle:
        b.set_shuffle(seed=3)
    else:
        parameters.shuffle.defaultValue = False
    batches = parameters.optimizer.sgdOptimizer if optimizer == "sgd" else parameters.optimizer.adamOptimizer
    batches.miniBatchSize.set.values[:] = [1, 2, 4, 100]
    batches.learningRate.range.maxValue = 1e30
    return moka.build.Source(moka.build.Message.parse("Model", b.spec.SerializeToString()))


def examples(count=10, seed=7):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 6)).astype(np.float32)
    return {"x": x, "label": [CLASSES[i] for i in np.argmax(x[:, :3], axis=1)]}


WEIGHTS = {"first_weights": (5, 6), "first_bias": (5,), "second_weights": (3, 5), "second_bias": (3,)}


def start():
    return {
        "first_weights": dense(5, 6, 1).astype(np.float64),
        "first_bias": np.linspace(-1, 1, 5).astype(np.float32).astype(np.float64),
        "second_weights": dense(3, 5, 2).astype(np.float64),
        "second_bias": np.linspace(0.5, -0.5, 3).astype(np.float32).astype(np.float64),
    }


def gradients(w, x, target, loss):
    """The loss of a mini-batch and its gradients. target: classes, or values."""
    t = np.tanh(x @ w["first_weights"].T + w["first_bias"])
    q = t @ w["second_weights"].T + w["second_bias"]
    if loss == "mse":
        value = np.mean((q - target) ** 2)
        dq = 2 * (q - target) / q.size
    else:
        p = np.exp(q - q.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        rows = np.arange(len(x))
        value = -np.mean(np.log(p[rows, target]))
        p[rows, target] -= 1
        dq = p / len(x)
    dh = (dq @ w["second_weights"]) * (1 - t * t)
    return value, {"second_weights": dq.T @ t, "second_bias": dq.sum(0), "first_weights": dh.T @ x, "first_bias": dh.sum(0)}


def trained(x, target, epochs=4, batch=4, optimizer="sgd", loss="cross-entropy", rate=lambda epoch: 0.1, layers=("first", "second")):
    """The weights after training in double precision, and the loss of each mini-batch."""
    w, losses = start(), []
    first = {n: np.zeros_like(v) for n, v in w.items()}
    second = {n: np.zeros_like(v) for n, v in w.items()}
    steps = 0
    for epoch in range(epochs):
        for at in range(0, len(x), batch):
            value, g = gradients(w, x[at : at + batch].astype(np.float64), target[at : at + batch], loss)
            losses.append(value)
            steps += 1
            for name in w:
                if name.split("_")[0] not in layers:
                    continue
                if optimizer == "sgd":
                    first[name] = 0.9 * first[name] + g[name]
                    w[name] = w[name] - rate(epoch) * first[name]
                else:
                    first[name] = 0.8 * first[name] + 0.2 * g[name]
                    second[name] = 0.99 * second[name] + 0.01 * g[name] ** 2
                    m, v = first[name] / (1 - 0.8**steps), second[name] / (1 - 0.99**steps)
                    w[name] = w[name] - rate(epoch) * m / (np.sqrt(v) + 1e-6)
    return w, losses


def classes_of(rows):
    return np.array([CLASSES.index(label) for label in rows["label"]])


def assert_weights(got, expected, names=tuple(WEIGHTS)):
    assert sorted(got) == sorted(names)
    for name in names:
        assert got[name].size == expected[name].size
        distance = np.linalg.norm(got[name].ravel() - expected[name].ravel()) / np.linalg.norm(expected[name])
        assert distance < 1e-5, f"{name}: relative distance {distance}"
        assert np.linalg.norm(expected[name] - start()[name]) > 1e-2  # it learned

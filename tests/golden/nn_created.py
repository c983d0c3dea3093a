# SPDX-License-Identifier: Apache-2.0
"""Writes nn_layers/created.json: layers of Create ML's action and hand-action classifiers, in the form of nn_layers.py's groups.

    nn_created.py
"""
import numpy as np

from nn_layers import CASES, array, case, five, write


def created():
    """Layers of Create ML's action and hand-action classifiers: shapes in blobs of rank 2, softmax and other channel layers on
    blobs of rank 1 and 2 in the legacy mapping, and layers that only training uses."""
    V = lambda *sizes: np.array([sizes], np.float32)
    x = array(2, 3, 4)
    w, b = array(5, 24), array(5)
    soft = lambda v: np.exp(v - v.max(-1, keepdims=True)) / np.exp(v - v.max(-1, keepdims=True)).sum(-1, keepdims=True)
    logits = x.reshape(1, 24) @ w.T + b

    def classify(bd):
        bd.add_load_constant_nd("shape", "shape", V(1, 24), [1, 2])
        bd.add_reshape_dynamic("flat", ["x", "shape"], "flat")
        bd.add_inner_product("dense", w, b, 24, 5, True, "flat", "logits")
        bd.add_softmax("soft", "logits", "p")
        bd.add_softmax("soft_for_loss", "logits", "softmax_for_loss")
        bd.spec.neuralNetworkClassifier.layers.add(name="loss", input=["softmax_for_loss"], output=["loss"]).custom.className = "CrossEntropy"
        bd.spec.neuralNetworkClassifier.layers.add(name="report", input=["loss"], output=["report"]).softmax.SetInParent()
        bd.set_class_labels(["jump", "lunge", "none", "rest", "wave"], "label", prediction_blob="p")

    p = soft(logits)
    case("action_classifier", {"x": x}, {"p": p}, classify, mode="classifier", edit=newer)
    names = ["jump", "lunge", "none", "rest", "wave"]
    CASES[-1]["outputs"] = {"label": names[int(p.argmax())], "p": dict(zip(names, map(float, p[0])))}

    def computed(bd):
        bd.add_get_shape("of", "x", "of")  # [1, 1, 2, 3, 4]
        bd.add_slice_static("lead", "of", "lead", [0], [2], [1], [False], [False])
        bd.add_expand_dims("wide", "lead", "wide", [0])
        bd.add_load_constant_nd("rest", "rest", V(6, 4), [1, 2])
        bd.add_concat_nd("shape", ["wide", "rest"], "shape", 1)
        bd.add_reshape_dynamic("y", ["x", "shape"], "y")

    case("reshape_to_a_computed_row", {"x": x}, {"y": x.reshape(1, 1, 6, 4)}, computed, edit=newer)

    def shapes_of_rank_two(bd):
        bd.add_load_constant_nd("s", "s", V(3, 2), [1, 2])
        bd.add_fill_dynamic("fill", "s", "filled", 1.5)
        bd.add_load_constant_nd("row", "row", np.array([[1.0, 2.0]], np.float32), [1, 2])
        bd.add_broadcast_to_dynamic("wide", ["row", "s"], "broadcast")
        bd.add_load_constant_nd("r", "r", V(2, 1), [2, 1])
        bd.add_tile("t", ["row", "r"], "tiled")
        bd.add_load_constant_nd("begin", "begin", V(0, 1), [1, 2])
        bd.add_load_constant_nd("end", "end", V(1, 2), [1, 2])
        bd.add_slice_dynamic("cut", ["row", "begin", "end"], "cut")
        bd.add_copy("used", "x", "kept")

    row = np.array([[1.0, 2.0]])
    case("sizes_of_rank_two", {"x": x}, {"filled": np.full((3, 2), 1.5), "broadcast": np.repeat(row, 3, 0), "tiled": np.repeat(row, 2, 0),
                                         "cut": row[:, 1:], "kept": five(x)}, shapes_of_rank_two, edit=newer)

    v = array(3)
    alpha, mean = np.abs(array(3)) + 0.1, array(3)

    def channels(rank):
        def build(bd):
            bd.add_load_constant_nd("s", "s", np.array([3] if rank == 1 else [1, 3], np.float32), [rank])
            bd.add_reshape_dynamic("flat", ["x", "s"], "flat")
            bd.add_softmax("soft", "flat", "soft_out")
            bd.add_activation("prelu", "PRELU", "flat", "prelu_out", params=alpha)
            bd.add_batchnorm("norm", 3, alpha, mean, mean, alpha, "flat", "norm_out", epsilon=1e-3)
        return build

    for rank in (1, 2):
        at = lambda a: np.asarray(a).reshape((3,) if rank == 1 else (1, 3))
        case("channels_of_rank_%d" % rank, {"x": v}, {"soft_out": at(soft(v)), "prelu_out": at(np.where(v > 0, v, alpha * v)),
             "norm_out": at((v - mean) / np.sqrt(alpha + 1e-3) * alpha + mean)}, channels(rank), edit=newer)


def newer(spec):
    """Layers of version 4 combined with the legacy mapping of arrays, as Create ML writes them."""
    spec.specificationVersion = 4


if __name__ == "__main__":
    write((created,))

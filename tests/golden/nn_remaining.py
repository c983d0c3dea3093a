# SPDX-License-Identifier: Apache-2.0
"""Writes nn_layers/remaining.json, as nn_layers.py does: layers that no other group has.

    nn_remaining.py
"""
import math

import numpy as np

from nn_layers import array, case, write


def remaining():
    n = lambda *values: np.array(values, np.float32)
    constant = lambda bd, name, v: bd.add_load_constant_nd(name, name, np.asarray(v, np.float32), list(np.shape(v)))

    def one(name, inputs, y, build, **more):
        case(name, inputs, {"y": y}, build, exact=True, **more)

    x = array(2, 3, 4)
    half = np.array([[-2.5, -1.5, -0.5], [0.5, 1.5, 2.5]], np.float32)
    one("round", {"x": half}, np.round(half), lambda bd: bd.add_round("l", "x", "y"))
    one("erf", {"x": x}, np.vectorize(math.erf)(x), lambda bd: bd.add_erf("l", "x", "y"))
    phi = np.vectorize(lambda v: 0.5 * (1 + math.erf(v / math.sqrt(2))))
    forms = {"EXACT": x * phi(x), "TANH_APPROXIMATION": 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
             "SIGMOID_APPROXIMATION": x / (1 + np.exp(-1.702 * x))}
    for mode, y in forms.items():
        one("gelu_" + mode.lower(), {"x": x}, y, lambda bd: bd.add_gelu("l", "x", "y", mode=mode))
    one("greater_equal", {"x": half}, (half >= 0.5).astype(float), lambda bd: bd.add_greater_than("l", ["x"], "y", use_greater_than_equal=True, alpha=0.5))
    base = np.abs(x) + 0.1
    one("pow", {"x": base, "e": x[:1]}, base ** x[:1], lambda bd: bd.add_pow_broadcastable("l", ["x", "e"], "y"))

    updates = array(2, 4)
    scattered = x.copy()
    scattered[[1, 0], [0, 2]] += updates

    def scatter_nd(bd):
        constant(bd, "i", [[1, 0], [0, 2]])
        bd.add_scatter_nd("l", ["x", "i", "u"], "y", mode="ADD")
    one("scatter_nd", {"x": x, "u": updates}, scattered, scatter_nd)
    at = np.array([[2, 0], [1, 2]])
    m, u = array(2, 3), array(2, 2)
    along = m.copy()
    np.put_along_axis(along, at, u, 1)

    def scatter_along(bd):
        constant(bd, "i", at)
        bd.add_scatter_along_axis("l", ["x", "i", "u"], "y", axis=1, mode="UPDATE")
    one("scatter_along_axis", {"x": m, "u": u}, along, scatter_along)

    back = x.copy()
    for b, length in enumerate((2, 3)):
        back[b, :length] = x[b, :length][::-1]

    def reverse_seq(bd):
        constant(bd, "lengths", [2, 3])
        bd.add_reverse_sequence("l", ["x", "lengths"], "y", batch_axis=0, seq_axis=1)
    one("reverse_seq", {"x": x}, back, reverse_seq)
    one("arg_min", {"x": x}, x.argmin(1).astype(float), lambda bd: bd.add_argmin("l", "x", "y", axis=1, keepdims=False))
    one("fill_static", {"x": n(2)}, np.full((2, 3), 0.5) * 2, lambda bd: (bd.add_fill_static("f", "f", [2, 3], 0.5), bd.add_multiply_broadcastable("l", ["f", "x"], "y")))
    one("broadcast_to_like", {"x": x[:1, :, :1], "like": x}, np.broadcast_to(x[:1, :, :1], x.shape), lambda bd: bd.add_broadcast_to_like("l", ["x", "like"], "y"))
    one("range_dynamic", {"end": n(7)}, np.arange(1, 7, 2.0), lambda bd: bd.add_range_dynamic("l", ["end"], "y", start=1, step=2))
    one("reduce_l1", {"x": x}, np.abs(x).sum(1), lambda bd: bd.add_reduce_l1("l", "x", "y", axes=[1], keepdims=False))
    one("reduce_l2", {"x": x}, np.sqrt((x**2).sum(1)), lambda bd: bd.add_reduce_l2("l", "x", "y", axes=[1], keepdims=False))
    one("reduce_sum_square", {"x": x}, (x**2).sum(1), lambda bd: bd.add_reduce_sumsquare("l", "x", "y", axes=[1], keepdims=False))
    sparse = np.where(np.arange(6).reshape(2, 3) % 2, 1.5, 0).astype(np.float32)
    one("where_non_zero", {"x": sparse}, np.argwhere(sparse).astype(float), lambda bd: bd.add_where_nonzero("l", "x", "y"))
    y = x[:, 1:3]
    one("slice_by_size", {"x": x, "at": n(1)}, y, lambda bd: bd.add_slice_by_size("l", ["x", "at"], "y", 1, 2))

    # Boxes [center x, center y, width, height]: the second overlaps the first.
    boxes, scores = n(2, 2, 2, 2, 2.2, 2, 2, 2, 6, 6, 2, 2).reshape(1, 3, 4), n(0.9, 0.8, 0.7).reshape(1, 3, 1)
    case("suppression", {"b": boxes, "s": scores}, {"kept": boxes[:, [0, 2]], "kept_scores": scores[:, [0, 2]], "i": n(0, 2).reshape(1, 2), "count": n(2)},
         lambda bd: bd.add_nms("l", ["b", "s"], ["kept", "kept_scores", "i", "count"], iou_threshold=0.5, score_threshold=0.1, max_boxes=2), exact=True)

    v = array(1, 2, 3, 4, 3)
    blocks = np.lib.stride_tricks.sliding_window_view(v, (2, 2, 2), (2, 3, 4))
    one("pooling3d", {"x": v}, blocks.max((5, 6, 7)), lambda bd: bd.add_pooling3d("l", "x", "y", "MAX", 2, 2, 2, 1, 1, 1))
    one("global_pooling3d", {"x": v}, v.mean((2, 3, 4), keepdims=True), lambda bd: bd.add_global_pooling3d("l", "x", "y", "AVERAGE"))
    w, b = array(3, 2, 2, 2, 2), array(3)
    one("convolution3d", {"x": v}, np.einsum("ncdhwijk,ocijk->nodhw", blocks, w) + b[:, None, None, None],
        lambda bd: bd.add_convolution3d("l", 2, 3, 2, 2, 2, w, b, True, groups=1, input_name="x", output_name="y"))


if __name__ == "__main__":
    write((remaining,))

# SPDX-License-Identifier: Apache-2.0
import math

import numpy as np

from case import op_case

rng = np.random.default_rng(0)
F16, F32 = np.float16, np.float32
INF, NAN = float("inf"), float("nan")
x = (rng.standard_normal((2, 3, 4)) * 3).astype(F32)
h = (rng.standard_normal((3, 5)) * 3).astype(F16)
edges = np.array([0, -0.0, INF, -INF, NAN, 100, -100], F32)
erf = np.vectorize(math.erf, otypes=[np.float64])


def sigmoid(v):
    return 1 / (1 + np.exp(-v))


def softplus(v):
    return np.logaddexp(0, v)


def relu(v):
    return np.maximum(v, 0)


def exact(fn, v):
    with np.errstate(all="ignore"):
        return np.asarray(fn(np.asarray(v, np.float64))).astype(np.asarray(v).dtype)


PLAIN = {
    "relu": relu,
    "relu6": lambda v: np.minimum(relu(v), 6),
    "sigmoid": sigmoid,
    "silu": lambda v: v * sigmoid(v),
    "softplus": softplus,
    "softsign": lambda v: v / (1 + np.abs(v)),
}
for op, fn in PLAIN.items():
    op_case(op, "rank3_fp32", {"x": x}, {}, [exact(fn, x)])
    op_case(op, "rank2_fp16", {"x": h}, {}, [exact(fn, h)])
    op_case(op, "edges", {"x": edges}, {}, [exact(fn, edges)])
    op_case(op, "rank0", {"x": x[0, 0, 0]}, {}, [exact(fn, x[0, 0, 0])])
    op_case(op, "empty", {"x": np.zeros((0, 2), F32)}, {}, [np.zeros((0, 2), F32)])
    op_case(op, "unknown_dims", {"x": x}, {}, [exact(fn, x)], in_shapes={"x": (None, None, 4)}, out_shapes={"y_0": (None, None, 4)})

GELU = {
    "EXACT": lambda v: 0.5 * v * (1 + erf(v / math.sqrt(2))),
    "TANH_APPROXIMATION": lambda v: 0.5 * v * (1 + np.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v ** 3))),
    "SIGMOID_APPROXIMATION": lambda v: v * sigmoid(1.702 * v),
}
for mode, fn in GELU.items():
    op_case("gelu", mode.lower(), {"x": x}, {"mode": mode}, [exact(fn, x)])
    op_case("gelu", mode.lower() + "_fp16", {"x": h}, {"mode": mode}, [exact(fn, h)])
    op_case("gelu", mode.lower() + "_edges", {"x": edges[[0, 2, 4, 5, 6]]}, {"mode": mode}, [exact(fn, edges[[0, 2, 4, 5, 6]])])
op_case("gelu", "default", {"x": x}, {}, [exact(GELU["EXACT"], x)])
op_case("gelu", "empty", {"x": np.zeros((0,), F32)}, {}, [np.zeros((0,), F32)])

SCALARS = {
    "elu": (lambda v, a: np.where(v < 0, a * np.expm1(v), v), [(1.0,), (0.3,)]),
    "leaky_relu": (lambda v, a: np.where(v < 0, a * v, v), [(0.1,), (-0.5,), (1.5,)]),
    "thresholded_relu": (lambda v, a: np.where(v < a, 0, v), [(1.0,), (-1.0,)]),
    "clamped_relu": (lambda v, a, b: np.minimum(np.where(v < 0, a * v, v), b), [(0.25, 2.0), (0.0, 6.0)]),
    "linear_activation": (lambda v, a, b: a * v + b, [(2.0, -1.0), (0.0, 3.5)]),
    "scaled_tanh": (lambda v, a, b: a * np.tanh(b * v), [(1.7159, 0.6667), (-2.0, 0.1)]),
    "sigmoid_hard": (lambda v, a, b: np.minimum(np.maximum(a * v + b, 0), 1), [(0.2, 0.5), (1 / 6, 0.5)]),
}
for op, (fn, settings) in SCALARS.items():
    for i, s in enumerate(settings):
        for dtype, tag, v in ((F32, "fp32", x), (F16, "fp16", h)):
            p = {k: dtype(w) for k, w in zip(("alpha", "beta"), s)}
            op_case(op, "%s_%d" % (tag, i), {"x": v}, p, [exact(lambda d: fn(d, *map(np.float64, p.values())), v)])
    p = {k: F16(w) for k, w in zip(("alpha", "beta"), settings[0])}
    op_case(op, "fp16_parameters_of_fp32", {"x": x}, p, [exact(lambda d: fn(d, *map(np.float64, p.values())), x)], opset="ios17")
    p = {k: F32(w) for k, w in zip(("alpha", "beta"), settings[0])}
    op_case(op, "fp32_parameters_of_fp16", {"x": h}, p, [exact(lambda d: fn(d, *map(np.float64, p.values())), h)], opset="ios17")
    e = edges[[0, 2, 4, 5, 6]]
    op_case(op, "edges", {"x": e}, p, [exact(lambda d: fn(d, *map(np.float64, p.values())), e)])
    op_case(op, "rank0", {"x": x[0, 0, 0]}, p, [exact(lambda d: fn(d, *map(np.float64, p.values())), x[0, 0, 0])])
    op_case(op, "empty", {"x": np.zeros((2, 0), F32)}, p, [np.zeros((2, 0), F32)])

# One value for each channel.
for rank in (3, 4, 5):
    v = (rng.standard_normal((2, 3, 2, 2, 2)[:rank]) * 2).astype(F32)
    for dtype, tag in ((F32, "fp32"), (F16, "fp16")):
        w = v.astype(dtype)
        shape = (3,) + (1,) * (rank - 2)
        a = np.array([0.1, 0.2, -0.3] if rank == 4 else [0.25] * 3, dtype)
        wide = a.astype(np.float64).reshape(shape)
        op_case("prelu", "rank%d_%s" % (rank, tag), {"x": w}, {"alpha": a}, [exact(lambda d: np.where(d < 0, wide * d, d), w)])
        a, b = np.array([1, 0.5, -2], dtype), np.array([1, 2, 0.25], dtype)
        wa, wb = (p.astype(np.float64).reshape(shape) for p in (a, b))
        op_case("softplus_parametric", "rank%d_%s" % (rank, tag), {"x": w}, {"alpha": a, "beta": b},
                [exact(lambda d: wa * softplus(wb * d), w)])
v = (rng.standard_normal((1, 2, 2, 3)) * 2).astype(F16)
a = np.array([0.3, 0.7], F32)
op_case("prelu", "fp32_alpha_of_fp16", {"x": v}, {"alpha": a},
        [exact(lambda d: np.where(d < 0, a.astype(np.float64).reshape(2, 1, 1) * d, d), v)], opset="ios17")
op_case("softplus_parametric", "fp32_parameters_of_fp16", {"x": v}, {"alpha": a, "beta": a},
        [exact(lambda d: a.astype(np.float64).reshape(2, 1, 1) * softplus(a.astype(np.float64).reshape(2, 1, 1) * d), v)], opset="ios17")
op_case("prelu", "empty", {"x": np.zeros((1, 2, 0, 3), F32)}, {"alpha": a}, [np.zeros((1, 2, 0, 3), F32)])
big = np.array([[[[500, -500]]]], F32)
op_case("softplus_parametric", "no_overflow", {"x": big}, {"alpha": np.ones(1, F32), "beta": np.ones(1, F32)}, [exact(softplus, big)])


def softmax(v, axis):
    e = np.exp(v - v.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


for axis in (-3, -2, -1, 0, 1, 2):
    op_case("softmax", "axis_%s" % str(axis).replace("-", "minus_"), {"x": x}, {"axis": axis}, [exact(lambda d: softmax(d, axis), x)])
op_case("softmax", "default_axis", {"x": x}, {}, [exact(lambda d: softmax(d, -1), x)])
op_case("softmax", "fp16", {"x": h}, {"axis": 0}, [exact(lambda d: softmax(d, 0), h)])
op_case("softmax", "rank1", {"x": x[0, 0]}, {}, [exact(lambda d: softmax(d, 0), x[0, 0])])
op_case("softmax", "rank5_middle", {"x": x.reshape(1, 2, 3, 2, 2)}, {"axis": 2}, [exact(lambda d: softmax(d, 2), x.reshape(1, 2, 3, 2, 2))])
op_case("softmax", "large", {"x": np.array([[1000, 1001, -1000], [-INF, 0, 0]], F32)}, {},
        [exact(lambda d: softmax(d, -1), np.array([[1000, 1001, -1000], [-INF, 0, 0]], F32))])
op_case("softmax", "nan", {"x": np.array([[NAN, 1], [0, 0]], F32)}, {}, [np.array([[NAN, NAN], [0.5, 0.5]], F32)])
op_case("softmax", "empty_rows", {"x": np.zeros((0, 3), F32)}, {}, [np.zeros((0, 3), F32)])
op_case("softmax", "empty_axis", {"x": np.zeros((3, 0), F32)}, {}, [np.zeros((3, 0), F32)])

# SPDX-License-Identifier: Apache-2.0
import math

import numpy as np

from case import op_case

rng = np.random.default_rng(11)
F16, F32 = np.float16, np.float32
INF, NAN = float("inf"), float("nan")


def exact(fn, x, *args):
    """fn in double precision, rounded once to the type of x."""
    with np.errstate(all="ignore"):
        return np.asarray(fn(np.asarray(x, np.float64), *args)).astype(np.asarray(x).dtype)


def grid(low, high, shape=(2, 3, 4), dtype=F32):
    return rng.uniform(low, high, shape).astype(dtype)


erf = np.vectorize(math.erf, otypes=[np.float64])

FLOAT = {
    "acos": (np.arccos, -1, 1, [-1, 1, 0, 2, NAN]),
    "asin": (np.arcsin, -1, 1, [-1, 1, 0, -2, NAN]),
    "atan": (np.arctan, -9, 9, [0, INF, -INF, NAN]),
    "atanh": (np.arctanh, -0.95, 0.95, [0, 1, -1, 2, NAN]),
    "ceil": (np.ceil, -4, 4, [-0.5, 0.5, 2, -2, INF, NAN]),
    "cos": (np.cos, -7, 7, [0, INF, NAN]),
    "cosh": (np.cosh, -4, 4, [0, INF, -INF, NAN]),
    "erf": (erf, -3, 3, [0, INF, -INF, NAN]),
    "exp": (np.exp, -4, 4, [0, INF, -INF, NAN]),
    "floor": (np.floor, -4, 4, [-0.5, 0.5, 2, -2, -INF, NAN]),
    "round": (np.round, -4, 4, [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5, INF, NAN]),
    "sin": (np.sin, -7, 7, [0, INF, NAN]),
    "sinh": (np.sinh, -4, 4, [0, INF, -INF, NAN]),
    "sqrt": (np.sqrt, 0, 9, [0, 4, -1, INF, NAN]),
    "tan": (np.tan, -1.4, 1.4, [0, INF, NAN]),
    "tanh": (np.tanh, -4, 4, [0, INF, -INF, NAN]),
    "abs": (np.abs, -4, 4, [-0.0, -INF, NAN]),
    "sign": (np.sign, -4, 4, [0, -INF, INF, NAN]),
    "square": (np.square, -4, 4, [0, -INF, NAN]),
    "exp2": (np.exp2, -4, 4, [0, 3, -INF, INF, NAN]),
}
for op, (fn, low, high, edges) in FLOAT.items():
    x = grid(low, high)
    op_case(op, "rank3_fp32", {"x": x}, {}, [exact(fn, x)])
    h = grid(low, high, (5, 3), F16)
    op_case(op, "rank2_fp16", {"x": h}, {}, [exact(fn, h)])
    e = np.array(edges, F32)
    op_case(op, "edges_fp32", {"x": e}, {}, [exact(fn, e)])
    op_case(op, "edges_fp16", {"x": e.astype(F16)}, {}, [exact(fn, e.astype(F16))])
    s = grid(low, high, ())
    op_case(op, "rank0", {"x": s}, {}, [exact(fn, s)])
    op_case(op, "rank5", {"x": x.reshape(1, 2, 3, 2, 2)}, {}, [exact(fn, x.reshape(1, 2, 3, 2, 2))])
    op_case(op, "empty", {"x": np.zeros((2, 0, 3), F32)}, {}, [np.zeros((2, 0, 3), F32)])
    op_case(op, "unknown_dims", {"x": x}, {}, [exact(fn, x)], in_shapes={"x": (None, 3, None)}, out_shapes={"y_0": (None, 3, None)})

ints = np.array([[-7, 0, 3], [5, -1, 2]], np.int32)
for op, fn in (("abs", np.abs), ("sign", np.sign), ("square", np.square)):
    op_case(op, "int32", {"x": ints}, {}, [fn(ints)])
big = np.array([65536, -65537, 2147483647, -2147483648], np.int32)
with np.errstate(all="ignore"):
    op_case("square", "int32_wraps", {"x": big}, {}, [np.square(big)])
    op_case("abs", "int32_limits", {"x": big}, {}, [np.abs(big)])
op_case("exp2", "int32", {"x": np.array([0, 1, 5, 10], np.int32)}, {}, [np.array([1, 2, 32, 1024], np.int32)])

flags = np.array([[True, False, True], [False, False, True]])
op_case("logical_not", "rank2", {"x": flags}, {}, [~flags])
op_case("logical_not", "rank0", {"x": np.bool_(True)}, {}, [np.bool_(False)])
op_case("logical_not", "empty", {"x": np.zeros((0,), bool)}, {}, [np.zeros((0,), bool)])

# Operations that add an epsilon first.
EPSILON = {
    "inverse": (lambda x, e: 1 / (x + e), 1e-4, 0.5, 4),
    "log": (lambda x, e: np.log(x + e), 1e-45, 0.1, 5),
    "rsqrt": (lambda x, e: 1 / np.sqrt(x + e), 1e-12, 0.1, 5),
}
for op, (fn, default, low, high) in EPSILON.items():
    x = grid(low, high)
    op_case(op, "default_epsilon", {"x": x}, {}, [exact(fn, x, np.float64(F32(default)))])
    op_case(op, "epsilon_fp32", {"x": x}, {"epsilon": F32(0.25)}, [exact(fn, x, 0.25)])
    h = grid(low, high, (4, 3), F16)
    op_case(op, "epsilon_fp16", {"x": h}, {"epsilon": F16(0.125)}, [exact(fn, h, 0.125)])
    op_case(op, "default_epsilon_fp16", {"x": h}, {}, [exact(fn, h, np.float64(F16(default)))])
    op_case(op, "fp32_epsilon_of_fp16", {"x": h}, {"epsilon": F32(0.1)}, [exact(fn, h, np.float64(F32(0.1)))], opset="ios17")
    op_case(op, "fp16_epsilon_of_fp32", {"x": x}, {"epsilon": F16(0.1)}, [exact(fn, x, np.float64(F16(0.1)))], opset="ios17")
    edges = np.array([0, -1, INF, NAN], F32)
    op_case(op, "edges", {"x": edges}, {"epsilon": F32(1)}, [exact(fn, edges, 1.0)])
    op_case(op, "empty", {"x": np.zeros((0, 2), F32)}, {}, [np.zeros((0, 2), F32)])
zero = np.zeros((2,), F32)
op_case("log", "zero_default_epsilon", {"x": zero}, {}, [np.full((2,), np.log(np.float64(F32(1e-45))), F32)])
op_case("inverse", "zero_default_epsilon", {"x": zero}, {}, [np.full((2,), 1 / F32(1e-4), F32)])

x = np.array([[-3, -1, -0.5, 0], [0.25, 1, 2, NAN]], F32)
for dtype, tag in ((F32, "fp32"), (F16, "fp16")):
    v = x.astype(dtype)
    for opset in ("ios15", "ios17"):
        op_case("clip", "%s_%s" % (tag, opset), {"x": v}, {"alpha": dtype(-1), "beta": dtype(0.5)},
                [np.minimum(np.maximum(v, dtype(-1)), dtype(0.5))], opset=opset)
    op_case("clip", "to_infinity_" + tag, {"x": v}, {"alpha": dtype(0), "beta": dtype(INF)}, [np.maximum(v, dtype(0))])
    op_case("threshold", tag, {"x": v}, {"alpha": dtype(0.5)}, [np.maximum(v, dtype(0.5))])
    op_case("threshold", "at_nan_" + tag, {"x": v}, {"alpha": dtype(NAN)}, [np.maximum(v, dtype(NAN))])
    for low, high in ((NAN, 0.5), (-1, NAN)):
        op_case("clip", "%s_to_%s_%s" % (low, high, tag), {"x": v}, {"alpha": dtype(low), "beta": dtype(high)},
                [np.minimum(np.maximum(v, dtype(low)), dtype(high))])
op_case("clip", "equal_limits_ios15", {"x": x[0]}, {"alpha": F32(2), "beta": F32(2)}, [np.full((4,), 2, F32)])
op_case("clip", "empty", {"x": np.zeros((0,), F32)}, {"alpha": F32(0), "beta": F32(1)}, [np.zeros((0,), F32)])
op_case("threshold", "int32", {"x": ints}, {"alpha": np.int32(1)}, [np.maximum(ints, 1)])
op_case("threshold", "int32_large", {"x": np.array([16777217, 16777216, -2147483648], np.int32)}, {"alpha": np.int32(16777217)},
        [np.array([16777217] * 3, np.int32)])

# cast
values = np.array([[-2.75, -0.5, 0], [0.5, 1.9, 100.5]], F32)
TYPES = {"fp16": F16, "fp32": F32, "int32": np.int32, "bool": np.bool_}
INTS17 = {"int8": np.int8, "uint8": np.uint8, "int16": np.int16, "uint16": np.uint16}
for a, ta in TYPES.items():
    for b, tb in TYPES.items():
        op_case("cast", "%s_to_%s" % (a, b), {"x": values.astype(ta)}, {"dtype": b}, [values.astype(ta).astype(tb)])
positive = np.array([0, 1, 2, 100, 127], F32)
for a, ta in INTS17.items():
    for b, tb in {**TYPES, **INTS17}.items():
        op_case("cast", "%s_to_%s" % (a, b), {"x": positive.astype(ta)}, {"dtype": b}, [positive.astype(ta).astype(tb)], opset="ios17")
    for b, tb in TYPES.items():
        op_case("cast", "%s_to_%s" % (b, a), {"x": positive.astype(tb)}, {"dtype": a}, [positive.astype(tb).astype(ta)], opset="ios17")
wide = np.array([-129, 128, 255, 256, 65535, 65536, -1, 70000], np.int32)
for b, tb in INTS17.items():
    op_case("cast", "int32_to_%s_wraps" % b, {"x": wide}, {"dtype": b}, [wide.astype(tb)], opset="ios17")
op_case("cast", "int32_to_fp16_rounds", {"x": np.array([2049, 2051, 65504, -65504], np.int32)}, {"dtype": "fp16"},
        [np.array([2048, 2052, 65504, -65504], F16)])
op_case("cast", "int32_to_fp32_rounds", {"x": np.array([16777217, 2147483647], np.int32)}, {"dtype": "fp32"},
        [np.array([16777217, 2147483647], np.int32).astype(F32)])
op_case("cast", "fp32_to_fp16_overflow", {"x": np.array([65504, 65519, 65520, 1e30, -1e30, 1e-8, NAN, INF], F32)}, {"dtype": "fp16"},
        [np.array([65504, 65504, INF, INF, -INF, 0, NAN, INF], F16)])
op_case("cast", "nan_to_bool", {"x": np.array([NAN, 0, -0.0, 1e-30], F32)}, {"dtype": "bool"}, [np.array([True, False, False, True])])
op_case("cast", "rank0", {"x": F32(2.5)}, {"dtype": "int32"}, [np.int32(2)])
op_case("cast", "empty", {"x": np.zeros((0, 3), F32)}, {"dtype": "int32"}, [np.zeros((0, 3), np.int32)])

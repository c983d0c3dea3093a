# SPDX-License-Identifier: Apache-2.0
import operator

import numpy as np

from case import op_case

rng = np.random.default_rng(12)
F16, F32 = np.float16, np.float32
INF, NAN = float("inf"), float("nan")

ARITHMETIC = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "real_div": operator.truediv,
    "floor_div": operator.floordiv, "mod": operator.mod, "pow": operator.pow, "maximum": np.maximum, "minimum": np.minimum,
}
COMPARISON = {
    "equal": operator.eq, "not_equal": operator.ne, "greater": operator.gt, "greater_equal": operator.ge,
    "less": operator.lt, "less_equal": operator.le,
}
SHAPES = {
    "same": ((2, 3, 4), (2, 3, 4)),
    "scalar_y": ((2, 3), ()),
    "scalar_x": ((), (3, 2)),
    "both_scalars": ((), ()),
    "row": ((2, 3, 4), (4,)),
    "column": ((3, 1), (3, 4)),
    "crossed": ((3, 1), (1, 4)),
    "channel": ((1, 3, 2, 2), (3, 1, 1)),
    "inner_and_outer": ((2, 1, 3, 1), (1, 2, 1, 3)),
    "rank5": ((2, 1, 2, 1, 3), (1, 2, 2, 1, 1)),
    "empty": ((0, 3), (3,)),
    "empty_by_broadcast": ((2, 0), (1, 1)),
}


def values(shape, op, dtype):
    v = rng.uniform(0.5, 3.5, shape) if op == "pow" else rng.uniform(-4, 4, shape)
    if op in COMPARISON or op in ("maximum", "minimum"):
        v = np.round(v)
    return v.astype(dtype)


def expected(fn, x, y):
    dtype = x.dtype
    with np.errstate(all="ignore"):
        return np.asarray(fn(x.astype(np.float64), y.astype(np.float64))).astype(dtype if fn not in COMPARISON.values() else bool)


for op, fn in {**ARITHMETIC, **COMPARISON}.items():
    for tag, (a, b) in SHAPES.items():
        x, y = values(a, op, F32), values(b, op, F32)
        op_case(op, tag, {"x": x, "y": y}, {}, [expected(fn, x, y)])
    x, y = values((3, 4), op, F16), values((4,), op, F16)
    op_case(op, "fp16", {"x": x, "y": y}, {}, [expected(fn, x, y)])
    x, y = values((3, 4), op, F32), values((1, 4), op, F32)
    op_case(op, "constant_y", {"x": x}, {"y": y}, [expected(fn, x, y)])
    op_case(op, "unknown_dims", {"x": x, "y": y}, {}, [expected(fn, x, y)], in_shapes={"x": (None, 4), "y": (1, None)},
            out_shapes={"y_0": (None, None)})

# Signs and whole quotients.
a = np.array([7, -7, 7, -7, 6, -6, 0, 0.5, -0.5, 5.5], F32)
b = np.array([2, 2, -2, -2, 3, 3, -3, 0.25, 0.25, -1.5], F32)
for dtype, tag in ((F32, "fp32"), (F16, "fp16")):
    op_case("floor_div", "signs_" + tag, {"x": a.astype(dtype), "y": b.astype(dtype)}, {}, [np.floor_divide(a, b).astype(dtype)])
    op_case("mod", "signs_" + tag, {"x": a.astype(dtype), "y": b.astype(dtype)}, {}, [np.mod(a, b).astype(dtype)])
with np.errstate(all="ignore"):
    za, zb = np.array([1, -1, 0, INF, 3], F32), np.array([0, 0, 0, 2, INF], F32)
    op_case("floor_div", "zero_and_infinity", {"x": za, "y": zb}, {}, [np.floor_divide(za, zb)])
    op_case("mod", "zero_and_infinity", {"x": za, "y": zb}, {}, [np.mod(za, zb)])
    op_case("real_div", "zero_and_infinity", {"x": za, "y": zb}, {}, [za / zb])

ia = np.array([7, -7, 7, -7, 6, -6, 0, 2147483647, -2147483648], np.int32)
ib = np.array([2, 2, -2, -2, 3, 3, -3, 1, 3], np.int32)
for op in ("add", "sub", "mul", "floor_div", "mod", "maximum", "minimum"):
    with np.errstate(all="ignore"):
        op_case(op, "int32", {"x": ia, "y": ib}, {}, [ARITHMETIC[op](ia, ib)])
        op_case(op, "int32_broadcast", {"x": ia[:4].reshape(4, 1), "y": ib[:3]}, {}, [ARITHMETIC[op](ia[:4].reshape(4, 1), ib[:3])])
for op, fn in COMPARISON.items():
    op_case(op, "int32", {"x": ia, "y": np.array([7, 7, 2, -8, 6, 6, 0, 2147483646, -2147483648], np.int32)}, {},
            [fn(ia, np.array([7, 7, 2, -8, 6, 6, 0, 2147483646, -2147483648], np.int32))])
# Whole quotients of integers: the int32 result of 5 / 2 is 2.
op_case("real_div", "int32", {"x": np.array([5, 40, 60, 9], np.int32), "y": np.array([2, 14, 16, 3], np.int32)}, {},
        [np.array([2, 2, 3, 3], np.int32)])
op_case("pow", "int32", {"x": np.array([2, -2, 3, 0, 7], np.int32), "y": np.array([10, 3, 0, 0, 1], np.int32)}, {},
        [np.array([1024, -8, 1, 1, 7], np.int32)])
with np.errstate(all="ignore"):
    pa, pb = np.array([0, 0, -2, -2, 2, INF, NAN, NAN], F32), np.array([0, -1, 0.5, 3, 0.5, 0, 0, 1], F32)
    op_case("pow", "edges", {"x": pa, "y": pb}, {}, [np.power(pa, pb)])
    pa = np.array([-INF, -INF, -INF, -INF, -INF, INF, INF, -0.0, -0.0, -0.0, -0.0, -0.0, -1, -1, -2, 0.5], F32)
    pb = np.array([0.75, -0.75, 9, 10, -9, 0.75, -0.75, 0.75, -0.5, -9, -10, 9, INF, -INF, INF, INF], F32)
    op_case("pow", "edges_of_infinity_and_zero", {"x": pa, "y": pb}, {}, [np.power(pa, pb)])

na, nb = np.array([NAN, 1, NAN, INF, -INF, -0.0], F32), np.array([1, NAN, NAN, 1, 1, 0], F32)
for op in ("maximum", "minimum"):
    op_case(op, "nan", {"x": na, "y": nb}, {}, [ARITHMETIC[op](na, nb)])
for op, fn in COMPARISON.items():
    op_case(op, "nan", {"x": na, "y": nb}, {}, [fn(na, nb)])

t, f = np.array([True, True, False, False]), np.array([True, False, True, False])
for op, fn in (("logical_and", np.logical_and), ("logical_or", np.logical_or), ("logical_xor", np.logical_xor)):
    op_case(op, "same", {"x": t, "y": f}, {}, [fn(t, f)])
    op_case(op, "crossed", {"x": t.reshape(4, 1), "y": f}, {}, [fn(t.reshape(4, 1), f)])
    op_case(op, "scalar", {"x": t, "y": np.bool_(True)}, {}, [fn(t, True)])
    op_case(op, "empty", {"x": np.zeros((0,), bool), "y": np.bool_(True)}, {}, [np.zeros((0,), bool)])

# select
cond = rng.uniform(size=(2, 3, 2)) > 0.5
for tag, dtype in (("fp32", F32), ("fp16", F16), ("int32", np.int32), ("bool", np.bool_)):
    x, y = (rng.uniform(-5, 5, (2, 3, 2)).astype(dtype) for _ in range(2))
    op_case("select", tag, {"cond": cond, "a": x, "b": y}, {}, [np.where(cond, x, y)])
x, y = (rng.uniform(-5, 5, (2, 3, 2)).astype(F32) for _ in range(2))
for tag, c, p, q in (
        ("scalar_cond", np.bool_(False), x, y),
        ("scalar_values", cond, F32(1), F32(-1)),
        ("row_cond", cond[0, :1], x, y),
        ("cond_widens", cond, x[0, 0], y[0, :, :1]),
        ("crossed", cond[:, :1, :1], x[:1, :, :1], y[:1, :1]),
        ("empty", np.zeros((0, 2), bool), x[0, :1], y[0, :1]),
        ("rank0", np.bool_(True), F32(3), F32(4))):
    op_case("select", tag, {"cond": c, "a": p, "b": q}, {}, [np.where(c, p, q).astype(F32)])
op_case("select", "nan_not_chosen", {"cond": np.array([True, False])}, {"a": np.array([1, NAN], F32), "b": np.array([NAN, 2], F32)},
        [np.array([1, 2], F32)])

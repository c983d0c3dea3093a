# SPDX-License-Identifier: Apache-2.0
import numpy as np

from case import op_case

rng = np.random.default_rng(13)
F16, F32 = np.float16, np.float32
INF, NAN = float("inf"), float("nan")


def log_sum_exp(v, axis, keepdims):
    top = v.max(axis=axis, keepdims=True)
    r = np.log(np.exp(v - top).sum(axis=axis, keepdims=True)) + top
    return r if keepdims else r.squeeze(axis)


REDUCE = {
    "reduce_sum": np.sum,
    "reduce_mean": np.mean,
    "reduce_max": np.max,
    "reduce_min": np.min,
    "reduce_prod": np.prod,
    "reduce_l1_norm": lambda v, axis, keepdims: np.abs(v).sum(axis=axis, keepdims=keepdims),
    "reduce_l2_norm": lambda v, axis, keepdims: np.sqrt(np.square(v).sum(axis=axis, keepdims=keepdims)),
    "reduce_sum_square": lambda v, axis, keepdims: np.square(v).sum(axis=axis, keepdims=keepdims),
    "reduce_log_sum": lambda v, axis, keepdims: np.log(v.sum(axis=axis, keepdims=keepdims)),
    "reduce_log_sum_exp": log_sum_exp,
}
AXES = {"first": [0], "middle": [1], "last": [-1], "outer_two": [0, 1], "ends": [2, 0], "minus_two": [-2], "all": [0, 1, 2]}


def run(fn, v, axes, keep):
    with np.errstate(all="ignore"):
        return np.asarray(fn(v.astype(np.float64), axis=tuple(axes), keepdims=keep)).astype(v.dtype)


for op, fn in REDUCE.items():
    x = (rng.uniform(0.5, 2, (2, 3, 4)) if op == "reduce_log_sum" else rng.uniform(-2, 2, (2, 3, 4))).astype(F32)
    for tag, axes in AXES.items():
        for keep in (False, True):
            op_case(op, tag + ("_kept" if keep else ""), {"x": x}, {"axes": axes, "keep_dims": keep}, [run(fn, x, axes, keep)])
    op_case(op, "default", {"x": x}, {}, [run(fn, x, (0, 1, 2), False)])
    op_case(op, "default_kept", {"x": x}, {"keep_dims": True}, [run(fn, x, (0, 1, 2), True)])
    h = x.astype(F16)
    op_case(op, "fp16", {"x": h}, {"axes": [1], "keep_dims": False}, [run(fn, h, (1,), False)])
    five = x.reshape(1, 2, 3, 2, 2)
    op_case(op, "rank5", {"x": five}, {"axes": [1, -2]}, [run(fn, five, (1, 3), False)])
    op_case(op, "rank1", {"x": x[0, 0]}, {"axes": [0]}, [run(fn, x[0, 0], (0,), False)])
    op_case(op, "unknown_dims", {"x": x}, {"axes": [-1], "keep_dims": True}, [run(fn, x, (2,), True)],
            in_shapes={"x": (None, 3, None)}, out_shapes={"y_0": (None, 3, 1)})
    op_case(op, "no_rows", {"x": np.zeros((0, 3), F32)}, {"axes": [1]}, [np.zeros((0,), F32)])
    n = np.array([[1, NAN, 2], [3, 4, 5]], F32)
    op_case(op, "nan", {"x": n}, {"axes": [1]}, [run(fn, n, (1,), False)])

EMPTY = {"reduce_sum": 0, "reduce_prod": 1, "reduce_mean": NAN, "reduce_l1_norm": 0, "reduce_l2_norm": 0, "reduce_sum_square": 0,
         "reduce_log_sum": -INF}
for op, value in EMPTY.items():
    op_case(op, "no_elements", {"x": np.zeros((2, 0), F32)}, {"axes": [1]}, [np.full((2,), value, F32)])

ints = np.array([[7, -3, 2], [4, 6, -8]], np.int32)
for op, expected in (("reduce_sum", [6, 2]), ("reduce_prod", [-42, -192]), ("reduce_max", [7, 6]), ("reduce_min", [-3, -8]),
                     ("reduce_l1_norm", [12, 18]), ("reduce_sum_square", [62, 116]), ("reduce_mean", [2, 0])):
    op_case(op, "int32", {"x": ints}, {"axes": [1]}, [np.array(expected, np.int32)])
op_case("reduce_mean", "int32_truncates", {"x": np.array([[-7, -4], [7, 4]], np.int32)}, {"axes": [1]},
        [np.array([[-7, -4], [7, 4]], np.int32).mean(axis=1).astype(np.int32)])
op_case("reduce_l2_norm", "int32", {"x": np.array([[3, 4], [1, 1]], np.int32)}, {"axes": [1]}, [np.array([5, 1], np.int32)])
op_case("reduce_log_sum", "int32", {"x": np.array([[10, 20], [1, 0]], np.int32)}, {"axes": [1]}, [np.array([3, 0], np.int32)])
op_case("reduce_log_sum_exp", "int32", {"x": np.array([[10, 10], [1, 0]], np.int32)}, {"axes": [1]}, [np.array([10, 1], np.int32)])
op_case("reduce_sum", "int32_wraps", {"x": np.array([2147483647, 2], np.int32)}, {}, [np.int32(-2147483647)])
op_case("reduce_sum", "no_axes", {"x": ints.astype(F32)}, {"axes": np.zeros((0,), np.int32)}, [ints.astype(F32)])
op_case("reduce_sum", "fp16_beyond_steps", {"x": np.full((3000,), 1, F16)}, {}, [F16(3000)])
op_case("reduce_log_sum_exp", "large", {"x": np.array([[1000, 1000], [-1000, -1001]], F32)}, {"axes": [1]},
        [run(log_sum_exp, np.array([[1000, 1000], [-1000, -1001]], F32), (1,), False)])
op_case("reduce_log_sum_exp", "minus_infinity", {"x": np.array([[-INF, 0, -INF]], F32)}, {"axes": [1]}, [np.array([0], F32)])
op_case("reduce_max", "infinities", {"x": np.array([[-INF, -INF], [INF, 0]], F32)}, {"axes": [1]}, [np.array([-INF, INF], F32)])

for op, fn in (("reduce_argmax", np.argmax), ("reduce_argmin", np.argmin)):
    x = rng.integers(0, 4, (2, 3, 4)).astype(F32)  # with ties
    for axis in (-3, -2, -1, 0, 1, 2):
        for keep in (False, True):
            op_case(op, "axis_%s%s" % (str(axis).replace("-", "minus_"), "_kept" if keep else ""), {"x": x},
                    {"axis": axis, "keep_dims": keep}, [fn(x, axis=axis, keepdims=keep).astype(np.int32)])
    op_case(op, "default", {"x": x}, {}, [fn(x, axis=-1).astype(np.int32)])
    op_case(op, "fp16", {"x": x.astype(F16)}, {"axis": 1}, [fn(x, axis=1).astype(np.int32)])
    op_case(op, "int32", {"x": x.astype(np.int32)}, {"axis": 0}, [fn(x, axis=0).astype(np.int32)])
    for t in ("int32", "uint16"):
        op_case(op, "output_" + t, {"x": x}, {"axis": -1, "output_dtype": t}, [fn(x, axis=-1).astype(t)], opset="ios17")
    op_case(op, "default_ios17", {"x": x}, {}, [fn(x, axis=-1).astype(np.int32)], opset="ios17")
    op_case(op, "rank1", {"x": x[0, 0]}, {}, [np.int32(fn(x[0, 0]))])
    n = np.array([[1, NAN, 2, NAN], [INF, -INF, 0, INF]], F32)
    op_case(op, "nan_and_infinity", {"x": n}, {}, [fn(n, axis=-1).astype(np.int32)])
    op_case(op, "no_rows", {"x": np.zeros((0, 3), F32)}, {}, [np.zeros((0,), np.int32)])

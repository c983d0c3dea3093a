# SPDX-License-Identifier: Apache-2.0
import numpy as np

from case import op_case
from draws import Draws

draws = Draws(3)
rand, ints = draws.rand, draws.ints
f32, f16, i32 = np.float32, np.float16, np.int32

# gather
X = rand(3, 4, 2)
for axis in (0, 1, 2, -1):
    ix = ints(2, 2, low=-X.shape[axis], high=X.shape[axis])
    op_case("gather", "axis_%d" % (axis + 1), {"x": X, "indices": ix}, {"axis": axis}, [np.take(X, ix, axis)])
op_case("gather", "scalar_index", {"x": X, "indices": np.array(-1, i32)}, {"axis": 1}, [X[:, -1]])
op_case("gather", "to_scalar", {"x": X[:, 0, 0].copy(), "indices": np.array(2, i32)}, {}, [X[2, 0, 0]])
op_case("gather", "const_indices_fp16", {"x": X.astype(f16)}, {"indices": [2, 0, 0]}, [X.astype(f16)[[2, 0, 0]]])
op_case("gather", "int32", {"x": np.arange(6, dtype=i32), "indices": np.array([5, 0], i32)}, {"axis": 0}, [np.array([5, 0], i32)])
op_case("gather", "no_indices", {"x": X, "indices": np.zeros((0,), i32)}, {"axis": 1}, [np.zeros((3, 0, 2), f32)])
op_case("gather", "ios16_uint16", {"x": X, "indices": np.array([3, 1], np.uint16)}, {"axis": 1}, [X[:, [3, 1]]], opset="ios16")
B = rand(2, 3, 4, 2)
ix = ints(2, 2, low=0, high=4)
op_case("gather", "batch_dims", {"x": B, "indices": ix}, {"axis": 2, "batch_dims": 1}, [np.stack([np.take(B[b], ix[b], 1) for b in range(2)])], opset="ios16")
ix = ints(2, 3, low=-4, high=4)
op_case("gather", "batch_dims_all_indices", {"x": B, "indices": ix}, {"axis": 2, "batch_dims": 2},
        [np.stack([[np.take(B[b, c], ix[b, c], 0) for c in range(3)] for b in range(2)])], opset="ios16")
ix = ints(2, 3, 2, 2, low=0, high=4)
op_case("gather", "batch_dims_2", {"x": B, "indices": ix}, {"axis": -2, "batch_dims": 2},
        [np.stack([[np.take(B[b, c], ix[b, c], 0) for c in range(3)] for b in range(2)])], opset="ios17")
for dtype in (np.int8, np.uint8, np.int16, np.uint16):
    x = ints(4, 2, low=0, dtype=dtype)
    op_case("gather", "ios17_" + np.dtype(dtype).name, {"x": x, "indices": np.array([3, 0], dtype)}, {"validate_indices": True}, [x[[3, 0]]], opset="ios17")
op_case("gather", "unknown_dims", {"x": X, "indices": np.array([1, 0], i32)}, {"axis": 0}, [X[[1, 0]]], in_shapes={"x": (None, 4, 2), "indices": (None,)},
        out_shapes={"y_0": (None, 4, 2)})

# gather_along_axis
for axis in (0, 1, -1):
    shape = list(X.shape)
    shape[axis] = 2
    ix = ints(*shape, low=-X.shape[axis], high=X.shape[axis])
    op_case("gather_along_axis", "axis_%d" % (axis + 1), {"x": X, "indices": ix}, {"axis": axis}, [np.take_along_axis(X, ix, axis)])
ix = ints(5, low=0, high=3, dtype=np.int16)
op_case("gather_along_axis", "ios16_int16", {"x": X[:, 0, 0].copy(), "indices": ix}, {}, [X[:, 0, 0][ix]], opset="ios16")
for dtype in (np.int8, np.uint8, np.int16, np.uint16):
    x = ints(3, 2, low=0, dtype=dtype)
    ix = ints(1, 2, low=0, high=3, dtype=dtype)
    op_case("gather_along_axis", "ios17_" + np.dtype(dtype).name, {"x": x, "indices": ix}, {"validate_indices": True}, [np.take_along_axis(x, ix.astype(i32), 0)], opset="ios17")
x = rand(2, 3, dtype=f16)
ix = np.zeros((2, 0), i32)
op_case("gather_along_axis", "none_fp16", {"x": x, "indices": ix}, {"axis": 1}, [np.zeros((2, 0), f16)])

# gather_nd
for depth in (1, 2, 3):
    ix = np.stack([ints(2, 2, low=-X.shape[k], high=X.shape[k]) for k in range(depth)], -1)
    op_case("gather_nd", "depth_%d" % depth, {"x": X, "indices": ix}, {}, [X[tuple(np.moveaxis(ix, -1, 0))]])
op_case("gather_nd", "vector", {"x": X.astype(f16), "indices": np.array([1, 2], i32)}, {}, [X.astype(f16)[1, 2]])
op_case("gather_nd", "int32", {"x": np.arange(6, dtype=i32).reshape(2, 3), "indices": np.array([[1, 2], [0, 0]], i32)}, {}, [np.array([5, 0], i32)])
ix = np.stack([ints(2, 3, low=0, high=3), ints(2, 3, low=0, high=4)], -1)
op_case("gather_nd", "batch_dims", {"x": B, "indices": ix}, {"batch_dims": 1}, [np.stack([B[b][ix[b, :, 0], ix[b, :, 1]] for b in range(2)])], opset="ios16")
ix = ints(2, 3, 1, low=0, high=4)
op_case("gather_nd", "batch_dims_2", {"x": B, "indices": ix}, {"batch_dims": 2, "validate_indices": True},
        [np.stack([[B[b, c, ix[b, c, 0]] for c in range(3)] for b in range(2)])], opset="ios17")
for dtype in (np.int8, np.uint8, np.int16, np.uint16):
    x = ints(3, 2, low=0, dtype=dtype)
    op_case("gather_nd", "ios17_" + np.dtype(dtype).name, {"x": x, "indices": np.array([[2], [0]], dtype)}, {}, [x[[2, 0]]], opset="ios17")

# scatter
MODES = ["add", "div", "max", "min", "mul", "sub", "update"]


def combine(mode, a, b):
    if mode == "update":
        return b
    if mode == "div":
        return np.trunc(a / b).astype(a.dtype) if a.dtype.kind == "i" else a / b
    return {"add": np.add, "sub": np.subtract, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[mode](a, b)


def scatter(data, ix, updates, axis, mode):
    y = np.moveaxis(data.copy(), axis, 0)
    u = np.moveaxis(updates, axis, 0)
    for k, i in enumerate(ix):
        if -y.shape[0] <= i < y.shape[0]:
            y[i] = combine(mode, y[i], u[k])
    return np.ascontiguousarray(np.moveaxis(y, 0, axis))


def scatter_along(data, ix, updates, axis, mode):
    y = data.copy()
    for at in np.ndindex(*ix.shape):
        to = list(at)
        to[axis] = ix[at]
        if -y.shape[axis] <= ix[at] < y.shape[axis]:
            y[tuple(to)] = combine(mode, y[tuple(to)], updates[at])
    return y


def scatter_nd(data, ix, updates, mode):
    y = data.copy()
    for at in np.ndindex(*ix.shape[:-1]):
        to = tuple(ix[at])
        if all(-n <= i < n for i, n in zip(to, y.shape)):
            y[to] = combine(mode, y[to], updates[at])
    return y


def positive(*shape, dtype=f32):
    return draws.rng.integers(1, 5, shape).astype(dtype)


for mode in MODES:
    for dtype in (f32, f16, i32):
        tag = mode + "_" + np.dtype(dtype).name
        data = ints(4, 3, dtype=dtype)
        ix, u = np.array([2, 0, -2], i32), positive(3, 3, dtype=dtype)
        op_case("scatter", tag, {"data": data, "indices": ix, "updates": u}, {"axis": 0, "mode": mode}, [scatter(data, ix, u, 0, mode)])
        ix, u = np.array([[1, 0, -1], [3, 0, 2]], i32), positive(2, 3, dtype=dtype)
        op_case("scatter_along_axis", tag, {"data": data, "indices": ix, "updates": u}, {"axis": 0, "mode": mode}, [scatter_along(data, ix, u, 0, mode)])
        ix, u = np.array([[1, 0], [-1, 2], [1, 0]], i32), positive(3, dtype=dtype)
        op_case("scatter_nd", tag, {"data": data, "indices": ix, "updates": u}, {"mode": mode}, [scatter_nd(data, ix, u, mode)])
data = rand(2, 3, 4)
for axis in (1, 2, -1):
    ix = np.array([1, 1], i32)
    u = rand(2, 2, 4) if axis == 1 else rand(2, 3, 2)
    op_case("scatter", "axis_%d" % (axis + 1), {"data": data, "indices": ix, "updates": u}, {"axis": axis, "mode": "update"}, [scatter(data, ix, u, axis, "update")])
    ix = ints(2, 3, 4, low=0, high=data.shape[axis])
    u = rand(2, 3, 4)
    op_case("scatter_along_axis", "axis_%d" % (axis + 1), {"data": data, "indices": ix, "updates": u}, {"axis": axis}, [scatter_along(data, ix, u, axis, "add")],
            tolerance=1e-5)
op_case("scatter", "default_mode", {"data": np.ones(3, f32), "indices": np.array([0, 0], i32), "updates": np.array([2, 3], f32)}, {}, [np.array([6, 1, 1], f32)])
op_case("scatter_nd", "default_mode_slices", {"data": np.ones((2, 2), f32), "indices": np.array([[1], [1]], i32), "updates": np.array([[2, 3], [4, 5]], f32)}, {},
        [np.array([[1, 1], [7, 9]], f32)])
op_case("scatter_nd", "ios17_checked", {"data": data, "indices": np.array([[[0, 2]], [[1, 1]]], i32), "updates": np.full((2, 1, 4), 5, f32)},
        {"mode": "update", "validate_indices": True}, [scatter_nd(data, np.array([[[0, 2]], [[1, 1]]]), np.full((2, 1, 4), 5, f32), "update")], opset="ios17")
op_case("scatter", "ios17_checked", {"data": data, "indices": np.array([1, 0], i32), "updates": data * 2}, {"mode": "sub", "validate_indices": True},
        [scatter(data, np.array([1, 0]), data * 2, 0, "sub")], opset="ios17")
op_case("scatter_along_axis", "ios17_checked", {"data": np.ones((1, 3), f32), "indices": np.array([[2, 0]], i32), "updates": np.array([[5, 6]], f32)},
        {"axis": 1, "mode": "update", "validate_indices": True}, [np.array([[6, 1, 5]], f32)], opset="ios17")
op_case("scatter", "no_indices", {"data": data, "indices": np.zeros(0, i32), "updates": np.zeros((0, 3, 4), f32)}, {"mode": "update"}, [data])
# Since ios17, negative indices are out of range, and indices out of range are skipped.
data, ix, u = np.ones((3, 2), f32), np.array([-1, 1, 3], i32), np.array([[2, 3], [4, 5], [6, 7]], f32)
after = np.array([[1, 1], [4, 5], [1, 1]], f32)
op_case("scatter", "ios17_outside", {"data": data, "indices": ix, "updates": u}, {"mode": "update", "validate_indices": False}, [after], opset="ios17")
op_case("scatter_nd", "ios17_outside", {"data": data, "indices": ix[:, None], "updates": u}, {"mode": "update", "validate_indices": False}, [after], opset="ios17")
op_case("scatter_along_axis", "ios17_outside", {"data": data, "indices": np.repeat(ix[:, None], 2, 1), "updates": u},
        {"axis": 0, "mode": "update", "validate_indices": False}, [after], opset="ios17")

# SPDX-License-Identifier: Apache-2.0
import numpy as np

from case import op_case
from draws import Draws

draws = Draws(2)
rand, ints, bools = draws.rand, draws.ints, draws.bools
f32, f16, i32 = np.float32, np.float16, np.int32

def typed(*shape):
    """One array of each element type that iOS17 added."""
    return [(np.dtype(d).name, ints(*shape, low=0, dtype=d)) for d in (np.int8, np.uint8, np.int16, np.uint16)]


# expand_dims, squeeze
for name, shape, axes in [("front", (2, 3), [0]), ("back", (2, 3), [-1]), ("several", (2, 3), [0, 2, -1]), ("unsorted", (3,), [2, 0]), ("scalar", (), [0])]:
    x = rand(*shape)
    op_case("expand_dims", name, {"x": x}, {"axes": axes}, [np.expand_dims(x, tuple(axes))])
x = bools(2, 0)
op_case("expand_dims", "empty_bool", {"x": x}, {"axes": [1]}, [x.reshape(2, 1, 0)])
x = rand(2, 3, dtype=f16)
op_case("expand_dims", "unknown_dims", {"x": x}, {"axes": [1]}, [x[:, None]], in_shapes={"x": (None, 3)}, out_shapes={"y_0": (None, 1, 3)})
for name, x in typed(2, 2):
    op_case("expand_dims", "ios17_" + name, {"x": x}, {"axes": [0]}, [x[None]], opset="ios17")
for name, shape, axes, out in [("all", (1, 2, 1, 3), None, (2, 3)), ("one", (1, 2, 1), [0], (2, 1)), ("negative", (1, 2, 1), [-1], (1, 2)),
                               ("other_sizes_stay", (1, 2, 1), [0, 1], (2, 1)), ("to_scalar", (1, 1), None, ()), ("none", (2, 3), None, (2, 3))]:
    x = rand(*shape)
    op_case("squeeze", name, {"x": x}, {} if axes is None else {"axes": axes}, [x.reshape(out)])
x = bools(1, 3)
op_case("squeeze", "bool", {"x": x}, {"axes": [0]}, [x[0]])
x = rand(1, 3)
op_case("squeeze", "unknown_dims", {"x": x}, {"axes": [0]}, [x[0]], in_shapes={"x": (1, None)}, out_shapes={"y_0": (None,)})
for name, x in typed(1, 2):
    op_case("squeeze", "ios17_" + name, {"x": x}, {}, [x[0]], opset="ios17")

# reshape
x = rand(2, 3, 4)
for name, shape, out in [("plain", [4, 6], (4, 6)), ("minus_one", [-1, 8], (3, 8)), ("zero_copies", [0, -1], None), ("zeros", [0, 0, 4], (2, 3, 4)),
                         ("flat", [-1], (24,)), ("more", [2, 1, 3, 1, 4], (2, 1, 3, 1, 4))]:
    if out is not None:
        op_case("reshape", name, {"x": x}, {"shape": shape}, [x.reshape(out)])
op_case("reshape", "empty", {"x": np.zeros((0, 3), f32)}, {"shape": [3, -1]}, [np.zeros((3, 0), f32)])
op_case("reshape", "runtime", {"x": x, "shape": np.array([6, -1], i32)}, {}, [x.reshape(6, 4)], out_shapes={"y_0": (None, None)})
op_case("reshape", "runtime_length", {"x": x, "shape": np.array([0, 3, 0], i32)}, {}, [x],
        out_shapes={"y_0": (None, None, None)})
op_case("reshape", "unknown_dims", {"x": x}, {"shape": [0, -1, 2]}, [x.reshape(2, 6, 2)], in_shapes={"x": (None, 3, 4)}, out_shapes={"y_0": (None, 6, 2)})
x2 = rand(2, 5)
op_case("reshape", "ios17_zeros_from_right", {"x": x2}, {"shape": [1, 0, -1, 0]}, [x2.reshape(1, 1, 2, 5)], opset="ios17")
op_case("reshape", "ios17_zero_of_fewer", {"x": x}, {"shape": [-1, 0]}, [x.reshape(6, 4)], opset="ios17")
op_case("reshape", "ios17_int8_shape", {"x": x}, {"shape": np.array([4, -1], np.int8)}, [x.reshape(4, 6)], opset="ios17")
for name, y in typed(2, 3):
    op_case("reshape", "ios17_" + name, {"x": y}, {"shape": [3, 2]}, [y.reshape(3, 2)], opset="ios17")
y = bools(2, 3)
op_case("reshape", "bool", {"x": y}, {"shape": [6]}, [y.reshape(6)])


def scalars(values, dtype=i32):
    return [np.array(v, dtype) for v in values]


a, b = rand(2, 3, 4), ints(1, 5, 6)
x = np.arange(180, dtype=f32)
op_case("reshape_like", "two", {"x": x, "ref_tensors": [a, b]},
        {"begins": scalars([0, 1]), "ends": scalars([2, 0]), "end_masks": scalars([False, True], bool)}, [x.reshape(2, 3, 5, 6)], opset="ios16")
x = rand(12, dtype=f16)
op_case("reshape_like", "negative", {"x": x, "ref_tensors": [a]},
        {"begins": scalars([-2]), "ends": scalars([3]), "end_masks": scalars([False], bool)}, [x.reshape(3, 4)], opset="ios16")

# transpose, reverse
for name, shape, perm in [("matrix", (3, 4), [1, 0]), ("rank3", (2, 3, 4), [2, 0, 1]), ("negative", (2, 3, 4), [0, -1, -2]), ("identity", (2, 3), [0, 1]),
                          ("nhwc", (1, 2, 3, 4), [0, 2, 3, 1]), ("rank5", (2, 1, 3, 2, 2), [4, 2, 0, 1, 3]), ("large", (40, 35), [1, 0])]:
    x = np.arange(np.prod(shape), dtype=f32).reshape(shape) if name == "large" else rand(*shape)
    op_case("transpose", name, {"x": x}, {"perm": perm}, [np.transpose(x, perm)])
for name, x in typed(2, 3) + [("bool", bools(2, 3)), ("fp16", rand(2, 3, dtype=f16)), ("empty", np.zeros((0, 3), f32))]:
    op_case("transpose", "ios17_" + name, {"x": x}, {"perm": [1, 0]}, [x.T], opset="ios17")
x = rand(2, 3, 4)
op_case("transpose", "unknown_dims", {"x": x}, {"perm": [2, 1, 0]}, [x.transpose(2, 1, 0)], in_shapes={"x": (None, 3, None)}, out_shapes={"y_0": (None, 3, None)})
for name, axes in [("all", None), ("first", [0]), ("last", [-1]), ("two", [2, 0]), ("none", [])]:
    op_case("reverse", name, {"x": x}, {} if axes is None else {"axes": axes}, [np.flip(x, axes if axes is None else tuple(axes))])
for name, y in typed(2, 3) + [("bool", bools(3)), ("empty", np.zeros((0, 3), f32))]:
    op_case("reverse", "ios17_" + name, {"x": y}, {}, [np.flip(y)], opset="ios17")


def reverse_sequence(x, lengths, seq, batch):
    y = x.copy()
    for i, n in enumerate(lengths):
        at = [slice(None)] * x.ndim
        at[batch] = i
        src = np.moveaxis(x[tuple(at)], seq - (seq > batch), 0)
        dst = np.moveaxis(y[tuple(at)], seq - (seq > batch), 0)
        dst[:n] = src[:n][::-1]
    return y


for seq, batch in [(1, 0), (0, 1), (2, 0), (1, 2), (-1, 0)]:
    x = rand(3, 4, 3)
    n = draws.rng.integers(0, x.shape[seq] + 1, x.shape[batch]).astype(i32)
    op_case("reverse_sequence", "seq%d_batch%d" % (seq + 1, batch), {"x": x, "lengths": n}, {"seq_axis": seq, "batch_axis": batch},
            [reverse_sequence(x, n, seq % 3, batch)])
x = bools(2, 5)
op_case("reverse_sequence", "bool_ios17", {"x": x, "lengths": np.array([5, 3], np.int8)}, {"seq_axis": 1}, [reverse_sequence(x, [5, 3], 1, 0)], opset="ios17")
x = ints(2, 3, low=0, dtype=np.uint16)
op_case("reverse_sequence", "uint16_ios17", {"x": x, "lengths": np.array([2, 0], i32)}, {"seq_axis": 1}, [reverse_sequence(x, [2, 0], 1, 0)], opset="ios17")

# slices
X = rand(3, 4, 5)


def slice_case(name, index, x=X, begin=None, end=None, opset="ios15", runtime=False, out_shapes=None, in_shapes=None, dtype=i32, **consts):
    bounds = {"begin": np.array(begin, dtype), "end": np.array(end, dtype)}
    params = {k: np.array(v, bool if k.endswith("mask") else dtype) for k, v in consts.items()}
    inputs = {"x": x}
    if runtime:
        inputs.update(bounds)
    else:
        params.update(bounds)
    op_case("slice_by_index", name, inputs, params, [x[index]], opset=opset, out_shapes=out_shapes, in_shapes=in_shapes)


slice_case("plain", np.s_[0:2, 1:3, 2:5], begin=[0, 1, 2], end=[2, 3, 5])
slice_case("stride", np.s_[0:3:2, 1:4:2, 0:5:3], begin=[0, 1, 0], end=[3, 4, 5], stride=[2, 2, 3])
slice_case("negative_bounds", np.s_[-2:-1, -4:3, -3:5], begin=[-2, -4, -3], end=[-1, 3, 5])
slice_case("far_end", np.s_[0:2147483647, 1:100, 0:5], begin=[0, 1, 0], end=[2147483647, 100, 5])
slice_case("begin_mask", np.s_[:2, 1:3, :4], begin=[7, 1, 9], end=[2, 3, 4], begin_mask=[True, False, True])
slice_case("end_mask", np.s_[1:, 1:3, 2:], begin=[1, 1, 2], end=[0, 3, 0], end_mask=[True, False, True])
slice_case("both_masks", np.s_[:, :, 1:2], begin=[1, 1, 1], end=[0, 3, 2], begin_mask=[True, True, False], end_mask=[True, True, False])
slice_case("squeeze", np.s_[1, 1:3, -1], begin=[1, 1, -1], end=[0, 3, 0], squeeze_mask=[True, False, True])
slice_case("squeeze_all", np.s_[2, 3, 4], begin=[2, 3, 4], end=[3, 4, 5], squeeze_mask=[True, True, True])
slice_case("squeeze_open", np.s_[0, 0:4, 0:5], begin=[2, 0, 0], end=[3, 4, 5], begin_mask=[True, False, False], squeeze_mask=[True, False, False])
slice_case("backwards", np.s_[::-1, 3:0:-1, ::-2], begin=[0, 3, 0], end=[0, 0, 0], stride=[-1, -1, -2], begin_mask=[True, False, True], end_mask=[True, False, True])
slice_case("backwards_far", np.s_[5:-9:-1, -1:-3:-1, 2::-1], begin=[5, -1, 2], end=[-9, -3, 0], stride=[-1, -1, -1], end_mask=[False, False, True])
slice_case("nothing", np.s_[1:1, 0:4, 0:5], begin=[1, 0, 0], end=[1, 4, 5])
slice_case("wrong_way", np.s_[2:1, 0:4, 0:5], begin=[2, 0, 0], end=[1, 4, 5])
slice_case("runtime", np.s_[1:3, 0:4, -2:5], begin=[1, 0, -2], end=[3, 4, 5], runtime=True, out_shapes={"y_0": (None, None, None)})
slice_case("runtime_squeeze", np.s_[1, 0:4, -2:5], begin=[1, 0, -2], end=[3, 4, 5], runtime=True, squeeze_mask=[True, False, False],
           out_shapes={"y_0": (None, None)})
slice_case("unknown_dims", np.s_[:, -1:, 1:3], begin=[0, -1, 1], end=[0, 0, 3], end_mask=[True, True, False], in_shapes={"x": (None, None, 5)},
           out_shapes={"y_0": (None, 1, 2)})
slice_case("unknown_dims_masked_bounds", np.s_[::-1, :3, 1:3], begin=[-1, 2, 1], end=[-1, 3, 3], stride=[-1, 1, 1], begin_mask=[False, True, False],
           end_mask=[True, False, False], in_shapes={"x": (None, None, 5)}, out_shapes={"y_0": (None, None, 2)})
slice_case("int8_bounds", np.s_[0:2, 1:3, 2:5], begin=[0, 1, 2], end=[2, 3, 5], stride=[1, 1, 1], opset="ios17", dtype=np.int8)
for name, x in typed(4, 3) + [("bool", bools(4, 3)), ("fp16", rand(4, 3, dtype=f16))]:
    slice_case("ios17_" + name, np.s_[0:4:2, 0:2], x=x, begin=[0, 0], end=[4, 2], stride=[2, 1], opset="ios17")
slice_case("empty_input", np.s_[0:2, 0:2], x=np.zeros((0, 2), f32), begin=[0, 0], end=[2, 2])

for name, begin, size, index in [("plain", [1, 0, 2], [2, 3, 1], np.s_[1:3, 0:3, 2:3]), ("rest", [1, 2, 0], [-1, 2, -1], np.s_[1:, 2:4, :]),
                                 ("negative", [-2, 0, -1], [1, 4, 1], np.s_[1:2, :, 4:5]), ("nothing", [1, 0, 0], [0, 4, 5], np.s_[1:1])]:
    op_case("slice_by_size", name, {"x": X}, {"begin": begin, "size": size}, [X[index]])
op_case("slice_by_size", "runtime_begin", {"x": X, "begin": np.array([1, 2, 3], i32)}, {"size": [2, 1, 2]}, [X[1:3, 2:3, 3:5]])
op_case("slice_by_size", "runtime_size", {"x": X, "size": np.array([1, -1, 2], i32)}, {"begin": [0, 1, 0]}, [X[0:1, 1:, 0:2]], out_shapes={"y_0": (None, None, None)})
for name, x in typed(3, 3) + [("bool", bools(3, 3))]:
    op_case("slice_by_size", "ios17_" + name, {"x": x}, {"begin": np.array([1, 0], np.int16), "size": np.array([2, -1], np.int16)}, [x[1:, :]], opset="ios17")


def update_case(name, index, update, x=X, begin=None, end=None, runtime=False, dtype=i32, **consts):
    y = x.copy()
    y[index] = update
    bounds = {"begin": np.array(begin, dtype), "end": np.array(end, dtype)}
    params = {k: np.array(v, bool if k.endswith("mask") else dtype) for k, v in consts.items()}
    inputs = {"x": x, "update": update}
    (inputs if runtime else params).update(bounds)
    op_case("slice_update", name, inputs, params, [y], opset="ios18")


update_case("plain", np.s_[0:2, 1:3, 2:5], rand(2, 2, 3), begin=[0, 1, 2], end=[2, 3, 5])
update_case("stride", np.s_[0:3:2, :, 0:5:3], rand(2, 4, 2), begin=[0, 0, 0], end=[3, 4, 5], stride=[2, 1, 3])
update_case("backwards", np.s_[::-1, 3:0:-1, :], rand(3, 3, 5), begin=[0, 3, 0], end=[0, 0, 5], stride=[-1, -1, 1], begin_mask=[True, False, False],
            end_mask=[True, False, False])
update_case("squeeze", np.s_[1, 1:3, -1], rand(2), begin=[1, 1, -1], end=[0, 3, 0], squeeze_mask=[True, False, True])
update_case("masks", np.s_[:2, 1:, :], rand(2, 3, 5), begin=[5, 1, 5], end=[2, 0, 0], begin_mask=[True, False, True], end_mask=[False, True, True])
update_case("runtime", np.s_[1:2, 0:4, 2:4], rand(1, 4, 2), begin=[1, 0, 2], end=[2, 4, 4], runtime=True)
update_case("nothing", np.s_[1:1, 0:4, 0:5], np.zeros((0, 4, 5), f32), begin=[1, 0, 0], end=[1, 4, 5])
update_case("int8_bounds_fp16", np.s_[1:3, 0:1], rand(2, 1, dtype=f16), x=rand(3, 2, dtype=f16), begin=[1, 0], end=[3, 1], dtype=np.int8)
for name, x in typed(3, 2) + [("bool", bools(3, 2))]:
    update_case(name, np.s_[0:2, 1:2], x[1:, :1].copy(), x=x, begin=[0, 1], end=[2, 2])


# blocks of pixels
def to_pixels(x, b, position_first):
    n, c, h, w = x.shape
    c //= b * b
    if position_first:
        return x.reshape(n, b, b, c, h, w).transpose(0, 3, 4, 1, 5, 2).reshape(n, c, h * b, w * b)
    return x.reshape(n, c, b, b, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(n, c, h * b, w * b)


def to_channels(x, b, position_first):
    n, c, h, w = x.shape
    y = x.reshape(n, c, h // b, b, w // b, b)
    return y.transpose(0, 3, 5, 1, 2, 4).reshape(n, -1, h // b, w // b) if position_first else y.transpose(0, 1, 3, 5, 2, 4).reshape(n, -1, h // b, w // b)


for name, n, c, h, w, b in [("two", 1, 2, 2, 3, 2), ("three", 1, 1, 1, 2, 3), ("batch", 2, 2, 1, 2, 2), ("one", 1, 2, 2, 2, 1), ("none", 1, 2, 0, 2, 2)]:
    for dtype in (f32, f16):
        tag = name + ("" if dtype == f32 else "_fp16")
        deep, wide = rand(n, c * b * b, h, w, dtype=dtype), rand(n, c, h * b, w * b, dtype=dtype)
        op_case("depth_to_space", tag, {"x": deep}, {"block_size": b}, [to_pixels(deep, b, True)])
        op_case("pixel_shuffle", tag, {"x": deep}, {"upscale_factor": b}, [to_pixels(deep, b, False)])
        if h > 0:
            op_case("space_to_depth", tag, {"x": wide}, {"block_size": b}, [to_channels(wide, b, True)])
            op_case("pixel_unshuffle", tag, {"x": wide}, {"downscale_factor": np.uint32(b)}, [to_channels(wide, b, False)], opset="ios16")
x = rand(1, 4, 2, 2)
op_case("depth_to_space", "unknown_dims", {"x": x}, {"block_size": 2}, [to_pixels(x, 2, True)], in_shapes={"x": (None, 4, None, 2)},
        out_shapes={"y_0": (None, 1, None, 4)})


def space_to_batch(x, block, p):
    x = np.pad(x, [(0, 0), (0, 0), tuple(p[0]), tuple(p[1])])
    n, c, h, w = x.shape
    y = x.reshape(n, c, h // block[0], block[0], w // block[1], block[1])
    return y.transpose(3, 5, 0, 1, 2, 4).reshape(n * block[0] * block[1], c, h // block[0], w // block[1])


def batch_to_space(x, block, crop):
    n, c, h, w = x.shape
    n //= block[0] * block[1]
    y = x.reshape(block[0], block[1], n, c, h, w).transpose(2, 3, 4, 0, 5, 1).reshape(n, c, h * block[0], w * block[1])
    return y[:, :, crop[0][0]:y.shape[2] - crop[0][1], crop[1][0]:y.shape[3] - crop[1][1]]


for name, shape, block, p in [("plain", (2, 2, 2, 4), (2, 2), [[0, 0], [0, 0]]), ("margins", (1, 1, 3, 2), (2, 3), [[1, 2], [3, 1]]),
                              ("uneven", (1, 2, 4, 3), (4, 1), [[2, 2], [0, 1]]), ("wide_margin", (1, 1, 1, 1), (2, 2), [[4, 1], [1, 4]])]:
    for dtype in (f32, f16):
        tag = name + ("" if dtype == f32 else "_fp16")
        x = rand(*shape, dtype=dtype)
        op_case("space_to_batch", tag, {"x": x}, {"block_shape": list(block), "paddings": np.array(p, i32)}, [space_to_batch(x, block, p)])
for name, shape, block, crop in [("plain", (4, 2, 2, 2), (2, 2), [[0, 0], [0, 0]]), ("crops", (6, 1, 2, 2), (2, 3), [[1, 0], [2, 1]]),
                                 ("batch", (8, 1, 2, 1), (2, 2), [[0, 3], [1, 0]]), ("all_gone", (4, 1, 1, 1), (2, 2), [[1, 1], [0, 0]])]:
    for dtype in (f32, f16):
        tag = name + ("" if dtype == f32 else "_fp16")
        x = rand(*shape, dtype=dtype)
        op_case("batch_to_space", tag, {"x": x}, {"block_shape": list(block), "crops": np.array(crop, i32)}, [batch_to_space(x, block, crop)])


# sliding_windows
def windows(x, axis, size, stride):
    axis %= x.ndim
    n = (x.shape[axis] - size) // stride + 1
    return np.stack([np.take(x, np.arange(i * stride, i * stride + size), axis) for i in range(n)], axis)


for axis, size, stride in [(0, 2, 1), (1, 3, 2), (-1, 1, 1), (-2, 4, 1), (2, 2, 3)]:
    x = rand(3, 4, 5)
    op_case("sliding_windows", "a%d_n%d_s%d" % (axis + 2, size, stride), {"x": x}, {"axis": axis, "size": size, "stride": stride}, [windows(x, axis, size, stride)])
x = ints(5)
op_case("sliding_windows", "default_stride_int32", {"x": x}, {"axis": 0, "size": 3}, [windows(x, 0, 3, 1)])
for name, x in typed(4, 2) + [("bool", bools(4, 2)), ("fp16", rand(4, 2, dtype=f16))]:
    op_case("sliding_windows", "ios17_" + name, {"x": x}, {"axis": 0, "size": 2}, [windows(x, 0, 2, 1)], opset="ios17")

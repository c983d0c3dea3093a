# SPDX-License-Identifier: Apache-2.0
import numpy as np

from case import op_case
from draws import Draws

draws = Draws(1)
rand, ints, bools = draws.rand, draws.ints, draws.bools
f32, f16, i32 = np.float32, np.float16, np.int32

# band_part
def band(x, lower, upper):
    m, n = np.indices(x.shape[-2:])
    keep = ((lower < 0) | (m - n <= lower)) & ((upper < 0) | (n - m <= upper))
    return np.where(keep, x, np.zeros((), x.dtype)).astype(x.dtype)


for lower, upper in [(0, -1), (-1, 0), (0, 0), (1, 2), (5, 1), (-1, -1)]:
    x = rand(2, 3, 4)
    op_case("band_part", "l%d_u%d" % (lower + 1, upper + 1), {"x": x}, {"lower": lower, "upper": upper}, [band(x, lower, upper)])
x = rand(4, 4, dtype=f16)
op_case("band_part", "defaults_fp16", {"x": x}, {}, [x])
x = ints(4, 2)
op_case("band_part", "int32", {"x": x}, {"lower": 1, "upper": 0}, [band(x, 1, 0)])
x = bools(1, 2, 3, 3)
op_case("band_part", "bool", {"x": x}, {"lower": 0, "upper": 1}, [band(x, 0, 1)])
x = np.array([[np.nan, np.inf], [-np.inf, 1]], f32)
op_case("band_part", "outside_is_zero_not_nan", {"x": x}, {"lower": 0, "upper": 0}, [np.array([[np.nan, 0], [0, 1]], f32)])
x = rand(2, 0, 3)
op_case("band_part", "empty", {"x": x}, {"lower": 0}, [x])


# cumsum
def cumsum(x, axis, exclusive=False, reverse=False):
    y = np.flip(x, axis) if reverse else x
    acc = np.cumsum(y, axis=axis, dtype=np.float64 if x.dtype.kind == "f" else x.dtype)
    if exclusive:
        acc = np.roll(acc, 1, axis)
        first = [slice(None)] * x.ndim
        first[axis] = 0
        acc[tuple(first)] = 0
    return (np.flip(acc, axis) if reverse else acc).astype(x.dtype)


for exclusive in (False, True):
    for reverse in (False, True):
        for axis, dtype in [(0, f32), (1, f16), (2, i32)]:
            x = rand(2, 3, 4, dtype=dtype) if dtype != i32 else ints(2, 3, 4)
            op_case("cumsum", "a%d_e%d_r%d" % (axis, exclusive, reverse), {"x": x},
                    {"axis": axis, "exclusive": exclusive, "reverse": reverse}, [cumsum(x, axis, exclusive, reverse)])
x = rand(5)
op_case("cumsum", "defaults", {"x": x}, {}, [cumsum(x, 0)])
op_case("cumsum", "last_axis", {"x": x.reshape(1, 5)}, {"axis": -1}, [cumsum(x.reshape(1, 5), 1)])
x = np.array([2**31 - 1, 1, 5], i32)
op_case("cumsum", "int32_wraps", {"x": x}, {}, [np.array([2**31 - 1, -2**31, -2**31 + 5], i32)])
x = np.zeros((2, 0), f32)
op_case("cumsum", "empty", {"x": x}, {"axis": 1, "exclusive": True}, [x])

# fill, fill_like
op_case("fill", "const_shape", {}, {"shape": [2, 1, 3], "value": 1.5}, [np.full((2, 1, 3), 1.5, f32)])
op_case("fill", "runtime_shape", {"shape": np.array([2, 3], i32)}, {"value": np.float16(-2)}, [np.full((2, 3), -2, f16)],
        out_shapes={"y_0": (None, None)})
op_case("fill", "default", {"shape": np.array([4], i32)}, {}, [np.zeros(4, f32)], out_shapes={"y_0": (None,)})
op_case("fill", "bool", {}, {"shape": [3], "value": True}, [np.ones(3, bool)])
op_case("fill", "int32", {}, {"shape": [2, 2], "value": 7}, [np.full((2, 2), 7, i32)])
op_case("fill", "empty", {}, {"shape": [2, 0], "value": 7}, [np.zeros((2, 0), i32)])
op_case("fill", "scalar", {}, {"shape": [], "value": 7}, [np.array(7, i32)])
op_case("fill_like", "types_differ", {"ref_tensor": rand(2, 3)}, {"value": 4}, [np.full((2, 3), 4, i32)], opset="ios16")
op_case("fill_like", "default", {"ref_tensor": bools(3)}, {}, [np.zeros(3, f32)], opset="ios16")
op_case("fill_like", "fp16", {"ref_tensor": ints(1, 2, 2)}, {"value": f16(0.1)}, [np.full((1, 2, 2), 0.1, f16)], opset="ios17")
op_case("fill_like", "unknown_dims", {"ref_tensor": rand(2, 3)}, {"value": True}, [np.ones((2, 3), bool)], opset="ios16",
        in_shapes={"ref_tensor": (None, 3)}, out_shapes={"y_0": (None, 3)})

# non_maximum_suppression


def nms(boxes, scores, iou, threshold, most, per_class, ios17):
    """One batch entry: boxes [B, 4] as center x, y, width, height; scores [B, K]."""
    x0, x1 = boxes[:, 0] - boxes[:, 2] / 2, boxes[:, 0] + boxes[:, 2] / 2
    y0, y1 = boxes[:, 1] - boxes[:, 3] / 2, boxes[:, 1] + boxes[:, 3] / 2
    best, label = scores.max(-1), scores.argmax(-1)
    kept = []
    for i in np.argsort(-best, kind="stable"):
        if threshold is not None and not best[i] > threshold:
            continue
        if len(kept) == most:
            break
        ok = True
        for j in kept:
            if per_class and label[i] != label[j]:
                continue
            w, h = min(x1[i], x1[j]) - max(x0[i], x0[j]), min(y1[i], y1[j]) - max(y0[i], y0[j])
            inter = max(w, 0) * max(h, 0)
            union = (x1[i] - x0[i]) * (y1[i] - y0[i]) + (x1[j] - x0[j]) * (y1[j] - y0[j]) - inter
            overlap = inter / union if union > 0 else 0
            ok = ok and not (overlap > iou or ios17 and overlap == iou > 0)
        if ok:
            kept.append(i)
    ob, os_ = np.zeros((most, 4), boxes.dtype), np.zeros((most, scores.shape[1]), scores.dtype)
    oi = np.full(most, -1, i32)
    for k, i in enumerate(kept):
        ob[k], os_[k], oi[k] = boxes[i], scores[i], i
    return ob, os_, oi, len(kept)


def nms_case(name, boxes, scores, iou, most, per_class, threshold=None):
    dtype = boxes.dtype.type
    rows = [nms(boxes[b], scores[b], iou, threshold, most, per_class, threshold is None) for b in range(boxes.shape[0])]
    ob, os_, oi = (np.stack([r[k] for r in rows]) for k in range(3))
    count = np.array([r[3] for r in rows], i32)
    consts = {"iou_threshold": dtype(iou), "max_boxes": most, "per_class_suppression": per_class}
    if threshold is not None:
        op_case("non_maximum_suppression", name, {"boxes": boxes, "scores": scores},
                dict(consts, score_threshold=dtype(threshold)), [ob, os_, oi, count])
    else:
        op_case("non_maximum_suppression", name,
                {"boxes": np.ascontiguousarray(boxes.transpose(0, 2, 1)), "scores": np.ascontiguousarray(scores.transpose(0, 2, 1))},
                consts, [ob.transpose(0, 2, 1), os_.transpose(0, 2, 1), oi], opset="ios17")


grid = np.array([[[0, 0, 2, 2], [0.5, 0, 2, 2], [0, 0.25, 2, 2], [5, 5, 1, 1], [5.125, 5, 1, 1], [9, 9, 2, 1]]], f32)
score = np.array([[[0.5, 0.1], [0.2, 0.9], [0.75, 0.3], [0.3, 0.25], [0.1, 0.4], [0.05, 0.02]]], f32)
nms_case("plain", grid, score, 0.5, 4, False, 0.1)
nms_case("per_class", grid, score, 0.5, 6, True, 0.1)
nms_case("few_places", grid, score, 0.5, 2, False, 0.0)
nms_case("nothing_left", grid, score, 0.5, 3, False, 2.0)
nms_case("low_threshold", grid, score, 0.0, 5, False, -1.0)
nms_case("two_batches_fp16", np.concatenate([grid, grid[:, ::-1]]).astype(f16), np.concatenate([score, score]).astype(f16), 0.5, 4, True, 0.125)
nms_case("ios17", grid, score, 0.5, 4, False)
nms_case("ios17_per_class_padded", grid, score, 0.5, 8, True)
half = np.array([[[1, 1, 2, 2], [0.5, 1, 1, 2], [4, 4, 1, 1]]], f32)  # the second is half of the first
nms_case("overlap_equals_threshold", half, score[:, :3], 0.5, 3, False, 0.0)
nms_case("ios17_overlap_equals_threshold", half, score[:, :3], 0.5, 3, False)
nms_case("ios17_no_overlap_equals_threshold", half, score[:, :3], 0.0, 3, False)
nms_case("equal_scores", grid, np.ones((1, 6, 1), f32), 0.5, 6, False, 0.5)

# non_zero
for name, x in [("fp32", np.array([[0, 1.5, 0], [-0.0, 2, np.nan]], f32)), ("fp16", np.array([1e-7, 0, -1], f16)), ("int32", ints(2, 2, 3, low=-1, high=2)),
                ("bool", bools(4, 3)), ("none", np.zeros((2, 2), f32)), ("no_elements", np.zeros((0, 3), f32))]:
    y = np.argwhere(x).astype(i32)
    op_case("non_zero", name, {"x": x}, {}, [y], out_shapes={"y_0": (None, x.ndim)})


# one_hot
def one_hot(ix, depth, axis, on, off, dtype):
    eye = np.full(ix.shape + (depth,), off, dtype)
    for at in np.ndindex(*ix.shape):
        if 0 <= ix[at] < depth:
            eye[at + (ix[at],)] = on
    return np.moveaxis(eye, -1, axis)


ix = np.array([[0, 2, 1], [3, -1, 7]], i32)
for axis in (-1, 0, 1, 2, -3):
    op_case("one_hot", "axis_%d" % (axis + 3), {"indices": ix},
            {"one_hot_vector_size": 4, "axis": axis, "on_value": f32(2), "off_value": f32(-1)}, [one_hot(ix, 4, axis, 2, -1, f32)])
op_case("one_hot", "defaults", {"indices": ix[0]}, {"one_hot_vector_size": 3}, [one_hot(ix[0], 3, -1, 1, 0, i32)])
op_case("one_hot", "runtime_size", {"indices": ix[0], "one_hot_vector_size": np.array(3, i32)}, {"on_value": f16(1), "off_value": f16(0)},
        [one_hot(ix[0], 3, -1, 1, 0, f16)], out_shapes={"y_0": (3, None)})
op_case("one_hot", "bool", {"indices": ix[0]}, {"one_hot_vector_size": 3, "on_value": False, "off_value": True}, [one_hot(ix[0], 3, -1, False, True, bool)])
op_case("one_hot", "scalar_index", {"indices": np.array(1, i32)}, {"one_hot_vector_size": 3}, [np.array([0, 1, 0], i32)])


# pad
def pad(x, p, mode="constant", value=0):
    full = [(0, 0)] * (x.ndim - len(p) // 2) + [tuple(p[i:i + 2]) for i in range(0, len(p), 2)]
    if mode == "constant":
        return np.pad(x, full, mode, constant_values=value)
    return np.pad(x, full, {"replicate": "edge"}.get(mode, mode))


for mode in ("constant", "reflect", "replicate"):
    for name, shape, p in [("last", (2, 3), [1, 2]), ("two", (2, 3, 3), [1, 1, 2, 0]), ("all", (2, 2, 2), [1, 0, 0, 1, 1, 1]), ("first", (3, 2), [2, 2, 0, 0])]:
        x = rand(*shape)
        op_case("pad", mode + "_" + name, {"x": x}, {"pad": p, "mode": mode, "constant_val": f32(-1.5)}, [pad(x, p, mode, -1.5)])
x = rand(2, 3, dtype=f16)
op_case("pad", "defaults_fp16", {"x": x}, {"pad": [0, 1, 2, 0]}, [pad(x, [0, 1, 2, 0])])
op_case("pad", "reflect_fp16", {"x": x}, {"pad": [2, 2], "mode": "reflect", "constant_val": f16(0)}, [pad(x, [2, 2], "reflect")])
x = rand(2, 3)
op_case("pad", "runtime", {"x": x, "pad": np.array([1, 0, 0, 2], i32)}, {"mode": "replicate"}, [pad(x, [1, 0, 0, 2], "replicate")],
        out_shapes={"y_0": (None, None)})
op_case("pad", "nothing", {"x": x}, {"pad": [0, 0]}, [x])
op_case("pad", "from_empty", {"x": np.zeros((0, 2), f32)}, {"pad": [1, 1, 0, 0], "constant_val": f32(3)}, [np.full((2, 2), 3, f32)])

# range_1d
for name, a, b, s in [("up", 0, 5, 1), ("step3", 1, 11, 3), ("down", 5, 0, -2), ("none", 3, 3, 1), ("wrong_way", 3, 0, 1)]:
    op_case("range_1d", name, {}, {"start": a, "end": b, "step": s}, [np.arange(a, b, s, dtype=i32)])
op_case("range_1d", "fp32", {}, {"start": f32(0.5), "end": f32(3), "step": f32(0.75)}, [np.arange(0.5, 3, 0.75).astype(f32)])
op_case("range_1d", "fp32_inexact_step", {}, {"start": f32(0), "end": f32(1), "step": f32(0.1)}, [(np.arange(10) * np.float64(f32(0.1))).astype(f32)])
op_case("range_1d", "fp16", {}, {"start": f16(1), "end": f16(-2), "step": f16(-0.5)}, [np.arange(1, -2, -0.5).astype(f16)])
op_case("range_1d", "runtime", {"end": np.array(4, i32)}, {"start": 0, "step": 1}, [np.arange(4, dtype=i32)], out_shapes={"y_0": (None,)})

# tile
for name, shape, reps in [("last", (2, 3), [1, 2]), ("first", (2, 3), [3, 1]), ("both", (2, 1, 2), [2, 3, 2]), ("one", (3,), [1])]:
    x = rand(*shape)
    op_case("tile", name, {"x": x}, {"reps": reps}, [np.tile(x, reps)])
x = bools(2, 2)
op_case("tile", "bool", {"x": x}, {"reps": [2, 2]}, [np.tile(x, [2, 2])])
x = rand(2, 2, dtype=f16)
op_case("tile", "runtime_fp16", {"x": x, "reps": np.array([1, 3], i32)}, {}, [np.tile(x, [1, 3])], out_shapes={"y_0": (None, None)})
x = np.arange(2, 14, dtype=f32).reshape(1, 2, 1, 3, 2)
op_case("tile", "rank_5", {"x": x}, {"reps": [2, 1, 3, 1, 2]}, [np.tile(x, [2, 1, 3, 1, 2])])
x = np.arange(2, 10, dtype=f32).reshape(1, 2, 1, 2, 1, 1, 2, 1)
op_case("tile", "rank_8", {"x": x}, {"reps": [1, 2, 1, 1, 1, 1, 1, 1]}, [np.tile(x, [1, 2, 1, 1, 1, 1, 1, 1])])
op_case("tile", "empty", {"x": np.zeros((0, 2), i32)}, {"reps": [2, 2]}, [np.zeros((0, 4), i32)])


# argsort, topk
def order(x, axis, ascending):
    key = x.astype(np.float64) if x.dtype.kind == "f" else x.astype(np.int64)
    return np.argsort(key if ascending else -key, axis=axis, kind="stable").astype(i32)


for axis in (0, 1, -1):
    for ascending in (False, True):
        x = ints(2, 4, 3, low=-3, high=4)
        op_case("argsort", "a%d_%d" % (axis + 1, ascending), {"x": x}, {"axis": axis, "ascending": ascending}, [order(x, axis, ascending)])
x = np.array([2, np.nan, -np.inf, 2, np.inf, np.nan, 0], f32)
op_case("argsort", "special_descending", {"x": x}, {}, [order(x, 0, False)])
op_case("argsort", "special_ascending", {"x": x}, {"ascending": True}, [order(x, 0, True)])
x = rand(3, 5, dtype=f16)
op_case("argsort", "fp16", {"x": x}, {}, [order(x, -1, False)])
op_case("argsort", "empty", {"x": np.zeros((2, 0), f32)}, {}, [np.zeros((2, 0), i32)])


def topk(x, k, axis=-1, ascending=False, dtype=i32):
    ix = order(x, axis, ascending)
    ix = np.take(ix, np.arange(x.shape[axis] if k < 0 else k), axis)
    return [np.take_along_axis(x, ix, axis), ix.astype(dtype)]


for axis in (0, 1, -1):
    for ascending in (False, True):
        x = ints(3, 4, 3, low=-3, high=4)
        op_case("topk", "a%d_%d" % (axis + 1, ascending), {"x": x}, {"axis": axis, "ascending": ascending, "k": 2}, topk(x, 2, axis, ascending))
x = rand(2, 5)
op_case("topk", "defaults", {"x": x}, {}, topk(x, 1))
op_case("topk", "all", {"x": x}, {"k": 5}, topk(x, 5))
op_case("topk", "ios16_fp16", {"x": x.astype(f16)}, {"k": 3, "sort": True, "return_indices": True}, topk(x.astype(f16), 3), opset="ios16")
op_case("topk", "values_only", {"x": x}, {"k": 3, "return_indices": False}, topk(x, 3)[:1], opset="ios16")
op_case("topk", "uint16_indices", {"x": x}, {"k": np.int8(2), "output_indices_dtype": "uint16"}, topk(x, 2, dtype=np.uint16), opset="ios17")
op_case("topk", "minus_one_is_all", {"x": x}, {"k": -1, "axis": 0, "ascending": True}, topk(x, -1, 0, True), opset="ios17")
for dtype in (np.int8, np.uint8, np.int16, np.uint16):
    x = draws.rng.integers(0, 90, (2, 4)).astype(dtype)
    op_case("topk", "ios17_" + np.dtype(dtype).name, {"x": x}, {"k": 2}, topk(x, 2), opset="ios17")
x = np.array([1, np.nan, np.inf, 1, -np.inf], f32)
op_case("topk", "special", {"x": x}, {"k": 4}, topk(x, 4))
op_case("topk", "none", {"x": x}, {"k": 0}, [np.zeros(0, f32), np.zeros(0, i32)])

# flatten2d, shape, identity
for axis in (0, 1, 2, 3, -1, -3):
    x = rand(2, 3, 4)
    y = x.reshape(int(np.prod(x.shape[:axis])), -1) if axis != 3 else x.reshape(-1, 1)
    op_case("flatten2d", "axis_%d" % (axis + 3), {"x": x}, {"axis": axis}, [y])
x = bools(2, 2, 2)
op_case("flatten2d", "default", {"x": x}, {}, [x.reshape(2, 4)])
op_case("flatten2d", "vector", {"x": rand(0)}, {"axis": -1}, [np.zeros((1, 0), f32)])
for name, x in [("rank3", rand(2, 3, 4)), ("vector_fp16", rand(5, dtype=f16)), ("empty_bool", np.zeros((2, 0), bool)), ("scalar", np.array(3, i32))]:
    op_case("shape", name, {"x": x}, {}, [np.array(x.shape, i32)])
    op_case("identity", name, {"x": x}, {}, [x])
x = rand(2, 3)
op_case("shape", "unknown_dims", {"x": x}, {}, [np.array([2, 3], i32)], in_shapes={"x": (None, 3)})
op_case("identity", "strings", {"x": np.array(["a", "", "longer than a small string holds"])}, {}, [np.array(["a", "", "longer than a small string holds"])])

# concat, stack, split
for axis in (0, 1, -1):
    parts = []
    for n in (1, 2, 3):
        shape = [2, 2, 2]
        shape[axis] = n
        parts.append(rand(*shape))
    op_case("concat", "axis_%d" % (axis + 1), {"values": parts}, {"axis": axis}, [np.concatenate(parts, axis)])
    same = [rand(2, 3, 2) for _ in range(3)]
    y = np.stack(same, axis % 3 + 1)
    shape = list(same[0].shape)
    shape[axis] *= 3
    op_case("concat", "interleave_%d" % (axis + 1), {"values": same}, {"axis": axis, "interleave": True}, [y.reshape(shape)])
for name, parts in [("one", [rand(2, 2)]), ("fp16", [rand(1, 2, dtype=f16), rand(3, 2, dtype=f16)]), ("int32_empty_part", [ints(2, 2), ints(0, 2), ints(1, 2)]),
                    ("bool", [bools(2, 1), bools(1, 1)]), ("strings", [np.array(["ab", "c"]), np.array(["a text of some length to copy"])]),
                    ("uint8", [ints(3, low=0, dtype=np.uint8), ints(2, low=0, dtype=np.uint8)])]:
    op_case("concat", name, {"values": parts}, {"axis": 0}, [np.concatenate(parts)])
op_case("concat", "scalars", {"values": [np.array(3, i32), np.array(5, i32)]}, {"axis": 0}, [np.array([3, 5], i32)])
op_case("concat", "many", {"values": [np.full((1, 2), k, f32) for k in range(20)]}, {"axis": 0},
        [np.repeat(np.arange(20, dtype=f32), 2).reshape(20, 2)])
for axis in (0, 1, 2, -1):
    parts = [rand(2, 3) for _ in range(3)]
    op_case("stack", "axis_%d" % (axis + 1), {"values": parts}, {"axis": axis}, [np.stack(parts, axis)])
op_case("stack", "scalars", {"values": [np.array(3, i32), np.array(5, i32)]}, {"axis": 0}, [np.array([3, 5], i32)])
parts = [bools(2), bools(2)]
op_case("stack", "bool", {"values": parts}, {"axis": -1}, [np.stack(parts, -1)])
parts = [rand(2, 2, dtype=f16)]
op_case("stack", "one_fp16", {"values": parts}, {"axis": 0}, [np.stack(parts)])
for axis in (0, 1, -1):
    x = rand(4, 4, 4)
    op_case("split", "even_%d" % (axis + 1), {"x": x}, {"num_splits": 2, "axis": axis}, np.split(x, 2, axis))
    op_case("split", "sizes_%d" % (axis + 1), {"x": x}, {"split_sizes": [1, 3], "axis": axis}, np.split(x, [1], axis))
x = ints(5, 2)
op_case("split", "both_given", {"x": x}, {"num_splits": 3, "split_sizes": [2, 0, 3], "axis": 0}, [x[:2], x[2:2], x[2:]])
x = bools(3, 2)
op_case("split", "one_bool", {"x": x}, {"num_splits": 1, "axis": 0}, [x])
x = np.arange(20, dtype=f16)
op_case("split", "many_fp16", {"x": x}, {"split_sizes": [1] * 20, "axis": 0}, [x[k:k + 1] for k in range(20)])

# pad, by more than the length of the axis on both sides: mirrored repeatedly
for name, shape, p in [("again", (2, 3), [3, 4, 7, 2]), ("again_before", (2,), [9, 0]), ("one", (1, 2), [2, 3, 1, 1])]:
    x = rand(*shape)
    op_case("pad", "reflect_" + name, {"x": x}, {"pad": p, "mode": "reflect", "constant_val": f32(0)}, [pad(x, p, "reflect")])

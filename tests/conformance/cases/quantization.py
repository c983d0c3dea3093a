# SPDX-License-Identifier: Apache-2.0
import numpy as np

from case import op_case

rng = np.random.default_rng(5)
f32, f16, i8, u8 = np.float32, np.float16, np.int8, np.uint8


def broadcast(p, x, axis):
    p = np.asarray(p)
    if p.ndim == 0:
        return p
    shape = [1] * x.ndim
    shape[axis] = -1
    return p.reshape(shape)


def quantize(x, scale, zero, axis, dtype):
    q = np.around((x / broadcast(scale, x, axis)).astype(x.dtype)).astype(f32)
    if zero is not None:
        q = q + broadcast(zero, x, axis).astype(f32)
    info = np.iinfo(dtype)
    return np.clip(np.where(np.isnan(q), 0, q), info.min, info.max).astype(dtype)


def dequantize(x, scale, zero, axis):
    y = x.astype(f32)
    if zero is not None:
        y = y - broadcast(zero, x, axis).astype(f32)
    return (y * broadcast(scale, x, axis).astype(f32)).astype(np.asarray(scale).dtype)


for src in (f32, f16):
    for dst in (i8, u8):
        tag = "%s_%s" % (np.dtype(src).name, np.dtype(dst).name)
        name = {"output_dtype": np.dtype(dst).name}
        x = (rng.standard_normal((2, 3, 4)) * 20).astype(src)
        op_case("quantize", "scalar_" + tag, {"input": x}, dict(name, scale=src(0.25), zero_point=dst(3)), [quantize(x, src(0.25), dst(3), None, dst)], opset="ios17")
        op_case("quantize", "no_zero_point_" + tag, {"input": x}, dict(name, scale=src(0.5)), [quantize(x, src(0.5), None, None, dst)], opset="ios17")
        q = rng.integers(np.iinfo(dst).min, np.iinfo(dst).max + 1, (2, 3, 4)).astype(dst)
        op_case("dequantize", "scalar_" + tag, {"input": q}, {"scale": src(0.25), "zero_point": dst(3)}, [dequantize(q, src(0.25), dst(3), None)], opset="ios17")
        op_case("dequantize", "no_zero_point_" + tag, {"input": q}, {"scale": src(0.1)}, [dequantize(q, src(0.1), None, None)], opset="ios17")
        for axis in (0, 1, -1):
            s = (rng.random(x.shape[axis]) + 0.5).astype(src)
            z = rng.integers(0, 9, x.shape[axis]).astype(dst)
            op_case("quantize", "axis%d_%s" % (axis + 1, tag), {"input": x}, dict(name, scale=s, zero_point=z, axis=axis), [quantize(x, s, z, axis, dst)], opset="ios17")
            op_case("dequantize", "axis%d_%s" % (axis + 1, tag), {"input": q}, {"scale": s, "zero_point": z, "axis": axis}, [dequantize(q, s, z, axis)], opset="ios17")
x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, 1e9, -1e9, np.inf, -np.inf, 127.5], f32)
op_case("quantize", "ties_and_limits", {"input": x}, {"scale": f32(1), "output_dtype": "int8"}, [np.array([0, 2, 2, 0, -2, 127, -128, 127, -128, 127], i8)], opset="ios17")
op_case("quantize", "ties_and_limits_uint8", {"input": x}, {"scale": f32(1), "zero_point": u8(1), "output_dtype": "uint8"},
        [np.array([1, 3, 3, 1, 0, 255, 0, 255, 0, 129], u8)], opset="ios17")
op_case("dequantize", "empty", {"input": np.zeros((0, 2), i8)}, {"scale": np.array([1, 2], f16), "axis": 1}, [np.zeros((0, 2), f16)], opset="ios17")
op_case("quantize", "empty", {"input": np.zeros((0, 2), f32)}, {"scale": f32(1), "output_dtype": "int8"}, [np.zeros((0, 2), i8)], opset="ios17")

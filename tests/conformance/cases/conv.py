# SPDX-License-Identifier: Apache-2.0
"""Convolutions: plain numpy sums, confirmed by onnxruntime where its attributes can express the case."""
import itertools

import numpy as np

from case import op_case
from truth import pads_of, run_onnx

rng = np.random.default_rng(3)


def conv(x, w, b=None, strides=None, pad_type="valid", pad=None, dilations=None, groups=1):
    rank = x.ndim - 2
    strides, dilations = strides or [1] * rank, dilations or [1] * rank
    kernel = w.shape[2:]
    pads = pads_of(x.shape[2:], kernel, strides, dilations, pad_type, pad)
    x64 = np.pad(x.astype(np.float64), [(0, 0), (0, 0)] + pads)
    w64 = w.astype(np.float64)
    size = [(x64.shape[i + 2] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(rank)]
    y = np.zeros([x.shape[0], w.shape[0]] + size)
    cin, cout = x.shape[1] // groups, w.shape[0] // groups
    for tap in itertools.product(*map(range, kernel)):
        window = tuple(slice(t * d, t * d + (n - 1) * s + 1, s) for t, d, n, s in zip(tap, dilations, size, strides))
        for g in range(groups):
            part = x64[(slice(None), slice(g * cin, (g + 1) * cin)) + window]
            taps = w64[(slice(g * cout, (g + 1) * cout), slice(None)) + tap]
            y[:, g * cout:(g + 1) * cout] += np.einsum("nc...,oc->no...", part, taps)
    if b is not None:
        y += b.astype(np.float64).reshape([-1] + [1] * rank)

    begin_end = [p[0] for p in pads] + [p[1] for p in pads]
    args = [x.astype(np.float32), w.astype(np.float32)] + ([] if b is None else [b.astype(np.float32)])
    other = run_onnx("Conv", args, dict(kernel_shape=kernel, strides=strides, dilations=dilations, group=groups, pads=begin_end))
    np.testing.assert_allclose(y, other, rtol=1e-4, atol=1e-4)
    return y


def conv_case(name, xs, ws, bias=True, dtype=np.float32, opset="ios15", wdtype=None, const=True, feed_bias=False, in_shapes=None,
              out_shapes=None, **settings):
    x = rng.standard_normal(xs).astype(dtype)
    w = rng.standard_normal(ws).astype(wdtype or dtype)
    b = rng.standard_normal(ws[0]).astype(wdtype or dtype) if bias else None
    y = conv(x, w, b, **settings).astype(dtype)
    inputs, consts = {"x": x}, dict(settings)
    (consts if const else inputs)["weight"] = w
    if bias:
        (inputs if feed_bias else consts)["bias"] = b
    op_case("conv", name, inputs, consts, [y], opset=opset, in_shapes=in_shapes, out_shapes=out_shapes)


conv_case("plain_2d", (1, 2, 4, 5), (3, 2, 3, 2))
conv_case("defaults_no_bias_1d", (2, 3, 6), (2, 3, 3), bias=False)
conv_case("3d_strided", (1, 2, 3, 4, 3), (2, 2, 2, 3, 2), strides=[1, 2, 1], pad_type="custom", pad=[1, 0, 0, 1, 1, 1])
conv_case("same_even_kernel_strided", (1, 1, 5, 6), (2, 1, 2, 4), strides=[2, 3], pad_type="same")
conv_case("same_lower_even_kernel", (1, 1, 5, 6), (2, 1, 2, 4), strides=[2, 1], pad_type="same_lower", opset="ios16")
conv_case("same_dilated", (1, 1, 7), (1, 1, 2), dilations=[3], pad_type="same")
conv_case("same_stride_beyond_kernel", (1, 1, 7), (1, 1, 1), strides=[3], pad_type="same")
conv_case("custom_asymmetric", (1, 2, 3, 4), (1, 2, 2, 2), pad_type="custom", pad=[2, 0, 1, 3], strides=[2, 2])
conv_case("grouped", (1, 4, 4, 3), (6, 2, 2, 2), groups=2)
conv_case("depthwise", (1, 3, 4, 4), (3, 1, 3, 3), groups=3, pad_type="same")
conv_case("depthwise_multiplier", (2, 2, 5), (4, 1, 2), groups=2, strides=[2])
conv_case("dilated_2d", (1, 1, 6, 7), (1, 1, 3, 2), dilations=[2, 4])
conv_case("pointwise", (2, 3, 2, 3), (4, 3, 1, 1), pad_type="valid")
conv_case("pad_ignored_when_valid", (1, 1, 4), (1, 1, 2), pad_type="valid", pad=[1, 1])
conv_case("fp16", (1, 2, 4, 4), (2, 2, 3, 3), dtype=np.float16, pad_type="same")
conv_case("weight_given_ios17", (1, 2, 4, 4), (2, 2, 3, 3), const=False, feed_bias=True, opset="ios17")
conv_case("half_weight_ios17", (1, 2, 4), (2, 2, 3), wdtype=np.float16, opset="ios17")
conv_case("wide_and_deep", (1, 9, 5, 5), (5, 9, 4, 4), pad_type="custom", pad=[1, 2, 2, 1])
conv_case("many_positions", (1, 1, 80), (1, 1, 3), bias=False, strides=[1], pad_type="same")
conv_case("unknown_sizes", (2, 1, 5, 4), (1, 1, 2, 2), in_shapes={"x": [None, 1, None, None]},
          out_shapes={"y_0": [None, 1, None, None]}, pad_type="same", strides=[2, 2])
op_case("conv", "no_images", {"x": np.zeros((0, 2, 3), np.float32)}, {"weight": np.ones((1, 2, 2), np.float32)},
        [np.zeros((0, 1, 2), np.float32)])



def conv_transpose(x, w, b=None, strides=None, pad_type="valid", pad=None, dilations=None, groups=1, output_shape=None):
    rank = x.ndim - 2
    strides, dilations = strides or [1] * rank, dilations or [1] * rank
    kernel = w.shape[2:]
    full = [(n - 1) * s + (k - 1) * d + 1 for n, s, k, d in zip(x.shape[2:], strides, kernel, dilations)]
    if output_shape is not None:
        size = output_shape[2:]
    elif pad_type == "same":
        size = [n * s for n, s in zip(x.shape[2:], strides)]
    elif pad_type == "valid":
        size = full
    else:
        size = [f - pad[2 * i] - pad[2 * i + 1] for i, f in enumerate(full)]
    begin = [max(0, f - n) // 2 if pad_type == "same" else pad[2 * i] if pad_type == "custom" else 0
             for i, (f, n) in enumerate(zip(full, size))]
    cin, cout = x.shape[1] // groups, w.shape[1]
    whole = np.zeros([x.shape[0], cout * groups] + [max(f, b0 + n) for f, b0, n in zip(full, begin, size)])
    for at in itertools.product(*map(range, x.shape[2:])):
        for tap in itertools.product(*map(range, kernel)):
            to = tuple(a * s + t * d for a, s, t, d in zip(at, strides, tap, dilations))
            for g in range(groups):
                part = x[(slice(None), slice(g * cin, (g + 1) * cin)) + at].astype(np.float64)
                taps = w[(slice(g * cin, (g + 1) * cin), slice(None)) + tap].astype(np.float64)
                whole[(slice(None), slice(g * cout, (g + 1) * cout)) + to] += part @ taps
    y = whole[(slice(None), slice(None)) + tuple(slice(b0, b0 + n) for b0, n in zip(begin, size))]
    if b is not None:
        y = y + b.astype(np.float64).reshape([-1] + [1] * rank)
    end = [f - b0 - n for f, b0, n in zip(full, begin, size)]
    if all(e >= 0 for e in end):
        args = [x.astype(np.float32), w.astype(np.float32)] + ([] if b is None else [b.astype(np.float32)])
        other = run_onnx("ConvTranspose", args, dict(kernel_shape=kernel, strides=strides, dilations=dilations, group=groups,
                                                     pads=begin + end))
        np.testing.assert_allclose(y, other, rtol=1e-4, atol=1e-4)
    return y


def transpose_case(name, xs, ws, bias=True, dtype=np.float32, opset="ios15", const=True, wdtype=None, **settings):
    x = rng.standard_normal(xs).astype(dtype)
    w = rng.standard_normal(ws).astype(wdtype or dtype)
    b = rng.standard_normal(ws[1] * settings.get("groups", 1)).astype(wdtype or dtype) if bias else None
    y = conv_transpose(x, w, b, **settings).astype(dtype)
    inputs, consts = {"x": x}, dict(settings)
    (consts if const else inputs)["weight"] = w
    if bias:
        consts["bias"] = b
    op_case("conv_transpose", name, inputs, consts, [y], opset=opset)


transpose_case("plain_2d", (1, 2, 3, 3), (2, 3, 2, 2))
transpose_case("no_bias_1d", (2, 2, 4), (2, 1, 3), bias=False)
transpose_case("strided", (1, 2, 3, 2), (2, 2, 3, 3), strides=[2, 3])
transpose_case("stride_beyond_kernel", (1, 1, 3), (1, 1, 2), strides=[4])
transpose_case("same", (1, 1, 3, 4), (1, 2, 3, 3), strides=[2, 2], pad_type="same")
transpose_case("same_even_kernel", (1, 1, 4), (1, 1, 4), strides=[1], pad_type="same")
transpose_case("same_stride_beyond_kernel", (1, 1, 3), (1, 1, 2), strides=[4], pad_type="same")
transpose_case("custom", (1, 1, 3, 3), (1, 1, 3, 4), strides=[2, 1], pad_type="custom", pad=[1, 0, 2, 1])
transpose_case("grouped", (1, 4, 3), (4, 2, 2), groups=2, strides=[2])
transpose_case("depthwise", (1, 3, 2, 2), (3, 1, 2, 2), groups=3, strides=[2, 2])
transpose_case("dilated", (1, 1, 3, 3), (1, 1, 2, 2), dilations=[3, 2])
transpose_case("dilated_and_strided", (1, 1, 4, 3), (1, 1, 3, 3), dilations=[2, 3], strides=[4, 2])
transpose_case("dilation_shares_stride", (1, 1, 5), (1, 1, 4), dilations=[4], strides=[6])
transpose_case("3d", (1, 1, 2, 2, 2), (1, 1, 2, 2, 3), strides=[1, 2, 2], pad_type="custom", pad=[0, 0, 1, 0, 0, 1])
transpose_case("output_shape_same", (1, 1, 3), (1, 1, 3), strides=[2], pad_type="same", output_shape=[1, 1, 5])
transpose_case("output_shape_custom", (1, 1, 4), (1, 2, 3), strides=[2], pad_type="custom", pad=[1, 0], output_shape=[1, 2, 8])
transpose_case("output_shape_larger", (1, 1, 2, 2), (1, 1, 2, 2), strides=[3, 3], output_shape=[1, 1, 6, 5])
transpose_case("fp16", (1, 2, 3, 3), (2, 2, 2, 2), dtype=np.float16, strides=[2, 2])
transpose_case("weight_given_ios17", (1, 2, 3), (2, 2, 2), const=False, bias=False, opset="ios17")
transpose_case("half_weight_ios17", (1, 2, 3), (2, 2, 2), wdtype=np.float16, opset="ios17")


def quantized_case(name, xs, ws, scale, shift, dtype=np.float32, const=True, **settings):
    x = rng.standard_normal(xs).astype(dtype)
    codes = rng.integers(0, 256, ws).astype(np.uint8)
    codes.flat[:2] = 0, 255
    scale, shift = np.array(scale, dtype), np.array(shift, dtype)
    spread = [v.astype(np.float64).reshape(v.shape[:1] + (1,) * (len(ws) - 1)) if v.size > 1 else v.astype(np.float64).ravel()
              for v in (scale, shift)]
    y = conv(x, codes * spread[0] + spread[1], **settings).astype(dtype)
    inputs, consts = {"x": x}, dict(settings, quantization_type="linear", quant_scale=scale, quant_bias=shift)
    (consts if const else inputs)["weight"] = codes
    op_case("conv_quantized", name, inputs, consts, [y])


quantized_case("one_scale", (1, 2, 5, 4), (3, 2, 3, 2), 0.01, -1.25)
quantized_case("scales_of_channels", (1, 2, 5, 4), (3, 2, 2, 2), [0.01, -0.5, 0], [-1.25, 0, 3], pad_type="same")
quantized_case("columns_of_scales", (2, 2, 6), (2, 2, 3), [[[0.02]], [[0.03]]], [[[-2.0]], [[-3.5]]], strides=[2])
quantized_case("one_bias_grouped_3d", (1, 4, 3, 3, 3), (2, 2, 2, 1, 2), [0.5, 0.25], -3, groups=2, dilations=[1, 1, 2])
quantized_case("fp16", (1, 2, 4, 4), (2, 2, 3, 3), 0.0078125, -1, dtype=np.float16, pad_type="custom", pad=[1, 0, 0, 1])
quantized_case("weight_given", (1, 1, 4), (1, 1, 2), 2, -1, const=False)

# The kernel has the size of the input, but its dilation reaches beyond it.
for const in (True, False):
    conv_case("dilated_beyond_input_" + ("constant" if const else "given"), (2, 16, 2), (16, 16, 2), strides=[3], dilations=[2],
              pad_type="same", const=const)

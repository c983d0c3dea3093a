# SPDX-License-Identifier: Apache-2.0
"""Writes nn_layers/<group>.json: tiny networks made with coremltools' builder (the .mlmodel as base64), their inputs, and the
outputs that NumPy computes from the documented formula of the layer.

    nn_layers.py [group ...]
"""
import json
import os
import sys

import numpy as np
from coremltools.models.neural_network import NeuralNetworkBuilder

from nn_layers_cases import OUT, rng, CASES, array, case, five, pad_image, conv2d, deconv2d
from nn_layers_recurrent import legacy_inputs, lstm, recurrent, recurrent_numbers


def convolutions():
    x = array(4, 7, 6)
    w, b = array(6, 4, 3, 2), array(6)

    def add(bd, w, b=None, **kw):
        """w [O, C, kh, kw], or [C, O, kh, kw] for a deconvolution."""
        args = dict(border_mode="valid", groups=1, stride_height=1, stride_width=1)
        args.update(kw)
        O, C = (w.shape[1] * args["groups"], w.shape[0]) if args.get("is_deconv") else w.shape[:2]
        bd.add_convolution("conv", C, O, w.shape[2], w.shape[3], W=np.transpose(w, (2, 3, 0, 1) if args.get("is_deconv") else (2, 3, 1, 0)), b=b,
                           has_bias=b is not None, input_name="x", output_name="y", **args)

    case("conv_valid", {"x": x}, {"y": five(conv2d(x, w, b))}, lambda bd: add(bd, w, b))
    case("conv_declared_shape", {"x": x}, {"y": conv2d(x, w, b)}, lambda bd: add(bd, w, b), described={"y": (6, 5, 5)})
    case("conv_padding", {"x": x}, {"y": five(conv2d(pad_image(x, 1, 2, 0, 1), w, b, (2, 1)))},
         lambda bd: add(bd, w, b, stride_height=2, padding_top=1, padding_bottom=2, padding_left=0, padding_right=1))
    # Same padding: total = max(0, (ceil(n / s) - 1) * s + k - n): 7, s 2, k 3 -> 2; 6, s 2, k 2 -> 0; k 3 on 6 -> 1
    w3 = array(2, 4, 3, 3)
    case("conv_same", {"x": x}, {"y": five(conv2d(pad_image(x, 1, 1, 0, 1), w3, None, (2, 2)))},
         lambda bd: add(bd, w3, border_mode="same", stride_height=2, stride_width=2))
    case("conv_same_top_left", {"x": x}, {"y": five(conv2d(pad_image(x, 1, 1, 1, 0), w3, None, (2, 2)))},
         lambda bd: add(bd, w3, border_mode="same", stride_height=2, stride_width=2, same_padding_asymmetry_mode="TOP_LEFT_HEAVY"))
    case("conv_dilated_groups", {"x": x}, {"y": five(conv2d(x, w[:, :2], b, dilation=(2, 3), groups=2))},
         lambda bd: add(bd, w[:, :2], b, groups=2, dilation_factors=[2, 3]))
    d = array(4, 1, 3, 3)
    case("conv_depthwise", {"x": x}, {"y": five(conv2d(x, d, groups=4))}, lambda bd: add(bd, d, groups=4))
    dw, db = array(4, 3, 3, 4), array(3)
    full = deconv2d(x, dw, (2, 2))
    case("deconv_valid", {"x": x}, {"y": five(full + db[:, None, None])}, lambda bd: add(bd, dw, db, is_deconv=True, stride_height=2, stride_width=2))
    case("deconv_padding", {"x": x}, {"y": five(full[:, 1:-1, 0:-1] + db[:, None, None])},
         lambda bd: add(bd, dw, db, is_deconv=True, stride_height=2, stride_width=2, padding_top=1, padding_bottom=1, padding_right=1))
    # Same: the output is stride times the input; 3 - 2 = 1 is cut below, 4 - 2 = 2 on both sides.
    case("deconv_same", {"x": x}, {"y": five(full[:, 0:-1, 1:-1])}, lambda bd: add(bd, dw, is_deconv=True, border_mode="same", stride_height=2, stride_width=2))
    gw = array(4, 2, 2, 2)
    case("deconv_groups", {"x": x}, {"y": five(deconv2d(x, gw, (1, 2), groups=2))}, lambda bd: add(bd, gw, is_deconv=True, groups=2, stride_width=2))

    for bits in (1, 3, 4, 8):
        q = rng.integers(0, 2**bits, w.shape).astype(np.uint8)
        lut = array(2**bits)
        scale, bias = array(6, low=0.01, high=0.1), array(6)
        raw = q.reshape(-1)
        packed = np.packbits(np.unpackbits(raw[:, None], axis=1)[:, 8 - bits:].reshape(-1)).tobytes()

        def quantize(spec, linear):
            p = spec.neuralNetwork.layers[0].convolution.weights
            p.ClearField("floatValue")
            p.rawValue = packed
            p.quantization.numberOfBits = bits
            if linear:
                p.quantization.linearQuantization.scale.extend(scale)
                p.quantization.linearQuantization.bias.extend(bias)
            else:
                p.quantization.lookupTableQuantization.floatValue.extend(lut)
            spec.specificationVersion = 3

        case("conv_lut_%d_bits" % bits, {"x": x}, {"y": five(conv2d(x, lut[q], b))}, lambda bd: add(bd, w, b), edit=lambda s: quantize(s, False))
        ws = q * scale[:, None, None, None] + bias[:, None, None, None]
        case("conv_linear_%d_bits" % bits, {"x": x}, {"y": five(conv2d(x, ws, b))}, lambda bd: add(bd, w, b), edit=lambda s: quantize(s, True),
             tolerance=1e-4)

    def halve(spec):
        for p in (spec.neuralNetwork.layers[0].convolution.weights, spec.neuralNetwork.layers[0].convolution.bias):
            p.float16Value = np.array(p.floatValue, np.float16).tobytes()
            p.ClearField("floatValue")
        spec.specificationVersion = 2

    half = lambda a: a.astype(np.float16).astype(np.float32)
    case("conv_float16", {"x": x}, {"y": five(conv2d(x, half(w), half(b)))}, lambda bd: add(bd, w, b), edit=halve)


def poolings():
    x = array(2, 7, 6)

    def windows(x, k, s, H, W, reduce):
        """Windows of the input that stay inside. NaN marks padding."""
        y = np.zeros((x.shape[0], H, W))
        for i in range(H):
            for j in range(W):
                y[:, i, j] = reduce(x[:, i * s[0]:i * s[0] + k[0], j * s[1]:j * s[1] + k[1]].reshape(x.shape[0], -1))
        return y

    def add(bd, kind, **kw):
        args = dict(height=3, width=2, stride_height=2, stride_width=2, layer_type=kind, padding_type="VALID")
        args.update(kw)
        bd.add_pooling("pool", input_name="x", output_name="y", **args)

    nan = lambda t, b, l, r: pad_image(x, t, b, l, r, np.nan)
    maximum = lambda v: np.nanmax(v, -1)
    case("pool_max_valid", {"x": x}, {"y": five(windows(x, (3, 2), (2, 2), 3, 3, maximum))}, lambda bd: add(bd, "MAX"))
    case("pool_max_same", {"x": x}, {"y": five(windows(nan(1, 1, 0, 0), (3, 2), (2, 2), 4, 3, maximum))}, lambda bd: add(bd, "MAX", padding_type="SAME"))
    mean0 = lambda v: np.where(np.isnan(v), 0, v).mean(-1)
    case("pool_average_padding", {"x": x}, {"y": five(windows(nan(1, 1, 1, 1), (3, 2), (2, 2), 4, 4, mean0))},
         lambda bd: add(bd, "AVERAGE", padding_top=1, padding_bottom=1, padding_left=1, padding_right=1, exclude_pad_area=False))
    case("pool_average_exclude", {"x": x}, {"y": five(windows(nan(1, 1, 1, 1), (3, 2), (2, 2), 4, 4, lambda v: np.nanmean(v, -1)))},
         lambda bd: add(bd, "AVERAGE", padding_top=1, padding_bottom=1, padding_left=1, padding_right=1, exclude_pad_area=True))
    case("pool_l2", {"x": x}, {"y": five(windows(x, (3, 2), (2, 2), 3, 3, lambda v: np.sqrt((v * v).sum(-1))))}, lambda bd: add(bd, "L2"))
    # includeLastPixel: ceil((7 + 2 - 3) / 3) + 1 = 3, ceil((6 + 2 - 3) / 3) + 1 = 3; the third windows begin at 6 < 7 + 1 and 6 < 6 + 1.
    case("pool_include_last_pixel", {"x": x}, {"y": five(windows(nan(1, 1, 1, 3), (3, 3), (3, 3), 3, 3, maximum))},
         lambda bd: add(bd, "MAX", width=3, stride_height=3, stride_width=3, padding_type="INCLUDE_LAST_PIXEL", padding_top=1, padding_bottom=1, padding_left=1, padding_right=1))
    # Here the third window over the width would begin at 6 >= 5 + 1 and is dropped.
    x5 = x[:, :, :5]
    p5 = pad_image(x5, 1, 1, 1, 1, np.nan)
    case("pool_drop_last_window", {"x": x5}, {"y": five(windows(p5, (3, 2), (3, 3), 3, 2, maximum))},
         lambda bd: add(bd, "MAX", width=2, stride_height=3, stride_width=3, padding_type="INCLUDE_LAST_PIXEL", padding_top=1, padding_bottom=1, padding_left=1, padding_right=1))
    case("pool_global_average", {"x": x}, {"y": five(x.mean((1, 2), keepdims=True))}, lambda bd: add(bd, "AVERAGE", is_global=True))
    case("pool_global_max", {"x": x}, {"y": five(x.max((1, 2), keepdims=True))}, lambda bd: add(bd, "MAX", is_global=True))


def activations():
    x = array(3, 2, 2, low=-3, high=3)
    a, c = array(3), array(3, low=0.2, high=1)
    pc = lambda v: v[:, None, None]
    table = {
        "RELU": (None, np.maximum(x, 0)), "LEAKYRELU": ([0.3], np.where(x >= 0, x, np.float32(0.3) * x)), "SIGMOID": (None, 1 / (1 + np.exp(-x))),
        "TANH": (None, np.tanh(x)), "SCALED_TANH": ([1.5, 0.7], 1.5 * np.tanh(0.7 * x)), "LINEAR": ([2.0, -1.0], 2 * x - 1),
        "SIGMOID_HARD": ([0.2, 0.5], np.clip(0.2 * x + 0.5, 0, 1)), "ELU": (0.8, np.where(x >= 0, x, 0.8 * (np.exp(x) - 1))),
        "THRESHOLDEDRELU": (0.5, np.where(x >= 0.5, x, 0)), "SOFTSIGN": (None, x / (1 + np.abs(x))), "SOFTPLUS": (None, np.log(1 + np.exp(x))),
        "PRELU": (a, np.where(x >= 0, x, pc(a) * x)), "PARAMETRICSOFTPLUS": ([a, c], pc(a) * np.log(1 + np.exp(pc(c) * x))),
    }
    for kind, (params, y) in table.items():
        case("activation_" + kind.lower(), {"x": x}, {"y": five(y)},
             lambda bd, k=kind, p=params: bd.add_activation("act", k, "x", "y", params=p if p is not None else None))
    one = np.array([0.25], np.float32)
    case("activation_prelu_shared", {"x": x}, {"y": five(np.where(x >= 0, x, 0.25 * x))}, lambda bd: bd.add_activation("act", "PRELU", "x", "y", params=one))


def products():
    x = array(2, 3, 2)
    w, b = array(5, 12), array(5)
    inner = lambda bd, i="x", o="y": bd.add_inner_product("ip", w, b, 12, 5, True, i, o)
    y = x.reshape(-1) @ w.T + b
    case("inner_product", {"x": x}, {"y": y.reshape(1, 1, 5, 1, 1)}, inner)
    v = array(12)
    case("inner_product_vector", {"x": v}, {"y": v @ w.T + b}, inner, described={"y": (5,)})

    def chain(bd):
        bd.add_flatten("f", 1, "x", "flat")
        inner(bd, "flat", "z")
        bd.add_softmax("s", "z", "y")

    f = np.transpose(x, (1, 2, 0)).reshape(-1) @ w.T + b
    case("flatten_channel_last", {"x": x}, {"y": np.exp(f) / np.exp(f).sum()}, chain, described={"y": (5,)})
    m = array(2, 4, 12)
    case("inner_product_exact", {"x": m}, {"y": m @ w.T + b}, inner, exact=True)
    e, eb = array(4, 6), array(4)
    case("embedding", {"x": np.array([3.0], np.float32)}, {"y": e[:, 3] + eb}, lambda bd: bd.add_embedding("e", e.T.copy().T, eb, 6, 4, True, "x", "y"),
         described={"y": (4,)})
    idx = np.array([[[1.0], [5.0], [0.0]]], np.float32)
    case("embedding_nd", {"x": idx}, {"y": e.T[idx[..., 0].astype(int)] + eb},
         lambda bd: bd.add_embedding_nd("e", "x", "y", vocab_size=6, embedding_size=4, W=e, b=eb), exact=True)
    a, c = array(2, 3, 4), array(2, 5, 4)
    case("batched_mat_mul", {"a": a, "c": c}, {"y": a @ np.swapaxes(c, 1, 2)},
         lambda bd: bd.add_batched_mat_mul("m", ["a", "c"], "y", transpose_b=True), exact=True)
    k, kb = array(4, 3), array(3)
    case("batched_mat_mul_weight", {"a": a}, {"y": a @ k + kb},
         lambda bd: bd.add_batched_mat_mul("m", ["a"], "y", weight_matrix_rows=4, weight_matrix_columns=3, W=k, bias=kb), exact=True)


def normalizations():
    x = array(3, 4, 5)
    g, b, m, v = array(3), array(3), array(3), array(3, low=0.1, high=2)
    pc = lambda t: t[:, None, None]
    case("batchnorm", {"x": x}, {"y": five(pc(g) * (x - pc(m)) / np.sqrt(pc(v) + 1e-3) + pc(b))},
         lambda bd: bd.add_batchnorm("bn", 3, g, b, m, v, "x", "y", epsilon=1e-3))
    mean, var = x.mean((1, 2), keepdims=True), x.var((1, 2), keepdims=True)
    inst = pc(g) * (x - mean) / np.sqrt(var + 1e-5) + pc(b)
    case("batchnorm_instance", {"x": x}, {"y": five(inst)},
         lambda bd: bd.add_batchnorm("bn", 3, g, b, input_name="x", output_name="y", compute_mean_var=True, instance_normalization=True, epsilon=1e-5))
    case("mvn", {"x": x}, {"y": five((x - mean) / np.sqrt(var + 1e-4))},
         lambda bd: bd.add_mvn("mvn", "x", "y", across_channels=False, normalize_variance=True, epsilon=1e-4))
    case("mvn_across", {"x": x}, {"y": five(x - x.mean())}, lambda bd: bd.add_mvn("mvn", "x", "y", across_channels=True, normalize_variance=False))
    case("l2_normalize", {"x": x}, {"y": five(x / np.sqrt((x * x).sum() + 1e-5))}, lambda bd: bd.add_l2_normalize("n", "x", "y", epsilon=1e-5))
    s = np.stack([(x[max(0, i - 1):i + 2]**2).sum(0) for i in range(3)])
    case("lrn", {"x": x}, {"y": five(x / (1.5 + 0.3 / 3 * s)**0.75)}, lambda bd: bd.add_lrn("lrn", "x", "y", alpha=0.3, beta=0.75, local_size=3, k=1.5))
    e = np.exp(x)
    case("softmax", {"x": x}, {"y": five(e / e.sum(0))}, lambda bd: bd.add_softmax("s", "x", "y"))
    case("softmax_nd", {"x": x}, {"y": e / e.sum(1, keepdims=True)}, lambda bd: bd.add_softmax_nd("s", "x", "y", axis=-2), exact=True)
    gn, bn = array(4, 5), array(4, 5)
    mu, var = x.mean((1, 2), keepdims=True), x.var((1, 2), keepdims=True)
    case("layer_normalization", {"x": x}, {"y": (x - mu) / np.sqrt(var + 1e-3) * gn + bn},
         lambda bd: bd.add_layer_normalization("ln", "x", "y", normalized_shape=[4, 5], gamma=gn, beta=bn, eps=1e-3), exact=True)


def grid(method, X, N):
    """Sampling points, as the SamplingMode message defines them."""
    if method == "STRICT_ALIGN_ENDPOINTS_MODE":
        return np.linspace(0, X - 1, N)
    if method == "ALIGN_ENDPOINTS_MODE":
        return np.array([(X - 1) / 2]) if N == 1 else np.linspace(0, X - 1, N)
    if method == "UPSAMPLE_MODE":
        return np.minimum(X - 1, np.linspace(0, X - X / N, N))
    spacing = max(1, X - 1) / N
    return np.minimum(X - 1, 0.5 * spacing + spacing * np.arange(N))


def bilinear(x, rows, columns):
    def axis(x, points, at):
        lo = np.clip(np.floor(points).astype(int), 0, x.shape[at] - 1)
        hi = np.minimum(lo + 1, x.shape[at] - 1)
        t = (points - lo).reshape([-1 if i == at else 1 for i in range(x.ndim)])
        return np.take(x, lo, at) * (1 - t) + np.take(x, hi, at) * t
    return axis(axis(x.astype(np.float64), np.asarray(rows), 1), np.asarray(columns), 2)


def images():
    x = array(8, 4, 6)
    case("crop", {"x": x}, {"y": five(x[:, 1:4, 2:5])}, lambda bd: bd.add_crop("c", 2, 1, 1, 0, [0, 0], ["x"], "y"))
    r = array(1, 2, 3)
    case("crop_like", {"x": x, "r": r}, {"y": five(x[:, 1:3, 2:5])}, lambda bd: bd.add_crop("c", 0, 0, 0, 0, [1, 2], ["x", "r"], "y"))
    pad = ((0, 0), (1, 2), (3, 0))
    for kind, mode in (("constant", "constant"), ("reflection", "reflect"), ("replication", "edge")):
        y = np.pad(x, pad, mode, **({"constant_values": 0.5} if kind == "constant" else {}))
        case("padding_" + kind, {"x": x}, {"y": five(y)}, lambda bd, k=kind: bd.add_padding("p", left=3, right=0, top=1, bottom=2, value=0.5, input_name="x", output_name="y", padding_type=k))
    case("upsample_nearest", {"x": x}, {"y": five(np.repeat(np.repeat(x, 2, 1), 3, 2))}, lambda bd: bd.add_upsample("u", 2, 3, "x", "y", mode="NN"))
    for mode in ("DEFAULT", "ALIGN_CORNERS_TRUE", "ALIGN_CORNERS_FALSE"):
        points = {"DEFAULT": lambda X, s: np.minimum(np.arange(X * s) / s, X - 1), "ALIGN_CORNERS_TRUE": lambda X, s: np.linspace(0, X - 1, X * s),
                  "ALIGN_CORNERS_FALSE": lambda X, s: np.clip((np.arange(X * s) + 0.5) / s - 0.5, 0, X - 1)}[mode]
        case("upsample_bilinear_" + mode.lower(), {"x": x}, {"y": five(bilinear(x, points(4, 2), points(6, 3)))},
             lambda bd, m=mode: bd.add_upsample("u", 2, 3, "x", "y", mode="BILINEAR", linear_upsample_mode=m))
    for mode in ("STRICT_ALIGN_ENDPOINTS_MODE", "ALIGN_ENDPOINTS_MODE", "UPSAMPLE_MODE", "ROI_ALIGN_MODE"):
        case("resize_bilinear_" + mode.lower(), {"x": x}, {"y": five(bilinear(x, grid(mode, 4, 7), grid(mode, 6, 3)))},
             lambda bd, m=mode: bd.add_resize_bilinear("r", "x", "y", target_height=7, target_width=3, mode=m))
    d = x.reshape(8, 2, 2, 3, 2)
    case("space_to_depth", {"x": x}, {"y": five(d.transpose(2, 4, 0, 1, 3).reshape(32, 2, 3))}, lambda bd: bd.add_reorganize_data("r", "x", "y", "SPACE_TO_DEPTH", 2))
    d = x.reshape(2, 2, 2, 4, 6)
    case("depth_to_space", {"x": x}, {"y": five(d.transpose(2, 3, 0, 4, 1).reshape(2, 8, 12))}, lambda bd: bd.add_reorganize_data("r", "x", "y", "DEPTH_TO_SPACE", 2))
    boxes = np.array([0.5, 1.0, 2.5, 4.0], np.float32)

    def crop_resize(bd):
        bd.add_load_constant("boxes", "boxes", boxes, [4, 1, 1])
        bd.add_crop_resize("c", ["x", "boxes"], "y", target_height=2, target_width=3, mode="STRICT_ALIGN_ENDPOINTS_MODE", box_indices_mode="CORNERS_HEIGHT_FIRST")

    case("crop_resize", {"x": x}, {"y": five(bilinear(x, np.linspace(0.5, 2.5, 2), np.linspace(1, 4, 3)))}, crop_resize, tolerance=1e-4)


def elementwise():
    x, y, z = array(2, 3, 2), array(2, 3, 2), array(2, 1, 1)
    for kind, f in (("ADD", lambda a, b: a + b), ("MULTIPLY", lambda a, b: a * b), ("AVE", lambda a, b: (a + b) / 2), ("MAX", np.maximum), ("MIN", np.minimum)):
        case("elementwise_" + kind.lower(), {"x": x, "y": y}, {"o": five(f(x, y))}, lambda bd, k=kind: bd.add_elementwise("e", ["x", "y"], "o", k))
    case("elementwise_add_broadcast", {"x": x, "y": z}, {"o": five(x + z)}, lambda bd: bd.add_elementwise("e", ["x", "y"], "o", "ADD"))
    case("elementwise_add_alpha", {"x": x}, {"o": five(x + 1.5)}, lambda bd: bd.add_elementwise("e", ["x"], "o", "ADD", 1.5))
    a, b = array(5), array(5)
    case("dot", {"x": a, "y": b}, {"o": [a @ b]}, lambda bd: bd.add_elementwise("e", ["x", "y"], "o", "DOT"), described={"o": (1,)})
    case("cosine", {"x": a, "y": b}, {"o": [a @ b / np.linalg.norm(a) / np.linalg.norm(b)]}, lambda bd: bd.add_elementwise("e", ["x", "y"], "o", "COS"), described={"o": (1,)})
    s, t = array(2), array(2, 3, 2)
    case("scale_bias", {"x": x}, {"o": five(x * s[:, None, None] + t)}, lambda bd: bd.add_scale("s", s, t, True, "x", "o", shape_scale=[2], shape_bias=[2, 3, 2]))
    case("bias", {"x": x}, {"o": five(x + 0.75)}, lambda bd: bd.add_bias("b", np.array([0.75]), "x", "o", shape_bias=[1]))
    p = array(2, 2, 2, low=0.1, high=3)
    table = {"sqrt": np.sqrt, "rsqrt": lambda v: 1 / np.sqrt(v + 1e-2), "inverse": lambda v: 1 / (v + 1e-2), "power": lambda v: v**1.7, "exp": np.exp,
             "log": lambda v: np.log(v + 1e-2), "abs": np.abs, "threshold": lambda v: np.maximum(v, 1.7)}
    for kind, f in table.items():
        case("unary_" + kind, {"x": p}, {"o": five(f(p * 1.5 + 0.25))}, lambda bd, k=kind: bd.add_unary("u", "x", "o", k, alpha=1.7, shift=0.25, scale=1.5, epsilon=1e-2))
    c = array(3, 3, 2)
    case("concat", {"x": x, "y": c}, {"o": five(np.concatenate([x, c]))}, lambda bd: bd.add_elementwise("c", ["x", "y"], "o", "CONCAT"))
    case("sequence_concat", {"x": x, "y": y}, {"o": np.stack([five(x)[0], five(y)[0]])}, lambda bd: bd.add_elementwise("c", ["x", "y"], "o", "SEQUENCE_CONCAT"))
    case("sequence_repeat", {"x": x}, {"o": np.repeat(five(x), 3, 0)}, lambda bd: bd.add_sequence_repeat("r", 3, "x", "o"))
    case("split", {"x": x}, {"o": five(x[:1]), "q": five(x[1:])}, lambda bd: bd.add_split("s", "x", ["o", "q"]))
    k = array(2, 3, 2)

    def constant(bd):
        bd.add_load_constant("k", "k", k, [2, 3, 2])
        bd.add_elementwise("e", ["x", "k"], "o", "ADD")

    case("load_constant", {"x": x}, {"o": five(x + k)}, constant)


def shapes():
    x = array(4, 3, 2)
    case("reshape_channel_first", {"x": x}, {"y": five(x.reshape(2, 6, 2))}, lambda bd: bd.add_reshape("r", "x", "y", (2, 6, 2), 0))
    y = x.transpose(1, 2, 0).reshape(6, 2, 2).transpose(2, 0, 1)
    case("reshape_channel_last", {"x": x}, {"y": five(y)}, lambda bd: bd.add_reshape("r", "x", "y", (2, 6, 2), 1))
    case("reshape_sequence", {"x": x}, {"y": x.reshape(4, 1, 6, 1, 1)}, lambda bd: bd.add_reshape("r", "x", "y", (4, 6, 1, 1), 0))
    case("permute", {"x": x}, {"y": five(x.transpose(2, 0, 1))}, lambda bd: bd.add_permute("p", (0, 3, 1, 2), "x", "y"))
    case("permute_sequence", {"x": x}, {"y": x.transpose(1, 0, 2).reshape(3, 1, 4, 1, 2)}, lambda bd: bd.add_permute("p", (2, 1, 0, 3), "x", "y"))
    case("slice_channel", {"x": x}, {"y": five(x[1:3])}, lambda bd: bd.add_slice("s", "x", "y", "channel", 1, 3, 1))
    case("slice_height", {"x": x}, {"y": five(x[:, 0:-1:2])}, lambda bd: bd.add_slice("s", "x", "y", "height", 0, -1, 2))
    for mode, f in (("sum", np.sum), ("avg", np.mean), ("prod", np.prod), ("max", np.max), ("min", np.min)):
        for axis, at in (("CHW", (0, 1, 2)), ("HW", (1, 2)), ("C", (0,)), ("H", (1,)), ("W", (2,))):
            if mode in ("sum", "avg") or axis == "C":
                case("reduce_%s_%s" % (mode, axis.lower()), {"x": x}, {"y": five(f(x, at, keepdims=True))}, lambda bd, m=mode, a=axis: bd.add_reduce("r", "x", "y", a, m))
    p = np.abs(x) + 0.1
    case("reduce_logsum", {"x": p}, {"y": five(np.log(p + 1e-6).sum(0, keepdims=True))}, lambda bd: bd.add_reduce("r", "x", "y", "C", "logsum"))
    case("reduce_sumsquare", {"x": x}, {"y": five((x * x).sum(0, keepdims=True))}, lambda bd: bd.add_reduce("r", "x", "y", "C", "sumsquare"))
    case("reduce_l1", {"x": x}, {"y": five(np.abs(x).sum(0, keepdims=True))}, lambda bd: bd.add_reduce("r", "x", "y", "C", "L1"))
    case("reduce_l2", {"x": x}, {"y": five(np.sqrt((x * x).sum(0, keepdims=True)))}, lambda bd: bd.add_reduce("r", "x", "y", "C", "L2"))
    case("reduce_argmax", {"x": x}, {"y": five(x.argmax(1)[:, None].astype(np.float32))}, lambda bd: bd.add_reduce("r", "x", "y", "H", "argmax"))


def exact_layers():
    x = array(2, 3, 4)
    table = {"ceil": np.ceil, "floor": np.floor, "sign": np.sign, "sin": np.sin, "cos": np.cos, "tan": np.tan, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
             "tanh": np.tanh, "asinh": np.arcsinh, "exp2": np.exp2}
    for kind, f in table.items():
        case("function_" + kind, {"x": x}, {"y": f(x)}, lambda bd, k=kind: getattr(bd, "add_" + k)("f", "x", "y"), exact=True)
    u = array(2, 3, low=-0.9, high=0.9)
    for kind, f in (("asin", np.arcsin), ("acos", np.arccos), ("atanh", np.arctanh)):
        case("function_" + kind, {"x": u}, {"y": f(u)}, lambda bd, k=kind: getattr(bd, "add_" + k)("f", "x", "y"), exact=True)
    case("function_acosh", {"x": u + 2}, {"y": np.arccosh(u + 2)}, lambda bd: bd.add_acosh("f", "x", "y"), exact=True)
    case("clip", {"x": x}, {"y": np.clip(x, -0.5, 1)}, lambda bd: bd.add_clip("c", "x", "y", -0.5, 1.0), exact=True)
    case("clamped_relu", {"x": x}, {"y": np.minimum(np.where(x >= 0, x, 0.2 * x), 1.1)}, lambda bd: bd.add_clamped_relu("c", "x", "y", 0.2, 1.1), exact=True)
    y = array(3, 1)
    y[1] = x[0, 1, 2]
    for kind, f in (("add_broadcastable", np.add), ("subtract_broadcastable", np.subtract), ("multiply_broadcastable", np.multiply), ("divide_broadcastable", np.divide),
                    ("max_broadcastable", np.maximum), ("min_broadcastable", np.minimum), ("floor_div_broadcastable", np.floor_divide), ("mod_broadcastable", np.mod),
                    ("equal", np.equal), ("not_equal", np.not_equal), ("less_than", np.less), ("greater_than", np.greater)):
        def build(bd, k=kind):
            if k in ("less_than", "greater_than"):
                getattr(bd, "add_" + k)("b", ["x", "y"], "o")
            else:
                getattr(bd, "add_" + k)("b", ["x", "y"], "o")
        case("binary_" + kind, {"x": x, "y": y}, {"o": f(x, y).astype(np.float32)}, build, exact=True, tolerance=2e-5)
    case("less_than_alpha", {"x": x}, {"o": (x <= 0.5).astype(np.float32)}, lambda bd: bd.add_less_than("b", ["x"], "o", use_less_than_equal=True, alpha=0.5), exact=True)
    t = (array(2, 3) > 0).astype(np.float32)
    s = (array(2, 3) > 0).astype(np.float32)
    for kind, f in (("AND", np.logical_and), ("OR", np.logical_or), ("XOR", np.logical_xor)):
        case("logical_" + kind.lower(), {"x": t, "y": s}, {"o": f(t, s).astype(np.float32)}, lambda bd, k=kind: bd.add_logical("b", ["x", "y"], "o", k), exact=True)
    case("logical_not", {"x": t}, {"o": 1 - t}, lambda bd: bd.add_logical("b", ["x"], "o", "NOT"), exact=True)
    case("where_broadcastable", {"c": t, "x": u, "y": s}, {"o": np.where(t != 0, u, s)}, lambda bd: bd.add_where_broadcastable("w", ["c", "x", "y"], "o"), exact=True)
    case("transpose", {"x": x}, {"y": x.transpose(2, 0, 1)}, lambda bd: bd.add_transpose("t", [2, 0, 1], "x", "y"), exact=True)
    case("reshape_static", {"x": x}, {"y": x.reshape(4, 6)}, lambda bd: bd.add_reshape_static("r", "x", "y", [4, -1]), exact=True)
    case("rank_preserving_reshape", {"x": x}, {"y": x.reshape(2, 2, 6)}, lambda bd: bd.add_rank_preserving_reshape("r", "x", "y", [0, 2, -1]), exact=True)
    case("expand_dims", {"x": x}, {"y": x[:, None, :, :, None]}, lambda bd: bd.add_expand_dims("e", "x", "y", [1, -1]), exact=True)
    case("squeeze_all", {"x": x[:1, :, :1]}, {"y": x[0, :, 0]}, lambda bd: bd.add_squeeze("s", "x", "y", squeeze_all=True), exact=True)
    case("flatten_to_2d", {"x": x}, {"y": x.reshape(6, 4)}, lambda bd: bd.add_flatten_to_2d("f", "x", "y", axis=2), exact=True)
    case("get_shape", {"x": x}, {"y": np.array(x.shape, np.float32)}, lambda bd: bd.add_get_shape("g", "x", "y"), exact=True)
    case("concat_nd", {"x": x, "y": x[:, :1] * 2}, {"o": np.concatenate([x, x[:, :1] * 2], 1)}, lambda bd: bd.add_concat_nd("c", ["x", "y"], "o", axis=-2), exact=True)
    case("stack", {"x": x, "y": x + 1}, {"o": np.stack([x, x + 1], 1)}, lambda bd: bd.add_stack("s", ["x", "y"], "o", axis=1), exact=True)
    case("split_nd", {"x": x}, {"o": x[..., :1], "p": x[..., 1:]}, lambda bd: bd.add_split_nd("s", "x", ["o", "p"], axis=2, split_sizes=[1, 3]), exact=True)
    case("tile", {"x": x}, {"y": np.tile(x, (2, 3))}, lambda bd: bd.add_tile("t", "x", "y", [2, 3]), exact=True)
    case("reverse", {"x": x}, {"y": x[::-1, :, ::-1]}, lambda bd: bd.add_reverse("r", "x", "y", [True, False, True]), exact=True)
    case("slice_static", {"x": x}, {"y": x[1, ::-2, 1:]}, lambda bd: bd.add_slice_static("s", "x", "y", begin_ids=[1, 0, 1], end_ids=[2, 0, 3], strides=[1, -2, 1],
         begin_masks=[False, True, False], end_masks=[False, True, True], squeeze_masks=[True, False, False]), exact=True)
    case("slice_dynamic", {"x": x, "b": np.array([0, 1, 2], np.float32), "e": np.array([2, 3, 4], np.float32)}, {"y": x[0:2, 1:3, 2:4]},
         lambda bd: bd.add_slice_dynamic("s", ["x", "b", "e"], "y", strides=[1, 1, 1], begin_masks=[False] * 3, end_masks=[False] * 3), exact=True)
    w = np.stack([x[:, :, i:i + 2] for i in (0, 1, 2)], 2)
    case("sliding_windows", {"x": x}, {"y": w}, lambda bd: bd.add_sliding_windows("s", "x", "y", axis=2, window_size=2, step=1), exact=True)
    i = np.array([2.0, 0.0], np.float32)
    case("gather", {"x": x, "i": i}, {"y": x[:, [2, 0]]}, lambda bd: bd.add_gather("g", ["x", "i"], "y", axis=1), exact=True)
    ga = rng.integers(0, 3, (2, 2, 4)).astype(np.float32)
    case("gather_along_axis", {"x": x, "i": ga}, {"y": np.take_along_axis(x, ga.astype(int), 1)}, lambda bd: bd.add_gather_along_axis("g", ["x", "i"], "y", axis=1), exact=True)
    nd = np.array([[1, 2], [0, 0]], np.float32)
    case("gather_nd", {"x": x, "i": nd}, {"y": x[[1, 0], [2, 0]]}, lambda bd: bd.add_gather_nd("g", ["x", "i"], "y"), exact=True)
    up = array(2, 2, 4)
    sc = x.copy()
    sc[:, [2, 0]] += up
    case("scatter_add", {"x": x, "i": i, "u": up}, {"y": sc}, lambda bd: bd.add_scatter("s", ["x", "i", "u"], "y", axis=1, mode="ADD"), exact=True)
    for kind, f in (("sum", np.sum), ("mean", np.mean), ("max", np.max), ("min", np.min), ("prod", np.prod)):
        case("reduce_nd_" + kind, {"x": x}, {"y": f(x, (0, 2))}, lambda bd, k=kind: getattr(bd, "add_reduce_" + k)("r", "x", "y", axes=[0, -1], keepdims=False), exact=True)
    p = np.abs(x) + 0.1
    case("reduce_nd_logsum", {"x": p}, {"y": np.log(p.sum(1, keepdims=True))}, lambda bd: bd.add_reduce_logsum("r", "x", "y", axes=[1], keepdims=True), exact=True)
    case("reduce_nd_all", {"x": x}, {"y": np.log(np.exp(x).sum()).reshape(1)}, lambda bd: bd.add_reduce_logsumexp("r", "x", "y", keepdims=False, reduce_all=True), exact=True)
    case("arg_max", {"x": x}, {"y": x.argmax(2).astype(np.float32)}, lambda bd: bd.add_argmax("a", "x", "y", axis=-1, keepdims=False), exact=True)
    order = np.argsort(-x, 1)[:, :2]
    case("top_k", {"x": x}, {"v": np.take_along_axis(x, order, 1), "i": order.astype(np.float32)}, lambda bd: bd.add_topk("t", ["x"], ["v", "i"], k=2, axis=1), exact=True)
    case("arg_sort", {"x": x}, {"y": np.argsort(-x, 1).astype(np.float32)}, lambda bd: bd.add_argsort("a", "x", "y", axis=1, descending=True), exact=True)
    case("cum_sum", {"x": x}, {"y": x[:, ::-1].cumsum(1)[:, ::-1]}, lambda bd: bd.add_cumsum("c", ["x"], "y", axis=1, reverse=True), exact=True)
    case("lower_triangular", {"x": x}, {"y": np.tril(x, -1)}, lambda bd: bd.add_lower_triangular("l", "x", "y", k=-1), exact=True)
    case("upper_triangular", {"x": x}, {"y": np.triu(x, 1)}, lambda bd: bd.add_upper_triangular("l", "x", "y", k=1), exact=True)
    case("matrix_band_part", {"x": x}, {"y": np.tril(np.triu(x, -1), 1)}, lambda bd: bd.add_matrix_band_part("l", "x", "y", num_lower=1, num_upper=1), exact=True)
    h = np.array([1.0, 0.0, 3.0], np.float32)
    case("one_hot", {"x": h}, {"y": np.where(np.arange(4) == h[:, None], 2.0, -1.0)}, lambda bd: bd.add_one_hot("o", ["x"], "y", one_hot_vector_size=4, on_value=2.0, off_value=-1.0), exact=True)
    case("fill_like", {"x": x}, {"y": np.full(x.shape, 0.5)}, lambda bd: bd.add_fill_like("f", "x", "y", 0.5), exact=True)
    case("broadcast_to_static", {"x": x[:, :1]}, {"y": np.broadcast_to(x[:, :1], (5, 2, 3, 4))}, lambda bd: bd.add_broadcast_to_static("b", "x", "y", [5, 2, 3, 4]), exact=True)
    case("constant_pad", {"x": x}, {"y": np.pad(x, ((1, 0), (0, 2), (0, 0)), constant_values=0.25)},
         lambda bd: bd.add_constant_pad("p", ["x"], "y", value=0.25, pad_amounts=[1, 0, 0, 2, 0, 0]), exact=True)

    def ranges(bd):
        bd.add_range_static("r", "r", end=8, start=5, step=1)
        bd.add_multiply_broadcastable("m", ["x", "r"], "y")

    v = array(1)
    case("range_static", {"x": v}, {"y": v * np.arange(5, 8)}, ranges, exact=True)

    def branch(bd):
        bd.add_load_constant_nd("zero", "zero", np.zeros(1), [1])
        bd.add_greater_than("g", ["x", "zero"], "cond")
        layer = bd.add_branch("b", "cond")
        yes = NeuralNetworkBuilder(nn_spec=layer.branch.ifBranch, disable_rank5_shape_mapping=True)
        yes.add_activation("l", "LINEAR", "x", "y", params=[2.0, 0.0])
        no = NeuralNetworkBuilder(nn_spec=layer.branch.elseBranch, disable_rank5_shape_mapping=True)
        no.add_activation("l", "LINEAR", "x", "y", params=[0.0, -1.0])

    for name, value in (("yes", 0.5), ("no", -0.5)):
        q = np.array([value], np.float32)
        case("branch_" + name, {"x": q}, {"y": 2 * q if value > 0 else q * 0 - 1}, branch, exact=True)

    def loop(bd):
        bd.add_copy("start", "x", "acc")
        layer = bd.add_loop("l", max_iterations=5)
        body = NeuralNetworkBuilder(nn_spec=layer.loop.bodyNetwork, disable_rank5_shape_mapping=True)
        body.add_activation("a", "LINEAR", "acc", "next", params=[2.0, 1.0])
        body.add_copy("c", "next", "acc")
        bd.add_activation("out", "LINEAR", "acc", "y", params=[1.0, 0.0])

    z = array(3)
    r = z
    for _ in range(5):
        r = 2 * r + 1
    case("loop", {"x": z}, {"y": r}, loop, exact=True)


def classifier():
    x = array(3)
    w = array(4, 3)

    def build(bd):
        bd.add_inner_product("ip", w, None, 3, 4, False, "x", "z")
        bd.add_softmax("s", "z", "p")
        bd.set_class_labels(["a", "b", "c", "d"], predicted_feature_name="label", prediction_blob="p")

    z = w @ x
    p = np.exp(z) / np.exp(z).sum()
    case("classifier", {"x": x}, {"p": p}, build, mode="classifier")
    CASES[-1]["outputs"] = {"label": "abcd"[int(p.argmax())], "p": dict(zip("abcd", map(float, p)))}


def rank5():
    """Whole sequences and batches: combinations of layers."""
    S, B, I, H = 5, 3, 4, 3
    m = lambda *s: array(*s, low=-0.6, high=0.6)
    weights = lambda I: ([m(H, I) for _ in range(4)], [m(H, H) for _ in range(4)], [m(H) for _ in range(4)])
    softmax = lambda z: np.exp(z) / np.exp(z).sum(-1, keepdims=True)
    zero = np.zeros(H)

    x = array(S, B, I)
    h0, c0, h1, c1 = (array(B, H) for _ in range(4))
    W, R, b = weights(I)
    W2, R2, b2 = weights(I)
    forth = [lstm(x[:, k], h0[k], c0[k], W, R, b) for k in range(B)]
    back = [lstm(x[::-1, k], h1[k], c1[k], W2, R2, b2) for k in range(B)]
    y = np.stack([np.concatenate([forth[k][0], back[k][0][::-1]], 1) for k in range(B)], 1)
    state = lambda v: np.asarray(v).reshape(1, B, -1, 1, 1)
    case("bidirectional_lstm_batch", {"x": x.reshape(S, B, I, 1, 1), "h": state(h0), "c": state(c0), "h2": state(h1), "c2": state(c1)},
         {"y": y.reshape(S, B, 2 * H, 1, 1), "hf": state([f[1] for f in forth]), "cf": state([f[2] for f in forth]),
          "hb": state([f[1] for f in back]), "cb": state([f[2] for f in back])},
         lambda bd: bd.add_bidirlstm("l", R, W, b, R2, W2, b2, H, I, ["x", "h", "c", "h2", "c2"], ["y", "hf", "cf", "hb", "cb"], output_all=True, cell_clip_threshold=50.0),
         edit=lambda spec: legacy_inputs(spec, {"x": I, "h": H, "c": H, "h2": H, "c2": H}))

    words = np.array([[2, 0, 4], [1, 1, 3], [0, 5, 2], [3, 2, 5], [4, 4, 0]], np.float32)
    E, D = array(6, I), array(2, H)
    We, Re, be = weights(I)
    embedded = E[words.astype(int)]
    y = softmax(np.stack([lstm(embedded[:, k], zero, zero, We, Re, be)[0] for k in range(B)], 1) @ D.T)

    def tagger(bd):
        bd.add_embedding("e", E.T.copy(), None, 6, I, False, "x", "v")
        bd.add_unilstm("l", Re, We, be, H, I, ["v"], ["s"], output_all=True, cell_clip_threshold=50.0)
        bd.add_inner_product("d", D, None, H, 2, False, "s", "z")
        bd.add_softmax("p", "z", "y")

    case("tagger", {"x": words.reshape(S, B, 1, 1, 1)}, {"y": y.reshape(S, B, 2, 1, 1)}, tagger, edit=lambda spec: legacy_inputs(spec, {"x": 1}))

    image = array(B, 2, 5, 6)
    which, boxes = np.array([0, 2, 1, 1]), np.array([[0.5, 1, 2.5, 4], [0, 0, 4, 5], [1, 2, 3, 2.5], [2, 0, 2.5, 5]], np.float32)
    y = [bilinear(image[k], np.linspace(t, l, 2), np.linspace(u, v, 3)) for k, (t, u, l, v) in zip(which, boxes)]
    regions = np.concatenate([which[:, None], boxes], 1).astype(np.float32)
    case("crop_resize_batch", {"x": image[None], "r": regions.reshape(4, 1, 5, 1, 1)}, {"y": np.reshape(y, (4, 1, 2, 2, 3))},
         lambda bd: bd.add_crop_resize("c", ["x", "r"], "y", target_height=2, target_width=3, mode="STRICT_ALIGN_ENDPOINTS_MODE", box_indices_mode="CORNERS_HEIGHT_FIRST"),
         edit=lambda spec: legacy_inputs(spec, {"x": (2, 5, 6), "r": (5, 1, 1)}), tolerance=1e-4)


def corners():
    """Rules that follow from coremltools' own tests of these layers."""
    x, w = array(2, 4, 5), array(2, 3, 2, 3)
    spread = np.zeros((2, 3, 3, 5), np.float32)
    spread[:, :, ::2, ::2] = w
    case("deconvolution_dilated", {"x": x}, {"y": five(deconv2d(x, spread, (1, 2)))}, lambda bd: bd.add_convolution(
        "c", 2, 3, 2, 3, 1, 2, "valid", 1, W=np.transpose(w, (2, 3, 0, 1)), b=None, has_bias=False, is_deconv=True, input_name="x", output_name="y",
        dilation_factors=[2, 2]))
    d = array(7, 2)
    case("split_uneven", {"x": d}, dict(zip("abc", np.array_split(d, 3))), lambda bd: bd.add_split_nd("s", "x", ["a", "b", "c"], axis=0, num_splits=3), exact=True)
    a, m = array(4), array(2, 4, 3)
    case("matmul_of_vectors", {"a": a, "b": a * 2}, {"y": (a @ (a * 2)).reshape(1, 1)}, lambda bd: bd.add_batched_mat_mul("m", ["a", "b"], "y"), exact=True)
    case("matmul_of_a_row", {"a": a, "b": m}, {"y": np.matmul(a[None], m)}, lambda bd: bd.add_batched_mat_mul("m", ["a", "b"], "y"), exact=True)
    t = array(3, 6)
    order = np.argsort(-t, axis=1)[:, :2]
    case("topk_computed", {"x": t, "k": np.array([2], np.float32)}, {"v": np.take_along_axis(t, order, 1), "i": order.astype(np.float32)},
         lambda bd: bd.add_topk("t", ["x", "k"], ["v", "i"], axis=1), exact=True)

    p = array(2, 3)
    case("padding_of_a_matrix", {"x": p}, {"y": np.pad(p, ((1, 2), (3, 0)), constant_values=0.5)}, lambda bd: bd.add_padding(
        "p", 3, 0, 1, 2, value=0.5, input_name="x", output_name="y"), exact=True)
    # NumPy mirrors repeatedly, and repeats a single element.
    for name, shape in (("", (2, 3)), ("_of_one", (1, 4))):
        q = array(2, *shape)
        case("padding_reflects_again" + name, {"x": q}, {"y": np.pad(q, ((0, 0), (5, 2), (3, 7)), mode="reflect")}, lambda bd: bd.add_padding(
            "p", 3, 7, 5, 2, input_name="x", output_name="y", padding_type="reflection"), exact=True)

    def windows(bd):
        bd.add_pooling("p", 2, 1, 3, 2, "MAX", "INCLUDE_LAST_PIXEL", "x", "y")

    def flexible(spec):
        for dims in (spec.description.input[0].type.multiArrayType,):
            for low, high in ((1, 1), (1, 1), (1, 20), (1, 20)):
                r = dims.shapeRange.sizeRanges.add()
                r.lowerBound, r.upperBound = low, high

    f = array(1, 1, 8, 5)
    case("pool_far_windows", {"x": f}, {"y": np.maximum(f, np.pad(f, ((0, 0), (0, 0), (0, 1), (0, 0)))[:, :, 1:])[:, :, ::3, ::2]}, windows, exact=True, edit=flexible)

    def joined(bd):
        bd.add_squeeze("s", "b", "b0", squeeze_all=True)
        bd.add_expand_dims("e", "b0", "b1", axes=[0])
        bd.add_concat_nd("c", ["a", "b1", "a"], "y", axis=0)

    one = array(1, 1, 1)
    case("concat_of_ranks", {"a": d[:, 0], "b": one}, {"y": np.concatenate([d[:, 0], one[0, 0], d[:, 0]])}, joined, exact=True)
    case("concat_row", {"a": d, "b": d[0]}, {"y": np.concatenate([d, d[:1]])}, lambda bd: bd.add_concat_nd("c", ["a", "b"], "y", axis=0), exact=True)

    def filled(bd):
        for name, values in (("one", [1.0]), ("two", [2.0])):
            bd.add_load_constant_nd(name, name, np.array(values), [1])
        bd.add_concat_nd("c", ["one", "n", "two"], "shape", axis=0)
        bd.add_fill_dynamic("f", "shape", "full", value=3.0)
        bd.add_squeeze("s", "full", "rows", axes=[0])
        bd.add_concat_nd("j", ["rows", "rows"], "y", axis=1)

    case("fill_of_known_rank", {"n": np.array([3], np.float32)}, {"y": np.full((3, 4), 3.0)}, filled, exact=True)
    shape = np.array([2, 1, 3], np.float32)
    some = lambda spec: spec.description.input[0].type.multiArrayType.shapeRange.sizeRanges.add(lowerBound=1, upperBound=5)
    case("fill_of_any_rank", {"n": shape}, {"y": np.full((2, 1, 3), 3.0)}, lambda bd: bd.add_fill_dynamic("f", "n", "y", value=3.0), exact=True, edit=lambda s: some(s) and None)

    # The described shape, 1 x 1, is too small for the index, but the given array is not.
    def small(spec):
        t = spec.description.input[0].type.multiArrayType
        t.shape[:] = [1, 1]
        for _ in range(2):
            t.shapeRange.sizeRanges.add(lowerBound=1, upperBound=6)

    g = array(2, 4)
    def expand_scalar(bd):
        bd.add_slice_static("s", "x", "t", begin_ids=[1], end_ids=[2], strides=[1], begin_masks=[False], end_masks=[False], squeeze_masks=[True])
        bd.add_expand_dims("e", "t", "y", axes=[0])
        bd.add_expand_dims("f", "t", "z", axes=[0, 1])

    case("expand_scalar", {"x": g[0, :2]}, {"y": g[0, 1:2], "z": g[0, 1:2].reshape(1, 1)}, expand_scalar, exact=True)
    case("slice_beyond_described", {"x": g}, {"y": g[:, 3]}, lambda bd: bd.add_slice_static("s", "x", "y", [0, 3], [0, 4], [1, 1], [True, False], [True, False],
         squeeze_masks=[False, True]), exact=True, edit=small)


def write(groups):
    """Writes <group>.json for the groups on the command line, or for all. All groups run, since they share a random generator."""
    os.makedirs(OUT, exist_ok=True)
    for group in groups:
        CASES.clear()
        group()
        if len(sys.argv) > 1 and group.__name__ not in sys.argv:
            continue
        with open(os.path.join(OUT, group.__name__ + ".json"), "w") as f:
            f.write('{"cases": [\n')
            f.write(",\n".join(json.dumps(c, allow_nan=False) for c in CASES))
            f.write("\n]}\n")


if __name__ == "__main__":
    write((convolutions, poolings, activations, products, normalizations, images, elementwise, shapes, exact_layers, recurrent, classifier, rank5, corners,
           recurrent_numbers))

# SPDX-License-Identifier: Apache-2.0
"""Pools: plain numpy windows, confirmed by onnxruntime where its attributes can express the case."""
import itertools

import numpy as np

from case import op_case
from truth import pads_of, run_onnx

rng = np.random.default_rng(7)


def pool(kind, x, kernel, strides=None, pad_type="valid", pad=None, ceil_mode=False, exclude=False):
    rank = x.ndim - 2
    strides, pad = strides or [1] * rank, pad or [0] * (2 * rank)
    pads = pads_of(x.shape[2:], kernel, strides, [1] * rank, pad_type, pad)
    size = []
    for i in range(rank):
        n, (b, e), k, s = x.shape[i + 2], pads[i], kernel[i], strides[i]
        if not ceil_mode:
            size.append((n + b + e - k) // s + 1)
        else:
            out = (n + b + e - k + s - 1) // s + 1
            size.append(out - 1 if (out - 1) * s >= n + (b + e) / 2 and b + e > 0 else out)
    y = np.zeros(list(x.shape[:2]) + size)
    for at in itertools.product(*map(range, size)):
        window = tuple(slice(max(0, a * s - p[0]), max(0, a * s - p[0] + k)) for a, s, p, k in zip(at, strides, pads, kernel))
        part = x[(slice(None), slice(None)) + window].astype(np.float64).reshape(x.shape[:2] + (-1,))
        where = (slice(None), slice(None)) + at
        if kind == "max_pool":
            y[where] = part.max(axis=-1) if part.shape[-1] else -np.inf
        elif kind == "l2_pool":
            y[where] = np.sqrt((part ** 2).sum(axis=-1))
        else:
            y[where] = part.sum(axis=-1) / (part.shape[-1] if exclude else np.prod(kernel))
    overhang = any((n - 1) * s + k > x.shape[i + 2] + sum(pads[i])
                   for i, (n, s, k) in enumerate(zip(size, strides, kernel)))
    legal = all(max(p) < k for p, k in zip(pads, kernel))
    # ONNX counts elements beyond the padding differently and has no equivalent L2 pool.
    if legal and kind != "l2_pool" and not (overhang and kind == "avg_pool" and not exclude):
        attributes = dict(kernel_shape=kernel, strides=strides, pads=[p[0] for p in pads] + [p[1] for p in pads], ceil_mode=int(ceil_mode))
        if kind == "avg_pool":
            attributes["count_include_pad"] = int(not exclude)
        other = run_onnx("MaxPool" if kind == "max_pool" else "AveragePool", [x.astype(np.float32)], attributes)
        np.testing.assert_allclose(y, other, rtol=1e-5, atol=1e-5)
    return y


def pool_case(kind, name, xs, kernel, dtype=np.float32, opset="ios15", **settings):
    x = (rng.standard_normal(xs) * 3).astype(dtype)
    consts = {"kernel_sizes": kernel, "pad_type": settings.get("pad_type", "valid")}
    consts.update({("exclude_padding_from_average" if k == "exclude" else k): v for k, v in settings.items()})
    op_case(kind, name, {"x": x}, consts, [pool(kind, x, kernel, **settings).astype(dtype)], opset=opset)


for kind in ("max_pool", "avg_pool", "l2_pool"):
    pool_case(kind, "1d", (1, 2, 7), [2])
    pool_case(kind, "1d_strided", (2, 1, 7), [3], strides=[2])
    pool_case(kind, "2d", (1, 2, 4, 5), [2, 3], strides=[1, 2])
    pool_case(kind, "2d_same", (1, 1, 5, 6), [2, 3], strides=[2, 2], pad_type="same")
    pool_case(kind, "2d_same_lower", (1, 1, 5, 5), [2, 4], strides=[2, 1], pad_type="same_lower", opset="ios16")
    pool_case(kind, "2d_custom", (1, 1, 4, 4), [3, 3], strides=[2, 1], pad_type="custom", pad=[1, 0, 2, 1])
    pool_case(kind, "1d_ceil", (1, 1, 7), [2], strides=[3], ceil_mode=True)
    pool_case(kind, "2d_ceil_padded", (1, 1, 6, 5), [3, 2], strides=[2, 3], pad_type="custom", pad=[1, 1, 0, 0], ceil_mode=True)
    pool_case(kind, "ceil_drops_window_in_padding", (1, 1, 4), [2], strides=[3], pad_type="custom", pad=[1, 1], ceil_mode=True)
    pool_case(kind, "fp16", (1, 2, 4, 4), [2, 2], dtype=np.float16, strides=[2, 2])
    op_case(kind, "no_images", {"x": np.zeros((0, 1, 3), np.float32)}, {"kernel_sizes": [2], "pad_type": "valid"},
            [np.zeros((0, 1, 2), np.float32)])
for kind in ("max_pool", "avg_pool"):
    pool_case(kind, "3d", (1, 1, 3, 3, 4), [2, 2, 2], strides=[1, 1, 2])
    pool_case(kind, "3d_custom", (1, 1, 3, 2, 3), [2, 2, 3], pad_type="custom", pad=[1, 0, 0, 1, 1, 1])
pool_case("avg_pool", "exclude_padding_same", (1, 1, 4, 5), [3, 3], pad_type="same", exclude=True)
pool_case("avg_pool", "exclude_padding_custom", (1, 1, 7), [3], strides=[3], pad_type="custom", pad=[1, 1], exclude=True)
pool_case("avg_pool", "exclude_padding_ceil", (1, 1, 7), [2], strides=[3], ceil_mode=True, exclude=True)
x = np.array([[[1, np.nan, 2, -np.inf, 3]]], np.float32)
op_case("max_pool", "nan_and_infinity", {"x": x}, {"kernel_sizes": [2], "pad_type": "valid"},
        [np.array([[[np.nan, np.nan, 2, 3]]], np.float32)])

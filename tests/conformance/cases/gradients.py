# SPDX-License-Identifier: Apache-2.0
"""Gradients of convolutions and pools: torch.autograd in float64."""
import numpy as np
import torch
import torch.nn.functional as F

from case import op_case

rng = np.random.default_rng(54)


def rand(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def conv_case(name, x_shape, w_shape, strides, pad, dilations, groups=1, transposed=False, dtype=np.float32, scale=1):
    rank = len(x_shape) - 2
    x = torch.tensor(rand(*x_shape).astype(dtype), dtype=torch.float64)
    w = torch.tensor(rand(*w_shape), dtype=torch.float64, requires_grad=True)
    f = getattr(F, f"conv{'_transpose' if transposed else ''}{rank}d")
    y = f(x, w, stride=strides, padding=pad, dilation=dilations, groups=groups)
    dy = (rand(*y.shape) * scale).astype(dtype)
    y.backward(torch.tensor(dy, dtype=torch.float64))
    wide, narrow = (dy, x.numpy().astype(dtype)) if transposed else (x.numpy().astype(dtype), dy)
    consts = {"kernel": list(w_shape[2:]), "strides": strides, "dilations": dilations, "pad": pad}
    if groups != 1:
        consts["groups"] = groups
    op_case("moka_conv_weights_gradient", name, {"x": wide, "dy": narrow}, consts, [w.grad.numpy().astype(dtype)])


conv_case("1d", (2, 3, 9), (4, 3, 3), [1], [0], [1])
conv_case("1d_dilated", (2, 3, 12), (4, 3, 3), [1], [2], [3])
conv_case("2d_1x1", (3, 5, 4, 6), (7, 5, 1, 1), [1, 1], [0, 0], [1, 1])
conv_case("2d_3x3", (2, 4, 6, 7), (5, 4, 3, 3), [1, 1], [1, 1], [1, 1])
conv_case("2d_strided", (2, 4, 9, 8), (6, 4, 3, 2), [2, 3], [1, 0], [1, 1])
conv_case("2d_depthwise", (2, 6, 7, 7), (6, 1, 3, 3), [1, 1], [1, 1], [1, 1], groups=6)
conv_case("2d_grouped", (1, 6, 5, 7), (4, 3, 3, 3), [1, 2], [1, 1], [2, 1], groups=2)
conv_case("2d_more_channels_than_a_vector", (2, 17, 5, 6), (33, 17, 3, 3), [1, 1], [1, 1], [1, 1])
conv_case("2d_wide", (2, 3, 20, 19), (16, 3, 7, 7), [2, 2], [3, 3], [1, 1], scale=1 / 8)  # sums of 200 products
conv_case("3d", (1, 2, 4, 5, 6), (3, 2, 2, 3, 3), [1, 1, 2], [1, 1, 0], [1, 1, 1])
conv_case("2d_fp16", (1, 3, 5, 5), (4, 3, 3, 3), [1, 1], [1, 1], [1, 1], dtype=np.float16)
conv_case("transposed", (2, 4, 5, 6), (4, 3, 3, 3), [2, 2], [1, 1], [1, 1], transposed=True)
conv_case("transposed_grouped", (1, 4, 5, 6), (4, 3, 2, 3), [1, 2], [0, 1], [1, 1], groups=2, transposed=True)


OPERATIONS = {"max": "moka_max_pool_gradient", "avg": "moka_avg_pool_gradient"}


def pool_case(kind, name, x_shape, kernel, strides=None, pad=None, ceil_mode=False, exclude=False, dtype=np.float32, equal=False):
    rank = len(x_shape) - 2
    x = rand(*x_shape).astype(dtype)
    if equal:
        x = np.round(x)
    strides, pad = strides or [1] * rank, pad or [0] * rank
    t = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    more = {} if kind == "max" else {"count_include_pad": not exclude}
    y = getattr(F, f"{kind}_pool{rank}d")(t, kernel, strides, pad, ceil_mode=ceil_mode, **more)
    dy = rand(*y.shape).astype(dtype)
    y.backward(torch.tensor(dy, dtype=torch.float64))
    consts = {"kernel_sizes": kernel, "strides": strides, "pad_type": "custom", "pad": [p for p in pad for _ in range(2)], "ceil_mode": ceil_mode}
    if exclude:
        consts["exclude_padding_from_average"] = True
    op_case(OPERATIONS[kind], name, {"x": x, "dy": dy}, consts, [t.grad.numpy().astype(dtype)])


for kind in ("max", "avg"):
    pool_case(kind, "1d", (2, 3, 9), [3], [2])
    pool_case(kind, "2d", (2, 3, 8, 6), [2, 2], [2, 2])
    pool_case(kind, "2d_overlapping", (1, 5, 7, 9), [3, 3], [2, 2], [1, 1])
    pool_case(kind, "2d_stride_1", (1, 2, 5, 6), [3, 2], [1, 1])
    pool_case(kind, "2d_many_channels", (2, 19, 6, 6), [2, 2], [2, 2])
    pool_case(kind, "2d_gaps", (1, 2, 8, 8), [2, 2], [3, 3])
    pool_case(kind, "2d_equal", (1, 3, 8, 8), [3, 3], [2, 2], equal=True)
    pool_case(kind, "3d", (1, 2, 4, 5, 6), [2, 2, 3], [2, 1, 2])
    pool_case(kind, "2d_fp16", (1, 2, 6, 6), [2, 2], [2, 2], dtype=np.float16)
pool_case("max", "2d_ceil", (1, 2, 7, 7), [2, 2], [2, 2], ceil_mode=True)
pool_case("avg", "2d_excluded", (1, 2, 7, 7), [3, 3], [2, 2], [1, 1], exclude=True)


def norm_case(name, x_shape, with_gamma=True, dtype=np.float32):
    x, dy = rand(*x_shape).astype(dtype), rand(*x_shape).astype(dtype)
    mean, gamma = rand(x_shape[1]).astype(dtype), rand(x_shape[1]).astype(dtype)
    variance = (np.abs(rand(x_shape[1])) + 0.5).astype(dtype)
    epsilon = dtype(1e-3)
    t = [torch.tensor(v.astype(np.float64), requires_grad=True) for v in (x, gamma if with_gamma else np.ones_like(gamma), np.zeros_like(mean))]
    y = F.batch_norm(t[0], torch.tensor(mean.astype(np.float64)), torch.tensor(variance.astype(np.float64)), t[1], t[2], eps=float(epsilon))
    y.backward(torch.tensor(dy.astype(np.float64)))
    inputs = {"x": x, "dy": dy, "mean": mean, "variance": variance}
    if with_gamma:
        inputs["gamma"] = gamma
    op_case("moka_batch_norm_gradient", name, inputs, {"epsilon": epsilon}, [v.grad.numpy().astype(dtype) for v in t])


norm_case("images", (2, 3, 4, 5))
norm_case("vectors", (5, 7))
norm_case("one_dimension_without_gamma", (2, 3, 9), with_gamma=False)
norm_case("many_channels", (2, 19, 6, 6))
norm_case("fp16", (2, 3, 4, 5), dtype=np.float16)


def clamp_case(name, x_shape, alpha, beta, dtype=np.float32):
    x, dy = (rand(*x_shape) * 3).astype(dtype), rand(*x_shape).astype(dtype)
    expected = np.where((x > dtype(alpha)) & (x < dtype(beta)), dy, dtype(0))
    op_case("moka_clamp_gradient", name, {"x": x, "dy": dy}, {"alpha": dtype(alpha), "beta": dtype(beta)}, [expected])


clamp_case("relu", (3, 20), 0, np.inf)
clamp_case("relu6", (2, 3, 4, 5), 0, 6)
clamp_case("between", (33,), -1, 0.5)
clamp_case("fp16", (5, 6), -1, 2, dtype=np.float16)


def batch_norm_case(name, shape, affine=True, epsilon=1e-5, dtype=np.float32, spread=1, middle=0):
    """Both moka_batch_norm_training and its gradient."""
    x = (rand(*shape) * spread + middle).astype(dtype)
    gamma, beta = rand(shape[1]).astype(dtype), rand(shape[1]).astype(dtype)
    epsilon = dtype(epsilon)
    leaves = [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in (x, gamma, beta)]
    mean, variance = torch.zeros(shape[1], dtype=torch.float64), torch.zeros(shape[1], dtype=torch.float64)
    y = F.batch_norm(leaves[0], mean, variance, *(leaves[1:] if affine else (None, None)), training=True, momentum=1, eps=float(epsilon))
    n = x.size // shape[1]
    found = [y.detach().numpy().astype(dtype), mean.numpy().astype(dtype), (variance * ((n - 1) / n)).numpy().astype(dtype)]
    more = {"gamma": gamma, "beta": beta} if affine else {}
    op_case("moka_batch_norm_training", name, {"x": x, **more}, {"epsilon": epsilon}, found)
    dy = rand(*shape).astype(dtype)
    y.backward(torch.tensor(dy, dtype=torch.float64))
    # PyTorch's formula with the mean and the variance as they are given, that is rounded.
    along = lambda v: v.astype(np.float64).reshape(1, -1, *[1] * (len(shape) - 2))
    axes, wide = tuple(i for i in range(len(shape)) if i != 1), dy.astype(np.float64)
    inverse = 1 / np.sqrt(along(found[2]) + float(epsilon))
    normalized = (x.astype(np.float64) - along(found[1])) * inverse
    dgamma, dbeta = (normalized * wide).sum(axes), wide.sum(axes)
    dx = (along(gamma) if affine else 1) * inverse * (wide - (along(dbeta) + normalized * along(dgamma)) / n)
    assert np.allclose(dx, leaves[0].grad.numpy(), rtol=1e-2, atol=1e-2 if dtype == np.float16 else 1e-4)
    op_case("moka_batch_norm_training_gradient", name, {"x": x, "dy": dy, "mean": found[1], "variance": found[2], **({"gamma": gamma} if affine else {})},
            {"epsilon": epsilon}, [dx.astype(dtype), dgamma.astype(dtype), dbeta.astype(dtype)])


batch_norm_case("vectors", (6, 5))
batch_norm_case("vectors_many_channels", (3, 33))
batch_norm_case("1d", (2, 3, 9))
batch_norm_case("2d", (3, 6, 5, 4))
batch_norm_case("2d_many_channels", (2, 19, 4, 5))
batch_norm_case("2d_many_pixels", (2, 3, 17, 19))
batch_norm_case("2d_far_from_zero", (2, 4, 6, 6), middle=50)
batch_norm_case("2d_no_affine", (2, 16, 3, 3), affine=False)
batch_norm_case("2d_epsilon", (2, 8, 3, 3), epsilon=0.5)
batch_norm_case("3d", (2, 4, 3, 2, 5))
batch_norm_case("2d_fp16", (2, 4, 3, 3), dtype=np.float16, epsilon=1e-3)


def flip_case(name, w_shape, groups=1, dtype=np.float32):
    w = rand(*w_shape).astype(dtype)
    rows = w_shape[0] // groups
    flipped = [np.swapaxes(part, 0, 1)[(slice(None), slice(None)) + (slice(None, None, -1),) * (w.ndim - 2)] for part in np.split(w, groups)]
    assert all(f.shape[1] == rows for f in flipped)
    op_case("moka_flip_weights", name, {"weight": w}, {"groups": groups} if groups != 1 else {}, [np.ascontiguousarray(np.concatenate(flipped))])


flip_case("1d", (4, 3, 5))
flip_case("2d", (20, 17, 3, 2))
flip_case("groups", (6, 2, 3, 3), groups=3)
flip_case("pixels", (5, 7, 1, 1))
flip_case("volumes_fp16", (3, 2, 2, 3, 2), dtype=np.float16)

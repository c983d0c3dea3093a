# SPDX-License-Identifier: Apache-2.0
import numpy as np

from case import op_case

rng = np.random.default_rng(14)
F16, F32 = np.float16, np.float32


def draw(*shape, dtype=F32):
    return (rng.standard_normal(shape) * 2).astype(dtype)


def up(a):
    return np.asarray(a).astype(np.float64)


def channelwise(v, rank):
    return up(v).reshape((1, -1) + (1,) * (rank - 2))


def batch_norm(x, mean, variance, gamma=None, beta=None, epsilon=1e-5):
    y = (up(x) - channelwise(mean, x.ndim)) / np.sqrt(channelwise(variance, x.ndim) + up(epsilon))
    if gamma is not None:
        y = y * channelwise(gamma, x.ndim)
    if beta is not None:
        y = y + channelwise(beta, x.ndim)
    return y.astype(x.dtype)


def instance_norm(x, gamma=None, beta=None, epsilon=1e-5):
    axes = tuple(range(2, x.ndim))
    v = up(x)
    y = (v - v.mean(axis=axes, keepdims=True)) / np.sqrt(v.var(axis=axes, keepdims=True) + up(epsilon))
    if gamma is not None:
        y = y * channelwise(gamma, x.ndim)
    if beta is not None:
        y = y + channelwise(beta, x.ndim)
    return y.astype(x.dtype)


def group_norm(x, groups, gamma=None, beta=None, epsilon=1e-5):
    parts = instance_norm(up(x).reshape(x.shape[0], groups, -1), epsilon=epsilon).reshape(x.shape)
    if gamma is not None:
        parts = parts * channelwise(gamma, x.ndim)
    if beta is not None:
        parts = parts + channelwise(beta, x.ndim)
    return parts.astype(x.dtype)


def layer_norm(x, axes=None, gamma=None, beta=None, epsilon=1e-5):
    axes = tuple(range(x.ndim)) if axes is None else tuple(a % x.ndim for a in axes)
    v = up(x)
    y = (v - v.mean(axis=axes, keepdims=True)) / np.sqrt(v.var(axis=axes, keepdims=True) + up(epsilon))
    shape = [n if i in axes else 1 for i, n in enumerate(x.shape)]
    if gamma is not None:
        y = y * up(gamma).reshape(shape)
    if beta is not None:
        y = y + up(beta).reshape(shape)
    return y.astype(x.dtype)


def l2_norm(x, epsilon=1e-6):
    v = up(x)
    return (v / np.sqrt(np.square(v).sum(axis=(-3, -2, -1), keepdims=True) + up(epsilon))).astype(x.dtype)


def local_response_norm(x, size, alpha=1e-4, beta=0.75, k=1.0):
    """Over the third axis from the end, with PyTorch's window: size // 2 channels before, (size - 1) // 2 after."""
    v = up(x)
    total = np.zeros_like(v)
    for c in range(x.shape[-3]):
        total[..., c, :, :] = np.square(v[..., max(0, c - size // 2):c + (size - 1) // 2 + 1, :, :]).sum(axis=-3)
    return (v / (up(k) + up(alpha) / size * total) ** up(beta)).astype(x.dtype)


mean, gamma, beta = draw(3), draw(3), draw(3)
variance = rng.uniform(0.2, 2, 3).astype(F32)
for rank in (3, 4, 5):
    x = draw(*(2, 3, 2, 2, 2)[:rank])
    op_case("batch_norm", "rank%d" % rank, {"x": x}, {"mean": mean, "variance": variance, "gamma": gamma, "beta": beta, "epsilon": F32(0.01)},
            [batch_norm(x, mean, variance, gamma, beta, F32(0.01))])
    if rank < 5:
        op_case("instance_norm", "rank%d" % rank, {"x": x}, {"gamma": gamma, "beta": beta, "epsilon": F32(0.01)},
                [instance_norm(x, gamma, beta, F32(0.01))])
    if rank > 2:
        op_case("l2_norm", "rank%d" % rank, {"x": x}, {"epsilon": F32(0.01)}, [l2_norm(x, F32(0.01))])

x, h = draw(2, 3, 2, 3), draw(2, 3, 2, 3, dtype=F16)
op_case("batch_norm", "no_gamma_beta", {"x": x}, {"mean": mean, "variance": variance}, [batch_norm(x, mean, variance)])
op_case("batch_norm", "gamma_only", {"x": x}, {"mean": mean, "variance": variance, "gamma": gamma}, [batch_norm(x, mean, variance, gamma)])
op_case("batch_norm", "beta_only", {"x": x}, {"mean": mean, "variance": variance, "beta": beta}, [batch_norm(x, mean, variance, None, beta)])
half = {k: v.astype(F16) for k, v in dict(mean=mean, variance=variance, gamma=gamma, beta=beta).items()}
op_case("batch_norm", "fp16", {"x": h}, {**half, "epsilon": F16(0.01)}, [batch_norm(h, **half, epsilon=F16(0.01))])
op_case("batch_norm", "fp32_parameters_of_fp16", {"x": h}, {"mean": mean, "variance": variance, "gamma": gamma, "beta": beta, "epsilon": F32(1e-3)},
        [batch_norm(h, mean, variance, gamma, beta, F32(1e-3))], opset="ios17")
op_case("batch_norm", "unknown_dims", {"x": x}, {"mean": mean, "variance": variance}, [batch_norm(x, mean, variance)],
        in_shapes={"x": (None, 3, None, 3)}, out_shapes={"y_0": (None, 3, None, 3)})
op_case("batch_norm", "empty", {"x": np.zeros((0, 3, 2), F32)}, {"mean": mean, "variance": variance}, [np.zeros((0, 3, 2), F32)])

op_case("instance_norm", "defaults", {"x": x}, {}, [instance_norm(x)])
op_case("instance_norm", "gamma_only", {"x": x}, {"gamma": gamma}, [instance_norm(x, gamma)])
op_case("instance_norm", "beta_only", {"x": x}, {"beta": beta}, [instance_norm(x, None, beta)])
op_case("instance_norm", "fp16", {"x": h}, {"gamma": half["gamma"], "beta": half["beta"], "epsilon": F16(0.01)},
        [instance_norm(h, half["gamma"], half["beta"], F16(0.01))])
op_case("instance_norm", "fp32_parameters_of_fp16", {"x": h}, {"gamma": gamma, "beta": beta, "epsilon": F32(1e-3)},
        [instance_norm(h, gamma, beta, F32(1e-3))], opset="ios17")
op_case("instance_norm", "constant_channel", {"x": np.full((1, 2, 3), 7, F32)}, {}, [np.zeros((1, 2, 3), F32)])
far = (1000 + draw(1, 2, 4)).astype(F32)
op_case("instance_norm", "far_from_zero", {"x": far}, {}, [instance_norm(far)])

op_case("l2_norm", "default_epsilon", {"x": x}, {}, [l2_norm(x)])
op_case("l2_norm", "fp16", {"x": h}, {"epsilon": F16(0.01)}, [l2_norm(h, F16(0.01))])
op_case("l2_norm", "fp32_epsilon_of_fp16", {"x": h}, {"epsilon": F32(0.01)}, [l2_norm(h, F32(0.01))], opset="ios17")
op_case("l2_norm", "zeros", {"x": np.zeros((1, 2, 2), F32)}, {}, [np.zeros((1, 2, 2), F32)])
op_case("l2_norm", "empty", {"x": np.zeros((2, 0, 2), F32)}, {}, [np.zeros((2, 0, 2), F32)])

for tag, axes in (("last", [-1]), ("last_two", [2, 3]), ("channel", [1]), ("first_and_last", [0, 3]), ("descending", [3, 1]), ("all", [0, 1, 2, 3])):
    positive = sorted(a % 4 for a in axes)
    g, b = (draw(*[x.shape[a] for a in positive]) for _ in range(2))
    op_case("layer_norm", tag, {"x": x}, {"axes": axes, "gamma": g, "beta": b, "epsilon": F32(0.01)}, [layer_norm(x, axes, g, b, F32(0.01))])
op_case("layer_norm", "defaults", {"x": x}, {}, [layer_norm(x)])
op_case("layer_norm", "no_gamma_beta", {"x": x}, {"axes": [-1]}, [layer_norm(x, [-1])])
g3, b3 = draw(3), draw(3)
op_case("layer_norm", "gamma_only", {"x": x}, {"axes": [3], "gamma": g3}, [layer_norm(x, [3], g3)])
op_case("layer_norm", "beta_only", {"x": x}, {"axes": [3], "beta": b3}, [layer_norm(x, [3], None, b3)])
op_case("layer_norm", "rank1", {"x": x[0, 0, 0]}, {"axes": [0]}, [layer_norm(x[0, 0, 0])])
op_case("layer_norm", "rank5", {"x": x.reshape(2, 3, 1, 2, 3)}, {"axes": [-2, -1]}, [layer_norm(x.reshape(2, 3, 1, 2, 3), [-2, -1])])
op_case("layer_norm", "fp16", {"x": h}, {"axes": [-1], "gamma": g3.astype(F16), "beta": b3.astype(F16), "epsilon": F16(0.01)},
        [layer_norm(h, [-1], g3.astype(F16), b3.astype(F16), F16(0.01))])
op_case("layer_norm", "fp32_parameters_of_fp16", {"x": h}, {"axes": [-1], "gamma": g3, "beta": b3, "epsilon": F32(1e-3)},
        [layer_norm(h, [-1], g3, b3, F32(1e-3))], opset="ios17")
op_case("layer_norm", "empty", {"x": np.zeros((0, 3), F32)}, {"axes": [-1]}, [np.zeros((0, 3), F32)])
op_case("layer_norm", "unknown_dims", {"x": x}, {"axes": [-1], "gamma": g3}, [layer_norm(x, [-1], g3)],
        in_shapes={"x": (None, 3, None, 3)}, out_shapes={"y_0": (None, 3, None, 3)})

wide = draw(2, 6, 1, 2)
for size in (1, 2, 3, 4, 5, 20):
    op_case("local_response_norm", "size_%d" % size, {"x": wide}, {"size": size, "alpha": F32(0.1), "beta": F32(0.5), "k": F32(2)},
            [local_response_norm(wide, size, F32(0.1), F32(0.5), F32(2))])
# Two results of Core ML from coremltools' tests: the only channel of an array of rank 3 is its first axis.
given = np.array([[[1, -7], [5, -6], [-3, -5]]], F32)
op_case("local_response_norm", "defaults_size_2", {"x": given}, {"size": 2},
        [np.array([[[0.99996257, -6.98716545], [4.99531746, -5.99191284], [-2.99898791, -4.99531746]]], F32)])
op_case("local_response_norm", "defaults_size_3", {"x": given}, {"size": 3},
        [np.array([[[0.99997497, -6.99143696], [4.99687672, -5.99460602], [-2.99932504, -4.99687672]]], F32)])
for rank in (3, 4, 5):
    v = draw(*(2, 2, 3, 2, 2)[5 - rank:])
    op_case("local_response_norm", "rank%d" % rank, {"x": v}, {"size": 3, "alpha": F32(0.1)}, [local_response_norm(v, 3, F32(0.1))])
hw = wide.astype(F16)
op_case("local_response_norm", "fp16", {"x": hw}, {"size": 3, "alpha": F16(0.1), "beta": F16(0.75), "k": F16(1)},
        [local_response_norm(hw, 3, F16(0.1), F16(0.75), F16(1))])
op_case("local_response_norm", "fp32_parameters_of_fp16", {"x": hw}, {"size": 3, "alpha": F32(0.1), "beta": F32(0.7), "k": F32(1.5)},
        [local_response_norm(hw, 3, F32(0.1), F32(0.7), F32(1.5))], opset="ios17")
# The power of -infinity is infinity, except where the exponent is an odd integer.
endless = np.array([2, -np.inf, 3, 1, np.inf, -1], F32).reshape(1, 6, 1, 1)
for exponent in (0.75, 0.7):
    op_case("local_response_norm", "negative_alpha_%g" % exponent, {"x": endless},
            {"size": 3, "alpha": F32(-0.9), "beta": F32(exponent), "k": F32(0.5)},
            [local_response_norm(endless, 3, F32(-0.9), F32(exponent), F32(0.5))])

wide, gamma6, beta6 = draw(2, 6, 3, 2), draw(6), draw(6)
for groups in 1, 2, 3, 6:
    op_case("moka_group_norm", "groups%d" % groups, {"x": wide}, {"groups": groups, "gamma": gamma6, "beta": beta6, "epsilon": F32(0.01)},
            [group_norm(wide, groups, gamma6, beta6, F32(0.01))])
line = draw(1, 4, 5)
op_case("moka_group_norm", "defaults", {"x": line}, {"groups": 2}, [group_norm(line, 2)])
op_case("moka_group_norm", "fp16", {"x": wide.astype(F16)}, {"groups": 3, "epsilon": F16(0.01)},
        [group_norm(wide.astype(F16), 3, epsilon=F16(0.01))])
op_case("moka_group_norm", "far_from_zero", {"x": far.repeat(2, axis=1)}, {"groups": 2}, [group_norm(far.repeat(2, axis=1), 2)])
op_case("moka_group_norm", "empty", {"x": np.zeros((0, 4, 2), F32)}, {"groups": 2}, [np.zeros((0, 4, 2), F32)])

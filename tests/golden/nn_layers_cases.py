# SPDX-License-Identifier: Apache-2.0
"""What the groups of tests/golden/nn_layers.py share: cases, and layers in NumPy."""
import base64
import os

import numpy as np
from coremltools.models import datatypes
from coremltools.models.neural_network import NeuralNetworkBuilder

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "nn_layers")
rng = np.random.default_rng(0)
CASES = []


def array(*shape, low=-2.0, high=2.0):
    return (low + (high - low) * rng.random(shape)).astype(np.float32)


def case(name, inputs, outputs, build, exact=False, tolerance=1e-5, edit=None, mode=None, described=None):
    """inputs, outputs: name -> array in the model's form. `described`: shapes of outputs in the model."""
    described = described or {}
    b = NeuralNetworkBuilder([(k, datatypes.Array(*v.shape)) for k, v in inputs.items()],
                             [(k, datatypes.Array(*described[k]) if k in described else None) for k in outputs],
                             disable_rank5_shape_mapping=exact, mode=mode)
    build(b)
    spec = b.spec
    if edit:
        spec = edit(spec) or spec
    pack = lambda a: {"shape": list(a.shape), "data": [float("%.9g" % v) for v in np.asarray(a, np.float64).reshape(-1)]}
    assert all(c["name"] != name for c in CASES), name
    CASES.append({"name": name, "tolerance": tolerance, "model": base64.b64encode(spec.SerializeToString()).decode(),
                  "inputs": {k: pack(v) for k, v in inputs.items()}, "outputs": {k: pack(np.asarray(v)) for k, v in outputs.items()}})


def five(a):
    """A result [C, H, W] or [N, C, H, W] with the dimensions of a legacy blob."""
    a = np.asarray(a)
    return a.reshape((1,) * (5 - a.ndim) + a.shape)


def pad_image(x, top, bottom, left, right, value=0.0):
    return np.pad(x, ((0, 0), (top, bottom), (left, right)), constant_values=value)


def conv2d(x, w, bias=None, stride=(1, 1), dilation=(1, 1), groups=1):
    """x [C, H, W] already padded, w [O, C / groups, kh, kw]."""
    O, C, kh, kw = w.shape
    H = (x.shape[1] - ((kh - 1) * dilation[0] + 1)) // stride[0] + 1
    W = (x.shape[2] - ((kw - 1) * dilation[1] + 1)) // stride[1] + 1
    y = np.zeros((O, H, W))
    for o in range(O):
        g = o // (O // groups)
        for i in range(H):
            for j in range(W):
                for a in range(kh):
                    for b in range(kw):
                        y[o, i, j] += x[g * C:(g + 1) * C, i * stride[0] + a * dilation[0], j * stride[1] + b * dilation[1]] @ w[o, :, a, b]
    return y if bias is None else y + bias[:, None, None]


def deconv2d(x, w, stride, groups=1):
    """Full deconvolution; w [C, O / groups, kh, kw]."""
    C, Og, kh, kw = w.shape
    y = np.zeros((Og * groups, (x.shape[1] - 1) * stride[0] + kh, (x.shape[2] - 1) * stride[1] + kw))
    for c in range(C):
        g = c // (C // groups)
        for i in range(x.shape[1]):
            for j in range(x.shape[2]):
                y[g * Og:(g + 1) * Og, i * stride[0]:i * stride[0] + kh, j * stride[1]:j * stride[1] + kw] += x[c, i, j] * w[c]
    return y

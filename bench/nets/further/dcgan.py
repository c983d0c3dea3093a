# SPDX-License-Identifier: Apache-2.0
"""A generator of pictures with transposed convolutions of 4 x 4 and stride 2, as in DCGAN."""

import numpy as np
from torch import nn

TITLE = "DCGAN generator 64"
FAMILY = "image to image"
OUTPUTS = ("picture",)
CODE, WIDTH = 100, 64


def up(inputs, outputs, stride=2, pad=1):
    return nn.Sequential(nn.ConvTranspose2d(inputs, outputs, 4, stride, pad, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())


def model():
    return nn.Sequential(up(CODE, 8 * WIDTH, 1, 0), up(8 * WIDTH, 4 * WIDTH), up(4 * WIDTH, 2 * WIDTH), up(2 * WIDTH, WIDTH),
                         nn.ConvTranspose2d(WIDTH, 3, 4, 2, 1), nn.Tanh())


def inputs(rng):
    return {"code": rng.standard_normal((1, CODE, 1, 1), dtype=np.float32)}

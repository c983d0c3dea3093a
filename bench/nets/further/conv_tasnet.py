# SPDX-License-Identifier: Apache-2.0
"""The separator of Conv-TasNet: dilated convolutions of every channel along a line, and norms over all channels."""

import numpy as np
from torch import nn

TITLE = "Conv-TasNet separator, one second"
FAMILY = "sequence"
OUTPUTS = ("sound",)
CHANNELS, WIDE, LAYERS = 128, 256, 8


class Block(nn.Module):
    def __init__(self, dilation):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(CHANNELS, WIDE, 1), nn.PReLU(), nn.GroupNorm(1, WIDE),
            nn.Conv1d(WIDE, WIDE, 3, padding=dilation, dilation=dilation, groups=WIDE), nn.PReLU(), nn.GroupNorm(1, WIDE),
            nn.Conv1d(WIDE, CHANNELS, 1))

    def forward(self, x):
        return x + self.layers(x)


class Separator(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Conv1d(1, WIDE, 16, stride=8)
        self.masks = nn.Sequential(nn.GroupNorm(1, WIDE), nn.Conv1d(WIDE, CHANNELS, 1), *[Block(2**i) for i in range(LAYERS)],
                                   nn.Conv1d(CHANNELS, WIDE, 1), nn.Sigmoid())
        self.decoder = nn.ConvTranspose1d(WIDE, 1, 16, stride=8)

    def forward(self, mixture):
        x = self.encoder(mixture)
        return self.decoder(x * self.masks(x))


def model():
    return Separator()


def inputs(rng):
    return {"mixture": rng.standard_normal((1, 1, 16000), dtype=np.float32)}

# SPDX-License-Identifier: Apache-2.0
"""The generator of HiFi-GAN (V1): transposed convolutions between dilated ones of 3, 7 and 11 taps along a line."""

import numpy as np
from torch import nn
from torch.nn import functional

TITLE = "HiFi-GAN, 64 frames"
FAMILY = "sequence"
OUTPUTS = ("sound",)
MELS, FRAMES, WIDE = 80, 64, 512
UPSAMPLING = ((8, 16), (8, 16), (2, 4), (2, 4))
TAPS, DILATIONS = (3, 7, 11), (1, 3, 5)
SLOPE = 0.1


class Residual(nn.Module):
    def __init__(self, channels, taps):
        super().__init__()
        half = taps // 2
        self.first = nn.ModuleList(nn.Conv1d(channels, channels, taps, padding=half * d, dilation=d) for d in DILATIONS)
        self.second = nn.ModuleList(nn.Conv1d(channels, channels, taps, padding=half) for _ in DILATIONS)

    def forward(self, x):
        for first, second in zip(self.first, self.second):
            x = x + second(functional.leaky_relu(first(functional.leaky_relu(x, SLOPE)), SLOPE))
        return x


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.before = nn.Conv1d(MELS, WIDE, 7, padding=3)
        channels = [WIDE >> i for i in range(len(UPSAMPLING) + 1)]
        self.up = nn.ModuleList(nn.ConvTranspose1d(a, b, taps, stride, padding=(taps - stride) // 2)
                                for a, b, (stride, taps) in zip(channels, channels[1:], UPSAMPLING))
        self.residual = nn.ModuleList(nn.ModuleList(Residual(c, taps) for taps in TAPS) for c in channels[1:])
        self.after = nn.Conv1d(channels[-1], 1, 7, padding=3)

    def forward(self, mels):
        x = self.before(mels)
        for up, blocks in zip(self.up, self.residual):
            x = up(functional.leaky_relu(x, SLOPE))
            x = sum(block(x) for block in blocks) / len(TAPS)
        return self.after(functional.leaky_relu(x)).tanh()


def model():
    return Generator()


def inputs(rng):
    return {"mels": rng.standard_normal((1, MELS, FRAMES), dtype=np.float32)}

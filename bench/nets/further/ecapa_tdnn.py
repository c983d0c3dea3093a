# SPDX-License-Identifier: Apache-2.0
"""ECAPA-TDNN, which recognizes speakers: Res2Net blocks along a line, squeeze and excitation, and pooling by attention."""

import numpy as np
import torch
from torch import nn

TITLE = "ECAPA-TDNN, two seconds"
FAMILY = "sequence"
OUTPUTS = ("speaker",)
MELS, FRAMES, WIDE, JOINED, SCALE, NARROW, SPEAKER = 80, 200, 1024, 1536, 8, 128, 192


class Unit(nn.Sequential):
    def __init__(self, before, after, taps=1, dilation=1):
        super().__init__(nn.Conv1d(before, after, taps, padding=taps // 2 * dilation, dilation=dilation), nn.ReLU(), nn.BatchNorm1d(after))


class Res2(nn.Module):
    def __init__(self, dilation):
        super().__init__()
        self.parts = nn.ModuleList(Unit(WIDE // SCALE, WIDE // SCALE, 3, dilation) for _ in range(SCALE - 1))

    def forward(self, x):
        first, *rest = x.chunk(SCALE, 1)
        found = [first]
        for i, (part, unit) in enumerate(zip(rest, self.parts)):
            found.append(unit(part if i == 0 else part + found[-1]))
        return torch.cat(found, 1)


class Block(nn.Module):
    def __init__(self, dilation):
        super().__init__()
        self.layers = nn.Sequential(Unit(WIDE, WIDE), Res2(dilation), Unit(WIDE, WIDE))
        self.gate = nn.Sequential(nn.Conv1d(WIDE, NARROW, 1), nn.ReLU(), nn.Conv1d(NARROW, WIDE, 1), nn.Sigmoid())

    def forward(self, x):
        y = self.layers(x)
        return x + y * self.gate(y.mean(2, keepdim=True))


class Pooling(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.Sequential(Unit(3 * JOINED, NARROW), nn.Tanh(), nn.Conv1d(NARROW, JOINED, 1))

    def forward(self, x):
        mean = x.mean(2, keepdim=True)
        deviation = ((x - mean) ** 2).mean(2, keepdim=True).clamp(min=1e-6).sqrt()
        weights = self.attention(torch.cat([x, mean.expand_as(x), deviation.expand_as(x)], 1)).softmax(2)
        mean = (weights * x).sum(2, keepdim=True)
        deviation = (weights * (x - mean) ** 2).sum(2, keepdim=True).clamp(min=1e-6).sqrt()
        return torch.cat([mean, deviation], 1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Unit(MELS, WIDE, 5)
        self.blocks = nn.ModuleList(Block(dilation) for dilation in (2, 3, 4))
        self.join = Unit(3 * WIDE, JOINED)
        self.last = nn.Sequential(Pooling(), nn.BatchNorm1d(2 * JOINED), nn.Conv1d(2 * JOINED, SPEAKER, 1))

    def forward(self, mels):
        x = self.first(mels)
        found = []
        for block in self.blocks:
            x = block(x)
            found.append(x)
        return self.last(self.join(torch.cat(found, 1)))


def model():
    return Net()


def inputs(rng):
    return {"mels": rng.standard_normal((1, MELS, FRAMES), dtype=np.float32)}

# SPDX-License-Identifier: Apache-2.0
"""An encoder of Conformer blocks: attention with relative positions, and gated depthwise convolutions of 31 taps along a line."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional

TITLE = "Conformer of 4 blocks, 200 frames"
FAMILY = "sequence"
OUTPUTS = ("hidden",)
FRAMES, WIDE, HEADS, TAPS, BLOCKS = 200, 256, 4, 31, 4


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDE)
        self.query, self.key, self.value, self.out = (nn.Linear(WIDE, WIDE) for _ in range(4))
        self.position = nn.Linear(WIDE, WIDE, bias=False)
        self.of_key, self.of_position = (nn.Parameter(torch.randn(HEADS, 1, WIDE // HEADS) / 8) for _ in range(2))
        self.register_buffer("places", torch.randn(2 * FRAMES - 1, WIDE))

    def heads(self, x):
        return x.view(x.shape[0], x.shape[1], HEADS, WIDE // HEADS).transpose(1, 2)

    def forward(self, x):
        x = self.norm(x)
        query, key, value = self.heads(self.query(x)), self.heads(self.key(x)), self.heads(self.value(x))
        position = self.heads(self.position(self.places)[None])
        near = (query + self.of_position) @ position.transpose(2, 3)
        # Row i moves i places to the left.
        near = functional.pad(near, (1, 0)).reshape(-1, HEADS, 2 * FRAMES, FRAMES)[:, :, 1:].reshape(-1, HEADS, FRAMES, 2 * FRAMES - 1)
        scores = (query + self.of_key) @ key.transpose(2, 3) + near[..., :FRAMES]
        weights = (scores / math.sqrt(WIDE // HEADS)).softmax(-1)
        return self.out((weights @ value).transpose(1, 2).reshape(-1, FRAMES, WIDE))


class Convolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDE)
        self.layers = nn.Sequential(nn.Conv1d(WIDE, 2 * WIDE, 1), nn.GLU(1), nn.Conv1d(WIDE, WIDE, TAPS, padding=TAPS // 2, groups=WIDE),
                                    nn.BatchNorm1d(WIDE), nn.SiLU(), nn.Conv1d(WIDE, WIDE, 1))

    def forward(self, x):
        return self.layers(self.norm(x).transpose(1, 2)).transpose(1, 2)


def feed_forward():
    return nn.Sequential(nn.LayerNorm(WIDE), nn.Linear(WIDE, 4 * WIDE), nn.SiLU(), nn.Linear(4 * WIDE, WIDE))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.after = feed_forward(), feed_forward()
        self.attention, self.convolution, self.norm = Attention(), Convolution(), nn.LayerNorm(WIDE)

    def forward(self, x):
        x = x + 0.5 * self.before(x)
        x = x + self.attention(x)
        x = x + self.convolution(x)
        return self.norm(x + 0.5 * self.after(x))


def model():
    return nn.Sequential(*[Block() for _ in range(BLOCKS)])


def inputs(rng):
    return {"frames": rng.standard_normal((1, FRAMES, WIDE), dtype=np.float32)}

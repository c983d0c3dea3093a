# SPDX-License-Identifier: Apache-2.0
"""DeiT-small: a vision transformer of 12 layers, 384 wide, over patches of 16x16; attention spelled out as products."""

import torch
from torch import nn

from blocks.inputs import image

TITLE = "DeiT-small"
FAMILY = "transformer"
GOALS = {"fp32": 0.92}
OUTPUTS = ("logits",)
WIDTH, HEADS, LAYERS, PATCH, SIDE = 384, 6, 12, 16, 224


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        count = x.shape[1]
        q, k, v = self.qkv(x).reshape(1, count, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4).unbind(0)
        weights = ((q * (WIDTH // HEADS) ** -0.5) @ k.transpose(-2, -1)).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(1, count, WIDTH))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_1, self.attention = nn.LayerNorm(WIDTH, eps=1e-6), Attention()
        self.norm_2 = nn.LayerNorm(WIDTH, eps=1e-6)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.attention(self.norm_1(x))
        return x + self.mlp(self.norm_2(x))


class DeiT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.first = nn.Parameter(0.02 * torch.randn(1, 1, WIDTH))
        self.positions = nn.Parameter(0.02 * torch.randn(1, (SIDE // PATCH) ** 2 + 1, WIDTH))
        self.layers = nn.Sequential(*(Layer() for _ in range(LAYERS)))
        self.norm = nn.LayerNorm(WIDTH, eps=1e-6)
        self.head = nn.Linear(WIDTH, 1000)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.first, x), 1) + self.positions
        return self.head(self.norm(self.layers(x))[:, 0])


def model():
    return DeiT()


def inputs(rng):
    return {"image": image(rng, SIDE, SIDE)}

# SPDX-License-Identifier: Apache-2.0
"""The middle of a latent diffusion model's U-Net: residual blocks with group norms, and attention over pixels."""

import numpy as np
import torch
from torch import nn

TITLE = "latent diffusion blocks, 32 x 32"
FAMILY = "image to image"
OUTPUTS = ("noise",)


class Residual(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.first = nn.Sequential(nn.GroupNorm(32, inputs), nn.SiLU(), nn.Conv2d(inputs, outputs, 3, padding=1))
        self.second = nn.Sequential(nn.GroupNorm(32, outputs), nn.SiLU(), nn.Conv2d(outputs, outputs, 3, padding=1))
        self.skip = nn.Identity() if inputs == outputs else nn.Conv2d(inputs, outputs, 1)

    def forward(self, x):
        return self.skip(x) + self.second(self.first(x))


class Attention(nn.Module):
    def __init__(self, channels, heads=8):
        super().__init__()
        self.norm, self.heads = nn.GroupNorm(32, channels), heads
        self.query, self.key, self.value, self.out = (nn.Linear(channels, channels) for _ in range(4))

    def forward(self, x):
        n, c, h, w = x.shape
        y = self.norm(x).flatten(2).transpose(1, 2)
        q, k, v = (f(y).reshape(n, h * w, self.heads, -1).transpose(1, 2) for f in (self.query, self.key, self.value))
        weights = torch.softmax(q @ k.transpose(-1, -2) * (c // self.heads) ** -0.5, -1)
        y = self.out((weights @ v).transpose(1, 2).reshape(n, h * w, c))
        return x + y.transpose(1, 2).reshape(n, c, h, w)


class Blocks(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(4, 128, 3, padding=1), Residual(128, 128), Attention(128), nn.Conv2d(128, 128, 3, stride=2, padding=1),
            Residual(128, 256), Attention(256), Residual(256, 256), nn.Upsample(scale_factor=2), Residual(256, 128),
            nn.GroupNorm(32, 128), nn.SiLU(), nn.Conv2d(128, 4, 3, padding=1))

    def forward(self, latents):
        return self.layers(latents)


def model():
    return Blocks()


def inputs(rng):
    return {"latents": rng.standard_normal((1, 4, 32, 32), dtype=np.float32)}

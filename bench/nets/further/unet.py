# SPDX-License-Identifier: Apache-2.0
"""U-Net of four levels, with transposed convolutions on the way up."""

import torch
from torch import nn

from blocks.conv import conv_norm
from blocks.inputs import image

TITLE = "U-Net 256"
FAMILY = "segmentation"
OUTPUTS = ("scores",)
WIDTHS = (32, 64, 128, 256)


def level(inputs, outputs):
    return nn.Sequential(conv_norm(inputs, outputs, 3, activation=nn.ReLU()), conv_norm(outputs, outputs, 3, activation=nn.ReLU()))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList(level(a, b) for a, b in zip((3, *WIDTHS), WIDTHS))
        pairs = list(zip(WIDTHS, WIDTHS[1:]))[::-1]
        self.up = nn.ModuleList(nn.ConvTranspose2d(wide, narrow, 2, 2) for narrow, wide in pairs)
        self.joined = nn.ModuleList(level(2 * narrow, narrow) for narrow, _ in pairs)
        self.head = nn.Conv2d(WIDTHS[0], 2, 1)

    def forward(self, x):
        kept = []
        for i, down in enumerate(self.down):
            x = down(nn.functional.max_pool2d(x, 2) if i else x)
            kept.append(x)
        for up, joined, same in zip(self.up, self.joined, kept[-2::-1]):
            x = joined(torch.cat((up(x), same), 1))
        return self.head(x)


def model():
    return UNet()


def inputs(rng):
    return {"image": image(rng, 256, 256)}

# SPDX-License-Identifier: Apache-2.0
"""YOLOv3: Darknet-53 and a feature pyramid with three heads. The outputs are the raw predictions."""

import torch
from torch import nn
from torch.nn import functional as F

from blocks.conv import conv_norm
from blocks.inputs import image

TITLE = "YOLOv3 416"
FAMILY = "detection"
GOALS = {"fp32": 0.80}
OUTPUTS = ("at_32", "at_16", "at_8")
PREDICTIONS = 3 * (5 + 80)


def conv(inputs, outputs, kernel, stride=1):
    return conv_norm(inputs, outputs, kernel, stride, nn.LeakyReLU(0.1))


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.layers = nn.Sequential(conv(channels, channels // 2, 1), conv(channels // 2, channels, 3))

    def forward(self, x):
        return x + self.layers(x)


def stage(channels, repeats):
    return nn.Sequential(conv(channels // 2, channels, 3, 2), *(Residual(channels) for _ in range(repeats)))


def alternating(inputs, channels):
    """Five convolutions, alternating 1x1 and 3x3."""
    return nn.Sequential(conv(inputs, channels, 1), conv(channels, 2 * channels, 3), conv(2 * channels, channels, 1),
                         conv(channels, 2 * channels, 3), conv(2 * channels, channels, 1))


def head(channels):
    return nn.Sequential(conv(channels, 2 * channels, 3), nn.Conv2d(2 * channels, PREDICTIONS, 1))


class YoloV3(nn.Module):
    def __init__(self):
        super().__init__()
        self.to_8 = nn.Sequential(conv(3, 32, 3), stage(64, 1), stage(128, 2), stage(256, 8))
        self.to_16 = stage(512, 8)
        self.to_32 = stage(1024, 4)
        self.neck_32, self.head_32 = alternating(1024, 512), head(512)
        self.up_16, self.neck_16, self.head_16 = conv(512, 256, 1), alternating(256 + 512, 256), head(256)
        self.up_8, self.neck_8, self.head_8 = conv(256, 128, 1), alternating(128 + 256, 128), head(128)

    def forward(self, x):
        at_8 = self.to_8(x)
        at_16 = self.to_16(at_8)
        x = self.neck_32(self.to_32(at_16))
        out_32 = self.head_32(x)
        x = self.neck_16(torch.cat((F.interpolate(self.up_16(x), scale_factor=2.0), at_16), 1))
        out_16 = self.head_16(x)
        x = self.neck_8(torch.cat((F.interpolate(self.up_8(x), scale_factor=2.0), at_8), 1))
        return out_32, out_16, self.head_8(x)


def model():
    return YoloV3()


def inputs(rng):
    return {"image": image(rng, 416, 416)}

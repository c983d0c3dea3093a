# SPDX-License-Identifier: Apache-2.0
"""YOLOv8 in its nano size: CSP backbone with C2f blocks, SPPF, a two-way feature pyramid, an anchor-free head whose boxes are
expectations over 16 distances for each side."""

import torch
from torch import nn
from torch.nn import functional as F

from blocks.conv import conv_norm
from blocks.inputs import image

TITLE = "YOLOv8n 640"
FAMILY = "detection"
GOALS = {"fp32": 0.65}
OUTPUTS = ("boxes", "scores")
SIDE = 640
STRIDES = (8, 16, 32)
DISTANCES = 16
CLASSES = 80


def conv(inputs, outputs, kernel=1, stride=1):
    return conv_norm(inputs, outputs, kernel, stride, nn.SiLU())


class Bottleneck(nn.Module):
    def __init__(self, channels, shortcut):
        super().__init__()
        self.layers = nn.Sequential(conv(channels, channels, 3), conv(channels, channels, 3))
        self.shortcut = shortcut

    def forward(self, x):
        return x + self.layers(x) if self.shortcut else self.layers(x)


class C2f(nn.Module):
    def __init__(self, inputs, outputs, repeats, shortcut):
        super().__init__()
        half = outputs // 2
        self.entry = conv(inputs, outputs)
        self.blocks = nn.ModuleList(Bottleneck(half, shortcut) for _ in range(repeats))
        self.exit = conv((2 + repeats) * half, outputs)

    def forward(self, x):
        parts = list(self.entry(x).chunk(2, 1))
        for block in self.blocks:
            parts.append(block(parts[-1]))
        return self.exit(torch.cat(parts, 1))


class Pyramid(nn.Module):
    """SPPF: three poolings of 5x5 in a row, all of them kept."""

    def __init__(self, channels):
        super().__init__()
        self.entry = conv(channels, channels // 2)
        self.pool = nn.MaxPool2d(5, 1, 2)
        self.exit = conv(2 * channels, channels)

    def forward(self, x):
        x = self.entry(x)
        once = self.pool(x)
        twice = self.pool(once)
        return self.exit(torch.cat((x, once, twice, self.pool(twice)), 1))


class Head(nn.Module):
    def __init__(self, widths):
        super().__init__()
        boxes, classes = max(16, widths[0] // 4, 4 * DISTANCES), max(widths[0], CLASSES)
        self.boxes = nn.ModuleList(
            nn.Sequential(conv(w, boxes, 3), conv(boxes, boxes, 3), nn.Conv2d(boxes, 4 * DISTANCES, 1)) for w in widths)
        self.classes = nn.ModuleList(
            nn.Sequential(conv(w, classes, 3), conv(classes, classes, 3), nn.Conv2d(classes, CLASSES, 1)) for w in widths)
        centres, strides = [], []
        for stride in STRIDES:
            n = SIDE // stride
            axis = torch.arange(n) + 0.5
            y, x = torch.meshgrid(axis, axis, indexing="ij")
            centres.append(torch.stack((x.flatten(), y.flatten())))
            strides.append(torch.full((1, n * n), float(stride)))
        self.register_buffer("centres", torch.cat(centres, 1)[None])
        self.register_buffer("strides", torch.cat(strides, 1)[None])
        self.register_buffer("steps", torch.arange(DISTANCES, dtype=torch.float32).reshape(1, DISTANCES, 1, 1))

    def forward(self, *levels):
        distances = torch.cat([f(x).flatten(2) for f, x in zip(self.boxes, levels)], 2)
        scores = torch.cat([f(x).flatten(2) for f, x in zip(self.classes, levels)], 2)
        distances = distances.reshape(-1, 4, DISTANCES, self.strides.shape[-1]).transpose(1, 2).softmax(1)
        distances = (distances * self.steps).sum(1)
        low, high = self.centres - distances[:, :2], self.centres + distances[:, 2:]
        boxes = torch.cat(((low + high) / 2, high - low), 1) * self.strides
        return boxes, scores.sigmoid()


class YoloV8(nn.Module):
    def __init__(self, widths=(16, 32, 64, 128, 256), repeats=(1, 2, 2, 1)):
        super().__init__()
        a, b, c, d, e = widths
        self.to_8 = nn.Sequential(conv(3, a, 3, 2), conv(a, b, 3, 2), C2f(b, b, repeats[0], True), conv(b, c, 3, 2),
                                  C2f(c, c, repeats[1], True))
        self.to_16 = nn.Sequential(conv(c, d, 3, 2), C2f(d, d, repeats[2], True))
        self.to_32 = nn.Sequential(conv(d, e, 3, 2), C2f(e, e, repeats[3], True), Pyramid(e))
        self.up_16 = C2f(d + e, d, 1, False)
        self.up_8 = C2f(c + d, c, 1, False)
        self.down_16 = conv(c, c, 3, 2)
        self.out_16 = C2f(c + d, d, 1, False)
        self.down_32 = conv(d, d, 3, 2)
        self.out_32 = C2f(d + e, e, 1, False)
        self.head = Head((c, d, e))

    def forward(self, x):
        at_8 = self.to_8(x)
        at_16 = self.to_16(at_8)
        at_32 = self.to_32(at_16)
        at_16 = self.up_16(torch.cat((F.interpolate(at_32, scale_factor=2.0), at_16), 1))
        at_8 = self.up_8(torch.cat((F.interpolate(at_16, scale_factor=2.0), at_8), 1))
        at_16 = self.out_16(torch.cat((self.down_16(at_8), at_16), 1))
        at_32 = self.out_32(torch.cat((self.down_32(at_16), at_32), 1))
        return self.head(at_8, at_16, at_32)


def model():
    return YoloV8()


def inputs(rng):
    return {"image": image(rng, SIDE, SIDE)}

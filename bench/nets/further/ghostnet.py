# SPDX-License-Identifier: Apache-2.0
"""Ghost modules: half of each layer's channels are computed from the other half and joined with it at places that do not
fill blocks of channels."""

import torch
from torch import nn

from blocks.conv import conv_norm
from blocks.inputs import image

TITLE = "GhostNet-like, 224"
FAMILY = "classification"
OUTPUTS = ("logits",)
# channels inside and of the result, stride
LAYERS = ((16, 16, 1), (48, 24, 2), (72, 24, 1), (72, 40, 2), (120, 40, 1), (240, 80, 2), (200, 80, 1), (184, 80, 1), (480, 112, 1),
          (672, 160, 2), (960, 160, 1))


class Ghost(nn.Module):
    def __init__(self, inputs, outputs, activation):
        super().__init__()
        half = outputs // 2
        self.made = conv_norm(inputs, half, 1, activation=activation)
        self.cheap = conv_norm(half, half, 3, groups=half, activation=activation)

    def forward(self, x):
        x = self.made(x)
        return torch.cat((x, self.cheap(x)), 1)


class Bottleneck(nn.Module):
    def __init__(self, inputs, inner, outputs, stride):
        super().__init__()
        down = [conv_norm(inner, inner, 3, stride=stride, groups=inner)] if stride > 1 else []
        self.layers = nn.Sequential(Ghost(inputs, inner, nn.ReLU()), *down, Ghost(inner, outputs, None))
        self.skip = nn.Identity() if stride == 1 and inputs == outputs else nn.Sequential(
            conv_norm(inputs, inputs, 3, stride=stride, groups=inputs), conv_norm(inputs, outputs, 1))

    def forward(self, x):
        return self.skip(x) + self.layers(x)


class GhostNet(nn.Module):
    def __init__(self):
        super().__init__()
        layers, channels = [conv_norm(3, 16, 3, stride=2, activation=nn.ReLU())], 16
        for inner, outputs, stride in LAYERS:
            layers.append(Bottleneck(channels, inner, outputs, stride))
            channels = outputs
        self.features = nn.Sequential(*layers, conv_norm(channels, 960, 1, activation=nn.ReLU()), nn.AdaptiveAvgPool2d(1))
        self.head = nn.Linear(960, 1000)

    def forward(self, image):
        return self.head(self.features(image).flatten(1))


def model():
    return GhostNet()


def inputs(rng):
    return {"image": image(rng, 224, 224)}

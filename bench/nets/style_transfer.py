# SPDX-License-Identifier: Apache-2.0
"""Fast style transfer: down, five residual blocks, up, with instance norms and reflected borders."""

from torch import nn

from blocks.inputs import image

TITLE = "style transfer 512"
FAMILY = "image to image"
GOALS = {"fp32": 0.60}
OUTPUTS = ("styled",)


def conv(inputs, outputs, kernel, stride=1):
    return nn.Sequential(nn.ReflectionPad2d(kernel // 2), nn.Conv2d(inputs, outputs, kernel, stride))


def conv_norm(inputs, outputs, kernel, stride=1):
    return nn.Sequential(conv(inputs, outputs, kernel, stride), nn.InstanceNorm2d(outputs, affine=True))


class Residual(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.layers = nn.Sequential(conv_norm(channels, channels, 3), nn.ReLU(), conv_norm(channels, channels, 3))

    def forward(self, x):
        return x + self.layers(x)


def model():
    net = nn.Sequential(
        conv_norm(3, 32, 9), nn.ReLU(), conv_norm(32, 64, 3, 2), nn.ReLU(), conv_norm(64, 128, 3, 2), nn.ReLU(),
        *(Residual(128) for _ in range(5)),
        nn.Upsample(scale_factor=2.0), conv_norm(128, 64, 3), nn.ReLU(),
        nn.Upsample(scale_factor=2.0), conv_norm(64, 32, 3), nn.ReLU(),
        conv(32, 3, 9))
    for layer in net.modules():
        if isinstance(layer, nn.InstanceNorm2d):
            nn.init.uniform_(layer.weight, 0.7, 1.3)
            nn.init.normal_(layer.bias, 0, 0.1)
    return net


def inputs(rng):
    return {"image": image(rng, 512, 512)}

# SPDX-License-Identifier: Apache-2.0
"""InceptionV3 with batch norms after the activation, where they cannot be folded into the weights before it."""

from torch import nn
from torchvision.models import inception

from blocks.inputs import image

TITLE = "InceptionV3, batch norm after ReLU"
FAMILY = "classification"
GOALS = {"fp32": 1.02}
RELATIVE_TO = "inception_v3"
NORM_OFFSET = 0.0  # the activation precedes the norm, and the biases of the convolutions keep it nearly linear
OUTPUTS = ("logits",)


class ConvReluNorm(nn.Module):
    def __init__(self, in_channels, out_channels, **geometry):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, **geometry)
        nn.init.constant_(self.conv.bias, 0.5)
        self.norm = nn.BatchNorm2d(out_channels, eps=0.001)

    def forward(self, x):
        return self.norm(self.conv(x).relu())


def model():
    blocks = [ConvReluNorm, inception.InceptionA, inception.InceptionB, inception.InceptionC, inception.InceptionD,
              inception.InceptionE, inception.InceptionAux]
    # The blocks inside find their convolution by its name in torchvision's module.
    usual, inception.BasicConv2d = inception.BasicConv2d, ConvReluNorm
    try:
        return inception.Inception3(aux_logits=False, init_weights=False, inception_blocks=blocks)
    finally:
        inception.BasicConv2d = usual


def inputs(rng):
    return {"image": image(rng, 299, 299)}

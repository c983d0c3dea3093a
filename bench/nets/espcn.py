# SPDX-License-Identifier: Apache-2.0
"""ESPCN: doubles the width and height of a picture's luma plane by sub-pixel convolution."""

from torch import nn

from blocks.inputs import image

TITLE = "ESPCN x2, 640x360"
FAMILY = "image to image"
GOALS = {"fp32": 0.50}
OUTPUTS = ("large",)


def model():
    return nn.Sequential(nn.Conv2d(1, 64, 5, padding=2), nn.Tanh(), nn.Conv2d(64, 32, 3, padding=1), nn.Tanh(),
                         nn.Conv2d(32, 4, 3, padding=1), nn.PixelShuffle(2))


def inputs(rng):
    return {"luma": image(rng, 360, 640, channels=1)}

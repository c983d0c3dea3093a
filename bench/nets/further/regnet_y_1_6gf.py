# SPDX-License-Identifier: Apache-2.0
"""Groups of 24 channels, which fill no blocks of 16."""

import torchvision

from blocks.inputs import image

TITLE = "RegNetY 1.6 GF"
FAMILY = "classification"
OUTPUTS = ("logits",)


def model():
    return torchvision.models.regnet_y_1_6gf(weights=None)


def inputs(rng):
    return {"image": image(rng, 224, 224)}

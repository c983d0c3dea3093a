# SPDX-License-Identifier: Apache-2.0
import torchvision

from blocks.inputs import image

TITLE = "MnasNet 1.0"
FAMILY = "classification"
OUTPUTS = ("logits",)


def model():
    return torchvision.models.mnasnet1_0(weights=None)


def inputs(rng):
    return {"image": image(rng, 224, 224)}

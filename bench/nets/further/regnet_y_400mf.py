# SPDX-License-Identifier: Apache-2.0
import torchvision

from blocks.inputs import image

TITLE = "RegNetY 400 MF"
FAMILY = "classification"
OUTPUTS = ("logits",)


def model():
    return torchvision.models.regnet_y_400mf(weights=None)


def inputs(rng):
    return {"image": image(rng, 224, 224)}

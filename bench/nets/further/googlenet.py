# SPDX-License-Identifier: Apache-2.0
import torchvision

from blocks.inputs import image

TITLE = "GoogLeNet"
FAMILY = "classification"
OUTPUTS = ("logits",)


def model():
    return torchvision.models.googlenet(weights=None, init_weights=True)


def inputs(rng):
    return {"image": image(rng, 224, 224)}

# SPDX-License-Identifier: Apache-2.0
import torchvision

from blocks.inputs import image

TITLE = "SqueezeNet 1.1"
FAMILY = "classification"
GOALS = {"fp32": 0.80}
OUTPUTS = ("logits",)


def model():
    return torchvision.models.squeezenet1_1(weights=None)


def inputs(rng):
    return {"image": image(rng, 224, 224)}

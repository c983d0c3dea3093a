# SPDX-License-Identifier: Apache-2.0
import torchvision

from blocks.inputs import image

TITLE = "MobileNetV2"
FAMILY = "classification"
GOALS = {"fp32": 0.85}
OUTPUTS = ("logits",)


def model():
    return torchvision.models.mobilenet_v2(weights=None)


def inputs(rng):
    return {"image": image(rng, 224, 224)}

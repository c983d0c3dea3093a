# SPDX-License-Identifier: Apache-2.0
import torchvision

from blocks.inputs import image

TITLE = "MobileNetV3-large"
FAMILY = "classification"
GOALS = {"fp32": 0.80}
OUTPUTS = ("logits",)


def model():
    return torchvision.models.mobilenet_v3_large(weights=None)


def inputs(rng):
    return {"image": image(rng, 224, 224)}

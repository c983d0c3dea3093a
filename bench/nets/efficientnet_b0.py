# SPDX-License-Identifier: Apache-2.0
import torchvision

from blocks.inputs import image

TITLE = "EfficientNet-B0"
FAMILY = "classification"
GOALS = {"fp32": 0.75}
OUTPUTS = ("logits",)


def model():
    return torchvision.models.efficientnet_b0(weights=None)


def inputs(rng):
    return {"image": image(rng, 224, 224)}

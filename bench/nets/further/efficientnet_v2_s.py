# SPDX-License-Identifier: Apache-2.0
import torchvision

from blocks.inputs import image

TITLE = "EfficientNetV2-S"
FAMILY = "classification"
OUTPUTS = ("logits",)


def model():
    return torchvision.models.efficientnet_v2_s(weights=None)


def inputs(rng):
    return {"image": image(rng, 224, 224)}

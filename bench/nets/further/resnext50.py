# SPDX-License-Identifier: Apache-2.0
import torchvision

from blocks.inputs import image

TITLE = "ResNeXt-50 32x4d"
FAMILY = "classification"
OUTPUTS = ("logits",)


def model():
    return torchvision.models.resnext50_32x4d(weights=None)


def inputs(rng):
    return {"image": image(rng, 224, 224)}

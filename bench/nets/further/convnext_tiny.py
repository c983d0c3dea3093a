# SPDX-License-Identifier: Apache-2.0
import torchvision

from blocks.inputs import image

TITLE = "ConvNeXt-tiny"
FAMILY = "classification"
OUTPUTS = ("logits",)


def model():
    return torchvision.models.convnext_tiny(weights=None)


def inputs(rng):
    return {"image": image(rng, 224, 224)}

# SPDX-License-Identifier: Apache-2.0
import torchvision

from blocks.inputs import image

TITLE = "Swin-T"
FAMILY = "classification"
OUTPUTS = ("logits",)


def model():
    return torchvision.models.swin_t(weights=None)


def inputs(rng):
    return {"image": image(rng, 224, 224)}

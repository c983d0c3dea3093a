# SPDX-License-Identifier: Apache-2.0
import torchvision

from blocks.inputs import image

TITLE = "ShuffleNet V2"
FAMILY = "classification"
OUTPUTS = ("logits",)


def model():
    return torchvision.models.shufflenet_v2_x1_0(weights=None)


def inputs(rng):
    return {"image": image(rng, 224, 224)}

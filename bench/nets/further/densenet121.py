# SPDX-License-Identifier: Apache-2.0
import torchvision

from blocks.inputs import image

TITLE = "DenseNet-121"
FAMILY = "classification"
OUTPUTS = ("logits",)


def model():
    return torchvision.models.densenet121(weights=None)


def inputs(rng):
    return {"image": image(rng, 224, 224)}

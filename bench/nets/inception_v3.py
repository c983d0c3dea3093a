# SPDX-License-Identifier: Apache-2.0
import torchvision

from blocks.inputs import image

TITLE = "InceptionV3 (299)"
FAMILY = "classification"
GOALS = {"fp32": 0.85}
OUTPUTS = ("logits",)


def model():
    return torchvision.models.inception_v3(weights=None, aux_logits=False, init_weights=False)


def inputs(rng):
    return {"image": image(rng, 299, 299)}

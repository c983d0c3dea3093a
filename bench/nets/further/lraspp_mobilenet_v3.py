# SPDX-License-Identifier: Apache-2.0
import torchvision

from blocks.inputs import image
from blocks.segmentation import Scores

TITLE = "LR-ASPP MobileNetV3 320"
FAMILY = "segmentation"
OUTPUTS = ("scores",)


def model():
    return Scores(torchvision.models.segmentation.lraspp_mobilenet_v3_large(weights=None, weights_backbone=None))


def inputs(rng):
    return {"image": image(rng, 320, 320)}

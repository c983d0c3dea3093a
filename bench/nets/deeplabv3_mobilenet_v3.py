# SPDX-License-Identifier: Apache-2.0
import torchvision

from blocks.inputs import image
from blocks.segmentation import Scores

TITLE = "DeepLabV3-MobileNetV3 513"
FAMILY = "segmentation"
GOALS = {"fp32": 0.80}
OUTPUTS = ("scores",)


def model():
    return Scores(torchvision.models.segmentation.deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None))


def inputs(rng):
    return {"image": image(rng, 513, 513)}

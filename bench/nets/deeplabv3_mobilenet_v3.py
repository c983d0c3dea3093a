import torchvision
from torch import nn

from blocks.inputs import image

TITLE = "DeepLabV3-MobileNetV3 513"
FAMILY = "segmentation"
GOALS = {"fp32": 0.80}
OUTPUTS = ("scores",)


class Scores(nn.Module):
    def __init__(self, segmenter):
        super().__init__()
        self.segmenter = segmenter

    def forward(self, x):
        return self.segmenter(x)["out"]


def model():
    return Scores(torchvision.models.segmentation.deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None))


def inputs(rng):
    return {"image": image(rng, 513, 513)}

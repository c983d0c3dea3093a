# SPDX-License-Identifier: Apache-2.0
from torch import nn
from transformers import SegformerConfig, SegformerForSemanticSegmentation

from blocks.inputs import image

TITLE = "SegFormer-B0 512"
FAMILY = "segmentation"
OUTPUTS = ("scores",)


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.segmenter = SegformerForSemanticSegmentation(SegformerConfig())

    def forward(self, image):
        return self.segmenter(image, return_dict=False)[0]


def model():
    return Segmenter()


def inputs(rng):
    return {"image": image(rng, 512, 512)}

# SPDX-License-Identifier: Apache-2.0
"""Segmentation nets of torchvision."""

from torch import nn


class Scores(nn.Module):
    """The scores of each class, without the enclosing dictionary."""

    def __init__(self, segmenter):
        super().__init__()
        self.segmenter = segmenter

    def forward(self, x):
        return self.segmenter(x)["out"]

# SPDX-License-Identifier: Apache-2.0
import torch
import torchvision
from torch import nn

from blocks.inputs import image

TITLE = "ViT-B/16"
FAMILY = "transformer"
GOALS = {"fp32": 0.92}
OUTPUTS = ("logits",)


def model():
    torch.backends.mha.set_fastpath_enabled(False)  # PyTorch's fast path is an operation that no converter supports
    vit = torchvision.models.vit_b_16(weights=None)
    # torchvision initializes with zeros, which would make every output 0
    nn.init.trunc_normal_(vit.heads.head.weight, std=0.02)
    return vit


def inputs(rng):
    return {"image": image(rng, 224, 224)}

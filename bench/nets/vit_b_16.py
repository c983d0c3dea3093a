import torchvision
from torch import nn

from blocks.inputs import image

TITLE = "ViT-B/16"
FAMILY = "transformer"
GOALS = {"fp32": 0.92}
OUTPUTS = ("logits",)


def model():
    vit = torchvision.models.vit_b_16(weights=None)
    nn.init.trunc_normal_(vit.heads.head.weight, std=0.02)  # torchvision's own zeros would make every output 0
    return vit


def inputs(rng):
    return {"image": image(rng, 224, 224)}

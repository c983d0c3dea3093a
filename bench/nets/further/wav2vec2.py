# SPDX-License-Identifier: Apache-2.0
import numpy as np
from torch import nn
from transformers import Wav2Vec2Config, Wav2Vec2Model

TITLE = "wav2vec 2.0 of 4 layers, one second"
FAMILY = "sequence"
OUTPUTS = ("hidden",)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Wav2Vec2Model(Wav2Vec2Config(num_hidden_layers=4, attn_implementation="eager"))

    def forward(self, sound):
        return self.encoder(sound, return_dict=False)[0]


def model():
    return Encoder()


def inputs(rng):
    return {"sound": rng.standard_normal((1, 16000), dtype=np.float32)}

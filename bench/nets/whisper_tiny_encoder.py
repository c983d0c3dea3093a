# SPDX-License-Identifier: Apache-2.0
import numpy as np
from torch import nn
from transformers import WhisperConfig
from transformers.models.whisper.modeling_whisper import WhisperEncoder

TITLE = "Whisper-tiny encoder"
FAMILY = "transformer"
GOALS = {"fp32": 0.90}
OUTPUTS = ("hidden",)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = WhisperEncoder(WhisperConfig(encoder_layers=4, encoder_attention_heads=6, encoder_ffn_dim=1536, d_model=384,
                                                    num_mel_bins=80, attn_implementation="eager"))

    def forward(self, mel):
        return self.encoder(mel, return_dict=False)[0]


def model():
    return Encoder()


def inputs(rng):
    return {"mel": rng.standard_normal((1, 80, 3000), dtype=np.float32)}

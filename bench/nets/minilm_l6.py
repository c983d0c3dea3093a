# SPDX-License-Identifier: Apache-2.0
import numpy as np

from blocks.bert import Encoder, MeanOfTokens
from blocks.inputs import tokens

TITLE = "MiniLM-L6, 128 tokens"
FAMILY = "transformer"
GOALS = {"fp32": 0.92}
OUTPUTS = ("embedding",)


def model():
    return MeanOfTokens(Encoder(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536))


def inputs(rng):
    return {"ids": tokens(rng, 128, 30522), "mask": np.ones((1, 128), np.float32)}

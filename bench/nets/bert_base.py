# SPDX-License-Identifier: Apache-2.0
import numpy as np

from blocks.bert import Encoder
from blocks.inputs import tokens

TITLE = "BERT-base, 128 tokens"
FAMILY = "transformer"
GOALS = {"fp32": 0.92}
OUTPUTS = ("hidden",)


def model():
    return Encoder()


def inputs(rng):
    return {"ids": tokens(rng, 128, 30522), "mask": np.ones((1, 128), np.float32)}

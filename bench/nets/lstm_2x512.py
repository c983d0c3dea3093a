# SPDX-License-Identifier: Apache-2.0
"""A recurrent recognizer: two LSTM layers over 128 steps and a projection to 1,500 classes for each step."""

import numpy as np
from torch import nn

TITLE = "LSTM 2x512, 128 steps"
FAMILY = "sequence"
GOALS = {"fp32": 0.70}
OUTPUTS = ("scores",)


class Recogniser(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(512, 512, 2, batch_first=True)
        self.head = nn.Linear(512, 1500)

    def forward(self, x):
        return self.head(self.lstm(x)[0])


def model():
    return Recogniser()


def inputs(rng):
    return {"features": rng.standard_normal((1, 128, 512), dtype=np.float32)}

# SPDX-License-Identifier: Apache-2.0
"""Two layers of GRUs in both directions over 64 steps, and a projection for each."""

import numpy as np
from torch import nn

TITLE = "GRU 2x512, both directions, 64 steps"
FAMILY = "sequence"
OUTPUTS = ("scores",)


class Recogniser(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(256, 512, 2, batch_first=True, bidirectional=True)
        self.head = nn.Linear(1024, 64)

    def forward(self, x):
        return self.head(self.gru(x)[0])


def model():
    return Recogniser()


def inputs(rng):
    return {"features": rng.standard_normal((1, 64, 256), dtype=np.float32)}

# SPDX-License-Identifier: Apache-2.0
"""A decoder with 110 million parameters that reads one token, the last of a window of 256.

Engines with states keep the keys and values of the window in buffers and write those of the token to the last place. Other
engines take the window as inputs and return the token's keys and values as outputs. Scores and results of the window and of the
token are computed separately, so that no engine has to copy a cache to append to it.
"""

import numpy as np
import torch
from torch import nn

TITLE = "decoder 110 M, one token, KV cache 256"
FAMILY = "transformer"
GOALS = {"fp32": 0.90, "fp16": 0.55, "int8": 0.35, "int4": 0.25}
OUTPUTS = ("logits", "new_keys", "new_values")
STATES = ("keys", "values")
STATEFUL_OUTPUTS = ("logits",)
WIDTH, HEADS, LAYERS, WINDOW, VOCABULARY = 768, 12, 12, 256, 32000
DEPTH = WIDTH // HEADS


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(approximate="tanh"), nn.Linear(4 * WIDTH, WIDTH))

    def heads(self, x):
        q, k, v = self.qkv(self.norm_1(x)).reshape(1, 1, 3, HEADS, DEPTH).permute(2, 0, 3, 1, 4).unbind(0)
        return q * DEPTH ** -0.5, k, v

    def rest(self, x, attended):
        x = x + self.out(attended.transpose(1, 2).reshape(1, 1, WIDTH))
        return x + self.mlp(self.norm_2(x))


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(WINDOW, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        for table in (self.tokens, self.positions):
            nn.init.normal_(table.weight, std=0.02)

    def begin(self, token, position):
        return self.tokens(token) + self.positions(position)

    def end(self, x):
        return nn.functional.linear(self.norm(x), self.tokens.weight)

    def forward(self, token, position, keys, values):
        """token, position: [1, 1]; keys, values: [layers, heads, window, depth]. The last place is not read."""
        x = self.begin(token, position)
        new_keys, new_values = [], []
        for i, layer in enumerate(self.layers):
            q, k, v = layer.heads(x)
            past_k, past_v = keys[i:i + 1, :, :-1], values[i:i + 1, :, :-1]
            weights = torch.cat((q @ past_k.transpose(-2, -1), q @ k.transpose(-2, -1)), -1).softmax(-1)
            x = layer.rest(x, weights[..., :-1] @ past_v + weights[..., -1:] @ v)
            new_keys.append(k)
            new_values.append(v)
        return self.end(x), torch.cat(new_keys), torch.cat(new_values)


class StatefulDecoder(nn.Module):
    def __init__(self, decoder):
        super().__init__()
        self.decoder = decoder
        for name in STATES:
            self.register_buffer(name, torch.zeros(LAYERS, HEADS, WINDOW, DEPTH))

    def forward(self, token, position):
        x = self.decoder.begin(token, position)
        for i, layer in enumerate(self.decoder.layers):
            q, k, v = layer.heads(x)
            self.keys[i:i + 1, :, WINDOW - 1:] = k
            self.values[i:i + 1, :, WINDOW - 1:] = v
            weights = (q @ self.keys[i:i + 1].transpose(-2, -1)).softmax(-1)
            x = layer.rest(x, weights @ self.values[i:i + 1])
        return self.decoder.end(x)


def model():
    return Decoder()


def stateful(decoder):
    return StatefulDecoder(decoder)


def inputs(rng):
    def window():  # numbers that float16 represents exactly, as Core ML's states require
        return rng.standard_normal((LAYERS, HEADS, WINDOW, DEPTH)).astype(np.float16).astype(np.float32)

    return {"token": np.array([[1234]], np.int32), "position": np.array([[WINDOW - 1]], np.int32), "keys": window(), "values": window()}

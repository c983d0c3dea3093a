# SPDX-License-Identifier: Apache-2.0
"""GPT-2's layers over a prompt of 64 tokens; a token sees itself and those before."""

import torch
from torch import nn
from transformers import GPT2Config
from transformers.activations import NewGELUActivation

from blocks.inputs import tokens

TITLE = "GPT-2 of 6 layers, 64 tokens"
FAMILY = "transformer"
OUTPUTS = ("logits",)
TOKENS = 64


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        width, self.heads = config.n_embd, config.n_head
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), NewGELUActivation(), nn.Linear(4 * width, width))

    def forward(self, x, hidden):
        q, k, v = (part.reshape(1, TOKENS, self.heads, -1).transpose(1, 2) for part in self.qkv(self.norm_1(x)).chunk(3, -1))
        scores = (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).masked_fill(hidden, -10000)
        x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(x.shape))
        return x + self.mlp(self.norm_2(x))


class Decoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(config.vocab_size, config.n_embd), nn.Embedding(TOKENS, config.n_embd)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.n_layer))
        self.norm = nn.LayerNorm(config.n_embd)
        self.register_buffer("hidden", torch.ones(TOKENS, TOKENS, dtype=torch.bool).triu(1))
        for table in (self.tokens, self.positions):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions.weight
        for layer in self.layers:
            x = layer(x, self.hidden)
        return nn.functional.linear(self.norm(x), self.tokens.weight)


def model():
    return Decoder(GPT2Config(n_layer=6, vocab_size=8000))


def inputs(rng):
    return {"ids": tokens(rng, TOKENS, 8000)}

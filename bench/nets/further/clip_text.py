# SPDX-License-Identifier: Apache-2.0
import torch
from torch import nn
from transformers import CLIPTextConfig
from transformers.models.clip.modeling_clip import CLIPEncoder, CLIPTextEmbeddings

from blocks.inputs import tokens

TITLE = "CLIP's text encoder, 77 tokens"
FAMILY = "transformer"
OUTPUTS = ("embedding",)
TOKENS = 77


class Encoder(nn.Module):
    """The embedding at the last token, which attends to all tokens before it."""

    def __init__(self):
        super().__init__()
        config = CLIPTextConfig(attn_implementation="eager", vocab_size=16000)
        self.embeddings, self.encoder = CLIPTextEmbeddings(config), CLIPEncoder(config)
        self.norm, self.projection = nn.LayerNorm(config.hidden_size), nn.Linear(config.hidden_size, config.hidden_size, bias=False)
        self.register_buffer("mask", torch.full((1, 1, TOKENS, TOKENS), -10000.0).triu(1))

    def forward(self, ids):
        x = self.encoder(inputs_embeds=self.embeddings(input_ids=ids), causal_attention_mask=self.mask).last_hidden_state
        return self.projection(self.norm(x)[:, -1])


def model():
    return Encoder()


def inputs(rng):
    return {"ids": tokens(rng, TOKENS, 16000)}

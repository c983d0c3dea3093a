# SPDX-License-Identifier: Apache-2.0
"""Encoders of transformers' BERT."""

from torch import nn
from transformers import BertConfig, BertModel


class Bert(BertModel):
    """Padding gets -10,000. transformers takes float32's smallest number, which is infinite in float16, and then 0 times it is
    not a number."""

    def get_extended_attention_mask(self, attention_mask, *_, **__):
        return (attention_mask[:, None, None, :] - 1) * 10000


class Encoder(nn.Module):
    """The hidden state of every token, from ids and a mask that is 0 at padding. The mask is float32, because some converters
    cannot cast it from integers."""

    def __init__(self, **config):
        super().__init__()
        self.bert = Bert(BertConfig(attn_implementation="eager", **config), add_pooling_layer=False)

    def forward(self, ids, mask):
        return self.bert(input_ids=ids, attention_mask=mask, return_dict=False)[0]


class MeanOfTokens(nn.Module):
    """One unit vector per sentence."""

    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder

    def forward(self, ids, mask):
        weight = mask.unsqueeze(-1)
        mean = (self.encoder(ids, mask) * weight).sum(1) / weight.sum(1)
        return nn.functional.normalize(mean, dim=1)

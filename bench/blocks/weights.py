# SPDX-License-Identifier: Apache-2.0
"""Random weights that keep the numbers of a net in range."""

import torch
from torch import nn

NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
OFFSET = 0.7


def randomise_batch_norms(model, inputs, offset=OFFSET, items=4):
    """Draws scales and offsets of the batch norms, sets their statistics to those of noise that runs through the net, and shifts
    the statistics slightly, so that no norm is the identity and none diverges. Does nothing for a net without batch norms.

    Scales below 1 and offsets above 0 keep most values in the nearly linear range of activations. Around 0, each norm and activation
    would amplify differences. A deep net would then turn the last bit of its weights into another answer, unlike trained nets.
    """
    norms = [m for m in model.modules() if isinstance(m, NORMS)]
    if not norms:
        return
    for norm in norms:
        nn.init.uniform_(norm.weight, 0.4, 0.7)
        nn.init.normal_(norm.bias, offset, 0.1)
        norm.reset_running_stats()
        norm.momentum = None
        norm.train()
    model(*(torch.randn(items, *x.shape[1:]) * x.std() + x.mean() for x in inputs))
    for norm in norms:
        norm.eval()
        # After an average over the picture, all values are nearly the same.
        deviation = norm.running_var.clamp_min(1e-3).sqrt().maximum(0.25 * norm.running_mean.abs())
        norm.running_mean += 0.1 * deviation * torch.randn_like(deviation)
        norm.running_var.copy_((deviation * torch.empty_like(deviation).uniform_(0.9, 1.1)) ** 2)

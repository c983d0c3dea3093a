"""Random weights that keep the numbers of a net in range."""

import torch
from torch import nn

NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
OFFSET = 0.7


def randomise_batch_norms(model, inputs, offset=OFFSET, items=4):
    """Draws scales and offsets of the batch norms, gives them the statistics of noise that runs through the net, and shifts
    these a little, so that no norm is the identity and none blows up. Nothing happens in a net without batch norms.

    Scales below 1 and offsets above 0 keep most values where activations are nearly straight. Around 0 each norm and activation
    would enlarge differences, and a deep net would turn the last bit of its weights into another answer, as trained nets do not.
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
        # Behind an average over the picture, all that ran through was nearly the same.
        deviation = norm.running_var.clamp_min(1e-3).sqrt().maximum(0.25 * norm.running_mean.abs())
        norm.running_mean += 0.1 * deviation * torch.randn_like(deviation)
        norm.running_var.copy_((deviation * torch.empty_like(deviation).uniform_(0.9, 1.1)) ** 2)

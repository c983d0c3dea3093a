# SPDX-License-Identifier: Apache-2.0
"""Integer weights with scales, as coremltools' `linear_quantize_weights` creates them by default for a type.

Rounding random weights to 4 bits changes a net's outputs far more than any engine does. The matrices of a net are therefore
rounded before PyTorch computes the expected outputs, to values that the compressed model represents exactly.
"""

import copy
import dataclasses

from harness import samples


@dataclasses.dataclass(frozen=True)
class Weights:
    largest: int  # largest integer
    block: int    # elements of a row per scale; 0: all


WEIGHTS = {"int8": Weights(127, 0), "int4": Weights(7, 32)}


def rounded_net(net, precision, folder):
    """The net with such weights. PyTorch's outputs for them are saved in `folder`, next to the converted model."""
    import numpy as np
    import torch

    from harness.network import several

    def model():
        found = net.model()
        round_matrices(found, precision)
        return found

    same = copy.copy(net)
    same.model = model
    with torch.no_grad():
        answers = model()(*net.tensors())
    np.savez(folder / samples.ANSWERS, **{name: answer.numpy() for name, answer in zip(net.outputs, several(answers))})
    return same


def rounded(matrix, weights):
    """A float32 matrix in which each element is a float16 scale times an integer up to `largest`."""
    import torch

    blocks = matrix.reshape(matrix.shape[0], -1, weights.block or matrix[0].numel())
    scale = (blocks.abs().amax(-1, keepdim=True) / weights.largest).half().float().clamp_min(torch.finfo(torch.half).tiny)
    return ((blocks / scale).round().clamp(-weights.largest, weights.largest) * scale).reshape(matrix.shape)


def round_matrices(model, precision):
    """Rounds all parameters of a module that coremltools would compress, in place."""
    import torch

    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.copy_(rounded(parameter, WEIGHTS[precision]))


def compress(model, precision):
    import coremltools.optimize.coreml as cto

    weights = WEIGHTS[precision]
    blocks = {"granularity": "per_block", "block_size": weights.block} if weights.block else {"granularity": "per_channel"}
    config = cto.OpLinearQuantizerConfig(mode="linear_symmetric", dtype=precision, **blocks)
    return cto.linear_quantize_weights(model, cto.OptimizationConfig(global_config=config))

# SPDX-License-Identifier: Apache-2.0
"""The change of a net's outputs when only its weights are rounded to float16: an error that no engine can avoid."""

import torch

from harness import stats


def of(net):
    """The error of PyTorch's float32 arithmetic with all constants rounded, batch norms folded as converters do."""
    with torch.no_grad():
        frozen = torch.jit.freeze(torch.jit.trace(net.model(), net.tensors(), check_trace=False))
        if not round_constants(frozen.graph):
            raise ValueError("no constants to round")
        answers = frozen(*net.tensors())
    answers = answers if isinstance(answers, tuple) else (answers,)
    found = dict(zip(net.outputs, answers))
    wanted = net.definition.STATEFUL_OUTPUTS if net.states else net.outputs
    return max(stats.relative_error(found[name].numpy(), net.expected[name]) for name in wanted)


def round_constants(graph):
    """Rounds in place and returns the number of rounded tensors."""
    seen = {}
    for node in graph.findAllNodes("prim::Constant", recurse=True):
        for tensor in tensors_of(node.output().toIValue()):
            if tensor.is_floating_point():
                seen[tensor.data_ptr()] = tensor
    for tensor in seen.values():
        tensor.copy_(tensor.half().float())
    return len(seen)


def tensors_of(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors_of(part)

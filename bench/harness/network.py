# SPDX-License-Identifier: Apache-2.0
"""A net in the form that converters use: the PyTorch module, its inputs and outputs, and files made from it.

A net's folder in the cache holds net.json, inputs.npz, outputs.npz (PyTorch's float32 outputs) and weights.pt, and model.onnx
once a converter has asked for it.
"""

import json
import os
import pathlib

import numpy as np

import nets
from harness import stats

SEED = 20
LEAST_CHANGE = 0.02  # smallest change of outputs for other inputs, relative to the outputs' scale
ONNX_OPSET = 17


class Network:
    def __init__(self, name, folder):
        self.name = name
        self.folder = pathlib.Path(folder)
        self.definition = nets.module(name)

    @property
    def inputs(self):
        with np.load(self.folder / "inputs.npz") as file:
            return dict(file)

    @property
    def expected(self):
        with np.load(self.folder / "outputs.npz") as file:
            return dict(file)

    @property
    def outputs(self):
        return tuple(self.definition.OUTPUTS)

    @property
    def states(self):
        """Inputs that a stateful engine keeps in its own buffers, by name; see `stateful_model`."""
        return tuple(getattr(self.definition, "STATES", ()))

    def model(self):
        import torch

        torch.manual_seed(SEED)
        model = self.definition.model().eval()
        model.load_state_dict(torch.load(self.folder / "weights.pt", weights_only=True))
        return model

    def stateful_model(self):
        """The same net with the inputs in `states` as buffers that it writes to, and the names of its outputs."""
        return self.definition.stateful(self.model()).eval(), tuple(self.definition.STATEFUL_OUTPUTS)

    def tensors(self, names=None):
        """The inputs as torch tensors, in the order of the model's arguments."""
        import torch

        inputs = self.inputs
        return tuple(torch.from_numpy(inputs[name]) for name in names or inputs)

    def traced(self):
        import torch

        with torch.no_grad():
            return torch.jit.trace(self.model(), self.tensors(), check_trace=False)

    def onnx(self):
        """The path of the net as ONNX, created on first use."""
        path = self.folder / "model.onnx"
        if not path.is_file():
            import torch

            beside = path.with_name("part.onnx")
            with torch.no_grad():
                torch.onnx.export(self.model(), self.tensors(), str(beside), input_names=list(self.inputs),
                                  output_names=list(self.outputs), opset_version=ONNX_OPSET, dynamo=False)
            os.replace(beside, path)
        return path


def several(answers):
    return answers if isinstance(answers, (tuple, list)) else (answers,)


def make(name, folder):
    """Builds the net with its random weights and records PyTorch's outputs."""
    import torch

    from blocks import weights

    folder = pathlib.Path(folder)
    definition = nets.module(name)
    torch.manual_seed(SEED)
    inputs = {n: np.ascontiguousarray(a) for n, a in definition.inputs(np.random.default_rng(SEED)).items()}
    tensors = tuple(torch.from_numpy(a) for a in inputs.values())
    model = definition.model().eval()
    with torch.no_grad():
        weights.randomise_batch_norms(model, tensors, getattr(definition, "NORM_OFFSET", weights.OFFSET))
        answers = model(*tensors)
    answers = several(answers)
    if len(answers) != len(definition.OUTPUTS):
        raise ValueError(f"{name}: OUTPUTS names {len(definition.OUTPUTS)} outputs, the model has {len(answers)}")
    outputs = {n: a.numpy() for n, a in zip(definition.OUTPUTS, answers)}
    others = definition.inputs(np.random.default_rng(SEED + 1))
    with torch.no_grad():
        elsewhere = several(model(*(torch.from_numpy(a) for a in others.values())))
    changes = {n: stats.relative_error(b, a) for (n, a), b in zip(outputs.items(), elsewhere)}
    for output, values in outputs.items():
        if not np.isfinite(values).all() or changes[output] < LEAST_CHANGE:
            raise ValueError(f"{name}: output {output}: expected finite numbers that other inputs change by {LEAST_CHANGE} of their "
                             f"scale or more, got numbers up to {np.abs(values).max()} and a change of {changes[output]}")
    torch.save(model.state_dict(), folder / "weights.pt")
    np.savez(folder / "inputs.npz", **inputs)
    np.savez(folder / "outputs.npz", **outputs)
    (folder / "net.json").write_text(json.dumps({
        "title": definition.TITLE,
        "family": definition.FAMILY,
        "goals": getattr(definition, "GOALS", {}),
        "relative_to": getattr(definition, "RELATIVE_TO", None),
        "input": {n: list(a.shape) for n, a in inputs.items()},
        "change": changes,
        "scale": {n: float(np.abs(a).max()) for n, a in outputs.items()},
        "parameters": sum(p.numel() for p in model.parameters()),
    }, indent=1))

# SPDX-License-Identifier: Apache-2.0
"""A net as torch.onnx exports it: what moka converts of the file, and onnxruntime's answers to the file itself."""

import pathlib
import subprocess
import sys

import numpy as np

import engines
from harness import stats

INPUTS = 3  # sets of inputs
SEED = 40


def convert(net, folder):
    """Writes the converted model into the folder, as a user does."""
    made = pathlib.Path(folder) / "model.mlpackage"
    done = subprocess.run([sys.executable, "-m", "moka", "convert", str(net.onnx()), "-o", str(made)], capture_output=True, text=True)
    if done.returncode != 0:
        raise engines.Refused(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"moka convert ends with status {done.returncode}")
    return made


def errors(net, folder, threads=2):
    """The largest relative differences over all outputs and inputs: between moka and onnxruntime, and of both from PyTorch."""
    import moka
    import onnxruntime
    import torch

    model = moka.Model(convert(net, folder), threads=threads)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(net.onnx()), options, providers=["CPUExecutionProvider"])
    read = [i.name for i in session.get_inputs()]
    if sorted(read) != sorted(f.name for f in model.description.inputs):
        raise engines.Refused(f"the converted model reads {', '.join(f.name for f in model.description.inputs)}, the exported one {', '.join(read)}")
    torch_model = net.model()
    found = {"moka and onnxruntime": 0.0, "moka": 0.0, "onnxruntime": 0.0}
    for seed in range(SEED, SEED + INPUTS):
        inputs = {n: np.ascontiguousarray(a) for n, a in net.definition.inputs(np.random.default_rng(seed)).items()}
        with torch.no_grad():
            answers = torch_model(*(torch.from_numpy(a) for a in inputs.values()))
        expected = [a.numpy() for a in (answers if isinstance(answers, (tuple, list)) else (answers,))]
        given = {name: inputs[name] for name in read}
        theirs, ours = session.run(list(net.outputs), given), model.predict(given)
        for name, right, their in zip(net.outputs, expected, theirs):
            if ours[name].shape != their.shape:
                raise engines.Refused(f"output {name}: expected the shape {their.shape}, got {ours[name].shape}")
            for pair, got, reference in (("moka and onnxruntime", ours[name], their), ("moka", ours[name], right), ("onnxruntime", their, right)):
                found[pair] = max(found[pair], stats.relative_error(got, reference))
    return {"inputs": INPUTS, "nodes": nodes_of(net.onnx()), "operations": len(model.explain().operations), "errors": found}


def nodes_of(path):
    import onnx

    return len(onnx.load(str(path), load_external_data=False).graph.node)

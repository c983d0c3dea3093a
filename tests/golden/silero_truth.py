# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/silero/<model>.json: Silero's voice detector streamed in numpy, in float64 without any rounding.

    python silero_truth.py folder_of_the_silero_models

Chunk k is 576 numbers of splitmix64, seed k, uniform in [-a, a] with a = 0.02, 0.5 and 0.1 in turn; hidden and cell
state are carried from one chunk to the next. Weights are dequantized as coremltools itself does it.
"""
import json
import pathlib
import sys

import numpy as np
from coremltools.converters.mil.frontend.milproto.load import load
from coremltools.models import MLModel

from nn_truth import draw

CHUNKS = 12


def conv(x, weight, bias, strides, pad):
    x = np.pad(x, [(0, 0), (0, 0), (int(pad[0]), int(pad[1]))])
    k, s = weight.shape[2], int(strides[0])
    n = (x.shape[2] - k) // s + 1
    columns = np.stack([x[:, :, i * s : i * s + k] for i in range(n)], axis=-1)
    y = np.einsum("bckn,ock->bon", columns, weight)
    return y if bias is None else y + bias[None, :, None]


def lstm(x, h, c, wi, wh, b):
    sigmoid = lambda v: 1 / (1 + np.exp(-v))
    out = []
    for t in range(x.shape[0]):
        i, f, o, z = np.split(x[t] @ wi.T + h @ wh.T + b, 4, axis=-1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(z)
        h = sigmoid(o) * np.tanh(c)
        out.append(h)
    return np.stack(out), h, c


def evaluate(op, v):
    t = op.op_type
    if t == "cast":
        return v("x")
    if t == "add":
        return v("x") + v("y")
    if t == "pow":
        return v("x") ** v("y")
    if t == "sqrt":
        return np.sqrt(v("x"))
    if t == "relu":
        return np.maximum(v("x"), 0)
    if t == "clip":
        return np.clip(v("x"), v("alpha"), v("beta"))
    if t == "sigmoid":
        return 1 / (1 + np.exp(-v("x")))
    if t == "transpose":
        return np.transpose(v("x"), v("perm").astype(int))
    if t == "expand_dims":
        return np.expand_dims(v("x"), tuple(v("axes").astype(int)))
    if t == "squeeze":
        return np.squeeze(v("x"), tuple(v("axes").astype(int)))
    if t == "pad":
        p = v("pad").astype(int).reshape(-1, 2)
        x = v("x")
        return np.pad(x, [(0, 0)] * (x.ndim - len(p)) + [tuple(q) for q in p], mode=str(op.mode.val))
    if t == "slice_by_index":
        x = v("x")
        mask = lambda name: getattr(op, name).val if getattr(op, name) is not None else [False] * x.ndim
        begin, end = mask("begin_mask"), mask("end_mask")
        stride = op.stride.val if op.stride is not None else [1] * x.ndim
        return x[tuple(slice(None if begin[i] else op.begin.val[i], None if end[i] else op.end.val[i], stride[i]) for i in range(x.ndim))]
    if t == "conv":
        assert all(d == 1 for d in op.dilations.val) and op.groups.val == 1
        pad = op.pad.val if op.pad_type.val == "custom" else [0, 0]
        assert op.pad_type.val in ("custom", "valid")
        return conv(v("x"), v("weight"), v("bias") if op.bias is not None else None, op.strides.val, pad)
    if t == "lstm":
        assert op.direction.val == "forward"
        y, h, c = lstm(v("x"), v("initial_h"), v("initial_c"), v("weight_ih"), v("weight_hh"), v("bias"))
        return (y if op.output_sequence.val else y[-1:]), h, c
    raise NotImplementedError(t)


def run(program, inputs):
    values = {k: np.asarray(x, np.float64) for k, x in inputs.items()}
    function = program.functions["main"]
    for op in function.operations:
        if op.op_type == "const":
            value = op.outputs[0].val
            if np.asarray(value).dtype.kind in "fiub":
                values[op.outputs[0].name] = np.asarray(value, np.float64)
        elif op.op_type.startswith("constexpr"):
            values[op.outputs[0].name] = np.asarray(op.materialized_val_inference(), np.float64)
        else:
            result = evaluate(op, lambda name: values[getattr(op, name).name])
            for out, x in zip(op.outputs, result if isinstance(result, tuple) else (result,)):
                values[out.name] = x
    return {o.name: values[o.name] for o in function.outputs}


def main(folder):
    target = pathlib.Path(__file__).parent / "silero"
    for name in ("silero-vad-unified-v6.0.0", "unified_int8", "unified_palette_4bit"):
        model = MLModel(str(pathlib.Path(folder) / f"{name}.mlpackage"), skip_model_load=True)
        program = load(model.get_spec(), specification_version=model.get_spec().specificationVersion, file_weights_dir=model.weights_dir)
        h, c = np.zeros((1, 128)), np.zeros((1, 128))
        chunks = []
        for k in range(CHUNKS):
            a = (0.02, 0.5, 0.1)[k % 3]
            out = run(program, {"audio_input": draw(k, (1, 576), -a, a), "hidden_state": h, "cell_state": c})
            h, c = out["new_hidden_state"], out["new_cell_state"]
            chunks.append({"vad": float(out["vad_output"].ravel()[0]), "hidden": h.ravel()[::8].tolist(), "cell": c.ravel()[::8].tolist()})
        (target / f"{name}.json").write_text(json.dumps(chunks) + "\n")
        print(name, [round(x["vad"], 4) for x in chunks])


if __name__ == "__main__":
    main(*sys.argv[1:])

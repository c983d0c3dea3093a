# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/seq2seq/sequences.json: the character translator run greedily in numpy, in float64.

    python seq2seq_truth.py folder_of_Es2EnCharEncoder_and_Decoder

The layers as Core ML's format describes them: gates sigmoidHard (0.2 x + 0.5 cut to [0, 1]), ones added to the forget
gate's bias where forgetBias is set, the cell clipped. The decoder starts with character 0 and ends with character 1.
"""
import json
import pathlib
import sys

import numpy as np
from coremltools.proto import Model_pb2

SEQUENCES = {
    "short": [20, 50, 60, 40, 5],
    "word": [5, 66, 70, 63, 52, 2],
    "words": [30, 61, 62, 2, 55, 52, 70, 8],
    "long": [36, 66, 2, 54, 66, 64, 63, 65, 56, 65, 55, 66, 2, 52, 60, 2, 67, 69, 66, 53, 63, 56, 64, 52, 10],
}


def load(path):
    spec = Model_pb2.Model()
    spec.ParseFromString(path.read_bytes())
    layers = spec.neuralNetwork.layers
    lstm = layers[0].uniDirectionalLSTM
    n, h, p, w = lstm.inputVectorSize, lstm.outputVectorSize, lstm.params, lstm.weightParams
    assert [a.WhichOneof("NonlinearityType") for a in lstm.activations] == ["sigmoidHard", "tanh", "tanh"]
    hard = lstm.activations[0].sigmoidHard
    # Absent parameters of sigmoidHard mean 0.2 and 0.5.
    slope, offset = (hard.alpha, hard.beta) if hard.alpha or hard.beta else (0.2, 0.5)
    take = lambda m, shape: np.array(m.floatValue, np.float64).reshape(shape)
    gates = {}
    for gate, stem in (("i", "inputGate"), ("f", "forgetGate"), ("z", "blockInput"), ("o", "outputGate")):
        gates[gate] = (
            take(getattr(w, stem + "WeightMatrix"), (h, n)),
            take(getattr(w, stem + "RecursionMatrix"), (h, h)),
            take(getattr(w, stem + "BiasVector"), (h,)) + (1.0 if gate == "f" and p.forgetBias else 0.0),
        )
    dense = None
    if len(layers) > 1:
        d = layers[1].innerProduct
        dense = take(d.weights, (d.outputChannels, d.inputChannels)), take(d.bias, (d.outputChannels,))
    return {"n": n, "h": h, "gates": gates, "clip": p.cellClipThreshold, "dense": dense, "slope": slope, "offset": offset}


def step(net, index, h, c):
    x = np.eye(net["n"])[index]
    a = {g: w @ x + r @ h + b for g, (w, r, b) in net["gates"].items()}
    gate = lambda v: np.clip(net["slope"] * v + net["offset"], 0, 1)
    c = np.clip(gate(a["f"]) * c + gate(a["i"]) * np.tanh(a["z"]), -net["clip"], net["clip"])
    return gate(a["o"]) * np.tanh(c), c


def main(folder):
    folder = pathlib.Path(folder)
    encoder, decoder = load(folder / "Es2EnCharEncoder.mlmodel"), load(folder / "Es2EnCharDecoder.mlmodel")
    out = {}
    for name, sequence in SEQUENCES.items():
        h, c = np.zeros(encoder["h"]), np.zeros(encoder["h"])
        for i in sequence:
            h, c = step(encoder, i, h, c)
        case = {"input": sequence, "encoder_h": h[::16].tolist(), "encoder_c": c[::16].tolist(), "output": [], "probability": []}
        index = 0
        while index != 1 and len(case["output"]) < 60:
            h, c = step(decoder, index, h, c)
            logits = decoder["dense"][0] @ h + decoder["dense"][1]
            p = np.exp(logits - logits.max())
            p /= p.sum()
            index = int(p.argmax())
            case["output"].append(index)
            case["probability"].append(float(p[index]))
        out[name] = case
    target = pathlib.Path(__file__).parent / "seq2seq" / "sequences.json"
    target.write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])

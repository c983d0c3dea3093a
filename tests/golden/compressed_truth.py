# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/compressed/weights.json: weights, and the same weights compressed by coremltools.optimize.coreml.

python3 tests/golden/compressed_truth.py        needs coremltools 9.0 and numpy 2.4
"""
import base64
import json
import os

import numpy as np
from coremltools.optimize import _utils
from coremltools.optimize.coreml._quantization_passes import linear_quantize_weights, palettize_weights, prune_weights

rng = np.random.default_rng(5)
WEIGHTS = {
    "linear": rng.standard_normal((16, 32)).astype(np.float32) * 0.3 + 0.05,
    "conv": (rng.standard_normal((16, 8, 3, 3)) * 0.1).astype(np.float16),
    "large": rng.standard_normal((64, 128)).astype(np.float32),
    "steps": (rng.integers(0, 12, (16, 32)) / 4).astype(np.float32),
}
WEIGHTS["linear"][3] = 0


def packed(data):
    return base64.b64encode(np.ascontiguousarray(data).tobytes()).decode()


def codes(data):
    return packed(np.asarray(data).astype(np.int64).astype(np.int16))


cases = []
for name in ("linear", "conv"):
    w = WEIGHTS[name]
    for bits in (4, 8):
        for mode in ("LINEAR_SYMMETRIC", "LINEAR"):
            for signed in (True, False):
                for granularity, blocks in (("tensor", [0, 0]), ("channel", [1, 0]), ("block", [1, 8])):
                    blocks = blocks + [0] * (w.ndim - 2)
                    with np.errstate(divide="ignore", invalid="ignore"):
                        p = linear_quantize_weights.blockwise_compress(w, bits, mode, signed, blocks)
                    cases.append({"weight": name, "kind": "linear", "bits": bits, "symmetric": mode == "LINEAR_SYMMETRIC", "signed": signed,
                                  "granularity": granularity, "codes": codes(p.data), "scale": packed(p.scale.astype(np.float32)),
                                  "offset": None if p.offset is None else codes(p.offset), "shape": list(p.scale.shape)})
for name in WEIGHTS:
    w = WEIGHTS[name]
    for bits in (1, 2, 3, 4, 6, 8):
        for group, vector in ((0, 1), (8, 1), (0, 4)):
            if vector > 1 and bits > 4:
                continue
            p = palettize_weights.grouped_channelwise_compress(w, "KMEANS", bits, 0, group, cluster_dim=vector)
            back = palettize_weights.decompress(p).astype(np.float64)
            cases.append({"weight": name, "kind": "palette", "bits": bits, "group": group, "vector": vector,
                          "error": float(((back - w) ** 2).sum()), "lut": list(p.lut.shape), "indices": list(p.indices.shape)})
    if name != "conv":
        p = palettize_weights.grouped_channelwise_compress(w, "UNIFORM", 4, 0, 0)
        cases.append({"weight": name, "kind": "uniform", "bits": 4, "codes": codes(p.indices), "values": packed(p.lut.astype(np.float32))})
p = palettize_weights.grouped_channelwise_compress(WEIGHTS["steps"], "UNIQUE", None, 0, 0)
cases.append({"weight": "steps", "kind": "unique", "bits": 4, "codes": codes(p.indices), "values": packed(p.lut.astype(np.float32))})


def mask(params):
    return packed(_utils.ios16_sparse_params_to_ios18(params).mask.astype(np.uint8))


for name in ("linear", "conv", "large"):
    w = WEIGHTS[name]
    for sparsity in (0.25, 0.5, 0.9):
        cases.append({"weight": name, "kind": "prune", "sparsity": sparsity, "mask": mask(prune_weights.compress_by_magnitude(w, sparsity))})
        cases.append({"weight": name, "kind": "prune", "sparsity": sparsity, "block": 4,
                      "mask": mask(prune_weights.compress_by_magnitude(w, sparsity, block_size=4, dim=0))})
    cases.append({"weight": name, "kind": "prune", "threshold": 0.05, "mask": mask(prune_weights.compress_by_threshold(w, 0.05, 0.0))})
    for n, m in ((2, 4), (1, 4), (3, 4)):
        if m * 2 <= w.shape[1]:
            cases.append({"weight": name, "kind": "prune", "n": n, "m": m, "mask": mask(prune_weights.compress_by_nm_sparsity(w, (n, m), 1))})

folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "compressed")
os.makedirs(folder, exist_ok=True)
with open(os.path.join(folder, "weights.json"), "w") as f:
    weights = {k: {"shape": list(w.shape), "half": w.dtype == np.float16, "values": packed(w.astype(np.float32))} for k, w in WEIGHTS.items()}
    json.dump({"weights": weights, "cases": cases}, f, indent=0)
    f.write("\n")
print(len(cases), "cases")

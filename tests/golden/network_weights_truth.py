# SPDX-License-Identifier: Apache-2.0
"""Weights of neural networks as coremltools' quantization_utils quantizes them: compressed/networks.json.

    python tests/golden/network_weights_truth.py      # coremltools 9.0, scikit-learn 1.5 or later
"""

import base64
import json
from pathlib import Path

import numpy as np
from coremltools import models
from coremltools.models.neural_network import quantization_utils
from coremltools.proto import NeuralNetwork_pb2

CASES = [("convolution", (6, 5, 3, 3), 0), ("deconvolution", (4, 6, 3, 2), 1), ("innerProduct", (7, 11), 0)]
MODES = {"linear": models._QUANTIZATION_MODE_LINEAR_QUANTIZATION, "linear_symmetric": models._QUANTIZATION_MODE_LINEAR_SYMMETRIC}
FORMS = [(bits, "linear") for bits in (8, 7, 4, 3, 1)] + [(8, "linear_symmetric")] + [(bits, "kmeans") for bits in (6, 4, 2)] + [(16, "linear")]


def coded(data):
    return base64.b64encode(data).decode()


def main():
    random = np.random.default_rng(5)
    weights, cases = {}, []
    for name, shape, axis in CASES:
        values = (random.standard_normal(shape) * random.uniform(0.1, 3, (shape[0],) + (1,) * (len(shape) - 1))).astype(np.float32)
        weights[name] = {"shape": shape, "axis": axis, "values": coded(values.tobytes())}
        for bits, mode in FORMS:
            case = {"weight": name, "bits": bits, "mode": mode, "scale": "", "bias": "", "table": ""}
            cases.append(case)
            if mode == "kmeans":
                table, codes = quantization_utils._get_kmeans_lookup_table_and_weight(bits, values)
                packed = quantization_utils._convert_array_to_nbit_quantized_bytes(codes.flatten().astype(np.uint8), bits)
                case.update(data=coded(packed.tobytes()), table=coded(np.float32(table.flatten()).tobytes()))
                continue
            params = NeuralNetwork_pb2.WeightParams()
            params.floatValue.extend(values.flatten())
            quantization_utils._quantize_wp_field(params, bits, MODES[mode], shape, axis=axis)
            linear = params.quantization.linearQuantization
            case.update(data=coded(params.float16Value if bits == 16 else params.rawValue),
                        scale=coded(np.float32(linear.scale).tobytes()), bias=coded(np.float32(linear.bias).tobytes()))
    path = Path(__file__).parent / "compressed" / "networks.json"
    path.write_text(json.dumps({"weights": weights, "cases": cases}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()

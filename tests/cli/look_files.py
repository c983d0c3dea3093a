# SPDX-License-Identifier: Apache-2.0
"""Models that Moka refuses to run, or that are damaged, written by hand."""

import json
import struct
from pathlib import Path

from model_files import FLOAT32, array_feature, field, text, varint, write_program


def fixed32(values):
    return struct.pack(f"<{len(values)}f", *values)


def layer(name, kind, body, given, made):
    return field(1, field(1, name) + field(2, given) + field(3, made) + field(kind, body))


def description(inputs, outputs, metadata=b""):
    return field(2, b"".join(field(1, f) for f in inputs) + b"".join(field(10, f) for f in outputs)
                 + (field(100, metadata) if metadata else b""))


def write_model(path, spec):
    Path(path).write_bytes(spec)
    return str(path)


def inner_product(name, given, made, rows, columns):
    body = field(1, columns) + field(2, rows) + field(20, field(1, fixed32([0.5] * rows * columns)))
    return layer(name, 140, body, given, made)


def custom_layer(path):
    """An inner product with 6 weights, then a layer that only an app can run."""
    network = inner_product("dense", "x", "h", 2, 3) + layer("odd", 500, field(10, "Swish"), "h", "y")
    return write_model(path, field(1, 1) + description([array_feature("x", [3])], [array_feature("y", [2])],
                                                       field(3, "Someone")) + field(500, network))


def unknown_layer(path):
    network = inner_product("dense", "x", "h", 2, 3) + layer("new", 9999, field(1, 1), "h", "y")
    return write_model(path, field(1, 4) + description([array_feature("x", [3])], [array_feature("y", [2])])
                       + field(500, network))


def unknown_kind(path):
    return write_model(path, field(1, 12) + description([array_feature("x", [3])], [array_feature("y", [2])],
                                                        field(3, "Someone")) + field(4711, field(1, "what")))


def unreadable_feature(path):
    """Input 'odd' has the data type 77."""
    features = [array_feature("x", [3]), array_feature("odd", [3], 77)]
    return write_model(path, field(1, 1) + description(features, [array_feature("y", [2])])
                       + field(500, inner_product("dense", "x", "y", 2, 3)))


def suppression_pipeline(path, scores="scores"):
    """A network that returns boxes and scores, and a non-maximum suppression of `scores` and "boxes"."""
    network = (description([array_feature("x", [3])], [array_feature("scores", [2]), array_feature("boxes", [4])])
               + field(500, inner_product("a", "x", "scores", 2, 3) + inner_product("b", "x", "boxes", 4, 3)))
    suppression = (description([array_feature("scores", [2]), array_feature("boxes", [4])],
                               [array_feature("confidence", [1, 2]), array_feature("coordinates", [1, 4])])
                   + field(610, field(100, field(1, "cat") + field(1, "dog")) + double(110, 0.45)
                           + field(200, scores) + field(201, "boxes") + field(210, "confidence")
                           + field(211, "coordinates")))
    models = field(1, field(1, 3) + network) + field(1, field(1, 3) + suppression)
    return write_model(path, field(1, 3)
                       + description([array_feature("x", [3])],
                                     [array_feature("confidence", [1, 2]), array_feature("coordinates", [1, 4])])
                       + field(202, models + field(2, "detector") + field(2, "suppression")))


def many_shapes_and_classes(path, shapes, classes):
    """A classifier of [3] whose description allows many lengths for its input."""
    enumerated = b"".join(field(1, field(1, varint(3 + n))) for n in range(shapes))
    array = field(1, varint(3)) + field(2, FLOAT32) + field(21, enumerated)
    about = field(1, field(1, "x") + field(3, field(5, array)))
    about += field(10, field(1, "label") + field(3, field(3, b""))) + field(11, "label")
    labels = field(100, b"".join(field(1, f"c{n}") for n in range(classes)))
    network = inner_product("dense", "x", "y", classes, 3) + field(5, 1) + labels
    return write_model(path, field(1, 4) + field(2, about) + field(403, network))


def double(number, value):
    return varint(number << 3 | 1) + struct.pack("<d", value)


def espresso(folder):
    """A compiled network of one convolution with 54 weights and 2 biases, with the file of ranks of recent compilers."""
    folder = Path(folder)
    folder.mkdir()
    message = b"".join(field(1, f) for f in [array_feature("x", [3, 8, 8])])
    message += b"".join(field(10, f) for f in [array_feature("y", [2, 8, 8])])
    data = struct.pack("<IQQQ", 500, 1, 3, 0) + text("generic") + struct.pack("<I", 2) + bytes(28)
    data += struct.pack("<Q", len(message)) + message + struct.pack("<Q", 500) + struct.pack("<Q", 1) + text("y")
    (folder / "coremldata.bin").write_bytes(data)
    net = {"format_version": 200, "storage": "model.espresso.weights",
           "layers": [{"type": "convolution", "name": "conv", "bottom": "x", "top": "y", "K": 3, "C": 2, "Nx": 3, "Ny": 3,
                       "blob_weights": 3, "blob_biases": 1, "weights": {}}]}
    (folder / "model.espresso.net").write_text(json.dumps(net))
    (folder / "model.rank.info.json").write_text('{"x" : 5}')
    sizes = [(0, 0), (1, 8), (2, 0), (3, 216)]
    (folder / "model.espresso.weights").write_bytes(
        struct.pack("<Q", 4) + b"".join(struct.pack("<QQ", *s) for s in sizes) + bytes(224))
    return str(folder)


MISSING = """program(1.0)
{
    func main<ios16>(tensor<fp32, [1, 4]> x) {
        tensor<fp32, [4, 4]> w = const()[name = tensor<string, []>("w"), val = tensor<fp32, [4, 4]>(BLOBFILE(path = tensor<string, []>("@model_path/weights/weight.bin"), offset = tensor<uint64, []>(64)))];
        tensor<fp32, [1, 4]> y = linear(x = x, weight = w)[name = tensor<string, []>("y")];
    } -> (y);
}
"""

UNKNOWN_OPERATION = """program(1.3)
{
    func main<ios99>(tensor<fp32, [1, 4]> x) {
        tensor<fp32, [1, 4]> h = relu(x = x)[name = string("h")];
        tensor<fp32, [1, 4]> y = teleport(x = h, to = string("there"))[name = string("y")];
    } -> (y);
}
"""


def missing_weights(folder):
    return write_program(folder, MISSING, [array_feature("x", [1, 4])], [array_feature("y", [1, 4])])


def unknown_operation(folder):
    return write_program(folder, UNKNOWN_OPERATION, [array_feature("x", [1, 4])], [array_feature("y", [1, 4])])

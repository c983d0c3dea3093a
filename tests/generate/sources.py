# SPDX-License-Identifier: Apache-2.0
"""Models whose generated code the tests compile."""

import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "cli"))
import model_files
from model_files import FLOAT16, FLOAT32, array_feature, field, varint, write_program

SUM = """program(1.3)
{
    func main<ios18>(tensor<fp32, [2]> x, tensor<fp32, [2]> y) {
        tensor<fp32, [2]> z = add(x = x, y = y)[name = string("z")];
    } -> (z);
}
"""


def feature(name, kind, payload=b"", optional=False, about=""):
    """kind: the field of FeatureType."""
    described = field(1, name) + (field(2, about) if about else b"")
    return described + field(3, field(kind, payload) + (field(1000, 1) if optional else b""))


def image(name, space=20, optional=False):
    return feature(name, 4, field(1, 4) + field(2, 2) + field(3, space), optional)


INT64, DOUBLE, STRING, DICTIONARY, SEQUENCE = 1, 2, 3, 6, 7
STRING_KEYS, INT64_KEYS = field(2, b""), field(1, b"")
STRINGS, INT64S = field(3, b""), field(1, b"")

# Every kind of feature, with names that languages do not allow unchanged.
EVERYTHING = [
    feature("class", INT64, about="ends\nearly */ \\"),
    feature("1st value", DOUBLE),
    feature("maybe", DOUBLE, optional=True),
    feature("\U0001f600", DOUBLE),
    feature("hidden\u202e\u200b", DOUBLE, about="turns\u202e around"),
    feature("MLMultiArray", DOUBLE),
    feature("NSError", STRING),
    feature("dealloc", DOUBLE),
    feature("Class", INT64),
    feature("linux", DOUBLE),
    feature("NULL", DOUBLE),
    feature("EOF", DOUBLE),
    feature("errno", DOUBLE),
    feature("values", DOUBLE),
    feature("count?", INT64, optional=True),
    feature("count!", INT64),
    feature('quo"ted \\(name)', STRING),
    feature("word", STRING, optional=True),
    array_feature("caf\u00e9", [1, 3, 2, 2]),
    array_feature("prediction", [2]),
    array_feature("true", [2]),
    array_feature("_Bool", [2]),
    array_feature("typeof", [2]),
    array_feature("half", [4], FLOAT16),
    feature("self", 5, field(1, b"\x02") + field(2, FLOAT32), optional=True),
    image("picture"),
    feature("scores", DICTIONARY, STRING_KEYS),
    feature("ids", DICTIONARY, INT64_KEYS, optional=True),
    feature("words", SEQUENCE, STRINGS),
    feature("numbers", SEQUENCE, INT64S, optional=True),
]
RESULTS = [
    feature("features", DICTIONARY, STRING_KEYS),
    feature("by number", DICTIONARY, INT64_KEYS),
    feature("return", STRING),
    feature("label", INT64),
    feature("provider", DOUBLE),
    feature("values_", DOUBLE),
    feature("list", SEQUENCE, STRINGS),
    feature("list 2", SEQUENCE, INT64S),
    array_feature("matrix", [2, 3], FLOAT16),
    image("drawn", space=10),
]


def write_sum(folder):
    return write_program(folder / "Sum of-two.mlmodelc", SUM, [array_feature("x", [2]), array_feature("y", [2])],
                         [array_feature("z", [2])])


def write_accumulator(folder):
    return model_files.write_accumulator(folder / "Accumulator.mlmodelc")


def write_everything(folder, spec_version=7):
    """A model that is only described: its program has other inputs."""
    return write_program(folder / "Everything 2.mlmodelc", SUM, EVERYTHING, RESULTS, spec_version=spec_version)


def write_alike(folder):
    """A model that is only described. Some of its names collide with setters and arrays of other fields: setPicture, yShapedArray."""
    return write_program(folder / "Alike.mlmodelc", SUM,
                         [image("picture"), image("Picture"), array_feature("x", [2]), array_feature("X", [2])],
                         [array_feature("y", [2]), array_feature("yShapedArray", [2])])


def write_pictures(folder):
    """A model that is only described, with one picture of every kind."""
    return write_program(folder / "Pictures.mlmodelc", SUM, [image("color"), image("gray", space=10), image("half", space=40)],
                         [image("drawn")])


def specification(path, inputs, outputs, kind, body, version=4):
    """A .mlmodel; kind: the field of Model."""
    described = b"".join(field(1, f) for f in inputs) + b"".join(field(10, f) for f in outputs)
    Path(path).write_bytes(field(1, version) + field(2, described) + field(kind, body))
    return str(path)


def layer(name, kind, body, given, made):
    return field(1, field(1, name) + b"".join(field(2, x) for x in given) + b"".join(field(3, x) for x in made) + field(kind, body))


def floats(*values):
    """WeightParams."""
    return field(1, struct.pack(f"<{len(values)}f", *values))


def double(number, value):
    return varint(number << 3 | 1) + struct.pack("<d", value)


def write_detector(path, optional):
    """A non-maximum suppression with both thresholds as inputs."""
    thresholds = [feature("iouThreshold", DOUBLE, optional=optional), feature("confidenceThreshold", DOUBLE, optional=optional)]
    body = field(100, field(1, "cat") + field(1, "dog")) + double(110, 0.45) + double(111, 0.25) + field(200, "scores")
    body += field(201, "boxes") + field(202, "iouThreshold") + field(203, "confidenceThreshold")
    body += field(210, "confidence") + field(211, "coordinates")
    return specification(path, [array_feature("scores", [6, 2]), array_feature("boxes", [6, 4]), *thresholds],
                         [array_feature("confidence", [6, 2]), array_feature("coordinates", [6, 4])], 610, body)


# The weights of the input, forget, block input and output gates: for the input and for the hidden state.
LSTM_WEIGHTS = [(0.5, -0.25), (1.5, 0.75), (2.0, 1.0), (-1.0, 0.5)]


def write_lstm(path):
    """An LSTM of one unit whose states are optional inputs."""
    states = [feature(name, 5, field(1, b"\x01") + field(2, FLOAT32), optional=True) for name in ("h_in", "c_in")]
    weights = b"".join(field(1 + gate, floats(w[0])) + field(20 + gate, floats(w[1])) for gate, w in enumerate(LSTM_WEIGHTS))
    activations = b"".join(field(10, field(kind, b"")) for kind in (40, 30, 30))
    body = field(1, 1) + field(2, 1) + activations + field(15, b"") + field(20, weights)
    network = layer("lstm", 420, body, ["x", "h_in", "c_in"], ["y", "h_out", "c_out"])
    return specification(path, [array_feature("x", [1]), *states], [array_feature(n, [1]) for n in ("y", "h_out", "c_out")],
                         500, network)


def write_defaults(path):
    """z = x + y, where an absent y is 0.25, and the pixels of an optional picture."""
    y = feature("y", 5, field(1, b"\x01") + field(2, FLOAT32) + varint(51 << 3 | 5) + struct.pack("<f", 0.25), optional=True)
    picture = feature("picture", 4, field(1, 2) + field(2, 2) + field(3, 10), optional=True)
    linear = varint(1 << 3 | 5) + struct.pack("<f", 1)
    network = layer("sum", 230, b"", ["x", "y"], ["z"]) + layer("pixels", 130, field(5, linear), ["picture"], ["gray"])
    return specification(path, [array_feature("x", [1]), y, picture], [array_feature("z", [1]), array_feature("gray", [1, 2, 2])],
                         500, network)

"""Models whose generated code the tests compile."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "cli"))
import model_files
from model_files import FLOAT16, FLOAT32, array_feature, field, write_program

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

# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/boundary/: ML programs for what crosses the boundary. image_<colors>.mlmodel halves a picture of 3 x 2
pixels, types.mlmodel gives arrays of each element type back, labels_<kind>.mlmodel classifies three scores.
ios16_weights.mlmodel multiplies with a palette of 2 bits and adds a sparse weight."""
import pathlib

import coremltools as ct
import numpy as np
from coremltools.converters.mil.mil import Builder as mb
from coremltools.converters.mil.mil import types
from coremltools.proto import FeatureTypes_pb2, MIL_pb2, Model_pb2

folder = pathlib.Path(__file__).parent / "boundary"
folder.mkdir(exist_ok=True)


def write(name, spec):
    spec.description.ClearField("metadata")
    for program in (spec.mlProgram,):
        program.attributes.clear()
    (folder / (name + ".mlmodel")).write_bytes(spec.SerializeToString(deterministic=True))


def converted(program, **options):
    return ct.convert(program, convert_to="mlprogram", minimum_deployment_target=ct.target.iOS16,
                      compute_precision=ct.precision.FLOAT32, skip_model_load=True, **options).get_spec()


for colors, planes, half in (("rgb", 3, False), ("bgr", 3, False), ("grayscale", 1, False), ("grayscale_float16", 1, True)):
    layout = getattr(ct.colorlayout, colors.upper())

    @mb.program(input_specs=[mb.TensorSpec((1, planes, 2, 3), dtype=types.fp16 if half else types.fp32)],
                opset_version=ct.target.iOS16)
    def halved(x):
        return mb.mul(x=x, y=np.float16(0.5) if half else np.float32(0.5), name="y")

    spec = converted(halved, inputs=[ct.ImageType(name="x", shape=(1, planes, 2, 3), color_layout=layout)])
    spec.description.output[0].type.CopyFrom(spec.description.input[0].type)
    write("image_" + colors, spec)

for kind, labels in (("text", ["cat", "dog", "eel"]), ("number", [7, -8, 9])):

    @mb.program(input_specs=[mb.TensorSpec((1, 3))], opset_version=ct.target.iOS16)
    def scores(x):
        return mb.mul(x=x, y=np.float32(0.25), name="p")

    write("labels_" + kind, converted(scores, classifier_config=ct.ClassifierConfig(labels)))

KINDS = (("half", "FLOAT16", "FLOAT16"), ("single", "FLOAT32", "FLOAT32"), ("double", "DOUBLE", "FLOAT64"),
         ("whole", "INT32", "INT32"), ("byte", "INT8", "INT8"))


def by_kinds(kinds, op, prefix):
    """One input and one output of each kind (name, described type, type in the program), and the operation between."""
    program = Model_pb2.Model(specificationVersion=10)
    function = program.mlProgram.functions["main"]
    function.opset = "CoreML9"
    block = function.block_specializations["CoreML9"]
    for name, described, inside in kinds:
        for features, called in ((program.description.input, name), (program.description.output, prefix + name)):
            array = features.add(name=called).type.multiArrayType
            array.dataType = getattr(FeatureTypes_pb2.ArrayFeatureType, described)
            array.shape.extend([2, 2])
        given = function.inputs.add(name=name)
        operation = block.operations.add(type=op)
        operation.inputs["x"].arguments.add(name=name)
        made = operation.outputs.add(name=prefix + name)
        for t in (given.type.tensorType, made.type.tensorType):
            t.dataType = getattr(MIL_pb2, inside)
            t.rank = 2
            for _ in range(2):
                t.dimensions.add().constant.size = 2
        block.outputs.append(prefix + name)
    return program


write("types", by_kinds(KINDS, "identity", "same_"))
# Descriptions have no type of truth values: they are described as numbers.
write("booleans", by_kinds([(name, described, "BOOL") for name, described, _ in KINDS], "logical_not", "not_"))


@mb.program(input_specs=[mb.TensorSpec((1, 4))], opset_version=ct.target.iOS16)
def compressed(x):
    # 0 to 3 in turn, four in a byte from the lowest bits up.
    palette = mb.constexpr_lut_to_dense(indices=np.full(4, 0b11100100, np.uint8), lut=np.float32([-1, 0, 0.5, 2]),
                                        shape=np.uint32([4, 4]))
    sparse = mb.constexpr_sparse_to_dense(nonzero_data=np.float32([3, 7]), mask=np.uint8([0b1010]), shape=np.uint32([1, 4]))
    return mb.add(x=mb.matmul(x=x, y=palette), y=sparse, name="y")


write("ios16_weights", converted(compressed))

# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/flexible/.

Two neural networks of one rectifier have an input with a range of shapes, and one with a set. One adds two inputs of
listed shapes. In four the default shapes contradict each other: stated defaults in one, lowest and highest sizes in the
others. An ML program adds an input of listed shapes to one with a range, and gives float16 of a shape that is not described."""
import pathlib

from coremltools.proto import FeatureTypes_pb2, MIL_pb2, Model_pb2

folder = pathlib.Path(__file__).parent / "flexible"


def model(shape):
    m = Model_pb2.Model(specificationVersion=4)
    for features, name in ((m.description.input, "x"), (m.description.output, "y")):
        f = features.add(name=name)
        f.type.multiArrayType.dataType = FeatureTypes_pb2.ArrayFeatureType.FLOAT32
        if name == "x":
            f.type.multiArrayType.shape.extend(shape)
    layer = m.neuralNetwork.layers.add(name="rectify", input=["x"], output=["y"])
    layer.activation.ReLU.SetInParent()
    m.neuralNetwork.arrayInputShapeMapping = 1
    return m


ranged = model([3, 2])
for low, high in ((3, 5), (2, -1)):
    ranged.description.input[0].type.multiArrayType.shapeRange.sizeRanges.add(lowerBound=low, upperBound=high)
(folder / "range.mlmodel").write_bytes(ranged.SerializeToString())

listed = model([1, 3, 28, 28])
for size in (28, 56, 112):
    listed.description.input[0].type.multiArrayType.enumeratedShapes.shapes.add(shape=[1, 3, size, size])
(folder / "enumerated.mlmodel").write_bytes(listed.SerializeToString())

stacked = model([2])
stacked.description.input[0].type.multiArrayType.shapeRange.sizeRanges.add(lowerBound=1, upperBound=9)
other = stacked.description.input.add(name="z")
other.type.multiArrayType.dataType = FeatureTypes_pb2.ArrayFeatureType.FLOAT32
other.type.multiArrayType.shape.append(3)
del stacked.neuralNetwork.layers[:]
layer = stacked.neuralNetwork.layers.add(name="pile", input=["x", "z"], output=["y"])
layer.stack.axis = 0
(folder / "contradictory.mlmodel").write_bytes(stacked.SerializeToString())
stacked.description.input[0].type.multiArrayType.shape[:] = [1]
(folder / "lowest.mlmodel").write_bytes(stacked.SerializeToString())
stacked.description.input[0].type.multiArrayType.shape[:] = [9]
(folder / "highest.mlmodel").write_bytes(stacked.SerializeToString())
first = stacked.description.input[0].type.multiArrayType
first.shape[:] = [1, 2]
first.shapeRange.sizeRanges.add(lowerBound=1, upperBound=9)
other.type.multiArrayType.shape[:] = [3, 3]
(folder / "partly_lowest.mlmodel").write_bytes(stacked.SerializeToString())

pair = Model_pb2.Model(specificationVersion=4)
for features, name in ((pair.description.input, "a"), (pair.description.input, "b"), (pair.description.output, "y")):
    array = features.add(name=name).type.multiArrayType
    array.dataType = FeatureTypes_pb2.ArrayFeatureType.FLOAT32
    if name != "y":
        array.shape.append(4)
        for size in (4, 6, 8):
            array.enumeratedShapes.shapes.add(shape=[size])
layer = pair.neuralNetwork.layers.add(name="sum", input=["a", "b"], output=["y"])
layer.addBroadcastable.SetInParent()
pair.neuralNetwork.arrayInputShapeMapping = 1
(folder / "enumerated_pair.mlmodel").write_bytes(pair.SerializeToString())


def tensor(value_type, dtype, dims):
    value_type.tensorType.dataType = dtype
    value_type.tensorType.rank = len(dims)
    for d in dims:
        dimension = value_type.tensorType.dimensions.add()
        if d is None:
            dimension.unknown.variadic = False
        else:
            dimension.constant.size = d


program = Model_pb2.Model(specificationVersion=7)
for name, shape in (("a", [1, 2]), ("b", [1, 1])):
    array = program.description.input.add(name=name).type.multiArrayType
    array.dataType = FeatureTypes_pb2.ArrayFeatureType.FLOAT32
    array.shape.extend(shape)
    if name == "a":
        for size in (2, 4, 8):
            array.enumeratedShapes.shapes.add(shape=[1, size])
    else:
        for low, high in ((1, 6), (1, 1)):
            array.shapeRange.sizeRanges.add(lowerBound=low, upperBound=high)
program.description.output.add(name="y").type.multiArrayType.dataType = FeatureTypes_pb2.ArrayFeatureType.FLOAT16
function = program.mlProgram.functions["main"]
function.opset = "CoreML6"
for name, dims in (("a", [1, None]), ("b", [None, 1])):
    tensor(function.inputs.add(name=name).type, MIL_pb2.FLOAT32, dims)
block = function.block_specializations["CoreML6"]
sum_ = block.operations.add(type="add")
sum_.inputs["x"].arguments.add(name="a")
sum_.inputs["y"].arguments.add(name="b")
tensor(sum_.outputs.add(name="sum").type, MIL_pb2.FLOAT32, [None, None])
cast = block.operations.add(type="cast")
cast.inputs["x"].arguments.add(name="sum")
text = cast.inputs["dtype"].arguments.add().value
text.type.tensorType.dataType = MIL_pb2.STRING
text.immediateValue.tensor.strings.values.append("fp16")
tensor(cast.outputs.add(name="y").type, MIL_pb2.FLOAT16, [None, None])
block.outputs.append("y")
(folder / "program.mlmodel").write_bytes(program.SerializeToString(deterministic=True))

"""Writes tests/golden/flexible/: two neural networks of one rectifier whose input has a range of shapes or a set of them,
one that adds two inputs of listed shapes, and one whose default shapes contradict each other."""
import pathlib

from coremltools.proto import FeatureTypes_pb2, Model_pb2

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

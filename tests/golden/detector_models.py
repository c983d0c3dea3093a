# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/detectors/: detectors that end in a non-maximum suppression, described as exporters describe them,
and truth.json with what numpy finds in two pictures with three pairs of thresholds.

The net is a product of the picture's 48 numbers with constants: 12 boxes of 3 classes. The models differ in where
iouThreshold and confidenceThreshold are described:

    program.mlpackage   on the pipeline, not as optional, around an ML program: what ultralytics writes
    pipeline.mlmodel    the same around a neural network
    both.mlmodel        on the pipeline and on the suppression, as optional: what Create ML writes
    stage.mlmodel       on the suppression only
    nobody.mlmodel      nowhere
    computed.mlmodel    on the pipeline; an earlier model computes confidenceThreshold
    arrays.mlmodel      on the pipeline, as arrays of one float
    nested.mlmodel      on a pipeline around a pipeline
    compiled.mlmodelc   as program.mlpackage, in the layout of Apple's compiler

Needs coremltools 9."""
import json
import pathlib
import shutil
import struct

import coremltools as ct
import numpy as np
from coremltools.converters.mil import Builder as mb
from coremltools.models import datatypes
from coremltools.proto import FeatureTypes_pb2, Model_pb2

FOLDER = pathlib.Path(__file__).parent / "detectors"
FLOAT = FeatureTypes_pb2.ArrayFeatureType.FLOAT32
BOXES, CLASSES = 12, 3
IOU, CONFIDENCE = 0.45, 0.25
rng = np.random.RandomState(3)
weight = (rng.randn(BOXES * (CLASSES + 4), 48) * 0.0003).astype(np.float32)
bias = np.hstack([0.9 * rng.rand(BOXES, CLASSES), 0.35 + 0.3 * rng.rand(BOXES, 2), 0.2 + 0.3 * rng.rand(BOXES, 2)])
bias = bias.astype(np.float32)


def net_outputs(picture):
    """`picture`: [3, 4, 4], 0 to 255."""
    both = (weight @ picture.reshape(-1).astype(np.float32)).reshape(BOXES, -1) + bias
    return both[:, :CLASSES], both[:, CLASSES:]


def overlap(a, b):
    low, high = np.maximum(a[:2] - a[2:] / 2, b[:2] - b[2:] / 2), np.minimum(a[:2] + a[2:] / 2, b[:2] + b[2:] / 2)
    inner = np.prod(np.maximum(high - low, 0))
    return inner / (a[2] * a[3] + b[2] * b[3] - inner)


def suppressed(scores, boxes, iou, confidence):
    kept = []
    for i in np.argsort(-scores.max(1), kind="stable"):
        alike = (k for k in kept if scores[k].argmax() == scores[i].argmax())
        if scores[i].max() >= confidence and all(overlap(boxes[i], boxes[k]) <= iou for k in alike):
            kept.append(i)
    return scores[kept], boxes[kept]


def program():
    @mb.program(input_specs=[mb.TensorSpec(shape=(1, 3, 4, 4))], opset_version=ct.target.iOS15)
    def net(image):
        x = mb.reshape(x=image, shape=[1, 48])
        x = mb.linear(x=x, weight=weight, bias=bias.reshape(-1))
        x = mb.reshape(x=x, shape=[BOXES, CLASSES + 4])
        scores, boxes = mb.split(x=x, split_sizes=[CLASSES, 4], axis=1)
        return mb.identity(x=scores, name="raw_scores"), mb.identity(x=boxes, name="raw_boxes")

    model = ct.convert(net, convert_to="mlprogram", compute_precision=ct.precision.FLOAT32,
                       minimum_deployment_target=ct.target.iOS15, skip_model_load=True)
    spec = model.get_spec()
    picture(spec.description.input[0])
    return ct.models.MLModel(spec, weights_dir=model.weights_dir, skip_model_load=True)


def picture(feature):
    feature.ClearField("type")
    image = feature.type.imageType
    image.width = image.height = 4
    image.colorSpace = FeatureTypes_pb2.ImageFeatureType.RGB


def array(features, name, shape, optional=False):
    feature = features.add(name=name)
    feature.type.isOptional = optional
    feature.type.multiArrayType.dataType = FLOAT
    feature.type.multiArrayType.shape.extend(shape)
    return feature


def number(features, name, optional=False):
    feature = features.add(name=name)
    feature.type.doubleType.SetInParent()
    feature.type.isOptional = optional


def network():
    spec = Model_pb2.Model(specificationVersion=4)
    picture(spec.description.input.add(name="image"))
    for name, width in (("raw_scores", CLASSES), ("raw_boxes", 4)):
        array(spec.description.output, name, [BOXES, width])
    spec.neuralNetwork.arrayInputShapeMapping = 1
    layers = spec.neuralNetwork.layers
    flat = layers.add(name="flat", input=["image"], output=["flat"]).reshapeStatic
    flat.targetShape.extend([1, 48])
    product = layers.add(name="product", input=["flat"], output=["product"]).innerProduct
    product.inputChannels, product.outputChannels, product.hasBias = 48, bias.size, True
    product.weights.floatValue.extend(weight.reshape(-1).tolist())
    product.bias.floatValue.extend(bias.reshape(-1).tolist())
    layers.add(name="rows", input=["product"], output=["rows"]).reshapeStatic.targetShape.extend([BOXES, CLASSES + 4])
    for name, begin, end in (("raw_scores", 0, CLASSES), ("raw_boxes", CLASSES, CLASSES + 4)):
        part = layers.add(name=name, input=["rows"], output=[name]).sliceStatic
        part.beginIds.extend([0, begin])
        part.endIds.extend([BOXES, end])
        part.beginMasks.extend([True, False])
        part.endMasks.extend([True, False])
        part.strides.extend([1, 1])
        part.squeezeMasks.extend([False, False])
    return ct.models.MLModel(spec, skip_model_load=True)


def suppression(described=()):
    spec = Model_pb2.Model(specificationVersion=5)
    for name, width in (("raw_scores", CLASSES), ("raw_boxes", 4)):
        array(spec.description.input, name, [BOXES, width])
    for name in described:
        number(spec.description.input, name, optional=True)
    for name, width in (("confidence", CLASSES), ("coordinates", 4)):
        sizes = array(spec.description.output, name, []).type.multiArrayType.shapeRange.sizeRanges
        sizes.add(lowerBound=0, upperBound=-1)
        sizes.add(lowerBound=width, upperBound=width)
    nms = spec.nonMaximumSuppression
    nms.confidenceInputFeatureName, nms.coordinatesInputFeatureName = "raw_scores", "raw_boxes"
    nms.confidenceOutputFeatureName, nms.coordinatesOutputFeatureName = "confidence", "coordinates"
    nms.iouThresholdInputFeatureName, nms.confidenceThresholdInputFeatureName = THRESHOLDS
    nms.iouThreshold, nms.confidenceThreshold = IOU, CONFIDENCE
    nms.pickTop.perClass = True
    nms.stringClassLabels.vector.extend(["cat", "dog", "owl"])
    return ct.models.MLModel(spec, skip_model_load=True)


THRESHOLDS = ("iouThreshold", "confidenceThreshold")


def pipeline(net, last, thresholds=THRESHOLDS):
    """As ultralytics/utils/export/coreml.py joins them."""
    out = ct.models.pipeline.Pipeline(
        input_features=[("image", datatypes.Array(3, 4, 4))] + [(name, datatypes.Double()) for name in thresholds],
        output_features=["confidence", "coordinates"])
    out.add_model(net)
    out.add_model(last)
    out.spec.description.input[0].ParseFromString(net._spec.description.input[0].SerializeToString())
    for i in range(2):
        out.spec.description.output[i].ParseFromString(last._spec.description.output[i].SerializeToString())
    out.spec.specificationVersion = max(5, net._spec.specificationVersion)
    return out.spec


def write(name, spec):
    (FOLDER / f"{name}.mlmodel").write_bytes(spec.SerializeToString(deterministic=True))


def optional(spec):
    for feature in spec.description.input[1:]:
        feature.type.isOptional = True
    return spec


def threshold_from_picture():
    """The first number of the picture, divided by 1000."""
    spec = Model_pb2.Model(specificationVersion=4)
    picture(spec.description.input.add(name="image"))
    array(spec.description.output, "confidenceThreshold", [1])
    spec.neuralNetwork.arrayInputShapeMapping = 1
    layers = spec.neuralNetwork.layers
    layers.add(name="flat", input=["image"], output=["flat"]).reshapeStatic.targetShape.append(48)
    part = layers.add(name="first", input=["flat"], output=["first"]).sliceStatic
    for field, value in (("beginIds", 0), ("endIds", 1), ("strides", 1), ("beginMasks", False), ("endMasks", False), ("squeezeMasks", False)):
        getattr(part, field).append(value)
    layers.add(name="scale", input=["first"], output=["confidenceThreshold"]).multiply.alpha = 0.001
    return spec


def compiled(net, last, whole):
    folder = FOLDER / "compiled.mlmodelc"
    shutil.rmtree(folder, ignore_errors=True)

    def text(s):
        return struct.pack("<Q", len(s)) + s

    def put(path, kind, target, version, rest):
        (folder / path).mkdir(parents=True, exist_ok=True)
        head = struct.pack("<IQQQ", kind, 1, 0, 0) + text(target) + struct.pack("<I", version) + bytes(28)
        (folder / path / "coremldata.bin").write_bytes(head + rest)

    description = whole.description.SerializeToString(deterministic=True)
    put(".", 202, b"generic.model0v6.0.0generic.model1v1.0.0spec", whole.specificationVersion,
        text(description) + struct.pack("<QQ", 2, 202))
    description = net._spec.description.SerializeToString(deterministic=True)
    put("model0", 502, b"generic", net._spec.specificationVersion, text(description) + struct.pack("<QQ", 502, 0))
    put("model1", 610, b"spec", last._spec.specificationVersion, last._spec.SerializeToString(deterministic=True))

    def row(numbers):
        return "[" + ", ".join(float(v).hex() for v in numbers) + "]"

    weights, biases = "[" + ", ".join(map(row, weight)) + "]", row(bias.reshape(-1))
    (folder / "model0" / "model.mil").write_text(f"""program(1.0)
{{
    func main<ios15>(tensor<fp32, [1, 3, 4, 4]> image) {{
        tensor<int32, [2]> s = const()[name = string("s"), val = tensor<int32, [2]>([1, 48])];
        tensor<fp32, [1, 48]> x = reshape(shape = s, x = image)[name = string("x")];
        tensor<fp32, [{bias.size}, 48]> w = const()[name = string("w"), val = tensor<fp32, [{bias.size}, 48]>({weights})];
        tensor<fp32, [{bias.size}]> b = const()[name = string("b"), val = tensor<fp32, [{bias.size}]>({biases})];
        tensor<fp32, [1, {bias.size}]> y = linear(bias = b, weight = w, x = x)[name = string("y")];
        tensor<int32, [2]> r = const()[name = string("r"), val = tensor<int32, [2]>([{BOXES}, {CLASSES + 4}])];
        tensor<fp32, [{BOXES}, {CLASSES + 4}]> rows = reshape(shape = r, x = y)[name = string("rows")];
        tensor<int32, [2]> sizes = const()[name = string("sizes"), val = tensor<int32, [2]>([{CLASSES}, 4])];
        int32 axis = const()[name = string("axis"), val = int32(1)];
        tensor<fp32, [{BOXES}, {CLASSES}]> raw_scores, tensor<fp32, [{BOXES}, 4]> raw_boxes = split(axis = axis, split_sizes = sizes, x = rows)[name = string("parts")];
    }} -> (raw_scores, raw_boxes);
}}
""")


def main():
    FOLDER.mkdir(exist_ok=True)
    net, graph = program(), network()
    whole = pipeline(net, suppression())
    path = FOLDER / "program.mlpackage"
    shutil.rmtree(path, ignore_errors=True)
    ct.models.MLModel(whole, weights_dir=net.weights_dir, skip_model_load=True).save(str(path))
    compiled(net, suppression(), whole)
    write("pipeline", pipeline(graph, suppression()))
    write("both", optional(pipeline(graph, suppression(THRESHOLDS))))
    write("stage", pipeline(graph, suppression(THRESHOLDS), ()))
    write("nobody", pipeline(graph, suppression(), ()))
    arrays = pipeline(graph, suppression(), ())
    for name in THRESHOLDS:
        array(arrays.description.input, name, [1])
    write("arrays", arrays)
    computed = pipeline(graph, suppression(), THRESHOLDS[:1])
    last = computed.pipeline.models.pop()
    computed.pipeline.models.add().CopyFrom(threshold_from_picture())
    computed.pipeline.models.add().CopyFrom(last)
    write("computed", computed)
    nested = Model_pb2.Model()
    nested.CopyFrom(pipeline(graph, suppression()))
    inner = pipeline(graph, suppression(), ())
    del nested.pipeline.models[:]
    nested.pipeline.models.add().CopyFrom(inner)
    write("nested", nested)

    cases = []
    for _ in range(2):
        pixels = rng.randint(0, 256, (3, 4, 4))
        scores, boxes = net_outputs(pixels)
        for iou, confidence in ((None, None), (0.1, None), (None, 0.6), (0.9, 0.1)):
            kept = suppressed(scores, boxes, IOU if iou is None else iou, CONFIDENCE if confidence is None else confidence)
            cases.append({"pixels": pixels.reshape(-1).tolist(), "iouThreshold": iou, "confidenceThreshold": confidence,
                          "confidence": kept[0].reshape(-1).tolist(), "coordinates": kept[1].reshape(-1).tolist()})
        kept = suppressed(scores, boxes, IOU, float(pixels.reshape(-1)[0]) / 1000)
        cases.append({"pixels": pixels.reshape(-1).tolist(), "computed": True,
                      "confidence": kept[0].reshape(-1).tolist(), "coordinates": kept[1].reshape(-1).tolist()})
    (FOLDER / "truth.json").write_text(json.dumps(cases) + "\n")
    print([len(c["coordinates"]) // 4 for c in cases])


main()

# SPDX-License-Identifier: Apache-2.0
"""Computes real neural networks with ONNX Runtime and NumPy, straight from their specification.

    nn_truth.py MODELS_FOLDER

writes nn/<model>.json: how the inputs are drawn, and some elements of every output. Layers become ONNX nodes here on
their own terms; nothing of Moka takes part. Sequences are computed by NumPy in double precision.
"""
import json
import os
import sys

import coremltools as ct
import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

PROBABILITIES = ("Identity", "nextCharProbs", "scores", "filter", "prediction")
HERE = os.path.dirname(os.path.abspath(__file__))


def draw(seed, shape, low, high):
    """Uniform numbers from splitmix64: element i is that of state seed + (i + 1) * golden gamma."""
    n = int(np.prod(shape))
    with np.errstate(over="ignore"):
        z = np.uint64(seed) + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    u = (z >> np.uint64(40)).astype(np.float64) / 2.0**24
    return (low + (high - low) * u).astype(np.float32).reshape(shape)


def weight(w, shape):
    if len(w.floatValue):
        return np.array(w.floatValue, np.float32).reshape(shape)
    return np.frombuffer(w.float16Value, np.float16).astype(np.float32).reshape(shape)


class Graph:
    """Blobs are NCHW tensors; a legacy blob's sequence and batch are folded into N."""

    def __init__(self):
        self.nodes, self.constants, self.names = [], [], {}

    def const(self, a):
        name = "c%d" % len(self.constants)
        self.constants.append(numpy_helper.from_array(np.asarray(a), name))
        return name

    def node(self, op, inputs, **attributes):
        out = "t%d" % len(self.nodes)
        self.nodes.append(helper.make_node(op, inputs, [out], **attributes))
        return out

    def reshape(self, x, shape):
        return self.node("Reshape", [x, self.const(np.array(shape, np.int64))])


def borders(amounts):
    if not amounts.borderAmounts:
        return [0, 0, 0, 0]
    h, w = amounts.borderAmounts
    return [h.startEdgeSize, w.startEdgeSize, h.endEdgeSize, w.endEdgeSize]


def padding(p):
    kind = p.WhichOneof("ConvolutionPaddingType" if hasattr(p, "kernelChannels") else "PoolingPaddingType")
    if kind == "same":
        return {"auto_pad": "SAME_UPPER" if p.same.asymmetryMode == 0 else "SAME_LOWER"}
    assert kind in ("valid", None), kind
    return {"pads": borders(p.valid.paddingAmounts)}


def convolution(g, p, x):
    kernel = list(p.kernelSize) or [3, 3]
    groups = max(p.nGroups, 1)
    assert not p.isDeconvolution
    w = weight(p.weights, [p.outputChannels, p.kernelChannels] + kernel)
    inputs = [x, g.const(w)] + ([g.const(weight(p.bias, [-1]))] if p.hasBias else [])
    return g.node("Conv", inputs, kernel_shape=kernel, strides=list(p.stride) or [1, 1],
                  dilations=list(p.dilationFactor) or [1, 1], group=groups, **padding(p))


def pooling(g, p, x):
    if p.globalPooling:
        return g.node("GlobalMaxPool" if p.type == 0 else "GlobalAveragePool", [x])
    attributes = dict(kernel_shape=list(p.kernelSize) or [3, 3], strides=list(p.stride) or [1, 1], **padding(p))
    if p.type == 0:
        return g.node("MaxPool", [x], **attributes)
    return g.node("AveragePool", [x], count_include_pad=0 if p.avgPoolExcludePadding else 1, **attributes)


def activation(g, p, x):
    kind = p.WhichOneof("NonlinearityType")
    q = getattr(p, kind)
    if kind == "linear":
        y = g.node("Mul", [x, g.const(np.float32(q.alpha))])
        return g.node("Add", [y, g.const(np.float32(q.beta))])
    if kind == "leakyReLU":
        return g.node("LeakyRelu", [x], alpha=q.alpha)
    if kind == "sigmoidHard":
        return g.node("HardSigmoid", [x], alpha=q.alpha, beta=q.beta)
    return g.node({"ReLU": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh"}[kind], [x])


def batchnorm(g, p, x):
    assert not p.computeMeanVar
    parts = [g.const(weight(w, [-1])) for w in (p.gamma, p.beta, p.mean, p.variance)]
    return g.node("BatchNormalization", [x] + parts, epsilon=p.epsilon or 1e-5)


def unary(g, p, x):
    if p.scale not in (0, 1):
        x = g.node("Mul", [x, g.const(np.float32(p.scale))])
    if p.shift:
        x = g.node("Add", [x, g.const(np.float32(p.shift))])
    eps = g.const(np.float32(p.epsilon or 1e-6))
    if p.type == 2:
        return g.node("Reciprocal", [g.node("Add", [x, eps])])
    if p.type == 7:
        return g.node("Max", [x, g.const(np.float32(p.alpha))])
    return g.node({0: "Sqrt", 4: "Exp", 5: "Log", 6: "Abs"}[p.type], [x])


def flatten(g, p, x):
    if p.mode == 1:
        x = g.node("Transpose", [x], perm=[0, 2, 3, 1])
    y = g.reshape(x, [0, -1])
    return g.reshape(y, [0, -1, 1, 1])


def inner_product(g, p, x):
    w = g.const(weight(p.weights, [p.outputChannels, p.inputChannels]).T.copy())
    y = g.node("MatMul", [g.reshape(x, [-1, p.inputChannels]), w])
    if p.hasBias:
        y = g.node("Add", [y, g.const(weight(p.bias, [-1]))])
    return g.reshape(y, [-1, p.outputChannels, 1, 1])


def upsample(g, p, x):
    scales = g.const(np.array([1, 1] + list(p.scalingFactor), np.float32))
    if p.mode == 1:
        assert p.linearUpsampleMode == 0
        return g.node("Resize", [x, "", scales], mode="linear", coordinate_transformation_mode="asymmetric")
    return g.node("Resize", [x, "", scales], mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric")


def reduce(g, p, x):
    axes = {0: [1, 2, 3], 1: [2, 3], 2: [1], 3: [2], 4: [3]}[p.axis]
    op = {0: "ReduceSum", 1: "ReduceMean", 7: "ReduceMax", 8: "ReduceMin"}[p.mode]
    return g.node(op, [x, g.const(np.array(axes, np.int64))], keepdims=1)


def slice_(g, p, x):
    ints = lambda *v: g.const(np.array(v, np.int64))
    return g.node("Slice", [x, ints(p.startIndex), ints(p.endIndex), ints(p.axis + 1), ints(p.stride)])


def reshape(g, p, x):
    assert p.mode == 0
    target = list(p.targetShape)
    return g.reshape(x, target if len(target) == 4 else [0] + target)


def permute(g, p, x):
    assert p.axis[0] == 0
    return g.node("Transpose", [x], perm=list(p.axis))


def many(op):
    return lambda g, p, *x: g.node(op, list(x)) if len(x) > 1 else g.node(op, [x[0], g.const(np.float32(p.alpha))])


LAYERS = {
    "convolution": convolution, "pooling": pooling, "activation": activation, "batchnorm": batchnorm, "unary": unary,
    "flatten": flatten, "innerProduct": inner_product, "upsample": upsample, "reduce": reduce, "slice": slice_,
    "reshape": reshape, "permute": permute, "add": many("Add"), "multiply": many("Mul"),
    "concat": lambda g, p, *x: g.node("Concat", list(x), axis=0 if p.sequenceConcat else 1),
    "softmax": lambda g, p, x: g.node("Softmax", [x], axis=1),
    "softmaxND": lambda g, p, x: g.node("Softmax", [x], axis=p.axis),
    "transpose": lambda g, p, x: g.node("Transpose", [x], perm=list(p.axes)),
    "reshapeStatic": lambda g, p, x: g.reshape(x, list(p.targetShape)),
}


def scaler(g, nn, name, x, image, channels):
    for p in nn.preprocessing:
        if p.featureName not in (name, "") or p.WhichOneof("preprocessor") != "scaler":
            continue
        s = p.scaler
        x = g.node("Mul", [x, g.const(np.float32(s.channelScale))])
        bias = [s.grayBias] if channels == 1 else [s.redBias, s.greenBias, s.blueBias]
        if image.colorSpace == image.BGR:
            bias.reverse()
        x = g.node("Add", [x, g.const(np.array(bias, np.float32).reshape(1, -1, 1, 1))])
    return x


def run_graph(spec, feeds, exact):
    """`feeds`: arrays of rank 4, or of the exact rank. Returns the outputs with all their dimensions."""
    nn = getattr(spec, spec.WhichOneof("Type"))
    g = Graph()
    inputs = []
    for f in spec.description.input:
        a = feeds[f.name]
        inputs.append(helper.make_tensor_value_info("in_" + f.name, TensorProto.FLOAT, a.shape))
        x = "in_" + f.name
        if f.type.WhichOneof("Type") == "imageType":
            x = scaler(g, nn, f.name, x, f.type.imageType, a.shape[1])
        g.names[f.name] = x
    for layer in nn.layers:
        kind = layer.WhichOneof("layer")
        p = getattr(layer, kind)
        x = [g.names[n] for n in layer.input]
        if kind == "innerProduct" and exact:
            w = g.const(weight(p.weights, [p.outputChannels, p.inputChannels]).T.copy())
            y = g.node("MatMul", [x[0], w])
            g.names[layer.output[0]] = g.node("Add", [y, g.const(weight(p.bias, [-1]))]) if p.hasBias else y
        else:
            g.names[layer.output[0]] = LAYERS[kind](g, p, *x)
    wanted = [o.name for o in spec.description.output]
    outputs = [helper.make_tensor_value_info(g.names[n], TensorProto.FLOAT, None) for n in wanted]
    graph = helper.make_graph(g.nodes, "nn", inputs, outputs, g.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    runtime = onnxruntime.InferenceSession(model.SerializeToString(), options)
    values = runtime.run(None, {"in_" + k: v for k, v in feeds.items()})
    return dict(zip(wanted, values))


def lstm(layer, x, h, c):
    """x: [steps, inputs]. Returns all outputs, the final hidden and the final cell state."""
    p = layer.uniDirectionalLSTM
    w, n, m = p.weightParams, p.inputVectorSize, p.outputVectorSize
    matrix = lambda gate, kind, columns: weight(getattr(w, gate + kind), [m, columns]).astype(np.float64)
    gates = ["inputGate", "forgetGate", "blockInput", "outputGate"]
    W = [matrix(g, "WeightMatrix", n) for g in gates]
    R = [matrix(g, "RecursionMatrix", m) for g in gates]
    b = [weight(getattr(w, g + "BiasVector"), [m]).astype(np.float64) if p.params.hasBiasVectors else 0 for g in gates]
    if p.params.forgetBias:
        b[1] = b[1] + 1
    assert not p.params.hasPeepholeVectors and not p.params.coupledInputAndForgetGate
    functions = {"sigmoid": lambda v: 1 / (1 + np.exp(-v)), "tanh": np.tanh, "linear": lambda v: v,
                 "sigmoidHard": lambda v: np.clip(0.2 * v + 0.5, 0, 1), "ReLU": lambda v: np.maximum(v, 0)}
    f, g, k = [functions[a.WhichOneof("NonlinearityType")] for a in p.activations]
    clip = lambda v: np.clip(v, -50, 50)
    limit = p.params.cellClipThreshold or 50.0
    out = []
    for v in (x[::-1] if p.reverseInput else x).astype(np.float64):
        i, o_f, z, o = [clip(W[q] @ v + R[q] @ h + b[q]) for q in range(4)]
        c = np.clip(f(o_f) * c + f(i) * g(z), -limit, limit)
        h = f(o) * k(c)
        out.append(h)
    return (np.array(out) if p.params.sequenceOutput else h[None]), h, c


def run_sequence(spec, feeds):
    """A network of LSTM, innerProduct and softmax layers on [steps, size] sequences."""
    blobs = dict(feeds)
    for layer in spec.neuralNetwork.layers:
        kind = layer.WhichOneof("layer")
        x = [np.asarray(blobs[n], np.float64) for n in layer.input]
        if kind == "uniDirectionalLSTM":
            results = lstm(layer, x[0], x[1].reshape(-1), x[2].reshape(-1))
        elif kind == "innerProduct":
            p = layer.innerProduct
            results = [x[0].reshape(-1, p.inputChannels) @ weight(p.weights, [p.outputChannels, p.inputChannels]).T.astype(np.float64) +
                       (weight(p.bias, [-1]) if p.hasBias else 0)]
        else:
            e = np.exp(x[0] - x[0].max(-1, keepdims=True))
            results = [e / e.sum(-1, keepdims=True)]
            assert kind == "softmax"
        blobs.update(zip(layer.output, results))
    return {o.name: blobs[o.name] for o in spec.description.output}


def write(name, model, inputs, outputs, tolerance):
    """inputs: name -> (shape, seed, low, high); outputs: name -> (array, shape)."""
    data = {"model": model, "tolerance": tolerance,
            "inputs": [dict(name=k, shape=list(v[0]), seed=v[1], low=v[2], high=v[3]) for k, v in inputs.items()], "outputs": []}
    for k, (a, shape) in outputs.items():
        flat = np.asarray(a, np.float64).reshape(-1)
        even = np.linspace(0, flat.size - 1, min(flat.size, 48)).astype(int)
        at = np.unique(np.concatenate([even, np.argsort(-np.abs(flat))[:24]]))
        # Probabilities are compared relative to themselves, other numbers relative to the largest.
        scale = 0.0 if k in PROBABILITIES else float("%.6g" % np.abs(flat).max())
        data["outputs"].append({"name": k, "shape": list(shape), "scale": scale, "index": [int(i) for i in at],
                                "value": [float("%.9g" % v) for v in flat[at]], "mean_abs": float("%.9g" % np.abs(flat).mean())})
    os.makedirs(os.path.join(HERE, "nn"), exist_ok=True)
    with open(os.path.join(HERE, "nn", name + ".json"), "w") as f:
        json.dump(data, f)
        f.write("\n")


def images(models, name, path, feature, shape, high, output_shapes, exact=False, feed_shape=None, tolerance=1e-4):
    spec = ct.utils.load_spec(os.path.join(models, path))
    x = draw(7, shape, 0, high)
    values = run_graph(spec, {feature: x.reshape(feed_shape or shape)}, exact)
    outputs = {k: (v, output_shapes.get(k, v.shape)) for k, v in values.items()}
    write(name, path, {feature: (shape, 7, 0, high)}, outputs, tolerance)


def main(models):
    images(models, "mnist", "image_nn/MNIST.mlmodel", "image", [1, 1, 28, 28], 1, {"prediction": [10]})
    images(models, "tiny_drawing", "image_nn/TinyDrawingEmbedding.mlmodel", "drawing", [1, 1, 28, 28], 255, {"embedding": [128]})
    images(models, "cpm_pose", "pose/cpm_pose.mlmodel", "image__0", [1, 3, 192, 192], 255,
           {"Convolutional_Pose_Machine__stage_5_out__0": [14, 96, 96]})
    images(models, "anime_noise1", "superres/anime_noise1_model.mlmodel", "input", [3, 142, 142], 1, {"conv7": [1, 1, 3, 128, 128]},
           feed_shape=[1, 3, 142, 142])
    images(models, "ssd_ocr", "card_detector/SSDOcr.mlmodel", "0", [1, 3, 375, 600], 255, {"scores": [1, 1, 1, 3420, 10], "boxes": [1, 1, 1, 3420, 4], "filter": [3420, 1, 1, 1, 1]})
    images(models, "image_quality", "image_quality/ImageQualityCP20.mlmodel", "conv2d_193_input", [2, 120, 120, 3], 0.1, {}, exact=True)
    images(models, "keras_dense", "misc_small/keras2coreml_Dense_ImageNet_small.mlmodel", "input1", [3, 3, 3], 1, {"output1": [2]},
           feed_shape=[1, 3, 3, 3])

    for name, path, steps in (("es2en_encoder", "seq2seq_lstm/Es2EnCharEncoder.mlmodel", 7), ("es2en_decoder", "seq2seq_lstm/Es2EnCharDecoder.mlmodel", 1)):
        spec = ct.utils.load_spec(os.path.join(models, path))
        inputs, feeds = {}, {}
        for i, f in enumerate(spec.description.input):
            n = f.type.multiArrayType.shape[0]
            first = i == 0
            inputs[f.name] = ([steps, 1, n, 1, 1] if first and steps > 1 else [n], 11 + i, -1, 1)
            feeds[f.name] = draw(11 + i, [steps if first else 1, n], -1, 1)
        values = run_sequence(spec, feeds)
        outputs = {}
        for o in spec.description.output:
            v = values[o.name]
            n = o.type.multiArrayType.shape[0]
            outputs[o.name] = (v, [n] if v.size == n else [v.size // n, 1, n, 1, 1])
        write(name, path, inputs, outputs, 1e-4)


if __name__ == "__main__":
    main(sys.argv[1])

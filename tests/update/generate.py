#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes cases.json: updatable models of coremltools, examples, and what PyTorch makes of their weights.

"losses" and "weights" are PyTorch's in float64; "float32" is the distance of its weights in float32 from those. Run it with a Python that
has coremltools and torch.
"""
import base64
import json
import os

import coremltools as ct
import numpy as np
import torch
import torch.nn.functional as F
from coremltools.models import datatypes
from coremltools.models.neural_network import AdamParams, NeuralNetworkBuilder, SgdParams

HERE = os.path.dirname(os.path.abspath(__file__))
random = np.random.RandomState(11)
EPOCHS, BATCH, COUNT = 4, 4, 10


def numbers(*shape, scale=1.0):
    """Numbers with few digits, which are equal in every format."""
    return (np.round(random.uniform(-1, 1, shape) * scale * 256) / 256).astype(np.float32)


class Case:
    """A network as a builder of coremltools and as a PyTorch function of its weights."""

    def __init__(self, name, inputs, classes=("a", "b", "c"), exact=False, kind="sgd", momentum=0.875):
        self.name, self.classes, self.kind, self.momentum = name, classes, kind, momentum
        mode = "classifier" if classes else None
        outputs = [("p", datatypes.Array(len(classes)))] if classes else [("y", datatypes.Array(2))]
        self.builder = NeuralNetworkBuilder(inputs, outputs, mode=mode, disable_rank5_shape_mapping=exact)
        self.weights, self.frozen = {}, {}

    def dense(self, name, source, to, rows, columns, learns=True):
        w, b = numbers(rows, columns, scale=1 / np.sqrt(columns)), numbers(rows, scale=0.1)
        self.builder.add_inner_product(name, w, b, columns, rows, True, source, to)
        self.keep(name, w, b, learns)

    def keep(self, name, w, b, learns):
        (self.weights if learns else self.frozen).update({name + "_weights": w, name + "_bias": b})

    def layers(self):
        return sorted({k.rsplit("_", 1)[0] for k in self.weights})

    def finish(self, loss_input="p"):
        b = self.builder
        if self.classes:
            b.set_class_labels(list(self.classes), predicted_feature_name="label", prediction_blob="p")
        b.make_updatable(self.layers())
        if self.classes and any(l.WhichOneof("layer") == "softmaxND" for l in b.nn_spec.layers):
            loss = b.nn_spec.updateParams.lossLayers.add(name="loss")
            loss.categoricalCrossEntropyLossLayer.input, loss.categoricalCrossEntropyLossLayer.target = "p", "p_true"
            b.spec.description.trainingInput.extend([b.spec.description.input[0], [o for o in b.spec.description.output if o.name == "label"][0]])
        elif self.classes:
            b.set_categorical_cross_entropy_loss("loss", loss_input)
        else:
            b.set_mean_squared_error_loss("loss", ("y", datatypes.Array(2)))
        if self.kind == "sgd":
            b.set_sgd_optimizer(SgdParams(lr=0.0625, batch=BATCH, momentum=self.momentum))
        else:
            b.set_adam_optimizer(AdamParams(lr=0.0078125, batch=BATCH, beta1=0.875, beta2=0.984375, eps=2.0**-20))
        b.set_epochs(EPOCHS)
        b.nn_spec.updateParams.shuffle.defaultValue = False
        return b.spec


def train(case, forward, x, y, dtype):
    all_weights = {k: torch.tensor(v, dtype=dtype) for k, v in {**case.frozen, **case.weights}.items()}
    trained = [all_weights[k].requires_grad_(True) for k in case.weights]
    o = torch.optim.SGD(trained, lr=0.0625, momentum=case.momentum) if case.kind == "sgd" else torch.optim.Adam(
        trained, lr=0.0078125, betas=(0.875, 0.984375), eps=2.0**-20)
    x = torch.tensor(x, dtype=dtype)
    target = torch.tensor(y) if case.classes else torch.tensor(y, dtype=dtype)
    losses = []
    for _ in range(EPOCHS):
        for i in range(0, COUNT, BATCH):
            out = forward(all_weights, x[i:i + BATCH])
            loss = (F.cross_entropy if case.classes else F.mse_loss)(out, target[i:i + BATCH])
            o.zero_grad()
            loss.backward()
            o.step()
            losses.append(loss.item())
    return losses, {k: all_weights[k].detach().numpy().astype(np.float64) for k in case.weights}


def record(case, spec, forward, x, y, rows, names=None):
    losses, exact = train(case, forward, x, y, torch.float64)
    _, single = train(case, forward, x, y, torch.float32)
    distance = np.sqrt(sum(((exact[k] - single[k]) ** 2).sum() for k in exact))
    print(case.name, losses[0], losses[-1], distance)
    names = names or {}
    return {"name": case.name, "model": base64.b64encode(spec.SerializeToString()).decode(), "rows": rows, "losses": losses, "float32": distance,
            "weights": {names.get(k, k): [float("%.10g" % v) for v in w.reshape(-1)] for k, w in exact.items()}}


def array(v):
    return {"shape": list(v.shape), "values": [float(n) for n in v.reshape(-1)]}


def label_rows(case, x, y, shape):
    return [{"x": array(x[i].reshape(shape)), "label": case.classes[y[i]]} for i in range(COUNT)]


def labels(case):
    return random.randint(0, len(case.classes), COUNT)


def convolution(name, pictures, kind, frozen=()):
    c = Case(name, [("x", datatypes.Array(1, 6, 6))], kind=kind)
    w, bias = numbers(3, 1, 3, 3, scale=0.5), numbers(3, scale=0.1)
    gamma, beta, mean, variance = numbers(3, scale=0.5) + 1, numbers(3, scale=0.1), numbers(3, scale=0.1), np.abs(numbers(3)) + np.float32(0.5)
    c.builder.add_convolution("conv", 1, 3, 3, 3, 1, 1, "same", 1, W=w.transpose(2, 3, 1, 0), b=bias, has_bias=True, input_name="x", output_name="c")
    c.keep("conv", w, bias, "conv" not in frozen)
    c.builder.add_batchnorm("norm", 3, gamma, beta, mean, variance, "c", "n")
    c.builder.add_activation("relu", "RELU", "n", "r")
    c.builder.add_pooling("pool", 2, 2, 2, 2, "MAX" if pictures else "AVERAGE", "VALID", "r", "s")
    c.builder.add_flatten("flat", 0, "s", "f")
    c.dense("dense_1", "f", "d", 5, 27, "dense_1" not in frozen)
    c.builder.add_activation("tanh", "TANH", "d", "t")
    c.dense("dense_2", "t", "z", 3, 5)
    c.builder.add_softmax("softmax", "z", "p")
    if pictures:
        c.builder.set_pre_processing_parameters(image_input_names=["x"], image_scale=1 / 256, gray_bias=-0.5)
    y = labels(c)
    if pictures:
        drawn = random.randint(0, 256, (COUNT, 6, 6))
        x = (drawn[:, None] / 256 - 0.5).astype(np.float32)
        rows = [{"x": {"picture": drawn[i].tolist()}, "label": c.classes[y[i]]} for i in range(COUNT)]
    else:
        x = numbers(COUNT, 1, 6, 6)
        rows = label_rows(c, x, y, (1, 6, 6))

    def forward(w, x):
        t = lambda v: torch.tensor(v, dtype=x.dtype)
        x = F.batch_norm(F.conv2d(x, w["conv_weights"], w["conv_bias"], padding=1), t(mean), t(variance), t(gamma), t(beta), eps=1e-5)
        x = (F.max_pool2d if pictures else F.avg_pool2d)(F.relu(x), 2).flatten(1)
        return F.linear(torch.tanh(F.linear(x, w["dense_1_weights"], w["dense_1_bias"])), w["dense_2_weights"], w["dense_2_bias"])

    return record(c, c.finish(), forward, x, y, rows)


def regression():
    c = Case("regression", [("x", datatypes.Array(4))], classes=None, momentum=0)
    c.dense("dense_1", "x", "d", 6, 4)
    c.builder.add_activation("sigmoid", "SIGMOID", "d", "s")
    c.dense("dense_2", "s", "y", 2, 6)
    x, y = numbers(COUNT, 4), numbers(COUNT, 2)
    rows = [{"x": array(x[i]), "y_true": array(y[i])} for i in range(COUNT)]
    forward = lambda w, x: F.linear(torch.sigmoid(F.linear(x, w["dense_1_weights"], w["dense_1_bias"])), w["dense_2_weights"], w["dense_2_bias"])
    return record(c, c.finish(), forward, x, y, rows)


def exact(name, rank, products):
    """Arrays with their own ranks, a softmaxND, and integers as labels."""
    shape = (1, 4) if rank == 2 else (4,)
    c = Case(name, [("x", datatypes.Array(*shape))], classes=(10, 20, 30), exact=True)
    if products:
        w, bias = numbers(6, 4, scale=0.5), numbers(6, scale=0.1)
        c.builder.add_batched_mat_mul("dense_1", ["x"], "d", weight_matrix_rows=4, weight_matrix_columns=6, W=w.T, bias=bias)
        c.keep("dense_1", w, bias, True)
        layer = c.builder.nn_spec.layers[-1]
        layer.isUpdatable = layer.batchedMatmul.weights.isUpdatable = layer.batchedMatmul.bias.isUpdatable = True
    else:
        c.dense("dense_1", "x", "d", 6, 4)
    c.builder.add_activation("relu", "RELU", "d", "r")
    c.dense("dense_2", "r", "z", 3, 6)
    c.builder.add_softmax_nd("softmax", "z", "p", axis=-1)
    x, y = numbers(COUNT, 4), labels(c)
    forward = lambda w, x: F.linear(torch.relu(F.linear(x, w["dense_1_weights"], w["dense_1_bias"])), w["dense_2_weights"], w["dense_2_bias"])
    if products:
        kept = c.layers
        c.layers = lambda: [name for name in kept() if name != "dense_1"]
    return record(c, c.finish(), forward, x, y, label_rows(c, x, y, shape))


def lstm(name, learns):
    """A sequence, whose last state a dense layer classifies. The recurrent layer may learn too."""
    hidden, size, steps = 4, 3, 5
    c = Case(name, [("x", datatypes.Array(size))])
    wx, wh, bias = [[numbers(*s, scale=0.5) for _ in range(4)] for s in ((hidden, size), (hidden, hidden), (hidden,))]
    c.builder.add_unilstm("lstm", wh, wx, b=bias, hidden_size=hidden, input_size=size, input_names=["x", "h0", "c0"], output_names=["l", "h1", "c1"],
                          output_all=False, forget_bias=learns)
    layer = c.builder.nn_spec.layers[-1]
    c.builder.add_optionals([("h0", hidden), ("c0", hidden)], [("h1", hidden), ("c1", hidden)])
    c.dense("dense", "l", "z", 3, hidden)
    c.builder.add_softmax("softmax", "z", "p")
    x, y = numbers(COUNT, steps, size), labels(c)
    spec = c.finish()
    # coremltools and MIL: input, forget, output, cell; PyTorch: input, forget, cell, output
    recurrent = {"lstm_weight_ih": np.concatenate(wx), "lstm_weight_hh": np.concatenate(wh), "lstm_bias": np.concatenate(bias)}
    if learns:
        recurrent["lstm_bias"][hidden:2 * hidden] += 1  # what forget_bias adds
        layer.isUpdatable = True
        for group in layer.uniDirectionalLSTM.weightParams.ListFields():
            group[1].isUpdatable = True
    (c.weights if learns else c.frozen).update(recurrent)

    def forward(w, x):
        order = lambda v: v.reshape(4, hidden, *v.shape[1:])[[0, 1, 3, 2]].reshape(v.shape)
        net = torch.nn.LSTM(size, hidden, batch_first=True, dtype=x.dtype)
        given = {"weight_ih_l0": order(w["lstm_weight_ih"]), "weight_hh_l0": order(w["lstm_weight_hh"]), "bias_ih_l0": order(w["lstm_bias"]),
                 "bias_hh_l0": torch.zeros(4 * hidden, dtype=x.dtype)}
        out, _ = torch.func.functional_call(net, given, (x,))
        return F.linear(out[:, -1], w["dense_weights"], w["dense_bias"])

    return record(c, spec, forward, x, y, label_rows(c, x, y, (steps, 1, size, 1, 1)))


def pipeline():
    """A network that computes features, and one that classifies them and learns."""
    c = Case("pipeline", [("features", datatypes.Array(5))], kind="adam")
    c.dense("dense", "features", "z", 3, 5)
    c.builder.add_softmax("softmax", "z", "p")
    front = NeuralNetworkBuilder([("x", datatypes.Array(4))], [("features", datatypes.Array(5))])
    w, bias = numbers(5, 4), numbers(5)
    front.add_inner_product("before", w, bias, 4, 5, True, "x", "h")
    front.add_activation("relu", "RELU", "h", "features")
    last = c.finish()
    spec = ct.proto.Model_pb2.Model(specificationVersion=4, isUpdatable=True)
    d = spec.description
    d.input.append(front.spec.description.input[0])
    d.output.extend(last.description.output)
    d.predictedFeatureName, d.predictedProbabilitiesName = last.description.predictedFeatureName, last.description.predictedProbabilitiesName
    d.trainingInput.extend([d.input[0], last.description.trainingInput[1]])
    spec.pipelineClassifier.pipeline.models.extend([front.spec, last])
    x, y = numbers(COUNT, 4), labels(c)
    t = lambda v, like: torch.tensor(v, dtype=like.dtype)
    forward = lambda p, x: F.linear(F.relu(F.linear(x, t(w, x), t(bias, x))), p["dense_weights"], p["dense_bias"])
    return record(c, spec, forward, x, y, label_rows(c, x, y, (4,)), {k: "model1_" + k for k in c.weights})


def converted():
    """A PyTorch module as coremltools converts it, with the number of examples written into a reshape."""
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.dense_1, self.dense_2 = torch.nn.Conv2d(1, 2, 3), torch.nn.Linear(32, 5), torch.nn.Linear(5, 3)

        def forward(self, x):
            x = torch.relu(self.conv(x)).flatten(1)
            return torch.softmax(self.dense_2(torch.relu(self.dense_1(x))), -1)

    net = Net().eval()
    for p in net.parameters():
        p.data = torch.tensor(numbers(*p.shape, scale=0.4))
    model = ct.convert(torch.jit.trace(net, torch.zeros(1, 1, 6, 6)), inputs=[ct.TensorType("x", (1, 1, 6, 6))], convert_to="neuralnetwork",
                       classifier_config=ct.ClassifierConfig(["a", "b", "c"], "label"))
    spec = model.get_spec()
    c = Case("converted", [("x", datatypes.Array(1, 6, 6))])
    c.frozen = {n: getattr(net.conv, n).detach().numpy() for n in ("weight", "bias")}
    network = spec.neuralNetworkClassifier
    names = [l.name for l in network.layers if l.WhichOneof("layer") == "innerProduct"]
    for own, name in zip(("dense_1", "dense_2"), names):
        layer = getattr(net, own)
        c.keep(name, layer.weight.detach().numpy(), layer.bias.detach().numpy(), True)
    c.builder = NeuralNetworkBuilder(spec=spec)
    for l in network.layers:
        if l.name in names:
            l.isUpdatable = l.innerProduct.weights.isUpdatable = l.innerProduct.bias.isUpdatable = True
    loss = network.updateParams.lossLayers.add(name="loss")
    loss.categoricalCrossEntropyLossLayer.input = network.layers[-1].output[0]
    loss.categoricalCrossEntropyLossLayer.target = "target"
    spec.description.trainingInput.extend([spec.description.input[0], [o for o in spec.description.output if o.name == "label"][0]])
    c.builder.set_sgd_optimizer(SgdParams(lr=0.0625, batch=BATCH, momentum=0.875))
    c.builder.set_epochs(EPOCHS)
    network.updateParams.shuffle.defaultValue = False
    spec.isUpdatable, spec.specificationVersion = True, max(4, spec.specificationVersion)
    x, y = numbers(COUNT, 1, 6, 6), labels(c)

    def forward(w, x):
        x = torch.relu(F.conv2d(x, w["weight"], w["bias"])).flatten(1)
        x = torch.relu(F.linear(x, w[names[0] + "_weights"], w[names[0] + "_bias"]))
        return F.linear(x, w[names[1] + "_weights"], w[names[1] + "_bias"])

    return record(c, spec, forward, x, y, label_rows(c, x, y, (1, 1, 6, 6)))


cases = [convolution("pictures", True, "sgd"), convolution("arrays", False, "adam"), convolution("frozen", False, "sgd", ("conv", "dense_1")),
         regression(), exact("matrices", 2, False), exact("vectors", 1, False), exact("products", 2, True), lstm("lstm", False), lstm("recurrent", True),
         pipeline(), converted()]
with open(os.path.join(HERE, "cases.json"), "w") as f:
    json.dump(cases, f, separators=(",", ":"))
    f.write("\n")

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes cases.json: programs, and what PyTorch makes of their weights in 100 steps, in float64 and in float32.

Batches are numbers that both sides compute: draw(seed, n), and masks of dropout, which are 0 or 2. "float32" is the distance of PyTorch's
weights in float32 from those in float64. "statistics" are the weights that batch norms change.
"""
import json
import os
import re
import sys

import numpy as np
import torch
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "conformance"))
from case import literal  # noqa: E402

STEPS = 100


def draw(seed, *shape):
    """Numbers from -1 to 1, of 24 bits each."""
    i = np.arange(int(np.prod(shape)), dtype=np.uint64) + np.uint64(seed * 1000003)
    x = (i * np.uint64(2654435761)) & np.uint64(0xFFFFFFFF)
    x ^= x >> np.uint64(15)
    x = (x * np.uint64(2246822519)) & np.uint64(0xFFFFFFFF)
    x ^= x >> np.uint64(13)
    return ((x >> np.uint64(8)).astype(np.float64) / 2**23 - 1).astype(np.float32).reshape(shape)


class Net:
    """A net as MIL text and as a PyTorch function of its weights."""

    def __init__(self, name, x_shape, classes, loss="cross_entropy"):
        self.name, self.x_shape, self.classes, self.loss = name, x_shape, classes, loss
        self.rows = x_shape[0]
        self.weights, self.lines, self.masks, self.statistics = {}, [], {}, []

    def weight(self, name, *shape, scale=None):
        w = draw(len(self.weights) + 77, *shape)
        w = w * np.float32(scale if scale is not None else 1 / np.sqrt(np.prod(shape[1:])))
        self.weights[name] = w
        self.lines.append(f'{type_of(w)} {name} = const()[name = string("{name}"), val = {literal(w)}];')
        return name

    def fixed(self, name, value):
        self.weights[name] = value
        self.lines.append(f'{type_of(value)} {name} = const()[name = string("{name}"), val = {literal(value)}];')

    def statistic(self, name, value):
        """Weights that a batch norm changes."""
        self.fixed(name, value)
        self.statistics.append(name)

    def mask(self, name, *shape):
        """An input that dropout multiplies by."""
        self.masks[name] = list(shape)

    def op(self, shape, name, text):
        """An operation, whose constants are written as in Python."""
        text = re.sub(r'= ("\w+")', r"= string(\1)", text)
        text = re.sub(r"= \[([^\]]*)\]", lambda m: f"= tensor<int32, [{m[1].count(',') + 1}]>([{m[1]}])", text)
        text = re.sub(r"= (true|false)\b", r"= bool(\1)", text)
        text = re.sub(r"= (-?0x[0-9a-fp.+-]+)", r"= fp32(\1)", text)
        text = re.sub(r"= (-?\d+)\b", r"= int32(\1)", text)
        self.lines.append(f'tensor<fp32, [{", ".join(map(str, shape))}]> {name} = {text}[name = string("{name}")];')
        return name

    def text(self):
        inputs = ", ".join(f'tensor<fp32, [{", ".join(map(str, shape))}]> {name}' for name, shape in {"x": self.x_shape, **self.masks}.items())
        body = "\n".join("    " + line for line in self.lines)
        return f"program(1.3)\n{{\n  func main<ios18>({inputs}) {{\n{body}\n  }} -> (y);\n}}\n"


def type_of(w):
    return f'tensor<fp32, [{", ".join(map(str, w.shape))}]>'


def train(net, forward, optimizer, dtype, trained):
    weights = {k: torch.tensor(v, dtype=dtype, requires_grad=k in trained) for k, v in net.weights.items()}
    o = optimizer([weights[k] for k in trained])
    losses = []
    for step in range(STEPS):
        x = torch.tensor(draw(step, *net.x_shape), dtype=dtype)
        masks = {k: torch.tensor(np.where(draw(step + 7000 + i, *shape) > 0, 2, 0), dtype=dtype) for i, (k, shape) in enumerate(net.masks.items())}
        y = forward({**weights, **masks}, x)
        if net.loss == "cross_entropy":
            target = torch.tensor(np.floor((draw(step + 5000, net.rows).astype(np.float64) + 1) / 2 * net.classes).astype(np.int64))
            loss = F.cross_entropy(y, target)
        else:
            loss = F.mse_loss(y, torch.tensor(draw(step + 5000, *y.shape), dtype=dtype))
        o.zero_grad()
        loss.backward()
        o.step()
        losses.append(loss.item())
    return losses, {k: weights[k].detach().numpy().astype(np.float64) for k in trained + net.statistics}


def case(net, forward, optimizer, numbers):
    frozen = {k for k in net.weights if k.startswith("fixed")} | set(net.statistics)
    trained = [k for k in net.weights if k not in frozen]
    losses, exact = train(net, forward, optimizer, torch.float64, trained)
    _, single = train(net, forward, optimizer, torch.float32, trained)
    distance = np.sqrt(sum(((exact[k] - single[k]) ** 2).sum() for k in exact))
    kind = "adam" if "beta_1" in numbers else "sgd"
    print(net.name, kind, losses[0], losses[-1], distance)
    return {"name": f"{net.name}_{kind}", "program": net.text(), "shape": list(net.x_shape), "rows": net.rows, "classes": net.classes, "loss": net.loss,
            "optimizer": kind, "numbers": numbers, "first_loss": losses[0], "last_loss": losses[-1], "float32": distance,
            "masks": net.masks, "statistics": net.statistics,
            "weights": {k: [float("%.10g" % v) for v in exact[k].reshape(-1)] for k in exact}}


def mlp(loss):
    n = Net("mlp" if loss == "cross_entropy" else "regression", (8, 12), 5, loss)
    n.weight("w1", 16, 12), n.weight("b1", 16), n.weight("w2", 5, 16), n.weight("b2", 5)
    n.op((8, 16), "h", "linear(x = x, weight = w1, bias = b1)")
    n.op((8, 16), "a", "relu(x = h)" if loss == "cross_entropy" else "tanh(x = h)")
    if loss == "cross_entropy":
        n.op((8, 5), "z", "linear(x = a, weight = w2, bias = b2)")
        n.op((8, 5), "y", "softmax(x = z, axis = -1)")
    else:
        n.op((8, 5), "y", "linear(x = a, weight = w2, bias = b2)")
    act = F.relu if loss == "cross_entropy" else torch.tanh
    return n, lambda w, x: F.linear(act(F.linear(x, w["w1"], w["b1"])), w["w2"], w["b2"])


def cnn():
    n = Net("cnn", (4, 2, 12, 12), 4)
    n.weight("w1", 6, 2, 3, 3), n.weight("b1", 6)
    n.fixed("fixed_mean", draw(3, 6) * np.float32(0.1)), n.fixed("fixed_variance", np.abs(draw(4, 6)) + np.float32(0.5))
    n.weight("gamma", 6, scale=1), n.weight("beta", 6, scale=0.1)
    n.weight("w2", 8, 3, 3, 3), n.weight("w3", 4, 8 * 9), n.weight("b3", 4)
    n.op((4, 6, 12, 12), "c1", 'conv(x = x, weight = w1, bias = b1, pad_type = "same", strides = [1, 1])')
    n.op((4, 6, 12, 12), "n1", "batch_norm(x = c1, mean = fixed_mean, variance = fixed_variance, gamma = gamma, beta = beta, epsilon = 0x1.4f8b58p-17)")
    n.op((4, 6, 12, 12), "r1", "relu(x = n1)")
    n.op((4, 6, 6, 6), "p1", 'max_pool(x = r1, kernel_sizes = [2, 2], strides = [2, 2], pad_type = "valid")')
    n.op((4, 8, 6, 6), "c2", 'conv(x = p1, weight = w2, pad_type = "custom", pad = [1, 1, 1, 1], strides = [1, 1], groups = 2)')
    n.op((4, 8, 6, 6), "r2", "silu(x = c2)")
    n.op((4, 8, 3, 3), "p2", 'avg_pool(x = r2, kernel_sizes = [2, 2], strides = [2, 2], pad_type = "valid")')
    n.op((4, 72), "flat", "reshape(x = p2, shape = [4, 72])")
    n.op((4, 4), "z", "linear(x = flat, weight = w3, bias = b3)")
    n.op((4, 4), "y", "softmax(x = z, axis = 1)")

    def forward(w, x):
        c = F.conv2d(x, w["w1"], w["b1"], padding=1)
        c = F.relu(F.batch_norm(c, w["fixed_mean"], w["fixed_variance"], w["gamma"], w["beta"], eps=1e-5))
        c = F.silu(F.conv2d(F.max_pool2d(c, 2), w["w2"], padding=1, groups=2))
        return F.linear(F.avg_pool2d(c, 2).flatten(1), w["w3"], w["b3"])
    return n, forward


MOVE = 0.125  # of running statistics; training_test.cpp has the same


def dropout():
    n = Net("dropout", (8, 12), 5)
    n.weight("w1", 16, 12), n.weight("b1", 16), n.weight("w2", 16, 16), n.weight("b2", 16), n.weight("w3", 5, 16), n.weight("b3", 5)
    n.mask("mask1", 8, 16), n.mask("mask2", 8, 16)
    n.op((8, 16), "h1", "linear(x = x, weight = w1, bias = b1)")
    n.op((8, 16), "a1", "relu(x = h1)")
    n.op((8, 16), "d1", "mul(x = a1, y = mask1)")
    n.op((8, 16), "h2", "linear(x = d1, weight = w2, bias = b2)")
    n.op((8, 16), "a2", "sigmoid(x = h2)")
    n.op((8, 16), "d2", "mul(x = a2, y = mask2)")
    n.op((8, 5), "z", "linear(x = d2, weight = w3, bias = b3)")
    n.op((8, 5), "y", "softmax(x = z, axis = -1)")

    def forward(w, x):
        h = F.relu(F.linear(x, w["w1"], w["b1"])) * w["mask1"]
        h = torch.sigmoid(F.linear(h, w["w2"], w["b2"])) * w["mask2"]
        return F.linear(h, w["w3"], w["b3"])
    return n, forward


def cnn_of_batches():
    """Batch norms use the statistics of the mini-batch, of images and of vectors.

    The activations are smooth: of 700,000 values, one was so near to the kink of a relu that a rounding error decided on its side."""
    n = Net("batch_statistics", (8, 2, 12, 12), 4)
    n.weight("w1", 6, 2, 3, 3), n.weight("gamma1", 6, scale=1), n.weight("beta1", 6, scale=0.1)
    n.statistic("mean1", draw(3, 6) * np.float32(0.1)), n.statistic("variance1", np.abs(draw(4, 6)) + np.float32(0.5))
    n.weight("w2", 20, 6, 3, 3), n.statistic("mean2", draw(5, 20) * np.float32(0.1)), n.statistic("variance2", np.abs(draw(6, 20)) + np.float32(0.5))
    n.weight("w3", 10, 20 * 9), n.weight("gamma3", 10, scale=1), n.weight("beta3", 10, scale=0.1)
    n.statistic("mean3", draw(7, 10) * np.float32(0.1)), n.statistic("variance3", np.abs(draw(8, 10)) + np.float32(0.5))
    n.weight("w4", 4, 10)
    n.op((8, 6, 12, 12), "c1", 'conv(x = x, weight = w1, pad_type = "same", strides = [1, 1])')
    n.op((8, 6, 12, 12), "n1", "batch_norm(x = c1, mean = mean1, variance = variance1, gamma = gamma1, beta = beta1, epsilon = 0x1.4f8b58p-17)")
    n.op((8, 6, 12, 12), "r1", "silu(x = n1)")
    n.op((8, 6, 6, 6), "p1", 'max_pool(x = r1, kernel_sizes = [2, 2], strides = [2, 2], pad_type = "valid")')
    n.op((8, 20, 6, 6), "c2", 'conv(x = p1, weight = w2, pad_type = "same", strides = [1, 1])')
    n.op((8, 20, 6, 6), "n2", "batch_norm(x = c2, mean = mean2, variance = variance2, epsilon = 0x1.4f8b58p-17)")
    n.op((8, 20, 6, 6), "r2", "tanh(x = n2)")
    n.op((8, 20, 3, 3), "p2", 'avg_pool(x = r2, kernel_sizes = [2, 2], strides = [2, 2], pad_type = "valid")')
    n.op((8, 180), "flat", "reshape(x = p2, shape = [8, 180])")
    n.op((8, 10), "h3", "linear(x = flat, weight = w3)")
    n.op((8, 10), "n3", "batch_norm(x = h3, mean = mean3, variance = variance3, gamma = gamma3, beta = beta3, epsilon = 0x1.4f8b58p-17)")
    n.op((8, 4), "z", "linear(x = n3, weight = w4)")
    n.op((8, 4), "y", "softmax(x = z, axis = 1)")

    def forward(w, x):
        def norm(x, i):
            return F.batch_norm(x, w[f"mean{i}"], w[f"variance{i}"], w.get(f"gamma{i}"), w.get(f"beta{i}"), training=True, momentum=MOVE, eps=1e-5)

        c = F.max_pool2d(F.silu(norm(F.conv2d(x, w["w1"], padding=1), 1)), 2)
        c = F.avg_pool2d(torch.tanh(norm(F.conv2d(c, w["w2"], padding=1), 2)), 2)
        return F.linear(norm(F.linear(c.flatten(1), w["w3"]), 3), w["w4"])
    return n, forward


def lstm():
    t, b, d, h = 7, 4, 5, 9
    n = Net("lstm", (t, b, d), 3)
    n.rows = b
    n.weight("wi", 4 * h, d, scale=0.4), n.weight("wh", 4 * h, h, scale=0.4), n.weight("bias", 4 * h, scale=0.4)
    n.weight("head", 3, h), n.weight("bhead", 3)
    n.fixed("fixed_start", np.zeros((b, h), np.float32))
    n.lines.append(f"tensor<fp32, [{t}, {b}, {h}]> s, tensor<fp32, [{b}, {h}]> last, tensor<fp32, [{b}, {h}]> cell = lstm(x = x, initial_h = fixed_start, "
                   'initial_c = fixed_start, weight_ih = wi, weight_hh = wh, bias = bias, output_sequence = bool(true))[name = string("recurrent")];')
    n.op((b, h), "mean", "reduce_mean(x = s, axes = [0])")
    n.op((b, h), "sum", "add(x = mean, y = last)")
    n.op((b, 3), "z", "linear(x = sum, weight = head, bias = bhead)")
    n.op((b, 3), "y", "softmax(x = z, axis = -1)")

    def forward(w, x):
        state, cell, states = w["fixed_start"], w["fixed_start"], []
        for step in x:
            i, f, o, g = (F.linear(step, w["wi"], w["bias"]) + F.linear(state, w["wh"])).chunk(4, 1)
            cell = torch.sigmoid(f) * cell + torch.sigmoid(i) * torch.tanh(g)
            state = torch.sigmoid(o) * torch.tanh(cell)
            states.append(state)
        return F.linear(torch.stack(states).mean(0) + state, w["head"], w["bhead"])
    return n, forward


def transformer():
    b, t, d, h = 2, 6, 8, 2
    n = Net("transformer", (b, t, d), 3)
    for name in ("q", "k", "v", "o"):
        n.weight("w" + name, d, d), n.weight("b" + name, d)
    n.weight("g1", d, scale=1), n.weight("s1", d), n.weight("g2", d, scale=1), n.weight("s2", d)
    n.weight("up", 4 * d, d), n.weight("bup", 4 * d), n.weight("down", d, 4 * d), n.weight("bdown", d), n.weight("head", 3, d), n.weight("bhead", 3)
    n.op((b, t, d), "n1", "layer_norm(x = x, axes = [-1], gamma = g1, beta = s1, epsilon = 0x1.4f8b58p-17)")
    for name in ("q", "k", "v"):
        n.op((b, t, d), name, f"linear(x = n1, weight = w{name}, bias = b{name})")
        n.op((b, t, h, d // h), name + "4", f"reshape(x = {name}, shape = [{b}, {t}, {h}, {d // h}])")
        n.op((b, h, t, d // h), name + "h", f"transpose(x = {name}4, perm = [0, 2, 1, 3])")
    n.op((b, h, t, t), "scores", "matmul(x = qh, y = kh, transpose_y = true)")
    n.op((b, h, t, t), "scaled", "mul(x = scores, y = 0x1p-1)")
    n.op((b, h, t, t), "attention", "softmax(x = scaled, axis = -1)")
    n.op((b, h, t, d // h), "mixed", "matmul(x = attention, y = vh)")
    n.op((b, t, h, d // h), "back", "transpose(x = mixed, perm = [0, 2, 1, 3])")
    n.op((b, t, d), "joined", f"reshape(x = back, shape = [{b}, {t}, {d}])")
    n.op((b, t, d), "projected", "linear(x = joined, weight = wo, bias = bo)")
    n.op((b, t, d), "r1", "add(x = x, y = projected)")
    n.op((b, t, d), "n2", "layer_norm(x = r1, axes = [-1], gamma = g2, beta = s2, epsilon = 0x1.4f8b58p-17)")
    n.op((b, t, 4 * d), "u", "linear(x = n2, weight = up, bias = bup)")
    n.op((b, t, 4 * d), "gel", 'gelu(x = u, mode = "EXACT")')
    n.op((b, t, d), "dn", "linear(x = gel, weight = down, bias = bdown)")
    n.op((b, t, d), "r2", "add(x = r1, y = dn)")
    n.op((b, d), "mean", "reduce_mean(x = r2, axes = [1])")
    n.op((b, 3), "z", "linear(x = mean, weight = head, bias = bhead)")
    n.op((b, 3), "y", "softmax(x = z, axis = -1)")

    def forward(w, x):
        heads = lambda a: a.reshape(b, t, h, d // h).transpose(1, 2)
        y = F.layer_norm(x, (d,), w["g1"], w["s1"], 1e-5)
        q, k, v = (heads(F.linear(y, w["w" + c], w["b" + c])) for c in "qkv")
        a = torch.softmax(q @ k.transpose(-1, -2) * 0.5, -1) @ v
        x = x + F.linear(a.transpose(1, 2).reshape(b, t, d), w["wo"], w["bo"])
        y = F.layer_norm(x, (d,), w["g2"], w["s2"], 1e-5)
        x = x + F.linear(F.gelu(F.linear(y, w["up"], w["bup"])), w["down"], w["bdown"])
        return F.linear(x.mean(1), w["head"], w["bhead"])
    return n, forward


def branches():
    """A weight that branches, their gradients and layers around them read, as it is and transposed."""
    n = Net("branches", (4, 6), 6, "mse")
    n.weight("w", 6, 6), n.weight("v", 6, 6), n.weight("b", 6)
    n.lines.append("tensor<fp32, []> sum = reduce_sum(x = x, axes = tensor<int32, [2]>([0, 1]), keep_dims = bool(false));")
    n.lines.append("bool is_positive = greater(x = sum, y = fp32(0x0p+0));")
    n.op((4, 6), "h", "linear(x = x, weight = w, bias = b)")
    n.lines.append("""tensor<fp32, [4, 6]> chosen = cond(pred = is_positive) {
      block positive() {
        tensor<fp32, [4, 6]> p = linear(x = h, weight = v, bias = b);
        tensor<fp32, [4, 6]> q = tanh(x = p);
      } -> (q);
      block negative() {
        tensor<fp32, [6, 6]> turned = transpose(x = w, perm = tensor<int32, [2]>([1, 0]));
        tensor<fp32, [4, 6]> r = matmul(x = h, y = turned, transpose_x = bool(false), transpose_y = bool(false));
        tensor<fp32, [4, 6]> s = mul(x = r, y = h);
      } -> (s);
    };""")
    n.op((4, 6), "y", "linear(x = chosen, weight = v)")

    def forward(w, x):
        h = F.linear(x, w["w"], w["b"])
        chosen = torch.tanh(F.linear(h, w["v"], w["b"])) if x.sum() > 0 else F.linear(h, w["w"]) * h
        return F.linear(chosen, w["v"])
    return n, forward


def sgd(rate, momentum=0.0):
    numbers = {"learning_rate": rate, "momentum": momentum} if momentum else {"learning_rate": rate}
    return numbers, lambda p: torch.optim.SGD(p, lr=rate, momentum=momentum)


def adam(rate):
    return ({"learning_rate": rate, "beta_1": 0.875, "beta_2": 0.984375, "epsilon": 2.0**-20},
            lambda p: torch.optim.Adam(p, lr=rate, betas=(0.875, 0.984375), eps=2.0**-20))


SGD, MOMENTUM, ADAM = sgd(0.0625), sgd(0.03125, 0.875), adam(0.0078125)
# Statistics of eight examples amplify rounding. At these rates PyTorch's own distance stays near 1e-6.
SLOW, SLOW_ADAM = sgd(0.0078125, 0.875), adam(2.0**-9)

cases = []
for make, (numbers, optimizer) in [(lambda: mlp("cross_entropy"), SGD), (lambda: mlp("cross_entropy"), ADAM), (lambda: mlp("mse"), MOMENTUM),
                                   (cnn, MOMENTUM), (cnn, ADAM), (transformer, MOMENTUM), (dropout, MOMENTUM), (cnn_of_batches, SLOW),
                                   (cnn_of_batches, SLOW_ADAM), (lstm, MOMENTUM), (lstm, ADAM),
                                   (branches, MOMENTUM), (branches, ADAM)]:
    net, forward = make()
    cases.append(case(net, forward, optimizer, numbers))
with open(os.path.join(HERE, "cases.json"), "w") as f:
    json.dump(cases, f, separators=(",", ":"))
    f.write("\n")

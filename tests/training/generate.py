#!/usr/bin/env python3
"""Writes cases.json: programs, and what PyTorch makes of their weights in 100 steps, in float64 and in float32.

Batches are numbers that both sides compute: draw(seed, n). "float32" is the distance of PyTorch's weights in float32 from
those in float64.
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
        self.weights, self.lines = {}, []

    def weight(self, name, *shape, scale=None):
        w = draw(len(self.weights) + 77, *shape)
        w = w * np.float32(scale if scale is not None else 1 / np.sqrt(np.prod(shape[1:])))
        self.weights[name] = w
        self.lines.append(f'{type_of(w)} {name} = const()[name = string("{name}"), val = {literal(w)}];')
        return name

    def fixed(self, name, value):
        self.weights[name] = value
        self.lines.append(f'{type_of(value)} {name} = const()[name = string("{name}"), val = {literal(value)}];')

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
        x = ", ".join(map(str, self.x_shape))
        body = "\n".join("    " + line for line in self.lines)
        return f"program(1.3)\n{{\n  func main<ios18>(tensor<fp32, [{x}]> x) {{\n{body}\n  }} -> (y);\n}}\n"


def type_of(w):
    return f'tensor<fp32, [{", ".join(map(str, w.shape))}]>'


def train(net, forward, optimizer, dtype, trained):
    weights = {k: torch.tensor(v, dtype=dtype, requires_grad=k in trained) for k, v in net.weights.items()}
    o = optimizer([weights[k] for k in trained])
    losses = []
    for step in range(STEPS):
        x = torch.tensor(draw(step, *net.x_shape), dtype=dtype)
        y = forward(weights, x)
        if net.loss == "cross_entropy":
            target = torch.tensor(np.floor((draw(step + 5000, net.x_shape[0]).astype(np.float64) + 1) / 2 * net.classes).astype(np.int64))
            loss = F.cross_entropy(y, target)
        else:
            loss = F.mse_loss(y, torch.tensor(draw(step + 5000, *y.shape), dtype=dtype))
        o.zero_grad()
        loss.backward()
        o.step()
        losses.append(loss.item())
    return losses, {k: weights[k].detach().numpy().astype(np.float64) for k in trained}


def case(net, forward, optimizer, numbers):
    frozen = {k for k in net.weights if k.startswith("fixed")}
    trained = [k for k in net.weights if k not in frozen]
    losses, exact = train(net, forward, optimizer, torch.float64, trained)
    _, single = train(net, forward, optimizer, torch.float32, trained)
    distance = np.sqrt(sum(((exact[k] - single[k]) ** 2).sum() for k in trained))
    kind = "adam" if "beta_1" in numbers else "sgd"
    print(net.name, kind, losses[0], losses[-1], distance)
    return {"name": f"{net.name}_{kind}", "program": net.text(), "shape": list(net.x_shape), "classes": net.classes, "loss": net.loss,
            "optimizer": kind, "numbers": numbers, "first_loss": losses[0], "last_loss": losses[-1], "float32": distance,
            "weights": {k: [float("%.10g" % v) for v in exact[k].reshape(-1)] for k in trained}}


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


SGD = ({"learning_rate": 0.0625}, lambda p: torch.optim.SGD(p, lr=0.0625))
MOMENTUM = ({"learning_rate": 0.03125, "momentum": 0.875}, lambda p: torch.optim.SGD(p, lr=0.03125, momentum=0.875))
ADAM = ({"learning_rate": 0.0078125, "beta_1": 0.875, "beta_2": 0.984375, "epsilon": 2.0**-20},
        lambda p: torch.optim.Adam(p, lr=0.0078125, betas=(0.875, 0.984375), eps=2.0**-20))

cases = []
for make, (numbers, optimizer) in [(lambda: mlp("cross_entropy"), SGD), (lambda: mlp("cross_entropy"), ADAM), (lambda: mlp("mse"), MOMENTUM),
                                   (cnn, MOMENTUM), (cnn, ADAM), (transformer, MOMENTUM)]:
    net, forward = make()
    cases.append(case(net, forward, optimizer, numbers))
with open(os.path.join(HERE, "cases.json"), "w") as f:
    json.dump(cases, f, separators=(",", ":"))
    f.write("\n")

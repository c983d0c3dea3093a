# SPDX-License-Identifier: Apache-2.0
"""The nets that are trained, for PyTorch and as Core ML models with the very same weights.

trained.py NET BATCH FILE    writes the model for mini-batches of BATCH examples, and behind FILE's name ".json" the names of its weights
"""

import json
import pathlib
import sys

import torch
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from blocks import weights  # noqa: E402


class Recurrent(nn.Module):
    """The state after the last step, and a layer. Core ML has one bias of a gate, the sum of PyTorch's two: one of them stays 0."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(128, 256, batch_first=True)
        self.head = nn.Linear(256, 10)
        nn.init.zeros_(self.lstm.bias_hh_l0).requires_grad_(False)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


class Block(nn.Module):
    """A transformer's block with norms before attention and before the layers, its mean over the positions, and a layer."""

    def __init__(self, size=256, heads=4):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.query, self.key, self.value, self.out = (nn.Linear(size, size) for _ in range(4))
        self.up, self.down, self.head = nn.Linear(size, 4 * size), nn.Linear(4 * size, size), nn.Linear(size, 10)
        for norm in (self.norm1, self.norm2):
            nn.init.uniform_(norm.weight, 0.5, 1.5)
            nn.init.normal_(norm.bias, 0, 0.1)

    def forward(self, x):
        def split(y):
            return y.reshape(y.shape[0], y.shape[1], self.heads, -1).transpose(1, 2)

        y = self.norm1(x)
        q, k, v = split(self.query(y)), split(self.key(y)), split(self.value(y))
        attention = torch.softmax(torch.matmul(q, k.transpose(-1, -2)) * q.shape[-1] ** -0.5, -1)
        x = x + self.out(torch.matmul(attention, v).transpose(1, 2).reshape(x.shape))
        x = x + self.down(nn.functional.gelu(self.up(self.norm2(x))))
        return self.head(x.mean(1))


def mlp():
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10))


def cnn():
    layers, channels = [], 3
    for more in (32, 64, 128):
        layers += [nn.Conv2d(channels, more, 3, padding=1), nn.BatchNorm2d(more), nn.ReLU(), nn.MaxPool2d(2)]
        channels = more
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels * 16, 10))


def resnet18():
    import torchvision

    return torchvision.models.resnet18(weights=None)


def mobilenet_v2():
    import torchvision

    return torchvision.models.mobilenet_v2(weights=None)


# How a net is made, the shape of an example, and the number of classes.
NETS = {
    "mlp": (mlp, (784,), 10),
    "cnn": (cnn, (3, 32, 32), 10),
    "lstm": (Recurrent, (32, 128), 10),
    "transformer": (Block, (64, 256), 10),
    "resnet18": (resnet18, (3, 224, 224), 1000),
    "mobilenet_v2": (mobilenet_v2, (3, 224, 224), 1000),
}


def model(name, shape=None):
    """The net, whose batch norms use the statistics in it, as in eval(). `shape`: of an example, if it is another one."""
    make, own, _ = NETS[name]
    torch.manual_seed(0)
    net = make().eval()
    with torch.no_grad():
        weights.randomise_batch_norms(net, (torch.randn(1, *(shape or own)),))
    return net


def batch(name, count):
    """Examples and their classes."""
    _, shape, classes = NETS[name]
    random = torch.Generator().manual_seed(1)
    return torch.randn(count, *shape, generator=random), torch.randint(classes, (count,), generator=random)


def convert(net, x, path):
    """Writes the model and returns the names of its weights. The passes that merge weights are left out: those of a norm into a
    convolution, and equal ones into one."""
    import coremltools as ct

    with_softmax = nn.Sequential()
    with_softmax.add_module("net", net)
    with_softmax.add_module("softmax", nn.Softmax(-1))
    passes = ct.PassPipeline()
    passes.remove_passes({"common::fuse_conv_batchnorm", "common::fuse_conv_scale", "common::const_deduplication"})
    made = ct.convert(torch.jit.trace(with_softmax.eval(), x), inputs=[ct.TensorType("x", x.shape)], outputs=[ct.TensorType("y")],
                      compute_precision=ct.precision.FLOAT32, minimum_deployment_target=ct.target.iOS18, pass_pipeline=passes,
                      skip_model_load=True)
    made.save(str(path))
    (block,) = made.get_spec().mlProgram.functions["main"].block_specializations.values()
    read = {}
    for op in block.operations:
        for role, value in op.inputs.items():
            for argument in value.arguments:
                read.setdefault(argument.name, (op.type, role))
    return [op.outputs[0].name for op in block.operations if op.type == "const" and is_trained(*read.get(op.outputs[0].name, ("", "")))]


def is_trained(operation, role):
    return (operation, role) in {("conv", "weight"), ("conv", "bias"), ("linear", "weight"), ("linear", "bias"), ("batch_norm", "gamma"), ("batch_norm", "beta"),
                                 ("layer_norm", "gamma"), ("layer_norm", "beta"), ("lstm", "weight_ih"), ("lstm", "weight_hh"), ("lstm", "bias")}


if __name__ == "__main__":
    _, name, count, path = sys.argv
    names = convert(model(name), batch(name, int(count))[0], path)
    pathlib.Path(f"{path}.json").write_text(json.dumps(names))

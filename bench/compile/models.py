# SPDX-License-Identifier: Apache-2.0
"""Writes the models that the benchmark compiles: ML programs with float32 weights, random from a fixed seed."""
import pathlib
import random
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "cli"))
from model_files import array_feature, write_program  # noqa: E402

FLOAT32 = 2  # element type in weights files
HEADER = 64  # bytes; also the alignment


class Program:
    """MIL text and the weights file beside it."""

    def __init__(self, inputs):
        self.inputs, self.lines, self.weights = inputs, [], bytearray(HEADER)
        self.blobs = 0
        source = random.Random(1)
        # Small numbers of either sign, so that no value in the net becomes infinite.
        self.numbers = struct.pack("<4096f", *(source.uniform(-0.01, 0.01) for _ in range(4096)))

    def weight(self, name, *shape):
        count = 4
        for size in shape:
            count *= size
        self.weights += bytes(-len(self.weights) % HEADER)
        self.weights += struct.pack("<IIQQQ", 0xDEADBEEF, FLOAT32, count, len(self.weights) + HEADER, 0).ljust(HEADER, b"\0")
        offset, self.blobs = len(self.weights) - HEADER, self.blobs + 1
        self.weights += (self.numbers * (count // len(self.numbers) + 1))[:count]
        kind = f"tensor<fp32, {list(shape)}>"
        self.lines.append(f'{kind} {name} = const()[name = string("{name}"), val = {kind}(BLOBFILE(path = '
                          f'string("@model_path/weights/weight.bin"), offset = uint64({offset})))];')
        return name

    def op(self, name, shape, call):
        self.lines.append(f'tensor<fp32, {list(shape)}> {name} = {call}[name = string("{name}")];')
        return name

    def write(self, folder, outputs):
        """An .mlmodelc at `folder`. `outputs`: shapes by name."""
        struct.pack_into("<II", self.weights, 0, self.blobs, 2)
        arguments = ", ".join(f"tensor<fp32, {list(shape)}> {name}" for name, shape in self.inputs.items())
        body = "\n".join("        " + line for line in self.lines)
        mil = f"program(1.3)\n{{\n    func main<ios17>({arguments}) {{\n{body}\n    }} -> ({', '.join(outputs)});\n}}\n"
        write_program(folder, mil, [array_feature(n, s) for n, s in self.inputs.items()], [array_feature(n, s) for n, s in outputs.items()])
        (folder / "weights").mkdir()
        (folder / "weights" / "weight.bin").write_bytes(self.weights)


def linear(folder):
    """25 layers of 1024 x 1024 numbers: 100 MiB."""
    net, x, size = Program({"x": (1, 1024)}), "x", 1024
    for i in range(25):
        weight, bias = net.weight(f"weight_{i}", size, size), net.weight(f"bias_{i}", size)
        x = net.op(f"y_{i}", (1, size), f"linear(bias = {bias}, weight = {weight}, x = {x})")
    net.write(folder, {x: (1, size)})


def yolov3(folder):
    """YOLOv3 for pictures of 416 x 416: Darknet-53 and three heads, 62 million numbers."""
    net, count = Program({"image": (1, 3, 416, 416)}), 0
    shapes = {"image": (3, 416)}  # channels and size

    def conv(x, channels, kernel, stride=1, activate=True):
        nonlocal count
        count += 1
        inputs, size = shapes[x]
        size //= stride
        weight, bias = net.weight(f"weight_{count}", channels, inputs, kernel, kernel), net.weight(f"bias_{count}", channels)
        pad = kernel // 2
        y = net.op(f"conv_{count}", (1, channels, size, size),
                   f"conv(bias = {bias}, dilations = tensor<int32, [2]>([1, 1]), groups = int32(1), pad = tensor<int32, [4]>([{pad}, {pad}, "
                   f"{pad}, {pad}]), pad_type = string(\"custom\"), strides = tensor<int32, [2]>([{stride}, {stride}]), weight = {weight}, "
                   f"x = {x})")
        if activate:
            y = net.op(f"leaky_{count}", (1, channels, size, size), f"leaky_relu(alpha = fp32(0.1), x = {y})")
        shapes[y] = (channels, size)
        return y

    def joined(name, call, channels, size):
        shapes[net.op(name, (1, channels, size, size), call)] = (channels, size)
        return name

    def alternating(x, channels):
        for width, kernel in ((1, 1), (2, 3), (1, 1), (2, 3), (1, 1)):
            x = conv(x, channels * width, kernel)
        return x

    x, kept = conv("image", 32, 3), []
    for channels, repeats in ((64, 1), (128, 2), (256, 8), (512, 8), (1024, 4)):
        x = conv(x, channels, 3, 2)
        for _ in range(repeats):
            y = conv(conv(x, channels // 2, 1), channels, 3)
            x = joined(f"sum_{count}", f"add(x = {x}, y = {y})", *shapes[x])
        kept.append(x)
    outputs = {}
    for channels, skip in ((512, None), (256, kept[3]), (128, kept[2])):
        if skip:
            x = conv(x, channels, 1)
            size = shapes[x][1] * 2
            x = joined(f"larger_{count}", "upsample_nearest_neighbor(scale_factor_height = fp32(2), scale_factor_width = fp32(2), "
                       f"x = {x})", channels, size)
            x = joined(f"both_{count}", f"concat(axis = int32(1), interleave = bool(false), values = ({x}, {skip}))",
                       channels + shapes[skip][0], size)
        x = alternating(x, channels)
        head = conv(conv(x, 2 * channels, 3), 255, 1, activate=False)
        outputs[head] = (1, *shapes[head][:1], shapes[head][1], shapes[head][1])
    net.write(folder, outputs)


MODELS = {"linear": ("25 linear layers", linear), "yolov3": ("YOLOv3 416", yolov3)}

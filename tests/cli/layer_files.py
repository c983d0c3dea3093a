# SPDX-License-Identifier: Apache-2.0
"""Models whose layers have known sizes, windows and weights, written by hand."""

import json
import struct
from pathlib import Path

from look_files import description, layer, write_model
from model_files import FLOAT32, array_feature, field, text, varint, write_program


def floats(*values):
    """WeightParams of float32."""
    return field(1, struct.pack(f"<{len(values)}f", *values))


def number(f, value):
    return varint(f << 3 | 5) + struct.pack("<f", value)


def sizes(f, *values):
    return field(f, b"".join(varint(v) for v in values))


def palette(count):
    """`count` weights of 4 bits and a table of 16."""
    table = field(1, struct.pack("<16f", *range(16)))
    return field(30, bytes((count + 1) // 2)) + field(40, field(1, 4) + field(102, table))


def linear(count, channels, bits=8):
    scale = field(1, struct.pack(f"<{channels}f", *[0.5] * channels)) + field(2, struct.pack(f"<{channels}f", *[0] * channels))
    return field(30, bytes((count * bits + 7) // 8)) + field(40, field(1, bits) + field(101, scale))


def borders(*edges):
    """ValidPadding of (start, end) for each dimension."""
    return field(1, b"".join(field(10, field(1, start) + field(2, end)) for start, end in edges))


def image(name, width, height, space):
    return field(1, name) + field(3, field(4, field(1, width) + field(2, height) + field(3, space)))


RGB, BGR = 20, 30


def network_layers(custom):
    """A convolution with groups, dilation and padding, a pool, a custom layer or a ReLU, and an inner product."""
    convolution = (field(1, 6) + field(2, 2) + field(10, 2) + sizes(20, 3, 5) + sizes(30, 2, 1) + sizes(40, 1, 2)
                   + field(50, borders((1, 1), (4, 4))) + field(70, 1) + field(90, palette(6 * 2 * 15)) + field(91, floats(*[0] * 6)))
    pool = sizes(10, 2, 2) + sizes(20, 2, 2) + field(31, b"")
    dense = field(1, 6 * 3 * 3) + field(2, 5) + field(20, linear(6 * 9 * 5, 5))
    middle = layer("middle", 500, field(10, "Swish"), "p", "m") if custom else layer("middle", 130, field(10, b""), "p", "m")
    return (layer("conv", 100, convolution, "x", "c") + layer("pool", 120, pool, "c", "p") + middle
            + layer("flat", 301, b"", "m", "f") + layer("dense", 140, dense, "f", "y"))


def network(path, custom=False):
    """An array of 4 channels, 10 x 6."""
    spec = field(1, 4) + description([array_feature("x", [4, 10, 6])], [array_feature("y", [5])])
    return write_model(path, spec + field(500, network_layers(custom)))


def packed_biases(path):
    """An inner product, a convolution and a batch normalization, whose vectors have 3 bits an element and end within a byte."""
    dense = field(1, 4) + field(2, 6) + field(10, 1) + field(20, linear(24, 6, 3)) + field(21, linear(6, 1, 3))
    convolution = field(1, 9) + field(2, 6) + field(10, 1) + sizes(20, 1, 1) + field(70, 1) + field(90, linear(54, 9, 3)) + field(91, linear(9, 1, 3))
    norm = field(1, 9) + b"".join(field(f, linear(9, 1, 3)) for f in (15, 16, 17, 18))
    body = layer("dense", 140, dense, "x", "d") + layer("conv", 100, convolution, "d", "c") + layer("norm", 160, norm, "c", "y")
    spec = field(1, 4) + description([array_feature("x", [4])], [array_feature("y", [9])])
    return write_model(path, spec + field(500, body))


def flexible_network(path):
    """A ReLU of [3, 8, 8], which may be up to [3, 64, 64]."""
    ranges = b"".join(field(1, field(1, low) + field(2, high)) for low, high in ((3, 3), (4, 64), (4, 64)))
    array = sizes(1, 3, 8, 8) + field(2, FLOAT32) + field(31, ranges)
    x = field(1, "x") + field(3, field(5, array))
    body = layer("relu", 130, field(10, b""), "x", "y") + field(5, 1)
    return write_model(path, field(1, 4) + description([x], [array_feature("y", [3, 8, 8])]) + field(500, body))


def scaled_pictures(path):
    """Two pictures, one with a scaler and one with a mean image."""
    scaler = number(10, 0.5) + number(20, -1) + number(21, -2) + number(22, -3)
    body = (layer("a", 130, field(10, b""), "photo", "y") + layer("b", 130, field(10, b""), "drawing", "z")
            + field(2, field(1, "photo") + field(10, scaler))
            + field(2, field(1, "drawing") + field(11, field(1, struct.pack("<12f", *range(12))))))
    return write_model(path, field(1, 1) + description([image("photo", 2, 2, BGR), image("drawing", 2, 2, RGB)],
                                                       [array_feature("y", [3, 2, 2]), array_feature("z", [3, 2, 2])])
                       + field(500, body))


SCALED_PROGRAM = """program(1.3)
{
    func main<ios16>(tensor<fp32, [1, 3, 4, 4]> photo) {
        fp32 scale = const()[name = string("scale"), val = fp32(0x1p-8)];
        tensor<fp32, [1, 3, 1, 1]> bias = const()[name = string("bias"), val = tensor<fp32, [1, 3, 1, 1]>([[[[-0x1p+0]], [[-0x1p-1]], [[-0x1p-2]]]])];
        tensor<fp32, [1, 3, 4, 4]> scaled = mul(x = photo, y = scale)[name = string("scaled")];
        tensor<fp32, [1, 3, 4, 4]> biased = add(x = scaled, y = bias)[name = string("biased")];
        tensor<fp32, [1, 3, 4, 4]> y = relu(x = biased)[name = string("y")];
    } -> (y);
}
"""


def scaled_program(folder):
    return write_program(folder, SCALED_PROGRAM, [image("photo", 4, 4, RGB)], [array_feature("y", [1, 3, 4, 4])], spec_version=7)


PER_CHANNEL = "tensor<fp32, [1, 3, 1, 1]>([[[[0x1p+0]], [[0x1p+1]], [[0x1p+2]]]])"


def picture_program(folder, *steps):
    """Operations on a picture, one after the other: "sub(x = fp32(0x1p+0), y = $)", where $ is the value so far."""
    lines = []
    for i, step in enumerate((*steps, "relu(x = $)")):
        of, name = (f"v{i - 1}" if i else "photo"), ("y" if i == len(steps) else f"v{i}")
        lines.append(f'tensor<fp32, [1, 3, 4, 4]> {name} = {step.replace("$", of)}[name = string("{name}")];')
    text = "program(1.3)\n{\n    func main<ios16>(tensor<fp32, [1, 3, 4, 4]> photo) {\n" + "\n".join(lines) + "\n    } -> (y);\n}\n"
    return write_program(folder, text, [image("photo", 4, 4, RGB)], [array_feature("y", [1, 3, 4, 4])], spec_version=7)


def one_channel_program(folder):
    """A convolution and a linear operation to one channel, whose biases and strides are arrays of one element."""
    text = """program(1.3)
{
    func main<ios16>(tensor<fp32, [1, 2, 9]> x) {
        tensor<fp32, [1, 2, 1]> w = const()[name = string("w"), val = tensor<fp32, [1, 2, 1]>([[[0x1p+0], [0x1p+1]]])];
        tensor<fp32, [1]> b = const()[name = string("b"), val = tensor<fp32, [1]>([0x1p+0])];
        tensor<fp32, [1]> half = const()[name = string("half"), val = tensor<fp32, [1]>([0x1p-1])];
        tensor<fp32, [1, 1, 9]> c = conv(bias = b, dilations = tensor<int32, [1]>([1]), groups = int32(1), pad = tensor<int32, [2]>([0, 0]), pad_type = string("valid"), strides = tensor<int32, [1]>([1]), weight = w, x = x)[name = string("c")];
        tensor<fp32, [1, 1, 9]> m = mul(x = c, y = half)[name = string("m")];
        tensor<fp32, [1, 1, 1]> y = linear(bias = tensor<fp32, [1]>([0x1p+1]), weight = tensor<fp32, [1, 9]>([[0x1p+0, 0x1p+0, 0x1p+0, 0x1p+0, 0x1p+0, 0x1p+0, 0x1p+0, 0x1p+0, 0x1p+0]]), x = m)[name = string("y")];
    } -> (y);
}
"""
    return write_program(folder, text, [array_feature("x", [1, 2, 9])], [array_feature("y", [1, 1, 1])], spec_version=7)


def flexible_program(folder):
    """A convolution of [1, 2, 9] by default, up to [1, 2, 100], and a product with 8-bit weights."""
    weights = "[" + ", ".join("[[0x1p+0, 0x1p+0, 0x1p+0]]" for _ in range(4)) + "]"
    program = """program(1.3)
{
    func main<ios16>(tensor<fp32, [1, 2, ?]> x) {
        tensor<fp32, [4, 1, 3]> w = const()[name = string("w"), val = tensor<fp32, [4, 1, 3]>(%s)];
        tensor<fp32, [4, 2]> dense = constexpr_affine_dequantize()[axis = int32(0), name = string("dense"), quantized_data = tensor<int8, [4, 2]>([[1, 2], [3, 4], [5, 6], [7, 8]]), scale = fp32(0x1p-1), zero_point = int8(0)];
        tensor<fp32, [1, 4, ?]> c = conv(dilations = tensor<int32, [1]>([1]), groups = int32(2), pad = tensor<int32, [2]>([1, 1]), pad_type = string("custom"), strides = tensor<int32, [1]>([2]), weight = w, x = x)[name = string("c")];
        tensor<fp32, [1, ?, 4]> t = transpose(perm = tensor<int32, [3]>([0, 2, 1]), x = c)[name = string("t")];
        tensor<fp32, [1, ?, 2]> y = matmul(transpose_x = bool(false), transpose_y = bool(false), x = t, y = dense)[name = string("y")];
    } -> (y);
}
""" % weights
    ranges = b"".join(field(1, field(1, low) + field(2, high)) for low, high in ((1, 1), (2, 2), (4, 100)))
    x = field(1, "x") + field(3, field(5, sizes(1, 1, 2, 9) + field(2, FLOAT32) + field(31, ranges)))
    return write_program(folder, program, [x], [array_feature("y", [1, 5, 2])], spec_version=7)


def compiled(folder):
    """A compiled network of a picture and one convolution, without its file of weights."""
    folder = Path(folder)
    folder.mkdir()
    about = field(1, image("x", 8, 8, BGR)) + field(10, array_feature("y", [2, 3, 3]))
    data = struct.pack("<IQQQ", 500, 1, 3, 0) + text("generic") + struct.pack("<I", 2) + bytes(28)
    data += struct.pack("<Q", len(about)) + about + struct.pack("<QQ", 500, 1) + text("y")
    (folder / "coremldata.bin").write_bytes(data)
    net = {"format_version": 200, "storage": "model.espresso.weights",
           "transform_params": {"x": {"scale": 2, "bias_r": 1, "bias_g": 2, "bias_b": 3, "bias_a": 0, "center_mean": 0,
                                      "is_network_bgr": 1}},
           "layers": [{"type": "convolution", "name": "conv", "bottom": "x", "top": "y", "K": 3, "C": 2, "Nx": 4, "Ny": 3,
                       "stride_y": 2, "pad_mode": 0, "pad_t": 0, "pad_b": 1, "pad_l": 0, "pad_r": 0, "n_groups": 1,
                       "blob_weights": 3, "weights": {}}]}
    (folder / "model.espresso.net").write_text(json.dumps(net))
    shapes = {"x": {"k": 3, "h": 8, "w": 8, "n": 1}, "y": {"k": 2, "h": 3, "w": 3, "n": 1}}
    (folder / "model.espresso.shape").write_text(json.dumps({"layer_shapes": shapes}))
    return str(folder)

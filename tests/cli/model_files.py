# SPDX-License-Identifier: Apache-2.0
"""Writes small compiled models: MIL text and the binary description beside it."""

import struct
from pathlib import Path

FLOAT16, FLOAT32 = 0x10000 | 16, 0x10000 | 32
INT32 = 0x20000 | 32

ACCUMULATOR = """program(1.3)
{
    func main<ios18>(state<tensor<fp16, [3]>> total, tensor<fp16, [3]> x) {
        tensor<fp16, [3]> before = read_state(input = total)[name = string("before")];
        tensor<fp16, [3]> sum = add(x = before, y = x)[name = string("sum")];
        write_state(data = sum, input = total)[name = string("after")];
    } -> (sum);
}
"""


def varint(n):
    out = b""
    while n >= 128:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def field(number, payload):
    """A protobuf field: a number as a varint, or bytes or text with their length."""
    if isinstance(payload, int):
        return varint(number << 3) + varint(payload)
    if isinstance(payload, str):
        payload = payload.encode()
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def array_feature(name, shape, kind=FLOAT32, state=False):
    array = field(1, b"".join(varint(d) for d in shape)) + field(2, kind)
    kind_field = field(8, field(1, array)) if state else field(5, array)
    return field(1, name) + field(3, kind_field)


def text(s):
    return struct.pack("<Q", len(s)) + s.encode()


def write_program(folder, mil, inputs, outputs, states=(), spec_version=9, metadata=b""):
    """An .mlmodelc of type mlProgram with one function."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    description = b"".join(field(1, f) for f in inputs)
    description += b"".join(field(10, f) for f in outputs)
    description += b"".join(field(13, f) for f in states)
    if metadata:
        description += field(100, metadata)
    data = struct.pack("<IQQQ", 502, 5, 0, 0) + text("generic") + struct.pack("<I", spec_version) + bytes(28)
    data += struct.pack("<Q", len(description)) + description + struct.pack("<QQ", 502, 0)
    (folder / "coremldata.bin").write_bytes(data)
    (folder / "model.mil").write_text(mil)
    return str(folder)


def write_weights(folder, *weights):
    """The weight file of a compiled model from (code of struct, numbers). Returns text of a value for each, by a type."""
    data, values = b"", []
    for code, numbers in weights:
        offset = 64 + len(data)
        raw = struct.pack(f"<{len(numbers)}{code}", *numbers)
        data += struct.pack("<IIQQQ", 0xDEADBEEF, {"e": 1, "f": 2}[code], len(raw), offset + 64, 0).ljust(64, b"\0") + raw
        data += bytes(-len(data) % 64)
        values.append(f'(BLOBFILE(path = string("@model_path/weights/weight.bin"), offset = uint64({offset})))')
    path = Path(folder) / "weights" / "weight.bin"
    path.parent.mkdir(parents=True)
    path.write_bytes(struct.pack("<II", len(weights), 2).ljust(64, b"\0") + data)
    return values


def write_accumulator(folder):
    """A model that adds x to its state and returns the sum."""
    return write_program(folder, ACCUMULATOR, [array_feature("x", [3], FLOAT16)], [array_feature("sum", [3], FLOAT16)],
                         [array_feature("total", [3], FLOAT16, state=True)])


def read_npy(path):
    """Shape and float32 numbers of a .npy file in C order."""
    raw = Path(path).read_bytes()
    length = struct.unpack_from("<H", raw, 8)[0]
    header = eval(raw[10 : 10 + length], {})
    assert header["descr"] == "<f4" and not header["fortran_order"], header
    data = raw[10 + length :]
    return header["shape"], list(struct.unpack(f"<{len(data) // 4}f", data))


def write_npy(path, shape, numbers):
    header = repr({"descr": "<f4", "fortran_order": False, "shape": tuple(shape)})
    header += " " * (-(len(header) + 11) % 64) + "\n"
    Path(path).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
                           + struct.pack(f"<{len(numbers)}f", *numbers))

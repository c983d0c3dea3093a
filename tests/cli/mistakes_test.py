# SPDX-License-Identifier: Apache-2.0
"""Typical mistakes at the command line: one per line, with the exit code and the words that the message must contain."""

import json
import os
import struct
import subprocess
import tempfile
import unittest
import zipfile
import zlib
from pathlib import Path

PROGRAM = os.environ["MOKA_PROGRAM"]
ROOT = Path(__file__).parents[2]
MODELS, GOLDEN = ROOT / "examples/models", ROOT / "tests/golden"
RENT, SHAPES, TOTAL = MODELS / "rent.mlmodel", MODELS / "shapes.mlmodel", MODELS / "total.mlpackage"
RIGHT = "-i rooms=3 -i area=70 -i kilometres=2"
USE, FILE = 2, 3  # exit codes: wrong use, a bad file

#: (arguments, exit code, what one line on standard error names). {d} is a folder with the files of `lay_out`.
MISTAKES = [
    # Commands and options
    ("predcit {rent}", USE, ["predcit", "'predict'"]),
    ("predict", USE, ["MODEL", "--help"]),
    ("predict {rent} --inputs rooms=3", USE, ["--inputs"]),
    ("predict {rent} {right} --threads many", USE, ["--threads", "many"]),
    ("predict {rent} {right} --threads -2", USE, ["--threads", "-2"]),
    ("predict {rent} {right} --device tpu", USE, ["'cpu'", "'reference'", "'neuralEngine'", "'tpu'"]),
    ("predict {rent} {right} --function decode", USE, ["'main'", "'decode'"]),
    ("predict {rent} {right} --precision half", USE, ["--precision", "half"]),
    ("predict {rent} {right} --repeat 0", USE, ["--repeat", "0"]),
    ("bench {rent} --seconds soon", USE, ["--seconds", "soon"]),
    ("explain", USE, ["MODEL"]),
    ("cache empty", USE, ["empty"]),
    # Files that are not models
    ("inspect {d}/absent.mlmodel", FILE, ["absent.mlmodel", "does not exist"]),
    ("inspect {d}", FILE, ["{d}"]),
    ("inspect {d}/picture.mlmodel", FILE, ["picture.mlmodel", "PNG"]),
    ("convert {d}/pointer.onnx -o {d}/x.mlpackage", FILE, ["pointer.onnx", "Git LFS pointer"]),
    ("inspect {d}/text.mlmodel", FILE, ["text.mlmodel", "text"]),
    ("inspect {d}/archive.mlmodel", FILE, ["archive.mlmodel", "zip"]),
    ("inspect {d}/pointer.mlmodel", FILE, ["pointer.mlmodel", "Git LFS pointer"]),
    ("inspect {d}/net.onnx", FILE, ["net.onnx", "ONNX"]),
    ("predict {d}/empty.mlmodel -i random", FILE, ["empty.mlmodel", "an empty file"]),
    ("inspect {d}/empty.mlmodel", FILE, ["empty.mlmodel", "an empty file"]),
    ("inspect {d}/short.mlmodel --json", FILE, ["short.mlmodel", "PNG"]),
    ("inspect {d}/cut.mlmodel", FILE, ["cut.mlmodel"]),
    ("inspect {d}/noise.mlmodel", FILE, ["noise.mlmodel"]),
    ("inspect {d}/empty.mlpackage", FILE, ["empty.mlpackage"]),
    ("inspect {d}/manifest.mlpackage", FILE, ["Manifest.json"]),
    ("inspect {d}/empty.mlmodelc", FILE, ["empty.mlmodelc"]),
    ("predict {d}/picture.mlmodel -i random", FILE, ["picture.mlmodel", "PNG"]),
    ("compile {d}/text.mlmodel {d}/out", FILE, ["text.mlmodel"]),
    ("decompile {rent} {d}/out.mlmodel", USE, ["rent.mlmodel", "compiled"]),
    ("edit {rent} --rename rooms=area -o {d}/out.mlmodel", USE, ["--rename rooms=area", "two features", "'area'"]),
    ("edit {rent} --type rooms=float32 -o {d}/out.mlmodel", USE, ["'rooms'", "expected an array"]),
    ("edit {rent} --outputs price -o {d}/out.mlmodel", USE, ["expected an ML program or a neural network"]),
    ("edit {rent} --author me -o {d}/out.txt", USE, ["out.txt", ".mlmodel"]),
    ("edit {d}/cut.mlmodel --author me -o {d}/out.mlmodel", FILE, ["cut.mlmodel"]),
    # Inputs
    ("predict {rent}", USE, ["rooms"]),
    ("predict {rent} -i rooms=3 -i area=70", USE, ["kilometres"]),
    ("predict {rent} {right} -i garden=1", USE, ["garden", "rooms"]),
    ("predict {rent} {right} -i room=1", USE, ["'room'", "rooms"]),
    ("predict {rent} -i rooms=three -i area=70 -i kilometres=2", USE, ["rooms", "three"]),
    ("predict {rent} -i rooms= -i area=70 -i kilometres=2", USE, ["rooms"]),
    ("predict {rent} -i rooms=[1,2] -i area=70 -i kilometres=2", USE, ["rooms"]),
    ("predict {rent} -i @{d}/absent.json", FILE, ["absent.json"]),
    ("predict {rent} -i @{d}/broken.json", USE, ["broken.json", "JSON", "column 22", "unexpected end of input"]),
    ("predict {rent} -i @{d}/number.json", USE, ["number.json", "object of inputs", "'3'", "rooms"]),
    ("predict {rent} -i @{d}/lists.json", USE, ["lists.json", "step 2", "'[1,2]'"]),
    ("predict {rent} -i @{d}/none.json", USE, ["none.json", "an empty list"]),
    ("predict {rent} -i @{d}/empty.json", USE, ["empty.json", "JSON"]),
    ("predict {rent} -i @{d}/other.json", USE, ["other.json", "step 1", "'garden'", "rooms"]),
    ("predict {total} -i x=@{d}/broken.json --state", USE, ["x", "broken.json", "JSON", "column 22"]),
    ("predict {rent} -i @{d}/columns.csv", USE, ["kilometres"]),
    ("predict {rent} -i @{d}/words.csv", USE, ["three"]),
    ("predict {rent} -i @{d}/empty.csv", (USE, FILE), ["empty.csv"]),
    ("predict {shapes} -i image=3", USE, ["image"]),
    ("predict {shapes} -i image=@{d}/absent.png", FILE, ["absent.png"]),
    ("predict {shapes} -i image=@{d}/text.png", (USE, FILE), ["text.png"]),
    ("predict {shapes} -i image=@{d}/cut.png", FILE, ["cut.png"]),
    ("predict {shapes} -i image=@{d}/columns.csv", (USE, FILE), ["columns.csv"]),
    ("predict {shapes} -i image=@{d}/large.png --fit stretch", USE, ["--fit", "stretch"]),
    ("predict {total} -i x=[1,2,3] --state", USE, ["x", "3"]),
    ("predict {total} -i x=[1]", USE, ["x"]),
    ("predict {total} -i x={{}} --state", USE, ["x"]),
    ("predict {total} -i x=[1,two] --state", USE, ["x"]),
    ("predict {total} -i x=@{d}/broken.npy --state", FILE, ["broken.npy"]),
    ("predict {total} -i x=@{d}/three.npy --state", USE, ["x", "3"]),
    ("predict {total} -i x=[1,2] --load-state {d}/absent", FILE, ["absent"]),
    ("predict {rent} {right} --state", USE, ["state"]),
    # Categories, outputs
    ("predict {golden}/classic/one_hot_int.mlmodel -i x=4", FILE, ["'x'", "categories", "4"]),
    ("predict {golden}/classic/one_hot_int.mlmodel -i x=five", USE, ["x", "five"]),
    ("predict {golden}/flexible/range.mlmodel -i x=@{d}/three.npy", USE, ["x"]),
    ("predict {rent} {right} -o {d}/text.mlmodel", USE, ["text.mlmodel", "folder"]),
    # Sizes, damaged weights and budgets
    ("inspect {d}/weightless.mlpackage --weights", FILE, ["weight"]),
    ("predict {golden}/flexible/contradictory.mlmodel -i random", FILE, ["'pile' (stack)", "[2]", "[3]"]),
    ("tune {d}/absent.mlpackage", FILE, ["absent.mlpackage"]),
    ("bench {d}/archive.mlmodel", FILE, ["zip"]),
    ("explain {d}/pointer.mlmodel", FILE, ["Git LFS pointer"]),
    ("metadata {d}/picture.mlmodel", FILE, ["PNG"]),
    ("completion elvish", USE, ["elvish"]),
]


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width, height):
    rows = b"".join(b"\0" + bytes(width) for _ in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def npy(count):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({count},), }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header.encode() + bytes(4 * count)


def lay_out(folder):
    files = {
        "picture.mlmodel": png(8, 8),
        "pointer.onnx": b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n",
        "text.mlmodel": b"This is the model, I think.\n",
        "pointer.mlmodel": b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 1234\n",
        "net.onnx": b"\x08\x08\x12\x07pytorch\x1a\x052.7.0:\x0e\n\x0c\n\x01x\x12\x01y\x22\x04ReluB\x04\n\x00\x10\x11",
        "empty.mlmodel": b"",
        "cut.mlmodel": SHAPES.read_bytes()[:1500],
        "noise.mlmodel": bytes((i * 7919) % 251 for i in range(4096)),
        "short.mlmodel": b"\x89PNG\r\n\x1a\nxxxx",
        "number.json": b"3",
        "lists.json": b'[{"rooms": 3}, [1, 2]]',
        "none.json": b"[]",
        "empty.json": b"",
        "other.json": b'[{"garden": 1}]',
        "broken.json": b'{"rooms": 3, "area": ',
        "columns.csv": b"rooms,area\n3,70\n",
        "words.csv": b"rooms,area,kilometres\nthree,70,2\n",
        "empty.csv": b"",
        "text.png": b"not a picture\n",
        "cut.png": png(48, 48)[:60],
        "large.png": png(48, 48),
        "broken.npy": b"\x93NUMPY\x01\0",
        "three.npy": npy(3),
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)
    with zipfile.ZipFile(folder / "archive.mlmodel", "w") as z:
        z.writestr("model.txt", "x")
    for name in ("empty.mlpackage", "manifest.mlpackage", "empty.mlmodelc"):
        (folder / name).mkdir()
    (folder / "manifest.mlpackage/Manifest.json").write_text(json.dumps({"fileFormatVersion": "1.0.0"})[:-3])


class Mistakes(unittest.TestCase):
    def test_each_is_named(self):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            lay_out(folder)
            places = dict(d=folder, rent=RENT, shapes=SHAPES, total=TOTAL, golden=GOLDEN, right=RIGHT)
            for line, code, words in MISTAKES:
                with self.subTest(line):
                    arguments = line.format(**places).split()
                    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=60, cwd=folder)
                    message = done.stderr
                    self.assertIn(done.returncode, code if isinstance(code, tuple) else (code,), message)
                    self.assertEqual(message.count("\n"), 1, message)
                    for word in words:
                        self.assertIn(word.format(**places), message)

    def test_there_are_enough(self):
        self.assertGreaterEqual(len(MISTAKES), 64)


if __name__ == "__main__":
    unittest.main()

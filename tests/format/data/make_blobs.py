# SPDX-License-Identifier: Apache-2.0
"""Writes blobs.bin beside this file with coremltools' writer: per type one blob of the five values 1, 0, 1, 1, 0."""

import pathlib

import numpy as np
from coremltools.libmilstoragepython import _BlobStorageWriter

VALUES = [1, 0, 1, 1, 0]
KINDS = [("fp16", np.float16), ("float", np.float32), ("uint8", np.uint8), ("int8", np.int8), ("int16", np.int16),
         ("uint16", np.uint16), ("int4", np.int8), ("uint1", np.uint8), ("uint2", np.uint8), ("uint4", np.uint8),
         ("uint3", np.uint8), ("uint6", np.uint8), ("int32", np.int32), ("uint32", np.uint32)]

writer = _BlobStorageWriter(str(pathlib.Path(__file__).with_name("blobs.bin")))
for kind, dtype in KINDS:
    data = np.array(VALUES, dtype)
    if kind == "fp16":
        data = data.view(np.uint16)
    print(kind, getattr(writer, f"write_{kind}_data")(data))

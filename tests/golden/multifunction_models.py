# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/multifunction/two.mlmodel: the specification of a package of two functions that share a weight of
64 MiB, as coremltools merges them. The weights file is not kept: the test writes one of the same layout.

    python tests/golden/multifunction_models.py        with coremltools 9
"""

import pathlib
import shutil
import tempfile

import coremltools as ct
import numpy as np
from coremltools.converters.mil import Builder as mb

MADE, DEPTH, ROWS = 4096, 8192, 8


def function(finish):
    weight = (np.arange(MADE * DEPTH) % 251).astype(np.float16).reshape(MADE, DEPTH)

    @mb.program(input_specs=[mb.TensorSpec((ROWS, DEPTH))], opset_version=ct.target.iOS18)
    def program(x):
        y = mb.linear(x=mb.cast(x=x, dtype="fp16"), weight=weight)
        return mb.cast(x=finish(y), dtype="fp32", name="y")

    return ct.convert(program, minimum_deployment_target=ct.target.iOS18, skip_model_load=True)


def main():
    target = pathlib.Path(__file__).parent / "multifunction" / "two.mlmodel"
    target.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        merged = ct.utils.MultiFunctionDescriptor()
        for name, finish in (("plain", lambda y: y), ("positive", lambda y: mb.relu(x=y))):
            path = f"{folder}/{name}.mlpackage"
            function(finish).save(path)
            merged.add_function(path, src_function_name="main", target_function_name=name)
        merged.default_function_name = "plain"
        ct.utils.save_multifunction(merged, f"{folder}/two.mlpackage")
        data = pathlib.Path(folder) / "two.mlpackage/Data/com.apple.CoreML"
        weights = data / "weights/weight.bin"
        # The weight and the zeros that coremltools gives as the bias, each behind a record of 64 bytes.
        assert weights.stat().st_size == 64 + 64 + MADE * DEPTH * 2 + 64 + MADE * 2
        shutil.copy(data / "model.mlmodel", target)


if __name__ == "__main__":
    main()

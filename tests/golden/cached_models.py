# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/cached/model.mlpackage: a convolution and a product whose weights are in a file of their own.

Run with a Python that has coremltools: python tests/golden/cached_models.py
"""
import pathlib
import shutil

import coremltools as ct
import numpy as np
from coremltools.converters.mil import Builder as mb

FOLDER = pathlib.Path(__file__).resolve().parent / "cached"


def main():
    random = np.random.default_rng(5)

    @mb.program(input_specs=[mb.TensorSpec(shape=(1, 8, 12, 12))], opset_version=ct.target.iOS16)
    def program(x):
        x = mb.conv(x=x, weight=random.standard_normal((16, 8, 3, 3), np.float32), pad_type="same", name="c")
        x = mb.reshape(x=mb.relu(x=x), shape=(16, 144))
        return mb.linear(x=x, weight=random.standard_normal((24, 144), np.float32), name="y")

    model = ct.convert(program, compute_precision=ct.precision.FLOAT32, minimum_deployment_target=ct.target.iOS16,
                       skip_model_load=True)
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    model.save(str(FOLDER / "model.mlpackage"))


main()

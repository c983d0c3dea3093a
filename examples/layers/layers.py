# SPDX-License-Identifier: Apache-2.0
"""Custom layers in NumPy: moka predict model.mlmodel --plugin layers.py"""

import numpy as np

import moka


@moka.register_layer("Swish")
class Swish:
    """x * sigmoid(beta * x), of any shape."""

    def __init__(self, parameters):
        self.beta = parameters.get("beta", 1.0)

    def evaluate(self, inputs, outputs):
        x = inputs[0]
        np.exp(np.minimum(-self.beta * x, 80), out=outputs[0])
        outputs[0] += 1
        np.divide(x, outputs[0], out=outputs[0])


@moka.register_layer("MaxPoolWithArgmax")
class MaxPoolWithArgmax:
    """The largest number of each 2 x 2 window, and its place in the row-major image of its channel."""

    def __init__(self, parameters):
        pass

    def output_shapes(self, input_shapes):
        *lead, height, width = input_shapes[0]
        return [(*lead, height // 2, width // 2)] * 2

    def evaluate(self, inputs, outputs):
        *lead, height, width = inputs[0].shape
        windows = inputs[0][..., : height // 2 * 2, : width // 2 * 2]
        windows = windows.reshape(*lead, height // 2, 2, width // 2, 2).swapaxes(-3, -2)
        windows = windows.reshape(*windows.shape[:-2], 4)
        best = windows.argmax(-1)
        outputs[0][...] = windows.max(-1)
        rows, columns = np.ogrid[: height // 2, : width // 2]
        outputs[1][...] = (2 * rows + best // 2) * width + 2 * columns + best % 2


@moka.register_layer("ScaledUpsampling")
class ScaledUpsampling:
    """A layer with weights: each channel is repeated `scale` times along both axes and multiplied by its gain."""

    def __init__(self, parameters):
        self.scale = int(parameters["scale"])

    def set_weights(self, weights):
        self.gain = weights[0].reshape(-1, 1, 1)

    def output_shapes(self, input_shapes):
        *lead, height, width = input_shapes[0]
        return [(*lead, height * self.scale, width * self.scale)]

    def evaluate(self, inputs, outputs):
        outputs[0][...] = (inputs[0] * self.gain).repeat(self.scale, -2).repeat(self.scale, -1)

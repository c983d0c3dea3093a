# SPDX-License-Identifier: Apache-2.0
"""Writes the models and the picture of the README's examples next to this script.

    rent.mlmodel      a linear regression of three numbers
    shapes.mlmodel    tells circles, squares and triangles apart in gray pictures of 32 x 32
    total.mlpackage   adds its input to a state
    square.png        a picture for shapes.mlmodel

Needs coremltools 9, scikit-learn and Pillow."""

import pathlib

import coremltools as ct
import numpy as np
from coremltools.converters.mil import Builder as mb
from coremltools.converters.mil.mil import types
from coremltools.models import datatypes, neural_network
from PIL import Image, ImageDraw
from sklearn.linear_model import LinearRegression, LogisticRegression

FOLDER = pathlib.Path(__file__).parent
SIZE, SHAPES = 32, ["circle", "square", "triangle"]


def rent():
    rng = np.random.RandomState(1)
    rooms, area, kilometres = rng.randint(1, 6, 200), rng.uniform(20, 150, 200), rng.uniform(0, 20, 200)
    price = 150 + 40 * rooms + 11 * area - 18 * kilometres
    fitted = LinearRegression().fit(np.stack([rooms, area, kilometres], 1), price)
    ct.converters.sklearn.convert(fitted, ["rooms", "area", "kilometres"], "rent").save(str(FOLDER / "rent.mlmodel"))


def drawn(shape, rng, size=SIZE):
    picture = Image.new("L", (4 * size, 4 * size))
    radius = rng.uniform(1.0, 1.7) * size
    x, y = rng.uniform(radius, 4 * size - radius, 2)
    corners = {"circle": 0, "square": 4, "triangle": 3}[shape]
    draw = ImageDraw.Draw(picture)
    if corners == 0:
        draw.ellipse([x - radius, y - radius, x + radius, y + radius], fill=255)
    else:
        draw.regular_polygon((x, y, radius), corners, fill=255)
    return picture.resize((size, size), Image.LANCZOS)


def shapes():
    """Means of blocks of 4 x 4 against weights that a logistic regression of edges learns."""
    rng = np.random.RandomState(2)
    names = [SHAPES[i % 3] for i in range(600)]
    pictures = np.stack([np.asarray(drawn(name, rng), np.float32) / 255 for name in names])[:, None]
    filters = rng.randn(24, 1, 5, 5).astype(np.float32)
    filters -= filters.mean((2, 3), keepdims=True)

    def features(x):
        windows = np.lib.stride_tricks.sliding_window_view(x[:, 0], (5, 5), (1, 2))
        return np.maximum(np.einsum("nyxij,cij->ncyx", windows, filters[:, 0]), 0).mean((2, 3))

    learned = LogisticRegression(max_iter=500, C=100).fit(features(pictures), names)
    print("shapes: right on", np.mean(learned.predict(features(pictures)) == names))
    builder = neural_network.NeuralNetworkBuilder([("image", datatypes.Array(1, SIZE, SIZE))],
                                                  [("probabilities", datatypes.Array(3))], mode="classifier")
    builder.add_convolution("edges", 1, 24, 5, 5, 1, 1, "valid", 1, filters.transpose(2, 3, 1, 0), None, False, input_name="image", output_name="edges")
    builder.add_activation("positive", "RELU", "edges", "positive")
    builder.add_pooling("mean", 1, 1, 1, 1, "AVERAGE", "VALID", "positive", "mean", is_global=True)
    builder.add_inner_product("scores", learned.coef_, learned.intercept_, 24, 3, True, "mean", "scores")
    builder.add_softmax("softmax", "scores", "probabilities")
    builder.set_class_labels(SHAPES, "shape")
    builder.set_pre_processing_parameters(image_input_names=["image"], image_scale=1 / 255)
    ct.models.MLModel(builder.spec, skip_model_load=True).save(str(FOLDER / "shapes.mlmodel"))
    drawn("square", rng, 48).save(FOLDER / "square.png")


def total():
    @mb.program(input_specs=[mb.TensorSpec(shape=(2,), dtype=types.fp16), mb.StateTensorSpec(shape=(2,), dtype=types.fp16)],
                opset_version=ct.target.iOS18)
    def add(x, total):
        return mb.identity(x=mb.coreml_update_state(state=total, value=mb.add(x=mb.read_state(input=total), y=x)), name="sum")

    ct.convert(add, minimum_deployment_target=ct.target.iOS18, skip_model_load=True).save(str(FOLDER / "total.mlpackage"))


if __name__ == "__main__":
    rent()
    shapes()
    total()

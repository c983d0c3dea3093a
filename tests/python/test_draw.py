# SPDX-License-Identifier: Apache-2.0
"""moka.draw: pictures of what outputs mean."""

import pathlib

import numpy as np
import pytest

import moka

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "models"


def pixels(picture):
    return np.asarray(picture)


def test_a_classifier_gets_bars_beside_the_picture():
    model = moka.Model(str(EXAMPLES / "shapes.mlmodel"))
    inputs = {"image": str(EXAMPLES / "square.png")}
    outputs = model.predict(inputs, resize=True)
    drawn = pixels(moka.draw(model, inputs, outputs))
    assert drawn.dtype == np.uint8 and drawn.shape[2] == 4
    assert np.array_equal(drawn, pixels(moka.draw(model, inputs)))
    # bars of the classes in their color
    assert np.any(np.all(drawn[:, :, :3] == (49, 104, 190), axis=2))


def test_the_users_own_picture_is_drawn_on():
    model = moka.Model(str(EXAMPLES / "shapes.mlmodel"))
    red = np.zeros((600, 800, 3), np.uint8)
    red[:, :, 0] = 255
    drawn = pixels(moka.draw(model, {"image": red}))
    assert drawn.shape[0] >= 600 and drawn.shape[1] > 800
    assert tuple(drawn[300, 400, :3]) == (255, 0, 0)


def test_outputs_that_mean_nothing_are_an_error():
    model = moka.Model(str(EXAMPLES / "rent.mlmodel"))
    with pytest.raises(moka.InvalidArgumentError, match="no output can be drawn"):
        moka.draw(model, {"rooms": 3.0, "area": 70.0, "kilometres": 2.0})

# SPDX-License-Identifier: Apache-2.0
"""Answers as pictures."""

from typing import Any, Mapping, Optional

import numpy as np

from . import _moka
from ._images import as_pixels, from_pixels
from ._model import Model


def draw(
    model: Model,
    inputs: Mapping[str, Any],
    outputs: Optional[Mapping[str, Any]] = None,
    *,
    fit: Optional[str] = None,
    rate: int = 0,
    pad: bool = False,
) -> Any:
    """Draws what the outputs of one prediction mean: boxes, masks and key points in the picture of the image input,
    maps over the spectrogram of a sound, bars of classes. The rules are those of `moka predict --draw`.

    inputs, fit, rate, pad: as in Model.predict; pictures are resized. outputs: what predict returned for these inputs; None
    predicts. Returns a PIL image of mode RGBA, or a uint8 array (H, W, 4) without Pillow. Raises what predict raises, and
    InvalidArgumentError where no output can be drawn.
    """
    if outputs is None:
        outputs = model.predict(inputs, resize=True, fit=fit, rate=rate, pad=pad)
    picture = None
    for feature in model.inputs:
        if feature.type == "Image" and inputs.get(feature.name) is not None:
            if not isinstance(inputs[feature.name], _moka.PixelBuffer):
                picture = as_pixels(inputs[feature.name])
            break
    if picture is not None and picture.dtype != np.uint8:
        picture = None
    reading = _moka.Reading(True, fit or "scaleFill", rate, pad)
    return from_pixels(_moka.draw(model._core, inputs, outputs, picture, reading))

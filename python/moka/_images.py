"""Pictures between numpy and Pillow, which is optional."""

from typing import Any

import numpy as np


def from_pixels(pixels: np.ndarray) -> Any:
    """A PIL image of mode L, F, RGB or RGBA that copies `pixels` of shape (H, W) or (H, W, C); the array itself where
    Pillow is not installed."""
    try:
        from PIL import Image
    except ImportError:
        return pixels
    return Image.fromarray(pixels)

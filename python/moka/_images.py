# SPDX-License-Identifier: Apache-2.0
"""Converts pictures between numpy and Pillow, which is optional."""

from typing import Any

import numpy as np

from ._arrays import as_array

#: The modes that Core ML's own Python module takes.
_CORE_ML_MODES = ("RGB", "RGBA", "L", "F")
#: What arrays of pixels hold: bytes, and numbers of one gray component.
_PIXEL_TYPES = (np.uint8, np.float16, np.float32)


def from_pixels(pixels: np.ndarray) -> Any:
    """A PIL image of mode L, F, RGB or RGBA that copies `pixels` of shape (H, W) or (H, W, C); F for half floats. Returns the array itself if
    Pillow is not installed."""
    try:
        from PIL import Image
    except ImportError:
        return pixels
    return Image.fromarray(pixels.astype(np.float32) if pixels.dtype == np.float16 else pixels)


def _has_dense_rows(pixels: np.ndarray) -> bool:
    """Whether only rows have gaps between them."""
    if pixels.ndim not in (2, 3) or not pixels.flags.aligned or not pixels.size:
        return False
    return bool(pixels[0].flags.c_contiguous and pixels.strides[0] >= pixels[0].nbytes)


def _is_image(value: Any) -> bool:
    return hasattr(value, "mode") and hasattr(value, "getbands")


def as_core_ml_pixels(value: Any) -> np.ndarray:
    """The pixels of a picture in a form that Core ML's own Python module accepts. Raises TypeError."""
    if _is_image(value) and value.mode not in _CORE_ML_MODES:
        raise TypeError(f"Unsupported image type {value.mode}. Supported types are: {', '.join(_CORE_ML_MODES)}.")
    return np.ascontiguousarray(value)


def as_pixels(value: Any) -> np.ndarray:
    """Pixels as uint8 (H, W), (H, W, 3) or (H, W, 4), or float32 or float16 (H, W), of a picture of any kind: a PIL image, an
    array or tensor, a path, an open file or the bytes of one. Raises TypeError, and what reading a file raises."""
    if isinstance(value, memoryview) and value.ndim > 1:
        value = np.asarray(value)
    if isinstance(value, np.ndarray) and value.dtype in _PIXEL_TYPES:
        pixels = value if value.ndim != 3 or value.shape[2] != 1 else value[:, :, 0]
        return pixels if _has_dense_rows(pixels) else np.ascontiguousarray(pixels)
    if _is_image(value):
        return _of_pillow(value)
    if isinstance(value, (str, bytes, bytearray, memoryview)) or hasattr(value, "__fspath__") or hasattr(value, "read"):
        from ._files import read_picture

        return read_picture(value)
    pixels = as_array(value)
    if pixels.dtype == np.bool_:
        pixels = pixels.astype(np.uint8) * 255
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = np.ascontiguousarray(pixels[:, :, 0])
    return pixels


def _of_pillow(image: Any) -> np.ndarray:
    mode = image.mode
    if mode == "1":
        image = image.convert("L")
    elif mode == "P":
        image = image.convert("RGBA" if "transparency" in image.info else "RGB")
    elif mode in ("LA", "La", "PA", "RGBa"):
        image = image.convert("RGBA")
    elif mode in ("RGBX", "YCbCr", "HSV"):
        image = image.convert("RGB")
    elif mode == "I" or mode.startswith("I;16"):
        samples = np.asarray(image).astype(np.int64)
        if samples.size and (samples.min() < 0 or samples.max() > 65535):
            raise TypeError(f"an image of mode {mode} holds 16-bit samples, got {samples.min()} to {samples.max()}")
        return ((samples * 255 + 32767) // 65535).astype(np.uint8)
    elif mode not in _CORE_ML_MODES:
        raise TypeError(f"Unsupported image type {mode}. image.convert('RGB') makes one that is.")
    return np.ascontiguousarray(image)

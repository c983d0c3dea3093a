"""Example inputs."""

import numpy as np

PATCHES = 5  # a side


def image(rng, height, width, channels=3):
    """A patchwork with grain, of mean 0 and deviation 1 as normalised pictures have. Grain alone would look the same to a net
    that averages over the picture."""
    patches = rng.standard_normal((1, channels, PATCHES, PATCHES), dtype=np.float32)
    rows, columns = (np.arange(n) * PATCHES // n for n in (height, width))
    grain = rng.standard_normal((1, channels, height, width), dtype=np.float32)
    return np.float32(0.8) * np.ascontiguousarray(patches[:, :, rows][..., columns]) + np.float32(0.6) * grain


def tokens(rng, count, vocabulary):
    return rng.integers(0, vocabulary, (1, count), dtype=np.int32)

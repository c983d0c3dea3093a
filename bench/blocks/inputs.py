# SPDX-License-Identifier: Apache-2.0
"""Example inputs."""

import numpy as np

PATCHES = 5  # per side


def image(rng, height, width, channels=3):
    """A patchwork with grain, with mean 0 and deviation 1 like normalized pictures. A net that averages over the picture could not
    distinguish pictures of grain alone."""
    patches = rng.standard_normal((1, channels, PATCHES, PATCHES), dtype=np.float32)
    rows, columns = (np.arange(n) * PATCHES // n for n in (height, width))
    grain = rng.standard_normal((1, channels, height, width), dtype=np.float32)
    return np.float32(0.8) * np.ascontiguousarray(patches[:, :, rows][..., columns]) + np.float32(0.6) * grain


def tokens(rng, count, vocabulary):
    return rng.integers(0, vocabulary, (1, count), dtype=np.int32)

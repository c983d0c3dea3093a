# SPDX-License-Identifier: Apache-2.0
"""Random arrays for the cases of one file, from a seed of its own."""
import numpy as np


class Draws:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def rand(self, *shape, dtype=np.float32):
        return (self.rng.standard_normal(shape) * 3).astype(dtype)

    def ints(self, *shape, low=-9, high=10, dtype=np.int32):
        return self.rng.integers(low, high, shape).astype(dtype)

    def bools(self, *shape):
        return self.rng.integers(0, 2, shape).astype(bool)

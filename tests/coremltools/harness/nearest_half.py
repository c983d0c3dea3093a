"""Tells whether a comparison failed only because the model's outputs are declared float16.

A number of such an output is at best the float16 nearest to the exact one, half a step from it. Tests with tolerances finer than that
cannot pass, whatever the engine.
"""

import functools

FLOAT16 = 65552  # ArrayFeatureType.ArrayDataType
HALF_STEP = 0.51  # expected numbers have rounding errors of their own


class NearestHalf:
    def __init__(self):
        self.reset()

    def reset(self):
        self.declared = False  # by the model that predicted last
        self.steps = None  # of float16, that the last failed comparison was off

    def saw(self, spec):
        self.declared = any(f.type.multiArrayType.dataType == FLOAT16 for f in spec.description.output)

    @property
    def explains(self):
        return self.declared and self.steps is not None and self.steps <= HALF_STEP

    def wrap_numpy(self, testing):
        compare = testing.assert_allclose

        @functools.wraps(compare)
        def watched(actual, desired, *args, **kwargs):
            try:
                return compare(actual, desired, *args, **kwargs)
            except AssertionError:
                self.steps = steps(actual, desired)
                raise

        testing.assert_allclose = watched


def steps(actual, desired):
    """The largest difference, in steps of float16 at the desired numbers; None where they cannot be compared."""
    import numpy as np

    try:
        actual, desired = (np.asarray(a, np.float64) for a in (actual, desired))
        if actual.shape != desired.shape or not actual.size or not np.isfinite(actual).all() or np.abs(desired).max() > 65504:
            return None
        return float(np.max(np.abs(actual - desired) / np.spacing(np.abs(desired).astype(np.float16)).astype(np.float64)))
    except (TypeError, ValueError):
        return None

"""Tells whether a comparison failed by no more than float16 rounds.

Outputs that are declared float16 hold at best the float16 nearest to the exact number, half a step from it. Expected numbers that are
float16 themselves were calculated in float16, and are off by a step or two. Tests of either kind with a tolerance finer than that pass
or fail by chance, whatever the engine.
"""

import functools

FLOAT16 = 65552  # ArrayFeatureType.ArrayDataType
DECLARED = 0.51  # steps; the expected numbers have rounding errors of their own
CALCULATED = 2


class Float16Steps:
    def __init__(self):
        self.reset()

    def reset(self):
        self.declared = False  # by the model that predicted last
        self.explain = False  # the comparison that failed last

    def saw(self, spec):
        self.declared = any(f.type.multiArrayType.dataType == FLOAT16 for f in spec.description.output)

    def wrap_numpy(self, testing):
        compare = testing.assert_allclose

        @functools.wraps(compare)
        def watched(actual, desired, *args, **kwargs):
            try:
                return compare(actual, desired, *args, **kwargs)
            except AssertionError:
                allowed = CALCULATED if getattr(desired, "dtype", None) == "float16" else DECLARED if self.declared else 0
                self.explain = 0 < steps(actual, desired) <= allowed
                raise

        testing.assert_allclose = watched


def steps(actual, desired):
    """The largest difference, in steps of float16 at the desired numbers; infinite where they cannot be compared."""
    import numpy as np

    try:
        actual, desired = (np.asarray(a, np.float64) for a in (actual, desired))
        if actual.shape != desired.shape or not actual.size or not np.isfinite(actual).all() or not np.abs(desired).max() < 65504:
            return np.inf
        return float(np.max(np.abs(actual - desired) / np.spacing(np.abs(desired).astype(np.float16)).astype(np.float64)))
    except (TypeError, ValueError):
        return np.inf

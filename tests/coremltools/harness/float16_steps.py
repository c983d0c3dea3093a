"""Tells whether a comparison failed by no more than float16 rounds.

Tests of half precision expect numbers that were calculated in float16, or from numbers whose float16 roundings the model has as weights
or inputs, or they compare outputs that are declared float16: what they expect is off by some steps of float16. With a tolerance finer
than that they pass or fail by chance, whatever the engine.
"""

import functools

FLOAT16 = 65552  # ArrayFeatureType.ArrayDataType
MIL_FLOAT16 = 10  # MILSpec.DataType
ALLOWED = 8


class Float16Steps:
    def __init__(self):
        self.reset()

    def reset(self):
        self.declared = False  # by the model that predicted last, for any value
        self.explain = False  # the comparison that failed last

    def saw(self, spec):
        features = [*spec.description.input, *spec.description.output]
        self.declared = any(f.type.multiArrayType.dataType == FLOAT16 for f in features) or any(
            output.type.tensorType.dataType == MIL_FLOAT16
            for function in spec.mlProgram.functions.values()
            for block in function.block_specializations.values()
            for operation in block.operations
            for output in operation.outputs)

    def wrap_numpy(self, testing):
        compare = testing.assert_allclose

        @functools.wraps(compare)
        def watched(actual, desired, *args, **kwargs):
            try:
                return compare(actual, desired, *args, **kwargs)
            except AssertionError:
                half = self.declared or getattr(desired, "dtype", None) == "float16"
                self.explain = half and steps(actual, desired) <= ALLOWED
                raise

        testing.assert_allclose = watched


def steps(actual, desired):
    """The largest difference, in steps of float16 at the largest number desired; infinite where they cannot be compared."""
    import numpy as np

    try:
        actual, desired = (np.asarray(a, np.float64) for a in (actual, desired))
        if actual.shape != desired.shape or not actual.size or not np.isfinite(actual).all() or not np.abs(desired).max() < 65504:
            return np.inf
        return float(np.max(np.abs(actual - desired)) / np.spacing(np.float16(np.abs(desired).max())))
    except (TypeError, ValueError):
        return np.inf

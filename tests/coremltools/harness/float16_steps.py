# SPDX-License-Identifier: Apache-2.0
"""Determines whether a comparison failed only because of float16 rounding, and proves it.

Some tests of half precision expect numbers that were computed in float16, or whose weights or inputs the model rounds to
float16, or they compare outputs that are declared float16. The expected values are then off by several steps of float16. With
a tighter tolerance, these tests pass or fail by chance, whatever the engine.

The proof runs each comparison again: the engine predicts with its reference device, and then with every value rounded to its
declared type. If the reference agrees with the first result within the tolerance of the test, the numbers in the model
determine that result. If neither way passes, no arithmetic on them can pass.
"""

import functools

FLOAT16 = 65552  # ArrayFeatureType.ArrayDataType
MIL_FLOAT16 = 10  # MILSpec.DataType
NEITHER, ROUNDED = "neither", "rounded"


class Float16Steps:
    def __init__(self):
        self.reset()

    def reset(self):
        self.declared = False  # whether the last model declares float16 for any value
        self.proof = None  # proof for the last failed comparison: NEITHER way passes, or only the ROUNDED one

    def saw(self, spec):
        features = [*spec.description.input, *spec.description.output]
        self.declared = any(f.type.multiArrayType.dataType == FLOAT16 for f in features) or any(
            output.type.tensorType.dataType == MIL_FLOAT16
            for function in spec.mlProgram.functions.values()
            for block in function.block_specializations.values()
            for operation in block.operations
            for output in operation.outputs)

    def wrap_numpy(self, testing, answers):
        """`answers(how)` returns the outputs of the last prediction, computed again in the given way."""
        compare = testing.assert_allclose

        @functools.wraps(compare)
        def watched(actual, desired, *args, **kwargs):
            try:
                return compare(actual, desired, *args, **kwargs)
            except AssertionError:
                half = self.declared or getattr(desired, "dtype", None) == "float16"
                self.proof = prove(actual, desired, answers, lambda a, b: compare(a, b, *args, **kwargs)) if half else None
                raise

        testing.assert_allclose = watched


def steps(actual, desired):
    """The largest difference, in steps of float16 at the largest number; infinite if they cannot be compared."""
    import numpy as np

    try:
        actual, desired = (np.asarray(a, np.float64) for a in (actual, desired))
        if actual.shape != desired.shape or not actual.size or not np.isfinite(actual).all() or not np.abs(desired).max() < 65504:
            return np.inf
        return float(np.max(np.abs(actual - desired)) / np.spacing(np.float16(np.abs(desired).max())))
    except (TypeError, ValueError):
        return np.inf


def prove(actual, desired, answers, compare):
    """What else passes when the reference device gives `actual` and `actual` fails; otherwise None."""
    import numpy as np

    def close(values, expected, rounded=False):
        for value in values:
            if isinstance(value, np.ndarray) and value.shape == np.shape(expected):
                try:
                    compare(value, expected)
                    return True
                except AssertionError:
                    if rounded and steps(value, expected) <= 1:
                        return True
        return False

    wide, exact = answers("at_least"), answers("exact")
    if wide is None or exact is None:
        return None
    # Two numbers on both sides of the midpoint between two float16 values round to adjacent values.
    rounded = np.array_equal(actual, np.asarray(actual, np.float16), equal_nan=True)
    if not close(wide, actual, rounded) or close(wide, desired):
        return None
    return ROUNDED if close(exact, desired) else NEITHER

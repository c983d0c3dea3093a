"""Tells whether a comparison failed by float16's own rounding, and proves it.

Tests of half precision expect numbers that were calculated in float16, or from numbers whose float16 roundings the model has as weights
or inputs, or they compare outputs that are declared float16: what they expect is off by some steps of float16. With a tolerance finer
than that they pass or fail by chance, whatever the engine.

That it is the test is proved for each one: the engine answers once more, with its reference device and then with every value rounded to
its declared type. If the reference gives the first answer, within the tolerance of the test, it is what the numbers in the model make; if
neither way passes, no arithmetic on them does.
"""

import functools

FLOAT16 = 65552  # ArrayFeatureType.ArrayDataType
MIL_FLOAT16 = 10  # MILSpec.DataType
NEITHER, ROUNDED = "neither", "rounded"


class Float16Steps:
    def __init__(self):
        self.reset()

    def reset(self):
        self.declared = False  # by the model that predicted last, for any value
        self.proof = None  # of the comparison that failed last: NEITHER passes, or only what is ROUNDED

    def saw(self, spec):
        features = [*spec.description.input, *spec.description.output]
        self.declared = any(f.type.multiArrayType.dataType == FLOAT16 for f in features) or any(
            output.type.tensorType.dataType == MIL_FLOAT16
            for function in spec.mlProgram.functions.values()
            for block in function.block_specializations.values()
            for operation in block.operations
            for output in operation.outputs)

    def wrap_numpy(self, testing, answers):
        """`answers(how)` gives the outputs of the last prediction once more, calculated in that way."""
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
    """The largest difference, in steps of float16 at the largest number; infinite where they cannot be compared."""
    import numpy as np

    try:
        actual, desired = (np.asarray(a, np.float64) for a in (actual, desired))
        if actual.shape != desired.shape or not actual.size or not np.isfinite(actual).all() or not np.abs(desired).max() < 65504:
            return np.inf
        return float(np.max(np.abs(actual - desired)) / np.spacing(np.float16(np.abs(desired).max())))
    except (TypeError, ValueError):
        return np.inf


def prove(actual, desired, answers, compare):
    """What passes besides `actual`, if the reference device gives `actual` and does not pass; else None."""
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
    # Two numbers on both sides of the middle between two float16 round to neighbours.
    rounded = np.array_equal(actual, np.asarray(actual, np.float16), equal_nan=True)
    if not close(wide, actual, rounded) or close(wide, desired):
        return None
    return ROUNDED if close(exact, desired) else NEITHER

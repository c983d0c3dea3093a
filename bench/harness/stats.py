# SPDX-License-Identifier: Apache-2.0
"""Statistics of measured times."""

import math
import statistics


def quantile(ordered, q):
    """The q-quantile of sorted values, with linear interpolation."""
    if not ordered:
        raise ValueError("quantile: expected at least one value, got none")
    place = q * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def summary(rounds):
    """The summary of one sample's times. `rounds` is a list of lists of seconds, in the order they were taken."""
    every = sorted(t for times in rounds for t in times)
    if not every:
        raise ValueError("summary: expected at least one time, got none")
    return {
        "n": len(every),
        "mean": statistics.fmean(every),
        "min": every[0],
        "p50": quantile(every, 0.50),
        "p90": quantile(every, 0.90),
        "p99": quantile(every, 0.99),
        "max": every[-1],
        "rounds": [statistics.median(times) for times in rounds if times],
    }


def noise(values):
    """The standard error of the median of `values`, relative to the median, from their median absolute deviation. It is widened
    for few values, because they say little about their spread. None for a single value."""
    if len(values) < 2:
        return None
    middle = statistics.median(values)
    if middle <= 0:
        return None
    deviation = 1.4826 * statistics.median(abs(v - middle) for v in values)
    if len(values) < 4:
        deviation = max(deviation, (max(values) - min(values)) / 2)
    widened = 1 + 2 / (len(values) - 1)
    return 1.2533 * deviation * widened / math.sqrt(len(values)) / middle


def geometric_mean(values):
    values = list(values)
    if not values:
        return None
    return math.exp(statistics.fmean(math.log(v) for v in values))


def relative_error(got, expected):
    """The largest difference relative to the largest expected magnitude. Infinite if exactly one of two elements is NaN, or if the
    element counts differ. Takes numpy arrays."""
    import numpy as np

    got, expected = np.asarray(got, np.float64).ravel(), np.asarray(expected, np.float64).ravel()
    if got.size != expected.size:
        return math.inf
    if got.size == 0:
        return 0.0
    if not np.array_equal(np.isfinite(got), np.isfinite(expected)):
        return math.inf
    finite = np.isfinite(expected)
    if not np.array_equal(got[~finite], expected[~finite], equal_nan=True):
        return math.inf
    got, expected = got[finite], expected[finite]
    if expected.size == 0:
        return 0.0
    difference, scale = np.abs(got - expected).max(), np.abs(expected).max()
    return float(difference / scale) if scale > 0 else (0.0 if difference == 0 else math.inf)

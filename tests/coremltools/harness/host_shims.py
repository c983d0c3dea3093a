# SPDX-License-Identifier: Apache-2.0
"""Replaces modules and data that coremltools' tests need and the machine lacks. No test and no code of coremltools changes.

* ``svm`` and ``svmutil``: coremltools uses the names of libsvm's own top-level modules. The wheels contain a package
  ``libsvm``, and newer ones moved the constants and dropped ``__version__``.
* ``coremltools.test.utils.load_boston`` downloads a data set of 506 rows. A generated one of the same shape replaces it, so
  that results do not depend on the network. The tests only compare two predictions for the same rows.
* ``torch``, if it is not installed: some test files import it but use it in few tests. Only these tests skip.
"""

import importlib
import importlib.metadata
import importlib.util
import sys
import types

import numpy as np
import pytest

NAMES = ["CRIM", "ZN", "INDUS", "CHAS", "NOX", "RM", "AGE", "DIS", "RAD", "TAX", "PTRATIO", "B", "LSTAT"]


LIBSVM_CONSTANTS = ("C_SVC NU_SVC ONE_CLASS EPSILON_SVR NU_SVR", "LINEAR POLY RBF SIGMOID PRECOMPUTED")


def install_libsvm_names():
    for name in ("svm", "svmutil"):
        if name in sys.modules:
            continue
        try:
            module = importlib.import_module("libsvm." + name)
        except ImportError:
            return
        for group in LIBSVM_CONSTANTS:
            for value, constant in enumerate(group.split()):
                if not hasattr(module, constant):
                    setattr(module, constant, value)
        sys.modules[name] = module
    package = sys.modules["libsvm"]
    if not hasattr(package, "__version__"):
        package.__version__ = importlib.metadata.version("libsvm-official")


def made_up_boston():
    rng = np.random.RandomState(506)
    n = 506
    data = np.empty((n, 13))
    data[:, 0] = np.round(rng.lognormal(-1.0, 2.0, n).clip(0.006, 89), 5)
    data[:, 1] = rng.choice([0.0, 0.0, 0.0, 12.5, 20.0, 25.0, 40.0, 80.0], n)
    data[:, 2] = rng.choice([2.46, 3.24, 4.05, 6.2, 8.14, 10.59, 18.1, 18.1, 19.58, 21.89], n)
    data[:, 3] = rng.rand(n) < 0.07
    data[:, 4] = np.round(rng.uniform(0.385, 0.871, n), 3)
    data[:, 5] = np.round(rng.normal(6.28, 0.7, n).clip(3.5, 8.8), 3)
    data[:, 6] = np.round(rng.uniform(2.9, 100.0, n), 1)
    data[:, 7] = np.round(rng.uniform(1.1, 12.1, n), 4)
    data[:, 8] = rng.choice([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 24.0], n)
    data[:, 9] = rng.randint(187, 712, n)
    data[:, 10] = np.round(rng.uniform(12.6, 22.0, n), 1)
    data[:, 11] = np.round(396.9 - rng.exponential(40.0, n).clip(0, 396), 2)
    data[:, 12] = np.round(rng.gamma(3.0, 4.2, n).clip(1.7, 38), 2)
    price = 4.5 * (data[:, 5] - 6.28) - 0.6 * (data[:, 12] - 12.6) - 0.4 * (data[:, 10] - 18) + rng.normal(0, 3, n)
    return {"data": data, "target": np.round((22.5 + price).clip(5, 50), 1), "feature_names": list(NAMES)}


def replace_load_boston(module):
    module.load_boston = made_up_boston


class AbsentModule(types.ModuleType):
    """Skips the test, or the file of tests, that uses it."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        pytest.skip(f"{self.__name__} is not installed", allow_module_level=True)


def stand_ins():
    """Name -> module, for what is not installed."""
    return {name: AbsentModule(name) for name in ("torch",) if importlib.util.find_spec(name) is None}

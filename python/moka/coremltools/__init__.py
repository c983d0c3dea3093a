# SPDX-License-Identifier: Apache-2.0
"""Replaces Core ML's native module in coremltools on systems that lack it.

Once moka is installed, `import coremltools` finds it automatically (moka_coremltools_hook). `import moka.coremltools`
does the same explicitly, even after coremltools was imported.
"""

# mypy: disable-error-code="import-untyped,import-not-found"

import sys
import types
from typing import Optional

_NAME = "coremltools.libcoremlpython"
#: Modules of coremltools 9 that bind names of the native module while they are imported.
_BINDERS = (
    "coremltools.models.model",
    "coremltools.models._compiled_model",
    "coremltools.models.compute_plan",
    "coremltools.models.compute_device",
    "coremltools.models.ml_program.experimental.compute_plan_utils",
)
#: Modules that ask about the host.
_GATES = (
    "coremltools.models.utils",
    "coremltools.models.model",
    "coremltools.models._compiled_model",
    "coremltools.models.neural_network.quantization_utils",
)
#: The version of macOS whose Core ML moka stands in for.
MACOS_VERSION = (26, 0)

_native: Optional[types.ModuleType] = None


def native() -> types.ModuleType:
    """The module that replaces coremltools.libcoremlpython."""
    global _native
    if _native is None:
        from . import _devices, _plan, _proxy

        module = types.ModuleType(_NAME, "Core ML's native module, by moka.")
        for part in (_devices, _plan, _proxy):
            for name in part.__all__:
                setattr(module, name, getattr(part, name))
        _native = module
    return _native


def answer_gates(module: types.ModuleType) -> None:
    """Makes a module of coremltools see a host with Core ML. sys.platform does not change."""
    if hasattr(module, "_is_macos"):
        setattr(module, "_is_macos", lambda: True)
    if hasattr(module, "_macos_version"):
        setattr(module, "_macos_version", lambda: MACOS_VERSION)


def install() -> None:
    """Makes coremltools predict with moka, whether coremltools is imported already or later."""
    sys.modules[_NAME] = native()
    package = sys.modules.get("coremltools")
    if package is not None:
        setattr(package, "libcoremlpython", native())
    for name in _BINDERS:
        module = sys.modules.get(name)
        if module is not None:
            for bound, value in vars(native()).items():
                if bound.startswith("_ML") and hasattr(module, bound):
                    setattr(module, bound, value)
    for name in _GATES:
        if name in sys.modules:
            answer_gates(sys.modules[name])
    try:
        import moka_coremltools_hook
    except ImportError:
        return
    moka_coremltools_hook.install()


install()

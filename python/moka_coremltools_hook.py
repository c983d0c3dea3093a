# SPDX-License-Identifier: Apache-2.0
"""Lets `import coremltools` use moka where Core ML's native module does not exist.

Loaded at the start of every interpreter by moka_coremltools.pth, so it imports nothing and does nothing until
coremltools is imported. MOKA_COREMLTOOLS=off in the environment turns it off.
"""

import sys

_NATIVE = "coremltools.libcoremlpython"
_UTILS = "coremltools.models.utils"


class _Native:
    """Loads moka's module in place of the native one."""

    def create_module(self, spec):
        from moka.coremltools import native

        return native()

    def exec_module(self, module):
        pass


class _Utils:
    """Loads coremltools' own file, then replaces the functions that check the system's version."""

    def __init__(self, loader):
        self._loader = loader

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        self._loader.exec_module(module)
        from moka.coremltools import answer_gates

        answer_gates(module)


class _Finder:
    _busy = False

    def find_spec(self, name, path=None, target=None):
        if not name.startswith("coremltools."):
            return None
        if name == _NATIVE:
            from importlib.machinery import ModuleSpec

            return ModuleSpec(name, _Native(), origin="moka")
        if name != _UTILS or self._busy:
            return None
        from importlib.util import find_spec

        self._busy = True
        try:
            spec = find_spec(name)
        finally:
            self._busy = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Utils(spec.loader)
        return spec


def install():
    import os

    if sys.platform == "darwin" or os.environ.get("MOKA_COREMLTOOLS", "").lower() in ("off", "0", "false", "no"):
        return
    if not any(type(f).__name__ == "_Finder" and type(f).__module__ == __name__ for f in sys.meta_path):
        sys.meta_path.insert(0, _Finder())

# SPDX-License-Identifier: Apache-2.0
"""Makes coremltools believe that it runs on a Mac, without affecting other modules.

coremltools asks three questions before it lets a prediction happen:

* ``sys.platform == "darwin"``      (``coremltools._deps._IS_MACOS``, ``models.utils._is_macos``, some tests)
* ``models.utils._macos_version()`` (runs the ``sw_vers`` program)
* ``platform.machine()``            (tests only: known bugs of Apple's own runtime, per CPU family)

Patching ``sys.platform`` for the whole process breaks other libraries (multiprocessing, torch, PIL), so the
answers are given per *module*. An import hook watches modules named ``coremltools.*`` being executed. Those whose
source mentions ``platform`` get a private ``__import__`` which hands out a *view* of ``sys`` / ``platform`` with a
few attributes replaced. Every ``_macos_version`` function defined by such a module is replaced right after
the module ran, hence before anybody can ``from ... import`` the original. All decorators (``skipif``) and all
``parametrize`` lists are evaluated later, with the Mac's answers.
"""

import builtins
import importlib.abc
import platform as real_platform
import sys as real_sys
import types

ROOT = "coremltools"

# On Apple silicon a handful of old GPU tests are marked as failing because of bugs in Apple's runtime; on Intel other
# tests are. "best" answers, module by module, whatever lets the most tests run.
BEST_MACHINE = {
    "coremltools.test.neural_network.test_numpy_nn_layers": "x86_64",
    "coremltools.converters.mil.mil.ops.tests.iOS14.test_linear": "x86_64",
    "coremltools.converters.mil.mil.ops.tests.iOS14.test_normalization": "x86_64",
}

# Modules which should keep seeing the real host ("temporarily disabled" on a Mac, need no engine).
NATIVE = {"coremltools.test.optimize.torch.pruning.test_pruning_scheduler"}


class _View(types.ModuleType):
    """A view of a module: a few attributes are replaced, all others come from the real one."""

    def __init__(self, real, **replaced):
        super().__init__(real.__name__)
        self.__dict__.update(replaced)
        self.__dict__["_real"] = real

    def __getattr__(self, name):
        return getattr(self.__dict__["_real"], name)


class MacHost:
    def __init__(self, version=(26, 0), machine="best"):
        self.version = tuple(version)
        self.machine = machine
        self.stand_ins = {}  # name of a package that is not installed -> what test modules get for it
        self.touched = {}  # module name -> what was changed; for --conf-explain and for tests of this tool
        self._sys = _View(real_sys, platform="darwin")

    def machine_for(self, module):
        if self.machine == "native":
            return real_platform.machine()
        if self.machine == "best":
            return BEST_MACHINE.get(module, "arm64")
        return self.machine

    def views_for(self, module):
        arch = self.machine_for(module)
        text = ".".join(map(str, self.version))
        return {
            "sys": self._sys,
            "platform": _View(
                real_platform,
                machine=lambda: arch,
                system=lambda: "Darwin",
                mac_ver=lambda *a, **k: (text, ("", "", ""), arch),
            ),
        }

    def before_exec(self, module, source):
        if module.__name__ in NATIVE:
            return
        views = self.views_for(module.__name__) if b"platform" in source else {}
        if module.__name__.rpartition(".")[2].startswith("test_"):
            views.update(self.stand_ins)
        if not views:
            return

        def scoped_import(name, globals=None, locals=None, fromlist=(), level=0):
            if level == 0 and name in views:
                return views[name]
            return builtins.__import__(name, globals, locals, fromlist, level)

        module.__dict__["__builtins__"] = dict(builtins.__dict__, __import__=scoped_import)
        self.touched.setdefault(module.__name__, []).append("views of " + ", ".join(sorted(views)))

    def after_exec(self, module):
        if module.__name__ in NATIVE:
            return
        module.__dict__["__builtins__"] = builtins.__dict__
        own = module.__dict__.get("_macos_version")
        if callable(own) and getattr(own, "__module__", None) == module.__name__:
            version = self.version

            def _macos_version():
                return version

            module._macos_version = _macos_version
            self.touched.setdefault(module.__name__, []).append("_macos_version()")


class _Loader(importlib.abc.Loader):
    def __init__(self, inner, origin, hook):
        self._inner, self._origin, self._hook = inner, origin, hook

    def __getattr__(self, name):  # get_source, get_data, is_package, ...
        return getattr(self._inner, name)

    def create_module(self, spec):
        return self._inner.create_module(spec)

    def exec_module(self, module):
        source = b""
        if self._origin and self._origin.endswith(".py"):
            with open(self._origin, "rb") as f:
                source = f.read()
        self._hook.host.before_exec(module, source)
        self._inner.exec_module(module)
        self._hook.host.after_exec(module)
        for callback in self._hook.listeners.get(module.__name__, ()):
            callback(module)


class ImportHook(importlib.abc.MetaPathFinder):
    """Wraps the loader of every coremltools module. ``listeners[name]`` are called with the executed module."""

    def __init__(self, host):
        self.host = host
        self.listeners = {}

    def install(self):
        # Called again after pytest put its assertion rewriter first: this hook must stay in front of it.
        if self in real_sys.meta_path:
            real_sys.meta_path.remove(self)
        real_sys.meta_path.insert(0, self)

    def find_spec(self, fullname, path=None, target=None):
        if fullname != ROOT and not fullname.startswith(ROOT + "."):
            return None
        for finder in real_sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, spec.origin, self)
                return spec
        return None

# SPDX-License-Identifier: Apache-2.0
"""Counts what a test asks of the engine and which operations the models it runs are made of."""

import functools
import os
import sys
import types
import weakref

from float16_steps import Float16Steps

ENGINE_MODULE = "coremltools.libcoremlpython"

# Questions only an engine can answer. Loading a model is counted too ("load"), but is not one of them: coremltools
# loads every model it converts, and swallows the error when that fails.
STATIC_CALLS = (
    "compileModel",
    "create_model_asset_from_path",
    "create_model_asset_from_memory",
    "get_model_structure",
    "get_available_compute_devices",
    "get_all_compute_devices",
    "get_compute_plan",
)
METHOD_CALLS = (
    "predict",
    "batchPredict",
    "newState",
    "get_compiled_model_path",
    "get_load_duration_in_nano_seconds",
    "get_last_predict_duration_in_nano_seconds",
)
FREE_CALLS = {"load", "load_error"}


class Recorder:
    def __init__(self):
        self.float16 = Float16Steps()
        self.reset()
        self._ops_of_path = {}
        self._ops_of_model = weakref.WeakKeyDictionary()

    def reset(self):
        self.note = None
        self.last = None  # the last prediction: class of the engine, arguments to load, data
        self.float16.reset()
        self.calls = {}
        self.ops = set()
        self.kinds = set()

    def count(self, what):
        self.calls[what] = self.calls.get(what, 0) + 1
        if self.note is not None and self.calls[what] == 1:
            self.note({"needs_engine": self.needs_engine, "calls": self.calls, "models": sorted(self.kinds), "ops": sorted(self.ops)})

    @property
    def needs_engine(self):
        return any(name not in FREE_CALLS for name in self.calls)

    def saw(self, contents):
        if contents:
            kinds, ops = contents
            self.kinds |= kinds
            self.ops |= ops

    def wrap_engine(self):
        """Replace ``_MLModelProxy`` in the installed engine module by a counting subclass."""
        real = sys.modules[ENGINE_MODULE]
        shim = types.ModuleType(ENGINE_MODULE, real.__doc__)
        for name in dir(real):
            if not (name.startswith("__") and name.endswith("__")):
                setattr(shim, name, getattr(real, name))
        shim._MLModelProxy = self._counting(real._MLModelProxy)
        shim._unwrapped = real
        sys.modules[ENGINE_MODULE] = shim

    def _counting(self, base):
        recorder = self

        def init(self, *args, **kwargs):
            recorder.count("load")
            self._loaded_with = args, kwargs
            try:
                base.__init__(self, *args, **kwargs)
            except BaseException:
                recorder.count("load_error")
                raise

        def method(name):
            inner = getattr(base, name)

            @functools.wraps(inner)
            def call(self, *args, **kwargs):
                recorder.count(name)
                if name == "predict":
                    recorder.last = base, self._loaded_with, args
                return inner(self, *args, **kwargs)

            return call

        def static(name):
            inner = getattr(base, name)

            def call(*args, **kwargs):
                recorder.count(name)
                before = recorder.contents_of_path(args[0]) if name == "compileModel" and args else None
                result = inner(*args, **kwargs)
                if before:
                    recorder._ops_of_path[str(result)] = before
                return result

            call.__name__ = name
            return staticmethod(call)

        body = {"__init__": init}
        body.update((n, method(n)) for n in METHOD_CALLS if hasattr(base, n))
        body.update((n, static(n)) for n in STATIC_CALLS if hasattr(base, n))
        return type("_MLModelProxy", (base,), body)

    def once_more(self, precision):
        """The outputs of the last prediction by the reference device, in this precision; None where they cannot be had."""
        if self.last is None or len(self.last[2]) > 1 and self.last[2][1] is not None:
            return None  # its state is no longer what it was
        base, (args, kwargs), given = self.last
        wanted = {"MOKA_DEVICE": "reference", "MOKA_PRECISION": precision}
        before = {name: os.environ.get(name) for name in wanted}
        os.environ.update(wanted)
        try:
            return list(base(*args, **kwargs).predict(given[0]).values())
        except RuntimeError:
            return None
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value

    def wrap_model_module(self, module):
        """``coremltools.models.model``: count predictions even when the engine refused to load the model."""
        recorder = self
        MLModel, MLState = module.MLModel, module.MLState

        predict = MLModel.predict

        @functools.wraps(predict)
        def counted_predict(self, data, state=None):
            recorder.saw(recorder.contents_of_model(self))
            recorder.float16.saw(self._spec)
            if getattr(self, "__proxy__", None) is None:
                recorder.count("predict_not_loaded")
            return predict(self, data, state)

        MLModel.predict = counted_predict

        compiled_path = MLModel.get_compiled_model_path

        @functools.wraps(compiled_path)
        def counted_path(self):
            result = compiled_path(self)
            recorder._ops_of_path[str(result)] = recorder.contents_of_model(self)
            return result

        MLModel.get_compiled_model_path = counted_path

        for name in ("read_state", "write_state"):
            inner = getattr(MLState, name)

            def counted(self, *args, _inner=inner, _name=name, **kwargs):
                recorder.count(_name)
                return _inner(self, *args, **kwargs)

            setattr(MLState, name, functools.wraps(inner)(counted))

    def wrap_compiled_module(self, module):
        recorder = self
        cls = module.CompiledMLModel
        predict = cls.predict

        @functools.wraps(predict)
        def counted_predict(self, data, state=None):
            recorder.saw(recorder._ops_of_path.get(str(getattr(self, "path_or_asset", ""))))
            return predict(self, data, state)

        cls.predict = counted_predict

    def contents_of_model(self, model):
        try:
            if model not in self._ops_of_model:
                self._ops_of_model[model] = contents(model._spec)
            return self._ops_of_model[model]
        except Exception:
            return None

    def contents_of_path(self, path):
        try:
            from coremltools.models.utils import load_spec

            return contents(load_spec(str(path)))
        except Exception:
            return None


def contents(spec):
    """(model types, operation names) of a model specification. Operations are written ``mil:add``, ``nn:convolution``."""
    kinds, ops = set(), set()
    _walk_model(spec, kinds, ops)
    return kinds, ops


def _walk_model(spec, kinds, ops):
    kind = spec.WhichOneof("Type") or "none"
    kinds.add(kind)
    if kind == "mlProgram":
        for function in spec.mlProgram.functions.values():
            for block in function.block_specializations.values():
                _walk_block(block, ops)
    elif kind.startswith("neuralNetwork"):
        network = getattr(spec, kind)
        _walk_layers(network.layers, ops)
        for step in network.preprocessing:
            ops.add("nn:preprocessing." + (step.WhichOneof("preprocessor") or "none"))
    elif kind in ("pipeline", "pipelineClassifier", "pipelineRegressor"):
        pipeline = spec.pipeline if kind == "pipeline" else getattr(spec, kind).pipeline
        for part in pipeline.models:
            _walk_model(part, kinds, ops)
    else:
        ops.add("model:" + kind)


def _walk_block(block, ops):
    for op in block.operations:
        if op.type != "const":
            ops.add("mil:" + op.type)
        for inner in op.blocks:
            _walk_block(inner, ops)


def _walk_layers(layers, ops):
    for layer in layers:
        kind = layer.WhichOneof("layer") or "none"
        ops.add("nn:" + kind)
        if kind == "branch":
            _walk_layers(layer.branch.ifBranch.layers, ops)
            _walk_layers(layer.branch.elseBranch.layers, ops)
        elif kind == "loop":
            _walk_layers(layer.loop.conditionNetwork.layers, ops)
            _walk_layers(layer.loop.bodyNetwork.layers, ops)

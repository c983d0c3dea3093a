"""Runs Core ML models: .mlmodel, .mlpackage and .mlmodelc, on Linux.

    import moka
    model = moka.Model("model.mlpackage")
    outputs = model.predict({"x": array})

Code written for coremltools on a Mac runs unchanged: once moka is installed, `coremltools` predicts with it.
"""

from ._moka import (
    ComputePlan,
    DataError,
    Error,
    FeatureDescription,
    FunctionDescription,
    InternalError,
    InvalidArgumentError,
    IOError,
    LoadTimes,
    MalformedModelError,
    ModelStructure,
    NotFoundError,
    OutOfBudgetError,
    PlannedOperation,
    State,
    TraceSummary,
    UnsupportedError,
    __version__,
    summarize_trace,
)
from ._custom import (
    check_layers,
    load_plugin,
    register_layer,
    register_model,
    register_operation,
    registered_layers,
    registered_models,
    registered_operations,
    set_linked_model_folders,
    unregister_layer,
    unregister_model,
    unregister_operation,
)
from ._description import ModelDescription
from ._model import Intermediate, Model, ModelAsset, compile_model
from ._trace import span as trace_span
from ._trace import trace

__all__ = [
    "ComputePlan",
    "DataError",
    "Error",
    "FeatureDescription",
    "FunctionDescription",
    "IOError",
    "Intermediate",
    "InternalError",
    "InvalidArgumentError",
    "LoadTimes",
    "MalformedModelError",
    "Model",
    "ModelAsset",
    "ModelDescription",
    "ModelStructure",
    "NotFoundError",
    "OutOfBudgetError",
    "PlannedOperation",
    "State",
    "TraceSummary",
    "UnsupportedError",
    "__version__",
    "check_layers",
    "compile_model",
    "load_plugin",
    "register_layer",
    "register_model",
    "register_operation",
    "registered_layers",
    "registered_models",
    "registered_operations",
    "set_linked_model_folders",
    "summarize_trace",
    "trace",
    "trace_span",
    "unregister_layer",
    "unregister_model",
    "unregister_operation",
]

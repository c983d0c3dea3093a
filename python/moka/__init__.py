# SPDX-License-Identifier: Apache-2.0
"""Runs Core ML models: .mlmodel, .mlpackage and .mlmodelc, on Linux.

    import moka
    model = moka.Model("model.mlpackage")
    outputs = model.predict({"x": array})

Code written for coremltools on a Mac runs unchanged: once moka is installed, `coremltools` predicts with it.
"""

from . import build, compress, diff, edit, encryption, lint, update, verify
from ._moka import (
    Cancellation,
    CancelledError,
    ComputePlan,
    DataError,
    DeadlineExceededError,
    DeviceLostError,
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
    OnnxExport,
    OutOfBudgetError,
    PixelBuffer,
    PlannedOperation,
    State,
    TraceConclusions,
    TraceSummary,
    UnsupportedError,
    UnsupportedOperation,
    UpdateMetrics,
    __version__,
    summarize_trace,
)
from ._asset import ModelAsset, compile_model
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
from ._draw import draw
from ._licenses import License, licenses
from ._model import Model
from ._onnx import check_onnx, to_onnx
from ._predictor import Intermediate
from ._report import Report, ReportComparison, report
from ._shared import SharedBuffer
from ._trace import allow_tracing, conclusions_page
from ._trace import span as trace_span
from ._trace import trace, trace_conclusions
from ._update_task import UpdateContext, UpdateTask
from .build import from_onnx

__all__ = [
    "Cancellation",
    "CancelledError",
    "ComputePlan",
    "DataError",
    "DeadlineExceededError",
    "DeviceLostError",
    "Error",
    "FeatureDescription",
    "FunctionDescription",
    "IOError",
    "Intermediate",
    "InternalError",
    "InvalidArgumentError",
    "License",
    "LoadTimes",
    "MalformedModelError",
    "Model",
    "ModelAsset",
    "ModelDescription",
    "ModelStructure",
    "NotFoundError",
    "OnnxExport",
    "OutOfBudgetError",
    "PixelBuffer",
    "PlannedOperation",
    "Report",
    "ReportComparison",
    "SharedBuffer",
    "State",
    "TraceConclusions",
    "TraceSummary",
    "UnsupportedError",
    "UnsupportedOperation",
    "UpdateContext",
    "UpdateMetrics",
    "UpdateTask",
    "__version__",
    "allow_tracing",
    "build",
    "check_layers",
    "check_onnx",
    "compile_model",
    "compress",
    "conclusions_page",
    "diff",
    "draw",
    "edit",
    "encryption",
    "from_onnx",
    "licenses",
    "lint",
    "load_plugin",
    "register_layer",
    "register_model",
    "register_operation",
    "registered_layers",
    "registered_models",
    "registered_operations",
    "report",
    "set_linked_model_folders",
    "summarize_trace",
    "to_onnx",
    "trace",
    "trace_conclusions",
    "trace_span",
    "unregister_layer",
    "unregister_model",
    "unregister_operation",
    "update",
    "verify",
]

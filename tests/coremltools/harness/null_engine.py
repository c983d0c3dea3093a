# SPDX-License-Identifier: Apache-2.0
"""An engine which computes nothing: it loads everything and refuses every real question.

Run with it to learn which tests need an engine at all. Names, arity and return types follow the module
``coremltools.libcoremlpython`` (see contract.md); the bodies raise ``EngineRequired``.
"""

import sys
import types


class EngineRequired(NotImplementedError):
    """The test asked something only an engine can answer."""


def _refuse(what):
    raise EngineRequired(f"null engine: {what} needs an engine")


class _State:
    def read_state(self, name):
        _refuse("read_state")

    def write_state(self, name, value):
        _refuse("write_state")


class _MLModelProxy:
    def __init__(self, path, compute_units, function_name, optimization_hints, asset=None):
        self._path = path

    def predict(self, data, state=None):
        _refuse("predict")

    def batchPredict(self, batch):
        _refuse("batchPredict")

    def newState(self):
        _refuse("newState")

    def get_compiled_model_path(self):
        _refuse("get_compiled_model_path")

    def get_load_duration_in_nano_seconds(self):
        _refuse("get_load_duration_in_nano_seconds")

    def get_last_predict_duration_in_nano_seconds(self):
        _refuse("get_last_predict_duration_in_nano_seconds")

    @staticmethod
    def maximum_supported_specification_version():
        return 10

    @staticmethod
    def auto_set_specification_version(data):
        if not isinstance(data, bytes):
            raise TypeError("auto_set_specification_version(): incompatible function arguments")
        _refuse("auto_set_specification_version")

    @staticmethod
    def compileModel(path):
        _refuse("compileModel")

    @staticmethod
    def create_model_asset_from_path(path):
        _refuse("create_model_asset_from_path")

    @staticmethod
    def create_model_asset_from_memory(spec_data, blob_mapping):
        _refuse("create_model_asset_from_memory")

    @staticmethod
    def get_model_structure(path):
        _refuse("get_model_structure")

    @staticmethod
    def get_available_compute_devices():
        _refuse("get_available_compute_devices")

    @staticmethod
    def get_all_compute_devices():
        _refuse("get_all_compute_devices")

    @staticmethod
    def get_compute_plan(path, compute_units):
        _refuse("get_compute_plan")


class _MLCPUComputeDeviceProxy:
    pass


class _MLGPUComputeDeviceProxy:
    pass


class _MLNeuralEngineComputeDeviceProxy:
    def get_total_core_count(self):
        _refuse("get_total_core_count")


class _MLComputePlanProxy:
    @property
    def model_structure(self):
        _refuse("model_structure")

    def get_compute_device_usage_for_mlprogram_operation(self, operation):
        _refuse("get_compute_device_usage_for_mlprogram_operation")

    def get_compute_device_usage_for_neuralnetwork_layer(self, layer):
        _refuse("get_compute_device_usage_for_neuralnetwork_layer")

    def get_estimated_cost_for_mlprogram_operation(self, operation):
        _refuse("get_estimated_cost_for_mlprogram_operation")


class _MLModelStructureProgramOperationProxy:
    pass


class _MLModelStructureNeuralNetworkLayerProxy:
    pass


class _MLModelAssetProxy:
    pass


def install():
    module = types.ModuleType("coremltools.libcoremlpython", "null engine")
    for name, value in list(globals().items()):
        if name.startswith("_ML") or name == "_State":
            setattr(module, name, value)
    sys.modules["coremltools.libcoremlpython"] = module
    return module

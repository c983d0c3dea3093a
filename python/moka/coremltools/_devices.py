"""Compute devices, as coremltools names them."""

from typing import Any, List

__all__ = [
    "_MLCPUComputeDeviceProxy",
    "_MLGPUComputeDeviceProxy",
    "_MLNeuralEngineComputeDeviceProxy",
]


class _MLCPUComputeDeviceProxy:
    def __init__(self) -> None:
        pass


class _MLGPUComputeDeviceProxy:
    def __init__(self) -> None:
        pass


class _MLNeuralEngineComputeDeviceProxy:
    def __init__(self) -> None:
        pass

    def get_total_core_count(self) -> int:
        return 0


def cpu() -> Any:
    """coremltools' object for the processor."""
    from coremltools.models.compute_device import MLCPUComputeDevice

    return MLCPUComputeDevice(_MLCPUComputeDeviceProxy())


def all_devices() -> List[Any]:
    return [cpu()]

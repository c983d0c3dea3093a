# SPDX-License-Identifier: Apache-2.0
"""Compute devices, as coremltools names them."""

# mypy: disable-error-code="import-untyped,import-not-found"

from typing import Any, List

from .. import _moka

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


def of_unit(unit: str) -> Any:
    """coremltools' object for "cpu", "gpu" or "neuralEngine"."""
    from coremltools.models import compute_device as ct

    if unit == "gpu":
        return ct.MLGPUComputeDevice(_MLGPUComputeDeviceProxy())
    if unit == "neuralEngine":
        return ct.MLNeuralEngineComputeDevice(_MLNeuralEngineComputeDeviceProxy())
    return cpu()


def all_devices() -> List[Any]:
    """The units of this machine. The preview of the Neural Engine does not count: only Apple's chips have one."""
    units = [u.unit for u in _moka.read_rates("off")]
    return [of_unit(u) for u in dict.fromkeys(units)] or [cpu()]

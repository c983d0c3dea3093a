# SPDX-License-Identifier: Apache-2.0
"""The structure of a model and the placement of its operations, as coremltools' objects."""

# mypy: disable-error-code="import-untyped,import-not-found"

from typing import Any, Dict, List, Optional, Tuple

from .. import _moka
from . import _devices

__all__ = [
    "_MLComputePlanProxy",
    "_MLModelStructureNeuralNetworkLayerProxy",
    "_MLModelStructureProgramOperationProxy",
]

#: Core ML's runtime has one kind of layer for many of the specification's.
_LAYER_TYPES: Dict[str, str] = {
    **dict.fromkeys(
        (
            "add addBroadcastable subtractBroadcastable multiply multiplyBroadcastable divideBroadcastable average max "
            "maxBroadcastable min minBroadcastable modBroadcastable powBroadcastable floorDivBroadcastable dot unary "
            "equal notEqual lessThan lessEqual greaterThan greaterEqual logicalAnd logicalOr logicalXor logicalNot "
            "floor ceil round sign clip exp2 erf sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh scale bias"
        ).split(),
        "elementwise",
    ),
    "innerProduct": "inner_product",
    "pooling": "pool",
    "batchnorm": "batchnorm",
    "permute": "transpose",
    "reduce": "reduce",
    "uniDirectionalLSTM": "rnn_arch",
    "biDirectionalLSTM": "rnn_arch",
    "simpleRecurrent": "rnn_arch",
    "gru": "rnn_arch",
}


def _snake(name: str) -> str:
    return "".join("_" + c.lower() if c.isupper() else c for c in name)


class _MLModelStructureProgramOperationProxy:
    def __init__(self, name: str = "", type: str = "") -> None:
        self.name = name
        self.type = type


class _MLModelStructureNeuralNetworkLayerProxy:
    def __init__(self, name: str = "") -> None:
        self.name = name


class _MLComputePlanProxy:
    """Plan queries for one model. Subclasses of coremltools' classes return the answers."""

    def __init__(
        self,
        structure: Any = None,
        costs: Optional[Dict[str, float]] = None,
        units: Optional[Dict[str, Tuple[str, List[str]]]] = None,
    ) -> None:
        self._structure = structure
        self._costs = costs or {}
        self._units = units or {}

    @property
    def model_structure(self) -> Any:
        return self._structure

    def _usage(self, name: str) -> Any:
        from coremltools.models.compute_plan import MLComputePlanDeviceUsage

        preferred, supported = self._units.get(name, ("cpu", ["cpu"]))
        devices = {unit: _devices.of_unit(unit) for unit in supported}
        return MLComputePlanDeviceUsage(
            preferred_compute_device=devices[preferred], supported_compute_devices=list(devices.values())
        )

    def get_compute_device_usage_for_mlprogram_operation(self, operation: Any) -> Any:
        return None if operation.__proxy__.type == "const" else self._usage(operation.__proxy__.name)

    def get_compute_device_usage_for_neuralnetwork_layer(self, layer: Any) -> Any:
        return self._usage(layer.__proxy__.name)

    def get_estimated_cost_for_mlprogram_operation(self, operation: Any) -> Any:
        from coremltools.models.compute_plan import MLComputePlanCost

        if operation.__proxy__.type == "const":
            return None
        return MLComputePlanCost(weight=self._costs.get(operation.__proxy__.name, 0.0))


def plan_of(model: _moka.Model) -> Any:
    """An MLComputePlan. The weight of an operation is its share of the estimated time of a prediction with the default
    shapes. Operations that were folded or run as part of another have weight 0."""
    from coremltools.models.compute_plan import MLComputePlan

    plan = model.compute_plan()
    total = sum(p.estimated_seconds for p in plan.operations)
    costs: Dict[str, float] = {}
    if total > 0:
        for p in plan.operations:
            costs[p.name] = min(1.0, costs.get(p.name, 0.0) + p.estimated_seconds / total)
    units: Dict[str, Tuple[str, List[str]]] = {}
    for p in plan.operations:
        takes = [b.unit for b in p.bids if not b.refusal]
        preferred = next((b.unit for b in p.bids if b.device == p.device), None)
        if preferred is not None:
            # Operations that were fused into another run on its device.
            for name in (p.name, *p.fused):
                units.setdefault(name, (preferred, list(dict.fromkeys(takes))))
    return MLComputePlan(_MLComputePlanProxy(structure_of(model.structure()), costs, units))


def structure_of(structure: _moka.ModelStructure) -> Any:
    """An MLModelStructure."""
    from coremltools.models import compute_plan as ct

    network = program = pipeline = None
    if structure.functions:
        program = ct.MLModelStructureProgram(functions={f.name: _function(f) for f in structure.functions})
    elif structure.models:
        pipeline = ct.MLModelStructurePipeline(sub_models=[(name, structure_of(s)) for name, s in structure.models])
    elif structure.layers or structure.type.startswith("neuralNetwork"):
        network = ct.MLModelStructureNeuralNetwork(layers=[_layer(layer) for layer in structure.layers if layer.depth == 0])
    return ct.MLModelStructure(neuralnetwork=network, program=program, pipeline=pipeline)


def _layer(layer: Any) -> Any:
    from coremltools.models import compute_plan as ct

    return ct.MLModelStructureNeuralNetworkLayer(
        layer.name,
        _LAYER_TYPES.get(layer.type, _snake(layer.type)),
        list(layer.inputs),
        list(layer.outputs),
        _MLModelStructureNeuralNetworkLayerProxy(layer.name),
    )


def _named(pair: Any) -> Any:
    from coremltools.models import compute_plan as ct

    return ct.MLModelStructureProgramNamedValueType(name=pair[0], type=ct.MLModelStructureProgramValueType())


def _argument(values: Any) -> Any:
    from coremltools.models import compute_plan as ct

    if not values:
        bindings = [ct.MLModelStructureProgramBinding(name=None, value=ct.MLModelStructureProgramValue())]
    else:
        bindings = [ct.MLModelStructureProgramBinding(name=name, value=None) for name in values]
    return ct.MLModelStructureProgramArgument(bindings=bindings)


def _operation(operation: Any) -> Any:
    from coremltools.models import compute_plan as ct

    return ct.MLModelStructureProgramOperation(
        {parameter: _argument(values) for parameter, values in operation.inputs},
        operation.type,
        [_named(o) for o in operation.outputs],
        [_block(b) for b in operation.blocks],
        _MLModelStructureProgramOperationProxy(operation.name, operation.type),
    )


def _block(block: Any) -> Any:
    from coremltools.models import compute_plan as ct

    return ct.MLModelStructureProgramBlock(
        inputs=[_named(i) for i in block.inputs],
        operations=[_operation(o) for o in block.operations],
        output_names=list(block.outputs),
    )


def _function(function: Any) -> Any:
    from coremltools.models import compute_plan as ct

    body = _block(function.body)
    return ct.MLModelStructureProgramFunction(inputs=body.inputs, block=body)

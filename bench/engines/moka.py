# SPDX-License-Identifier: Apache-2.0
"""Core ML models, converted by coremltools: ML programs in float32, float16 and with compressed weights, and neural networks."""

from harness import compressed

TITLE = "Moka"
PACKAGES = ("moka-coreml", "coremltools", "torch")
IMPORTS = ("moka",)
PRECISIONS = ("fp32", "fp16", "nn", "int8", "int4")
CACHE = "MOKA_CACHE"  # the variable that names a folder for packed weights


def convert(net, folder, precision):
    import coremltools as ct
    import numpy as np
    import torch

    inputs, states = net.inputs, []
    of = compressed.rounded_net(net, precision, folder) if precision in compressed.WEIGHTS else net
    model, outputs = of.model(), of.outputs
    if net.states and precision != "nn":
        states = [ct.StateType(ct.TensorType(shape=inputs[name].shape, dtype=np.float16), name=name) for name in net.states]
        model, outputs = of.stateful_model()
        inputs = {name: array for name, array in inputs.items() if name not in net.states}
    with torch.no_grad():
        traced = torch.jit.trace(model, net.tensors(inputs), check_trace=False)
    options = {
        "inputs": [ct.TensorType(name=name, shape=array.shape, dtype=array.dtype.type) for name, array in inputs.items()],
        "skip_model_load": True,
    }
    if precision == "nn":
        converted = ct.convert(traced, convert_to="neuralnetwork", **options)
        # Neural networks take no names for outputs.
        found = [output.name for output in converted.get_spec().description.output]
        spec = converted.get_spec()
        for name, wanted in zip(found, outputs):
            ct.utils.rename_feature(spec, name, wanted)
        ct.utils.save_spec(spec, str(folder / "model.mlmodel"))
        return
    converted = ct.convert(
        traced, convert_to="mlprogram", outputs=[ct.TensorType(name=name, dtype=np.float32) for name in outputs],
        minimum_deployment_target=ct.target.iOS18 if states or of is not net else ct.target.iOS16, **({"states": states} if states else {}),
        compute_precision=ct.precision.FLOAT32 if precision == "fp32" else ct.precision.FLOAT16, **options)
    if precision in compressed.WEIGHTS:
        converted = compressed.compress(converted, precision)
    converted.save(str(folder / "model.mlpackage"))


def build():
    """A text that differs between builds of one version."""
    import hashlib
    import pathlib

    from moka import _moka

    return hashlib.sha256(pathlib.Path(_moka.__file__).read_bytes()).hexdigest()[:12]


def load(folder, threads, precision, device=None):
    import moka

    model = moka.Model(folder / ("model.mlmodel" if precision == "nn" else "model.mlpackage"), threads=threads, device=device)
    state = model.new_state() if model.description.states else None
    names = [feature.name for feature in model.description.inputs]

    def predict(inputs):
        return model.predict({name: inputs[name] for name in names}, state=state)

    def prepare(inputs):
        for name in state.names if state else ():
            state.write(name, inputs[name])

    predict.prepare = prepare
    predict.placement = lambda: placement(model, device)
    predict.outputs = [feature.name for feature in model.description.outputs]
    return predict


def placement(model, device):
    """How a device with its own memory runs the model: its regions, and the operations outside, as [name, type, reason]."""
    plan = model.explain()
    regions = [{"operations": r.operations, "uploads": r.upload_bytes, "downloads": r.download_bytes} for r in plan.regions]
    off = [[o.name, o.type, next((r for r in o.refusals if r.startswith(device + ":")), "")] for o in plan.operations
           if o.kernel and o.device != device]
    return {"regions": regions, "off": off}

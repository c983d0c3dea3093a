# SPDX-License-Identifier: Apache-2.0
"""Writes tests/golden/pipelines/*.mlmodel and truth.json: pipelines with states, pipelines inside pipelines, sequences and batches
through pipelines, and updatable models. truth.json has the predictions of each model in order, computed by NumPy.

    python tests/golden/pipeline_models.py        with coremltools 9
"""
import json
import pathlib

import coremltools as ct
import numpy as np
from coremltools.converters.mil import Builder as mb
from coremltools.models import datatypes
from coremltools.models.neural_network import AdamParams, NeuralNetworkBuilder, SgdParams
from coremltools.proto import FeatureTypes_pb2, Model_pb2

FOLDER = pathlib.Path(__file__).parent / "pipelines"
FLOAT = FeatureTypes_pb2.ArrayFeatureType.FLOAT32
rng = np.random.default_rng(11)
TRUTH = []


def array(f, name, shape):
    f.name = name
    f.type.multiArrayType.shape.extend(shape)
    f.type.multiArrayType.dataType = FLOAT


def pipeline(inputs, outputs, stages, kind="pipeline", version=9):
    """`inputs`, `outputs`: name -> shape, or () for a double."""
    spec = Model_pb2.Model()
    spec.specificationVersion = version
    for features, target in ((inputs, spec.description.input), (outputs, spec.description.output)):
        for name, shape in features.items():
            if shape == ():
                f = target.add(name=name)
                f.type.doubleType.SetInParent()
            else:
                array(target.add(), name, shape)
    p = spec.pipeline if kind == "pipeline" else getattr(spec, kind).pipeline
    for stage in stages:
        p.models.add().CopyFrom(stage)
    return spec


def write(name, spec, steps):
    pack = lambda v: {"shape": list(np.shape(v)), "data": [float(x) for x in np.asarray(v, np.float32).reshape(-1)]}
    (FOLDER / (name + ".mlmodel")).write_bytes(spec.SerializeToString(deterministic=True))
    TRUTH.append({"model": name, "steps": [{"inputs": {k: pack(v) for k, v in i.items()}, "outputs": {k: pack(v) for k, v in o.items()}} for i, o in steps]})


def network(source, target, size, w, b, activation=None):
    bd = NeuralNetworkBuilder([(source, datatypes.Array(size))], [(target, datatypes.Array(w.shape[0]))])
    bd.add_inner_product("dense", w, b, size, w.shape[0], True, source, "dense" if activation else target)
    if activation:
        bd.add_activation("act", activation, "dense", target)
    return bd.spec


def linear(source, target, w, offset):
    spec = Model_pb2.Model()
    spec.specificationVersion = 1
    array(spec.description.input.add(), source, [len(w)])
    spec.description.output.add(name=target).type.doubleType.SetInParent()
    spec.description.predictedFeatureName = target
    spec.glmRegressor.weights.add().value.extend(w)
    spec.glmRegressor.offset.append(offset)
    return spec


def counter(source, target, state, scale):
    """state = scale * state + source; target = state."""
    @mb.program(input_specs=[mb.TensorSpec((3,)), mb.StateTensorSpec((3,), dtype=ct.converters.mil.mil.types.fp16)], opset_version=ct.target.iOS18)
    def program(x, memory):
        before = mb.read_state(input=memory)
        after = mb.add(x=mb.mul(x=before, y=np.float16(scale)), y=mb.cast(x=x, dtype="fp16"))
        return mb.cast(x=mb.coreml_update_state(state=memory, value=after), dtype="fp32", name="total")

    model = ct.convert(program, minimum_deployment_target=ct.target.iOS18, skip_model_load=True)
    spec = model.get_spec()
    ct.utils.rename_feature(spec, "x", source)
    ct.utils.rename_feature(spec, "total", target)
    f = spec.description.state[0]
    if state != f.name:
        function = spec.mlProgram.functions["main"]
        old, f.name = f.name, state
        for i in function.inputs:
            i.name = state if i.name == old else i.name
        for op in function.block_specializations[function.opset].operations:
            for argument in op.inputs.values():
                for binding in argument.arguments:
                    if binding.name == old:
                        binding.name = state
    return spec


def states():
    w, b = rng.standard_normal((2, 3)).astype(np.float32), rng.standard_normal(2).astype(np.float32)
    given = [np.round(rng.standard_normal(3), 2).astype(np.float16).astype(np.float32) for _ in range(3)]

    def steps(scales):
        """One state for each scale, each fed by the one before; a scale that is a tuple belongs to the state before it."""
        memory = [np.zeros(3, np.float16) for _ in scales]
        out = []
        for x in given:
            v = x
            for i, scale in enumerate(scales):
                memory[i] = (memory[i] * np.float16(scale) + v.astype(np.float16)).astype(np.float16)
                v = memory[i].astype(np.float32)
            out.append(({"x": x}, {"y": w @ v + b}))
        return out

    stages = [counter("x", "t", "memory", 1.0), network("t", "y", 3, w, b)]
    write("state", pipeline({"x": [3]}, {"y": [2]}, stages), steps([1.0]))
    described = pipeline({"x": [3]}, {"y": [2]}, stages)
    described.description.state.add().CopyFrom(stages[0].description.state[0])
    write("state_described", described, steps([1.0]))
    two = [counter("x", "t", "memory", 1.0), counter("t", "u", "other", 0.5), network("u", "y", 3, w, b)]
    write("state_of_each", pipeline({"x": [3]}, {"y": [2]}, two), steps([1.0, 0.5]))
    inner = pipeline({"x": [3]}, {"u": [3]}, two[:2])
    write("state_nested", pipeline({"x": [3]}, {"y": [2]}, [inner, two[2]]), steps([1.0, 0.5]))
    # Both models read and write the same state.
    shared, out = np.zeros(3, np.float16), []
    for x in given:
        shared = (shared + x.astype(np.float16)).astype(np.float16)
        shared = (shared * np.float16(0.5) + shared).astype(np.float16)
        out.append(({"x": x}, {"y": w @ shared.astype(np.float32) + b}))
    write("state_shared", pipeline({"x": [3]}, {"y": [2]}, [counter("x", "t", "memory", 1.0), counter("t", "u", "memory", 0.5), network("u", "y", 3, w, b)]), out)


def nested():
    w, b = rng.standard_normal((4, 3)).astype(np.float32), rng.standard_normal(4).astype(np.float32)
    v, c = rng.standard_normal(4).astype(np.float32), 0.25
    first = network("x", "a", 3, w, b, "TANH")
    last = linear("a", "y", v, c)
    steps = []
    for _ in range(2):
        x = rng.standard_normal(3).astype(np.float32)
        steps.append(({"x": x}, {"y": v @ np.tanh(w @ x + b) + c}))
    spec = pipeline({"x": [3]}, {"a": [4]}, [first], version=4)
    for _ in range(2):
        spec = pipeline({"x": [3]}, {"a": [4]}, [spec], version=4)
    whole = pipeline({"x": [3]}, {"y": ()}, [spec, last], "pipelineRegressor", 4)
    whole.description.predictedFeatureName = "y"
    write("nested", whole, steps)
    for _ in range(20):
        spec = pipeline({"x": [3]}, {"a": [4]}, [spec], version=4)
    (FOLDER / "too_deep.mlmodel").write_bytes(spec.SerializeToString(deterministic=True))


def sequences():
    """Recurrent networks of the legacy mapping in a pipeline: [steps, batch, C, 1, 1] runs through all of them."""
    H = 4
    m = lambda *s: (0.6 * (2 * rng.random(s) - 1)).astype(np.float32)
    W, R, b = m(H, 3), m(H, H), m(H)
    w, c = m(2, H), m(2)
    bd = NeuralNetworkBuilder([("x", datatypes.Array(3))], [("h", datatypes.Array(H))])
    bd.add_simple_rnn("r", R, W, b, H, 3, "TANH", ["x"], ["h"], output_all=True)
    spec = pipeline({"x": [3]}, {"y": [2]}, [pipeline({"x": [3]}, {"h": [H]}, [bd.spec], version=1), network("h", "y", H, w, c, "SIGMOID")], version=1)
    steps = []
    for S, B in ((1, 1), (4, 1), (1, 2), (3, 2)):
        x = rng.standard_normal((S, B, 3)).astype(np.float32)
        h, out = np.zeros((B, H)), []
        for v in x:
            h = np.tanh(v @ W.T + h @ R.T + b)
            out.append(1 / (1 + np.exp(-(h @ w.T + c))))
        alone = S == B == 1
        steps.append(({"x": x.reshape(3) if alone else x.reshape(S, B, 3, 1, 1)}, {"y": np.reshape(out, 2 if alone else (S, B, 2, 1, 1))}))
    write("sequences", spec, steps)


def updatable():
    """The predictions of updatable models before an update: their layers without those of training."""
    w, b = rng.standard_normal((2, 3)).astype(np.float32), rng.standard_normal(2).astype(np.float32)
    soft = lambda v: np.exp(v) / np.exp(v).sum()
    for name, optimizer, loss in (("updatable_sgd", SgdParams(lr=0.01, batch=1, momentum=0), "entropy"), ("updatable_adam", AdamParams(lr=0.01, batch=1, beta1=0.9, beta2=0.999, eps=1e-8), "squares")):
        bd = NeuralNetworkBuilder([("x", datatypes.Array(3))], [("y", datatypes.Array(2))], disable_rank5_shape_mapping=True)
        bd.add_inner_product("dense", w, b, 3, 2, True, "x", "z")
        if loss == "entropy":
            bd.add_softmax("soft", "z", "y")
        else:
            bd.add_activation("act", "SIGMOID", "z", "y")
        bd.make_updatable(["dense"])
        if loss == "entropy":
            bd.set_categorical_cross_entropy_loss("loss", input="y")
        else:
            bd.set_mean_squared_error_loss("loss", input_feature=("y", datatypes.Array(2)))
        (bd.set_sgd_optimizer if loss == "entropy" else bd.set_adam_optimizer)(optimizer)
        bd.set_epochs(2)
        steps = []
        for _ in range(2):
            x = rng.standard_normal(3).astype(np.float32)
            z = w @ x + b
            steps.append(({"x": x}, {"y": soft(z) if loss == "entropy" else 1 / (1 + np.exp(-z))}))
        write(name, bd.spec, steps)
        whole = pipeline({"a": [4]}, {"y": [2]}, [network("a", "x", 4, np.eye(3, 4, dtype=np.float32), np.zeros(3, np.float32)), bd.spec], version=4)
        whole.isUpdatable = True
        whole.description.trainingInput.extend([whole.description.input[0], bd.spec.description.trainingInput[1]])
        write(name + "_pipeline", whole, [({"a": np.append(i["x"], 9.0)}, o) for i, o in steps])


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for make in (states, nested, sequences, updatable):
        make()
    (FOLDER / "truth.json").write_text(json.dumps(TRUTH, indent=1) + "\n")

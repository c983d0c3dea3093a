# SPDX-License-Identifier: Apache-2.0
"""Writes golden/update: updatable models made with coremltools, and what coremltools says of them.

    python tests/golden/update_models.py

NAME.mlmodel is a model as coremltools' builders write it. truth.json has, by name, what the messages hold: layers, losses, optimizer,
parameters, training inputs. Needs coremltools 9.
"""
import json
import os

import coremltools as ct
import numpy as np
from coremltools.models import datatypes
from coremltools.models.nearest_neighbors import KNearestNeighborsClassifierBuilder
from coremltools.models.neural_network import AdamParams, NeuralNetworkBuilder, SgdParams
from coremltools.models.pipeline import Pipeline

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "update")
rng = np.random.RandomState(3)


def numbers(*shape):
    return rng.uniform(-0.5, 0.5, shape).astype(np.float32)


def plain():
    """Two inner products: the first one stays, the second is updated with mean squared error and SGD."""
    b = NeuralNetworkBuilder([("x", datatypes.Array(3))], [("y", datatypes.Array(2))], disable_rank5_shape_mapping=True)
    b.add_inner_product("first", numbers(4, 3), numbers(4), 3, 4, True, "x", "h")
    b.add_activation("relu", "RELU", "h", "r")
    b.add_inner_product("second", numbers(2, 4), numbers(2), 4, 2, True, "r", "y")
    b.make_updatable(["second"])
    b.set_mean_squared_error_loss("loss", ("y", datatypes.Array(2)))
    b.set_sgd_optimizer(SgdParams(lr=0.05, batch=4, momentum=0.5))
    b.set_epochs(3)
    return b.spec


def images():
    """A small network for gray images, as for handwritten digits: convolutions, a pool, a classifier, Adam."""
    b = NeuralNetworkBuilder([("image", datatypes.Array(1, 6, 6))], [("digit_probabilities", None)], mode="classifier")
    b.add_convolution("conv", 1, 2, 3, 3, 1, 1, "same", 1, numbers(3, 3, 1, 2), numbers(2), True, input_name="image", output_name="c")
    b.add_activation("act", "RELU", "c", "ca")
    b.add_pooling("pool", 2, 2, 2, 2, "MAX", "VALID", "ca", "p")
    b.add_flatten("flat", 0, "p", "f")
    b.add_inner_product("dense", numbers(3, 18), numbers(3), 18, 3, True, "f", "d")
    b.add_softmax("soft", "d", "digit_probabilities")
    b.set_class_labels(["zero", "one", "two"], predicted_feature_name="digit", prediction_blob="digit_probabilities")
    b.make_updatable(["conv", "dense"])
    b.set_categorical_cross_entropy_loss("cross entropy", "digit_probabilities")
    adam = AdamParams(lr=0.01, batch=8, beta1=0.9, beta2=0.999, eps=1e-8)
    adam.set_lr(0.01, 0.001, 0.1)
    adam.set_batch(8, [4, 8, 16])
    b.set_adam_optimizer(adam)
    b.set_epochs(5, [1, 5, 10])
    b.set_shuffle(7)
    return b.spec


def neighbors(label, samples=0, dimensions=2, **options):
    b = KNearestNeighborsClassifierBuilder("input", "label", dimensions, label, **options)
    if samples:
        kinds = ["a", "b", "c"] if isinstance(label, str) else [4, -5, 6]
        b.add_samples(numbers(samples, dimensions).tolist(), [kinds[i % 3] for i in range(samples)])
    return b.spec


def pipeline():
    """A network that computes features, then nearest neighbors without samples: the shape of a drawing classifier."""
    b = NeuralNetworkBuilder([("x", datatypes.Array(3))], [("input", datatypes.Array(2))], disable_rank5_shape_mapping=True)
    b.add_inner_product("embed", numbers(2, 3), None, 3, 2, False, "x", "input")
    b.spec.description.output[0].type.multiArrayType.dataType = ct.proto.FeatureTypes_pb2.ArrayFeatureType.FLOAT32
    knn = neighbors("none", number_of_neighbors=3, weighting_scheme="inverse_distance")
    features = [("x", datatypes.Array(3))]
    p = Pipeline(features, [("label", datatypes.String()), ("labelProbs", datatypes.Dictionary(datatypes.String()))])
    p.add_model(b.spec)
    p.add_model(knn)
    spec = p.spec
    spec.specificationVersion = 4
    spec.description.predictedFeatureName = "label"
    spec.description.predictedProbabilitiesName = "labelProbs"
    p.make_updatable()
    p.set_training_input([("x", datatypes.Array(3)), ("label", datatypes.String())])
    return spec


MODELS = {
    "plain": plain,
    "images": images,
    "neighbors_empty": lambda: neighbors("none"),
    "neighbors_int": lambda: neighbors(-1, 5, 4, number_of_neighbors=3, index_type="kd_tree", leaf_size=20),
    "neighbors_string": lambda: neighbors("none", 6, number_of_neighbors=2, weighting_scheme="inverse_distance"),
    "pipeline": pipeline,
}


def parameter(p):
    out = {"default": p.defaultValue}
    if p.DESCRIPTOR.name != "BoolParameter" and p.HasField("range"):
        out["range"] = [p.range.minValue, p.range.maxValue]
    if p.DESCRIPTOR.name == "Int64Parameter" and p.HasField("set"):
        out["allowed"] = list(p.set.values)
    return out


def learner(spec):
    kind = spec.WhichOneof("Type")
    return learner(spec.pipeline.models[-1]) if kind == "pipeline" else getattr(spec, kind)


def truth(spec):
    """What the messages say, read with protobuf."""
    out = {"trainingInputs": [f.name for f in spec.description.trainingInput], "layers": {}, "losses": [], "parameters": {}}
    content = learner(spec)
    if content.DESCRIPTOR.name == "KNearestNeighborsClassifier":
        index = content.nearestNeighborsIndex
        out["parameters"]["numberOfNeighbors"] = parameter(content.numberOfNeighbors)
        out["nearestNeighbors"] = {
            "dimensions": index.numberOfDimensions,
            "samples": len(index.floatSamples),
            "index": {"linearIndex": "linear", "singleKdTreeIndex": "kdTree"}[index.WhichOneof("IndexType")],
            "weighting": content.WhichOneof("WeightingScheme").replace("Weighting", ""),
            "labels": "String" if content.HasField("stringClassLabels") else "Int64",
            "defaultLabel": str(getattr(content, content.WhichOneof("DefaultClassLabel"))),
        }
        if index.WhichOneof("IndexType") == "singleKdTreeIndex":
            out["nearestNeighbors"]["leafSize"] = index.singleKdTreeIndex.leafSize
        return out
    for layer in content.layers:
        if layer.isUpdatable:
            out["layers"][layer.name] = layer.WhichOneof("layer")
    for loss in content.updateParams.lossLayers:
        kind = loss.WhichOneof("LossLayerType")
        values = getattr(loss, kind)
        out["losses"].append([loss.name, kind.replace("LossLayer", ""), values.input, values.target])
    kind = content.updateParams.optimizer.WhichOneof("OptimizerType")
    out["optimizer"] = kind.replace("Optimizer", "")
    for message in (getattr(content.updateParams.optimizer, kind), content.updateParams):
        for field, value in message.ListFields():
            if field.name not in ("lossLayers", "optimizer"):
                out["parameters"][field.name] = parameter(value)
    return out


def main():
    os.makedirs(HERE, exist_ok=True)
    found = {}
    for name, make in MODELS.items():
        spec = make()
        with open(os.path.join(HERE, name + ".mlmodel"), "wb") as f:
            f.write(spec.SerializeToString(deterministic=True))
        found[name] = truth(spec)
    with open(os.path.join(HERE, "truth.json"), "w") as f:
        json.dump(found, f, indent=1, sort_keys=True)
        f.write("\n")


if __name__ == "__main__":
    main()

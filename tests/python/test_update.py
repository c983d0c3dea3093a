# SPDX-License-Identifier: Apache-2.0
"""What models can learn: read, kept by edits and by compiling, and written as coremltools' builders write it."""

import pathlib
import subprocess
import sys
import warnings

import numpy as np
import pytest

import moka
from moka import edit

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden" / "update"
MODELS = sorted(path.stem for path in GOLDEN.glob("*.mlmodel"))


def source_of(spec):
    """coremltools' message as a Source."""
    return moka.build.Source(moka.build.Message.parse("Model", spec.SerializeToString()))


def spec_of(source):
    """A Source or a path as coremltools' message."""
    proto = pytest.importorskip("coremltools").proto
    data = source.read_bytes() if isinstance(source, pathlib.Path) else source.specification.serialize()
    return proto.Model_pb2.Model.FromString(data)


def test_names_are_those_of_core_ml():
    update = moka.Model(GOLDEN / "images.mlmodel").update_description
    assert [f.name for f in update.training_inputs] == ["image", "digit"]
    assert [(layer.name, layer.type, layer.parameters) for layer in update.layers] == [
        ("conv", "convolution", ["conv_weights", "conv_bias"]),
        ("dense", "innerProduct", ["dense_weights", "dense_bias"]),
    ]
    (loss,) = update.losses
    assert (loss.name, loss.type, loss.input, loss.target, loss.training_input) == (
        "cross entropy", "categoricalCrossEntropy", "digit_probabilities", "digit_probabilities_true", "digit"
    )
    assert update.optimizer == "adam" and update.nearest_neighbors is None and update.stage == []
    rate, batch = update.parameters["learningRate"], update.parameters["miniBatchSize"]
    assert (rate.default_value, rate.range, rate.allowed_values) == (0.01, (0.001, 0.1), None)
    assert (batch.default_value, batch.range, batch.allowed_values) == (8, None, [4, 8, 16])
    assert update.parameters["shuffle"].default_value is True and update.parameters["seed"].default_value == 7


@pytest.mark.parametrize("name", ["plain", "images"])
def test_layers_name_parameters(name):
    path = GOLDEN / f"{name}.mlmodel"
    wanted = [p for layer in moka.Model(path).update_description.layers for p in layer.parameters]
    assert sorted(p.name for p in moka.Model(path, parameters=wanted).parameters) == sorted(wanted)


def test_layers_of_any_name_name_parameters():
    model = edit.rename_operations(GOLDEN / "images.mlmodel", {"conv": "1/a b", "dense": "dense.é"})
    wanted = [p for layer in model.load().update_description.layers for p in layer.parameters]
    assert sorted(p.name for p in model.load(parameters=wanted).parameters) == sorted(wanted)


def test_layers_name_parameters_of_lstms(tmp_path):
    ct = pytest.importorskip("coremltools")
    from coremltools.models import datatypes, neural_network

    b = neural_network.NeuralNetworkBuilder([("x", datatypes.Array(3))], [("y", None)])
    w = np.ones((2, 3), np.float32)
    r = np.ones((2, 2), np.float32)
    b.add_unilstm("the lstm/1", [r] * 4, [w] * 4, [np.ones(2, np.float32)] * 4, 2, 3, ["x"], ["y"])
    b.spec.isUpdatable = True
    b.spec.specificationVersion = 4
    b.spec.neuralNetwork.layers[0].isUpdatable = True
    b.set_mean_squared_error_loss("loss", ("y", datatypes.Array(2)))
    b.set_sgd_optimizer(neural_network.SgdParams())
    b.set_epochs(1)
    ct.models.utils.save_spec(b.spec, str(tmp_path / "lstm.mlmodel"))
    wanted = [p for layer in moka.Model(tmp_path / "lstm.mlmodel").update_description.layers for p in layer.parameters]
    model = moka.Model(tmp_path / "lstm.mlmodel", parameters=wanted)
    assert sorted(p.name for p in model.parameters) == sorted(wanted)
    assert len(wanted) == 3


def test_layers_of_a_pipeline_name_parameters():
    front = edit.rename(GOLDEN / "neighbors_empty.mlmodel", {"input": "z"})
    model = edit.join({"front": front, "net": GOLDEN / "plain.mlmodel"}).load()
    update = model.update_description
    assert update.stage == [1] and [f.name for f in update.training_inputs] == ["z", "x", "y_true"]
    wanted = update.layers[0].parameters
    assert wanted == ["model1_second_weights", "model1_second_bias"]
    again = edit.join({"front": front, "net": GOLDEN / "plain.mlmodel"}).load(parameters=wanted)
    assert [p.name for p in again.parameters] == wanted


def test_other_models_have_none():
    spec = spec_of(GOLDEN / "plain.mlmodel")
    spec.isUpdatable = False
    model = moka.Model(spec.SerializeToString())
    assert model.update_description is None and model.description.training_inputs == []


def test_fault_is_one_error(tmp_path):
    spec = spec_of(GOLDEN / "plain.mlmodel")
    spec.neuralNetwork.updateParams.ClearField("epochs")
    model = moka.Model(spec.SerializeToString())
    assert model.predict({"x": np.zeros(3)})["y"].shape == (2,)
    with pytest.raises(moka.MalformedModelError, match="the model cannot be updated: the update needs the parameter 'epochs'"):
        model.update_description
    (tmp_path / "wrong.mlmodel").write_bytes(spec.SerializeToString())
    with pytest.raises(moka.MalformedModelError, match="needs the parameter 'epochs'"):
        moka.compile_model(tmp_path / "wrong.mlmodel", tmp_path)


def test_description_shows_training_inputs():
    assert "training       y_true  MultiArray (Double 2)" in repr(moka.Model(GOLDEN / "plain.mlmodel").description)


def shown(source, tmp_path):
    """The message of a Source after it was saved as a file."""
    source.save(str(tmp_path / "saved.mlmodel"), force=True)
    return spec_of(tmp_path / "saved.mlmodel")


@pytest.mark.parametrize("name", MODELS)
def test_compiling_and_back_keeps_every_field(name, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the form that keeps the specification
        compiled = moka.compile_model(GOLDEN / f"{name}.mlmodel", tmp_path)
    before, after = moka.Model(GOLDEN / f"{name}.mlmodel"), moka.Model(compiled)
    assert after.description.updatable
    assert repr(after.description) == repr(before.description)
    assert {n: p.default_value for n, p in after.update_description.parameters.items()} == {
        n: p.default_value for n, p in before.update_description.parameters.items()
    }
    out = tmp_path.with_suffix(".mlmodel")
    if not name.startswith("pipeline"):  # its first model is compiled into another form
        subprocess.run([sys.executable, "-m", "moka", "decompile", compiled, out], check=True)
        assert out.read_bytes() == (GOLDEN / f"{name}.mlmodel").read_bytes()


@pytest.mark.parametrize("name", MODELS)
def test_edits_keep_every_field(name, tmp_path):
    """An edit that concerns another part changes nothing else."""
    expected = spec_of(GOLDEN / f"{name}.mlmodel")
    expected.description.metadata.author = "me"
    assert shown(edit.set_metadata(GOLDEN / f"{name}.mlmodel", author="me"), tmp_path) == expected


def test_renames_reach_the_training(tmp_path):
    spec = spec_of(edit.rename(GOLDEN / "images.mlmodel", {"image": "photo", "digit": "kind", "digit_probabilities": "p"}))
    assert [f.name for f in spec.description.trainingInput] == ["photo", "kind"]
    loss = spec.neuralNetworkClassifier.updateParams.lossLayers[0].categoricalCrossEntropyLossLayer
    assert (loss.input, loss.target) == ("p", "digit_probabilities_true")
    spec = spec_of(edit.rename(GOLDEN / "images.mlmodel", {"digit": "kind"}, inputs=False))
    assert [f.name for f in spec.description.trainingInput] == ["image", "kind"]


def test_renames_of_targets():
    spec = spec_of(edit.rename(GOLDEN / "plain.mlmodel", {"y_true": "wanted"}))
    assert [f.name for f in spec.description.trainingInput] == ["x", "wanted"]
    assert spec.neuralNetwork.updateParams.lossLayers[0].meanSquaredErrorLossLayer.target == "wanted"
    with pytest.raises(moka.InvalidArgumentError, match="two features that would be called 'x'"):
        edit.rename(GOLDEN / "plain.mlmodel", {"y_true": "x"})


def test_renames_of_layers():
    spec = spec_of(edit.rename_operations(GOLDEN / "plain.mlmodel", {"loss": "error", "second": "last"}))
    assert spec.neuralNetwork.updateParams.lossLayers[0].name == "error"
    assert [layer.name for layer in spec.neuralNetwork.layers] == ["first", "relu", "last"]


def test_types_of_inputs_and_training_inputs_are_one():
    changed = edit.set_type(GOLDEN / "plain.mlmodel", "x", "float32")
    update = changed.load().update_description
    assert [f.formatted_type for f in update.training_inputs] == ["MultiArray (Float32 3)", "MultiArray (Double 2)"]
    changed = edit.set_sizes(GOLDEN / "images.mlmodel", {"image": (1, (6, 7), 6)})
    assert changed.load().update_description.training_inputs[0].shape_ranges == [(1, 1), (6, 7), (6, 6)]


def test_pipelines_learn_with_their_last_model():
    net = edit.rename(GOLDEN / "plain.mlmodel", {"x": "z", "y": "x"})
    knn = GOLDEN / "neighbors_empty.mlmodel"
    pipeline = edit.join({"net": net, "knn": edit.rename(knn, {"input": "q"})})
    spec = spec_of(pipeline)
    assert spec.isUpdatable and [m.isUpdatable for m in spec.pipelineClassifier.pipeline.models] == [False, True]
    assert [f.name for f in spec.description.trainingInput] == ["z", "q", "label"]
    assert not spec_of(edit.join({"knn": edit.rename(knn, {"input": "q"}), "net": edit.extract_stage(GOLDEN / "pipeline.mlmodel", 0)})).isUpdatable
    assert edit.extract_stage(pipeline, "knn").load().update_description.nearest_neighbors.dimensions == 2


def builder_of(source, ct):
    """coremltools' builder of a network that is not updatable yet."""
    spec = spec_of(source)
    kind = spec.WhichOneof("Type")
    spec.isUpdatable = False
    del spec.description.trainingInput[:]
    getattr(spec, kind).ClearField("updateParams")
    for layer in getattr(spec, kind).layers:
        layer.isUpdatable = False
        for field in ("convolution", "innerProduct"):
            if layer.HasField(field):
                getattr(layer, field).weights.isUpdatable = getattr(layer, field).bias.isUpdatable = False
    return ct.models.neural_network.NeuralNetworkBuilder(spec=spec), source_of(spec)


def test_marks_as_the_builder_does(tmp_path):
    ct = pytest.importorskip("coremltools")
    builder, source = builder_of(GOLDEN / "images.mlmodel", ct)
    builder.make_updatable(["conv", "dense"])
    builder.set_categorical_cross_entropy_loss("loss", "digit_probabilities")
    builder.set_sgd_optimizer(ct.models.neural_network.SgdParams())
    builder.set_epochs(1)
    assert shown(moka.update.mark(source, ["conv", "dense"]), tmp_path) == builder.spec


def test_marks_with_all_settings_as_the_builder_does(tmp_path):
    ct = pytest.importorskip("coremltools")
    builder, source = builder_of(GOLDEN / "images.mlmodel", ct)
    builder.make_updatable(["dense"])
    builder.set_categorical_cross_entropy_loss("cross entropy", "digit_probabilities")
    adam = ct.models.neural_network.AdamParams(lr=0.02, batch=4, beta1=0.8, beta2=0.99, eps=1e-6)
    adam.set_lr(0.02, 0.001, 0.1)
    adam.set_batch(4, [2, 4])
    builder.set_adam_optimizer(adam)
    builder.set_epochs(3, [1, 3])
    builder.set_shuffle(11)
    made = moka.update.mark(
        source, ["dense"], loss_name="cross entropy", optimizer="adam", learning_rate=(0.02, 0.001, 0.1), mini_batch=(4, [2, 4]),
        beta1=0.8, beta2=0.99, eps=1e-6, epochs=(3, [1, 3]), seed=11,
    )
    assert shown(made, tmp_path) == builder.spec


@pytest.mark.parametrize("value, size", [("y", 2), ("h", 4)])
def test_marks_mean_squared_errors_as_the_builder_does(value, size, tmp_path):
    ct = pytest.importorskip("coremltools")
    builder, source = builder_of(GOLDEN / "plain.mlmodel", ct)
    builder.make_updatable(["first"])
    builder.set_mean_squared_error_loss("loss", (value, ct.models.datatypes.Array(size)))
    builder.set_sgd_optimizer(ct.models.neural_network.SgdParams(momentum=0.25))
    builder.set_epochs(2)
    made = moka.update.mark(source, ["first"], loss="mse", loss_input="" if value == "y" else value, momentum=0.25, epochs=2)
    assert shown(made, tmp_path) == builder.spec


def test_marks_real_networks_as_the_builder_does(models, tmp_path):
    ct = pytest.importorskip("coremltools")
    path = models / "image_nn" / "MNIST.mlmodel"
    builder = ct.models.neural_network.NeuralNetworkBuilder(spec=spec_of(path))
    builder.make_updatable(["dense_1", "dense_2"])
    builder.set_categorical_cross_entropy_loss("loss", "prediction")
    builder.set_sgd_optimizer(ct.models.neural_network.SgdParams())
    builder.set_epochs(1)
    assert shown(moka.update.mark(path, ["dense_1", "dense_2"]), tmp_path) == builder.spec


def test_marking_twice_replaces_the_loss(tmp_path):
    once = moka.update.mark(GOLDEN / "images.mlmodel", ["dense"])
    assert shown(moka.update.mark(once, ["dense"]), tmp_path) == spec_of(once)


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        (dict(layers=["none"]), moka.NotFoundError, "the network has no layer 'none'"),
        (dict(layers=["dense", "none"]), moka.NotFoundError, "the network has no layer 'none'"),
        (dict(layers=["act"]), moka.UnsupportedError, r"layer 'act' \(activation\): expected a convolution"),
        (dict(layers=[]), moka.InvalidArgumentError, "expected the names of layers, got none"),
        (dict(loss="hinge"), moka.InvalidArgumentError, "expected the loss 'cross-entropy' or 'mse', got 'hinge'"),
        (dict(loss_input="d"), moka.InvalidArgumentError, "cross entropy: expected the result of a softmax as input, got 'd'"),
        (dict(loss_name="conv"), moka.InvalidArgumentError, "loss: a layer is called 'conv' already"),
        (dict(loss="mse", loss_input="z"), moka.NotFoundError, "the network has no value 'z'"),
        (dict(optimizer="rmsprop"), moka.InvalidArgumentError, "expected the optimizer sgd or adam, got 'rmsprop'"),
        (dict(beta1=0.5), moka.InvalidArgumentError, "parameter 'beta1': sgdOptimizer does not have it"),
        (dict(learning_rate=2), moka.InvalidArgumentError, "parameter 'learningRate': expected a number from 0 to 1, got 2"),
        (dict(learning_rate=(0.1, 0.5, 0.5)), moka.InvalidArgumentError, "expected a range whose end is above its begin"),
        (dict(mini_batch=0), moka.InvalidArgumentError, "parameter 'miniBatchSize': expected positive integers, got 0"),
        (dict(mini_batch=1.5), moka.InvalidArgumentError, "parameter 'miniBatchSize': expected an integer, got 1.5"),
        (dict(mini_batch=(4, [2, 8])), moka.InvalidArgumentError, "expected one of the allowed integers, got 4"),
        (dict(mini_batch=(4, [4, 4])), moka.InvalidArgumentError, "an allowed integer is given twice"),
        (dict(epochs=(1, 2)), ValueError, "epochs: expected a number"),
    ],
)
def test_bad_marks_are_one_error(arguments, error, message):
    with pytest.raises(error, match=message):
        moka.update.mark(GOLDEN / "images.mlmodel", **{"layers": ["dense"], **arguments})


def test_networks_of_float16_are_refused():
    spec = spec_of(GOLDEN / "plain.mlmodel")
    weights = spec.neuralNetwork.layers[0].innerProduct.weights
    weights.float16Value = np.array(weights.floatValue, np.float16).tobytes()
    weights.ClearField("floatValue")
    with pytest.raises(moka.UnsupportedError, match="layer 'first': its weights are float16"):
        moka.update.mark(source_of(spec), ["second"])


def test_other_kinds_are_refused():
    with pytest.raises(moka.UnsupportedError, match="expected a neural network, got a model of type"):
        moka.update.mark(GOLDEN.parent / "classic" / "glm_exact.mlmodel", ["dense"])


def table(rng, count, dimensions):
    return rng.normal(size=(count, dimensions)).astype(np.float32)


@pytest.mark.parametrize("weighting", ["uniform", "inverse_distance"])
@pytest.mark.parametrize("index", ["linear", "kd_tree"])
@pytest.mark.parametrize("labels", [["cat", "dog", "owl"], [7, -2, 3]])
def test_samples_predict_as_scikit_learn(weighting, index, labels, tmp_path):
    pytest.importorskip("coremltools")
    neighbors = pytest.importorskip("sklearn.neighbors")
    from coremltools.models.nearest_neighbors import KNearestNeighborsClassifierBuilder

    rng = np.random.RandomState(5)
    builder = KNearestNeighborsClassifierBuilder(
        "x", "label", 6, labels[0], number_of_neighbors=3, weighting_scheme=weighting, index_type=index, leaf_size=7
    )
    rows, names = table(rng, 60, 6), [labels[i] for i in rng.randint(3, size=60)]
    first = moka.update.nearest_neighbors(source_of(builder.spec), rows[:40], names[:40])
    first.save(str(tmp_path / "knn.mlmodel"))
    second = moka.update.nearest_neighbors(tmp_path / "knn.mlmodel", rows[40:], names[40:], k=5)
    second.save(str(tmp_path / "knn.mlmodel"), force=True)

    builder.add_samples(rows.tolist(), names)
    builder.spec.kNearestNeighborsClassifier.numberOfNeighbors.defaultValue = 5
    assert spec_of(tmp_path / "knn.mlmodel") == builder.spec

    # Core ML weights by 1 / d of the squared distance's root.
    judge = neighbors.KNeighborsClassifier(5, weights="uniform" if weighting == "uniform" else "distance").fit(rows, names)
    model = moka.Model(tmp_path / "knn.mlmodel")
    queries = table(rng, 50, 6)
    for query, expected, chances in zip(queries, judge.predict(queries), judge.predict_proba(queries)):
        answer = model.predict({"x": query})
        best = sorted(chances)
        if best[-1] - best[-2] > 1e-6:
            assert answer["label"] == expected
        for label, chance in zip(judge.classes_, chances):
            assert answer["labelProbs"].get(label, 0.0) == pytest.approx(chance, abs=1e-5)


def test_empty_models_answer_with_the_default_label_until_they_learn():
    path = GOLDEN / "neighbors_empty.mlmodel"
    assert moka.Model(path).predict({"input": np.zeros(2, np.float32)})["label"] == "none"
    learned = moka.update.nearest_neighbors(path, [[0, 0], [1, 1]], ["a", "b"], k=1)
    assert learned.load().predict({"input": np.array([0.9, 0.9], np.float32)})["label"] == "b"
    assert learned.load().update_description.nearest_neighbors.samples == 2
    nothing = moka.update.nearest_neighbors(path, np.zeros((0, 2)), [])
    assert spec_of(nothing) == spec_of(path)


def test_pipelines_compute_the_rows():
    path = GOLDEN / "pipeline.mlmodel"
    examples = [{"x": np.array(v, float)} for v in ([1, 0, 0], [0, 1, 0], [0, 0, 1])]
    learned = moka.update.nearest_neighbors(path, examples, ["a", "b", "c"], k=1)
    front = edit.extract_stage(path, 0).load()
    samples = spec_of(learned).pipeline.models[1].kNearestNeighborsClassifier.nearestNeighborsIndex.floatSamples
    for sample, example in zip(samples, examples):
        assert list(sample.vector) == front.predict(example)["input"].tolist()
    assert [learned.load().predict(e)["label"] for e in examples] == ["a", "b", "c"]


@pytest.mark.parametrize(
    "rows, labels, k, error, message",
    [
        ([[1, 2, 3]], ["a"], None, moka.InvalidArgumentError, "rows: expected 2 numbers in each, got 3"),
        ([[1, 2]], ["a", "b"], None, moka.InvalidArgumentError, "labels: expected one for each of 1 rows, got 2"),
        ([[1, 2]], [4], None, moka.InvalidArgumentError, "labels: expected texts, as the classifier has, got integers"),
        ([[1, 2]], ["a"], 0, moka.InvalidArgumentError, "number of neighbors: the model allows 1 to 1000, got 0"),
        ([[1, 2], [3, np.nan]], ["a", "b"], None, moka.InvalidArgumentError, "row 1: expected finite numbers, got nan"),
        ([1, 2], ["a"], None, ValueError, r"rows: expected an array \[count, dimensions\], got the shape \[2\]"),
        ([], [], None, ValueError, r"rows: expected an array \[count, dimensions\], got none"),
        ([{"input": [1, 2]}], ["a"], None, ValueError, "which only an updatable pipeline takes"),
        ([[1, 2], [3, 4]], ["a", 1], None, TypeError, "expected labels that are all text or all integers"),
    ],
)
def test_bad_samples_are_one_error(rows, labels, k, error, message):
    with pytest.raises(error, match=message):
        moka.update.nearest_neighbors(GOLDEN / "neighbors_string.mlmodel", rows, labels, k)


def test_only_updatable_neighbors_learn():
    spec = spec_of(GOLDEN / "neighbors_string.mlmodel")
    spec.isUpdatable = False
    del spec.description.trainingInput[:]
    plain = source_of(spec)
    with pytest.raises(moka.InvalidArgumentError, match="the model is not updatable"):
        moka.update.nearest_neighbors(plain, [[1, 2]], ["a"])
    assert spec_of(moka.update.mark(plain)) == spec_of(GOLDEN / "neighbors_string.mlmodel")
    with pytest.raises(moka.UnsupportedError, match="expected a nearest-neighbors classifier"):
        moka.update.nearest_neighbors(GOLDEN / "plain.mlmodel", [[1, 2]], ["a"])

# SPDX-License-Identifier: Apache-2.0
"""Models that moka.build makes: predicted by Moka against numpy, and read by coremltools."""

import copy
import gzip
import pathlib
import re

import moka
import numpy as np
import pytest
from conftest import ROOT
from moka import build

rng = np.random.default_rng(3)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def convolution(x, weight):
    """A convolution with padding "same" and stride 1, of one picture."""
    out = np.zeros((1, weight.shape[0], *x.shape[2:]))
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    for i in range(x.shape[2]):
        for k in range(x.shape[3]):
            out[0, :, i, k] = (weight * padded[:, :, i : i + 3, k : k + 3]).sum((1, 2, 3))
    return out


@pytest.fixture
def classifier(tmp_path):
    weight = rng.standard_normal((4, 3, 3, 3)).astype(np.float32)
    program = build.Program("ios16")
    x = program.input("x", build.array((1, 3, 8, 8)))
    y = program.relu(x=program.conv(x=x, weight=weight, pad_type="same"))
    y = program.softmax(x=program.reduce_mean(x=y, axes=[2, 3]), axis=-1)
    program.classify(y, ["cat", "dog", "cow", "emu"])
    program.metadata(author="somebody", user_defined={"key": "value"})
    return program.save(tmp_path / "classifier.mlpackage"), weight


def expected_of(x, weight):
    return softmax(np.maximum(convolution(x, weight), 0).mean((2, 3)))[0]


def test_ten_lines_make_a_classifier(classifier):
    path, weight = classifier
    x = rng.standard_normal((1, 3, 8, 8)).astype(np.float32)
    model = moka.Model(path)
    out = model.predict({"x": x})
    expected = expected_of(x, weight)
    got = [out["classLabel_probs"][label] for label in ("cat", "dog", "cow", "emu")]
    np.testing.assert_allclose(got, expected, atol=1e-6)
    assert out["classLabel"] == ("cat", "dog", "cow", "emu")[expected.argmax()]
    assert model.description.author == "somebody"
    assert model.description.user_defined["key"] == "value"


def test_coremltools_reads_the_classifier(classifier):
    ct = pytest.importorskip("coremltools")
    from coremltools.converters.mil.frontend.milproto.load import load as to_mil

    path, weight = classifier
    spec = ct.utils.load_spec(path)
    assert spec.specificationVersion == 7
    assert spec.description.predictedFeatureName == "classLabel"
    # Its own reader makes MIL of the program and of the weights in the file.
    program = to_mil(spec, spec.specificationVersion, str(pathlib.Path(path) / "Data/com.apple.CoreML/weights"))
    operations = program.functions["main"].operations
    assert [op.op_type for op in operations if op.op_type != "const"] == ["conv", "relu", "reduce_mean", "softmax", "classify"]
    np.testing.assert_array_equal(next(op for op in operations if op.op_type == "conv").weight.val, weight)
    model = ct.models.MLModel(path)
    x = rng.standard_normal((1, 3, 8, 8)).astype(np.float32)
    out = model.predict({"x": x})
    got = [out["classLabel_probs"][label] for label in ("cat", "dog", "cow", "emu")]
    np.testing.assert_allclose(got, expected_of(x, weight), atol=1e-6)


def test_functions_states_and_loops(tmp_path):
    program = build.Program("ios18")
    total = program.state("total", (3,))
    x = program.input("x", build.array((3,), np.float16))
    program.output(program.coreml_update_state(state=total, value=program.add(x=program.read_state(input=total), y=x)), "sum")
    program.function("double_until")
    x = program.input("x", build.array((1,)))
    y = program.while_loop([x], lambda v: program.less(x=v, y=100.0), lambda v: program.mul(x=v, y=2))
    y = program.cond(program.greater(x=y, y=150), lambda: program.sub(x=y, y=1), lambda: program.add(x=y, y=1))
    program.output(y, "y")
    path = program.save(tmp_path / "m.mlpackage")
    model = moka.Model(path)
    state = model.new_state()
    model.predict({"x": np.array([1, 2, 3], np.float16)}, state=state)
    assert model.predict({"x": np.ones(3, np.float16)}, state=state)["sum"].tolist() == [2, 3, 4]
    loop = moka.Model(path, function="double_until")
    assert loop.predict({"x": np.float32([3])})["y"].tolist() == [191]
    assert loop.predict({"x": np.float32([7])})["y"].tolist() == [113]


def test_images_and_flexible_sizes(tmp_path):
    program = build.Program("ios16")
    picture = program.input("picture", build.image(6, 4, "grayscale"))
    x = program.input("x", build.array((1, (2, 5)), default=(1, 3)))
    program.output(program.sub(x=255.0, y=picture), "negative", image="grayscale")
    program.output(program.reduce_sum(x=x, axes=[1], keep_dims=False), "sum")
    model = moka.Model(program.save(tmp_path / "m.mlpackage"))
    pixels = rng.integers(0, 256, (4, 6), dtype=np.uint8)
    out = model.predict({"picture": pixels, "x": np.float32([[1, 2, 3, 4, 5]])})
    np.testing.assert_array_equal(np.asarray(out["negative"]), 255 - pixels)
    assert out["sum"].tolist() == [15]
    with pytest.raises(moka.InvalidArgumentError, match="x"):
        model.predict({"picture": pixels, "x": np.ones((1, 6), np.float32)})
    assert model.description.inputs[1].shape == (1, 3)


def test_every_kind_of_argument(tmp_path):
    program = build.Program("ios18")
    x = program.input("x", build.array((2, 3), np.float16))
    y = program.mul(x=program.add(x=x, y=1), y=[0.5, 2, 4])  # numbers become float16
    y = program.concat(values=[y, program.constant(np.ones((1, 3)), "fp16")], axis=0)
    first, second = program.split(x=y, split_sizes=[1, 2], axis=0)
    table = program.constant(np.arange(16, dtype=np.int32).reshape(2, 8) % 16, "uint4")
    dense = program.constexpr_lut_to_dense(indices=table, lut=(np.arange(16) ** 2).astype(np.float16).reshape(1, 1, 16, 1))
    program.output(program.reshape(x=dense, shape=[16]), "squares")
    program.output(program.cast(x=first, dtype="fp32"), "first")
    program.output(second, "second")
    model = moka.Model(program.save(tmp_path / "m.mlpackage"))
    out = model.predict({"x": np.arange(6, dtype=np.float16).reshape(2, 3)})
    assert out["first"].tolist() == [[0.5, 4, 12]]
    assert out["second"].tolist() == [[2, 10, 24], [1, 1, 1]]
    assert out["squares"].tolist() == [i * i for i in range(16)]


def test_errors_name_operation_and_parameter():
    program = build.Program("ios16")
    x = program.input("x", build.array((1, 3, 8, 8)))
    with pytest.raises(moka.InvalidArgumentError, match="conv.*weight.*5"):
        program.conv(x=x, weight=np.zeros((4, 5, 3, 3), np.float32))
    with pytest.raises(moka.InvalidArgumentError, match="conv.*unknown parameter 'weights'"):
        program.conv(x=x, weights=np.zeros((4, 3, 3, 3), np.float32))
    with pytest.raises(moka.InvalidArgumentError, match="pad_type.*one of.*'sama'"):
        program.conv(x=x, weight=np.zeros((4, 3, 3, 3), np.float32), pad_type="sama")
    with pytest.raises(AttributeError, match="ios16 has no operation 'read_state'"):
        program.read_state(input=x)
    with pytest.raises(TypeError, match="'axes'.*several kinds"):
        program.reduce_mean(x=x, axes=["a", 1])
    with pytest.raises(moka.InvalidArgumentError, match="'x'.*another function"):
        build.Program().relu(x=x)
    with pytest.raises(ZeroDivisionError):  # what a block raises
        program.cond(program.less(x=program.reduce_max(x=x, keep_dims=False), y=0), lambda: 1 / 0, lambda: x)
    with pytest.raises(TypeError, match="expected a value or a list of values, got int"):
        program.cond(program.less(x=program.reduce_max(x=x, keep_dims=False), y=0), lambda: 1, lambda: x)
    with pytest.raises(moka.InvalidArgumentError, match="no output"):
        program.source()
    assert "conv" in build.operations("ios15") and "read_state" not in build.operations("ios15")
    assert build.parameters("softmax")["axis"].endswith("constant, optional")


def test_values_outlive_the_program():
    x = build.Program().input("x", build.array((1,)))
    assert (x.name, x.type) == ("x", "tensor<fp32, [1]>")


def network(weight, bias):
    spec = build.model("neuralNetwork", {"x": build.array((4,), np.float64)}, {"y": build.array((3,), np.float64)}, version=4)
    layer = spec.neuralNetwork.layers.add(name="dense", input=["x"], output=["y"])
    layer.innerProduct = {"inputChannels": 4, "outputChannels": 3, "hasBias": True}
    layer.innerProduct.weights.floatValue = weight
    layer.innerProduct.bias.floatValue = bias
    return spec


def test_a_neural_network(tmp_path):
    weight, bias = rng.standard_normal((3, 4)).astype(np.float32), np.float32([1, 0, -1])
    path = build.Source(network(weight, bias)).save(tmp_path / "n.mlmodel")
    x = rng.standard_normal(4)
    expected = weight @ x + bias
    np.testing.assert_allclose(moka.Model(path).predict({"x": x})["y"], expected, rtol=1e-5)
    np.testing.assert_allclose(build.Source(network(weight, bias)).load().predict({"x": x})["y"], expected, rtol=1e-5)
    ct = pytest.importorskip("coremltools")
    spec = ct.utils.load_spec(path)
    assert list(spec.neuralNetwork.layers[0].innerProduct.weights.floatValue) == weight.ravel().tolist()
    assert spec.SerializeToString() == pathlib.Path(path).read_bytes()


def test_a_tree_ensemble():
    spec = build.model(
        "treeEnsembleClassifier",
        {"a": build.double(), "b": build.double()},
        {"label": build.string(), "scores": build.dictionary(str)},
        predicted="label",
        probabilities="scores",
    )
    trees = spec.treeEnsembleClassifier
    trees.stringClassLabels.vector = ["low", "high"]
    trees.postEvaluationTransform = "Classification_SoftMax"
    trees.treeEnsemble.update(numPredictionDimensions=2, basePredictionValue=[0.5, 0])
    nodes = trees.treeEnsemble.nodes
    nodes.add(nodeBehavior="BranchOnValueLessThanEqual", branchFeatureIndex=1, branchFeatureValue=2.5, trueChildNodeId=1, falseChildNodeId=2)
    nodes.add(nodeId=1, nodeBehavior="LeafNode", evaluationInfo=[{"evaluationIndex": 0, "evaluationValue": 1}])
    nodes.add(nodeId=2, nodeBehavior="LeafNode", evaluationInfo=[{"evaluationIndex": 1, "evaluationValue": 3}])
    # A tree reads one array.
    whole = build.pipeline(
        [("vectorizer", vectorizer(["a", "b"])), ("trees", renamed_input(spec))],
        {"a": build.double(), "b": build.double()},
        {"label": build.string(), "scores": build.dictionary(str)},
        "pipelineClassifier",
        predicted="label",
        probabilities="scores",
    )
    model = whole.load()
    for b, label, scores in ((2.5, "low", softmax(np.array([1.5, 0]))), (2.6, "high", softmax(np.array([0.5, 3])))):
        out = model.predict({"a": 0.0, "b": b})
        assert out["label"] == label
        np.testing.assert_allclose([out["scores"]["low"], out["scores"]["high"]], scores, rtol=1e-6)


def vectorizer(names):
    spec = build.model("featureVectorizer", {n: build.double() for n in names}, {"v": build.array((len(names),), np.float64)})
    spec.featureVectorizer.inputList = [{"inputColumn": n, "inputDimensions": 1} for n in names]
    return spec


def renamed_input(spec):
    """The model with one array v in the place of its inputs."""
    described = build.model("identity", {"v": build.array((2,), np.float64)}, {})
    spec.description.input = list(described.description.input)
    return spec


def test_a_support_vector_machine_and_a_scaler_against_scikit_learn():
    svm = pytest.importorskip("sklearn.svm")
    x, y = rng.standard_normal((40, 2)), rng.standard_normal(40)
    fitted = svm.SVR(kernel="rbf", gamma=0.7).fit(x, y)
    spec = build.model("supportVectorRegressor", {"v": build.array((2,), np.float64)}, {"y": build.double()}, predicted="y")
    machine = spec.supportVectorRegressor
    machine.kernel.rbfKernel.gamma = 0.7
    machine.denseSupportVectors.vectors = [{"values": v} for v in fitted.support_vectors_]
    machine.coefficients.alpha = fitted.dual_coef_.ravel()
    machine.rho = -float(fitted.intercept_[0])
    model = build.Source(spec).load()
    for row in x[:5]:
        assert model.predict({"v": row})["y"] == pytest.approx(fitted.predict([row])[0], abs=1e-9)


def test_nearest_neighbors():
    points = rng.standard_normal((30, 3)).astype(np.float32)
    labels = rng.integers(0, 4, 30)
    spec = build.model(
        "kNearestNeighborsClassifier", {"v": build.array((3,))}, {"label": build.int64(), "probabilities": build.dictionary(int)},
        version=4, predicted="label", probabilities="probabilities",
    )  # fmt: skip
    neighbors = spec.kNearestNeighborsClassifier
    neighbors.nearestNeighborsIndex.numberOfDimensions = 3
    neighbors.nearestNeighborsIndex.floatSamples = [{"vector": p} for p in points]
    neighbors.nearestNeighborsIndex.squaredEuclideanDistance = {}
    neighbors.nearestNeighborsIndex.linearIndex = {}
    neighbors.int64ClassLabels.vector = labels
    neighbors.numberOfNeighbors = {"defaultValue": 1, "range": {"minValue": 1, "maxValue": 1}}
    neighbors.uniformWeighting = {}
    neighbors.defaultInt64Label = 0
    model = build.Source(spec).load()
    for v in rng.standard_normal((5, 3)).astype(np.float32):
        nearest = ((points - v) ** 2).sum(1).argmin()
        assert model.predict({"v": v})["label"] == labels[nearest]


def test_messages_behave_like_messages():
    spec = network(np.zeros((3, 4), np.float32), np.zeros(3, np.float32))
    assert spec.which("Type") == "neuralNetwork" and spec.has("neuralNetwork") and not spec.has("identity")
    assert spec.identity.fields() == [] and not spec.has("identity")  # reading adds nothing
    assert spec.description.metadata.userDefined == {}
    spec.description.metadata.userDefined = {"b": "2", "a": "1"}
    assert spec.description.metadata.userDefined == {"b": "2", "a": "1"}
    layer = spec.neuralNetwork.layers[0]
    assert (layer.name, layer.input, len(spec.neuralNetwork.layers)) == ("dense", ["x"], 1)
    assert layer.innerProduct.weights.floatValue.dtype == np.float32
    assert spec.description.input[0].type.multiArrayType.dataType == "DOUBLE"
    twin = copy.copy(spec)
    twin.neuralNetwork.layers[-1].name = "other"
    assert spec.neuralNetwork.layers[0].name == "dense" and twin != spec
    assert build.Message.parse("Model", spec.serialize()) == spec
    del twin.neuralNetwork.layers[0]
    assert len(twin.neuralNetwork.layers) == 0
    spec.clear("neuralNetwork")
    assert spec.which("Type") is None
    assert "layers" not in repr(spec) and "specificationVersion: 4" in repr(spec)
    with pytest.raises(AttributeError, match="Model has no field 'neuralNetwerk'"):
        spec.neuralNetwerk
    with pytest.raises(moka.InvalidArgumentError, match="specificationVersion.*got 'four'"):
        spec.specificationVersion = "four"
    with pytest.raises(moka.InvalidArgumentError, match="outputChannels.*got -1"):
        layer.innerProduct.outputChannels = -1
    with pytest.raises(TypeError, match="expected a list, got str"):
        layer.input = "x"
    with pytest.raises(TypeError, match="expected a InnerProductLayerParams or a dict"):
        layer.innerProduct = 3
    with pytest.raises(moka.InvalidArgumentError, match="no message 'Layer'"):
        build.Message("Layer")
    with pytest.raises(moka.MalformedModelError):
        build.Message.parse("Model", b"\xff\xff")


def test_no_method_hides_a_field():
    fields = {f[0] for name in moka._moka.build.Message.types() for f in moka._moka.build.Message(name).fields()}
    assert len(fields) > 300
    assert not fields & set(vars(build.Message))


def test_open_change_and_save(tmp_path, classifier):
    path, _ = classifier
    source = build.open(path)
    assert list(source.weights) == ["weights/weight.bin"]
    again = source.save(tmp_path / "again.mlpackage")
    for file in pathlib.Path(path).rglob("*"):
        other = pathlib.Path(again) / file.relative_to(path)
        assert file.is_dir() or other.read_bytes() == file.read_bytes()
    source.specification.description.metadata.license = "MIT"
    source.save(path)  # in place
    assert moka.Model(path).description.license == "MIT"
    with pytest.raises(moka.InvalidArgumentError, match="mlpackage"):
        source.save(tmp_path / "m.mlmodel")


def files_of(path):
    if path.is_file():
        return {path.suffix: path.read_bytes()}
    return {str(f.relative_to(path)): f.read_bytes() for f in path.rglob("*") if f.is_file()}


def saved_models(folder):
    found = [*folder.rglob("*.mlpackage"), *folder.rglob("*.mlmodel"), *folder.rglob("*.mlmodel.gz")]
    return [p for p in sorted(found) if "Data" not in p.parts and not any(parent.suffix == ".mlmodelc" for parent in p.parents)]


def check_round_trip(path, folder):
    """Opened and saved twice, a model keeps its bytes. ML programs in an .mlmodel become packages around the same specification."""
    if path.suffix == ".gz":
        plain = folder / "plain.mlmodel"
        plain.write_bytes(gzip.decompress(path.read_bytes()))
        path = plain
    source = build.open(path)
    is_program = path.is_file() and "ML program" in refusal(source, folder / "once.mlmodel")
    suffix = ".mlpackage" if is_program else path.suffix
    once = pathlib.Path(source.save(folder / f"once{suffix}"))
    again = pathlib.Path(build.open(once).save(folder / f"again{suffix}"))
    assert files_of(again) == files_of(once)
    if is_program:
        assert (once / "Data/com.apple.CoreML/model.mlmodel").read_bytes() == path.read_bytes()
    else:
        assert files_of(once) == files_of(path)


def refusal(source, path):
    try:
        source.save(path)
    except moka.InvalidArgumentError as e:
        return str(e)
    return ""


def test_models_of_the_tests_are_saved_as_they_were(tmp_path):
    paths = saved_models(ROOT / "tests") + saved_models(ROOT / "examples")
    assert len(paths) >= 100
    for number, path in enumerate(paths):
        (tmp_path / str(number)).mkdir()
        check_round_trip(path, tmp_path / str(number))


def test_published_models_are_saved_as_they_were(models, tmp_path):
    paths = saved_models(models)
    assert len(paths) >= 25
    for number, path in enumerate(paths):
        (tmp_path / str(number)).mkdir()
        check_round_trip(path, tmp_path / str(number))


def test_the_page_of_the_documentation(tmp_path, monkeypatch):
    page = pathlib.Path(__file__).resolve().parents[2] / "docs/building.md"
    monkeypatch.chdir(tmp_path)
    names = {}
    snippets = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
    assert len(snippets) == 3
    for snippet in snippets:
        exec(snippet, names)
    assert moka.Model("dense.mlmodel").description.author == "somebody"
    assert set(moka.Model("classifier.mlpackage").description.class_labels) == {"cat", "dog", "cow", "emu"}

# SPDX-License-Identifier: Apache-2.0
"""Custom models, what stands for parts of Apple's systems, linked models and sound features, against numpy."""

import os
import pathlib
import re

import moka
import numpy as np
import pytest
from moka import build

ct = pytest.importorskip("coremltools")
Spec = ct.proto.Model_pb2.Model
ARRAY = ct.proto.FeatureTypes_pb2.ArrayFeatureType
rng = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def registry():
    yield
    for name in moka.registered_models():
        moka.unregister_model(name)
    moka.set_linked_model_folders()


def feature(into, name, kind, shape=(), dtype=ARRAY.DOUBLE):
    f = into.add(name=name)
    if kind == "array":
        f.type.multiArrayType.shape.extend(shape)
        f.type.multiArrayType.dataType = dtype
    elif kind == "image":
        f.type.imageType.width, f.type.imageType.height = shape
        f.type.imageType.colorSpace = dtype
    elif kind == "dictionary":
        f.type.dictionaryType.stringKeyType.SetInParent()
    elif kind == "strings":
        f.type.sequenceType.stringType.SetInParent()
        f.type.sequenceType.sizeRange.upperBound = -1
    else:
        getattr(f.type, kind + "Type").SetInParent()
    return f


def spec_of(inputs, outputs):
    spec = Spec(specificationVersion=4)
    for args in inputs:
        feature(spec.description.input, *args)
    for args in outputs:
        feature(spec.description.output, *args)
    return spec


def saved(spec, path):
    path.write_bytes(spec.SerializeToString())
    return str(path)


def linear(path, weights, offset):
    """A model y = x . weights + offset, x being of as many elements."""
    spec = spec_of([("features", "array", (len(weights),))], [("value", "double")])
    spec.description.predictedFeatureName = "value"
    spec.glmRegressor.weights.add().value.extend(weights)
    spec.glmRegressor.offset.append(offset)
    return saved(spec, path)


def test_every_kind_of_feature_goes_in_and_out(tmp_path):
    spec = spec_of(
        [("a", "array", (2, 3)), ("n", "int64"), ("x", "double"), ("s", "string"), ("d", "dictionary"), ("words", "strings")],
        [("b", "array", (3, 2)), ("m", "int64"), ("y", "double"), ("t", "string"), ("e", "dictionary"), ("reversed", "strings")],
    )
    spec.customModel.className = "Everything"
    spec.customModel.description = "all there is"
    for key, field, value in [("gain", "doubleValue", 1.5), ("name", "stringValue", "n"), ("count", "intValue", 3),
                              ("big", "longValue", 1 << 40), ("on", "boolValue", True), ("raw", "bytesValue", b"\x01\x02")]:
        setattr(spec.customModel.parameters[key], field, value)
    path = saved(spec, tmp_path / "m.mlmodel")
    with pytest.raises(moka.UnsupportedError, match="customModel 'Everything' \\(all there is\\).*register_model"):
        moka.Model(path)
    seen = {}

    @moka.register_model("Everything")
    class Everything:
        def __init__(self, description, parameters):
            seen["inputs"] = [f.name for f in description.inputs]
            seen["parameters"] = parameters

        def predict(self, inputs):
            seen["a"] = inputs["a"]
            return {
                "b": inputs["a"].T * 2, "m": inputs["n"] + 1, "y": inputs["x"] / 2, "t": inputs["s"] + "!",
                "e": {k + k: v for k, v in inputs["d"].items()}, "reversed": inputs["words"][::-1] + ["end"],
            }

    model = moka.Model(path)
    a = rng.random((2, 3))
    out = model.predict({"a": a, "n": 41, "x": 3.0, "s": "hi", "d": {"k": 2.0}, "words": ["p", "q"]})
    np.testing.assert_array_equal(out["b"], a.T * 2)
    assert (out["m"], out["y"], out["t"], out["e"], out["reversed"]) == (42, 1.5, "hi!", {"kk": 2.0}, ["q", "p", "end"])
    out = model.predict({"a": a, "n": 0, "x": 3.0, "s": "", "d": {}, "words": []})
    assert (out["m"], out["e"], out["reversed"]) == (1, {}, ["end"])
    parameters = seen["parameters"]
    assert parameters.pop("raw").tolist() == [1, 2]
    assert parameters == {"gain": 1.5, "name": "n", "count": 3, "big": 1 << 40, "on": True}
    assert seen["inputs"] == ["a", "n", "x", "s", "d", "words"]
    np.testing.assert_array_equal(seen["a"], a)  # inputs are the model's to keep


@pytest.mark.parametrize(
    "given, error",
    [
        ({"b": np.zeros(3)}, "output 'b'.*expected"),
        ({}, "expected a value for the output 'b'"),
        ({"b": "text"}, "b"),
        (7, "expected a dict of outputs, got int"),
        (ValueError("by design"), "(?s)Traceback.*ValueError: by design"),
    ],
)
def test_mistakes_of_models_are_errors(tmp_path, given, error):
    spec = spec_of([("a", "array", (2,))], [("b", "array", (2,))])
    spec.customModel.className = "Wrong"

    @moka.register_model("Wrong")
    def wrong(inputs):
        if isinstance(given, Exception):
            raise given
        return given

    with pytest.raises(moka.DataError, match=error):
        moka.Model(saved(spec, tmp_path / "m.mlmodel")).predict({"a": [1, 2]})


def test_sizes_that_only_the_model_knows(tmp_path):
    spec = spec_of([("a", "array", (2,))], [("b", "array")])
    spec.customModel.className = "Grows"
    calls = []

    @moka.register_model("Grows")
    def grows(inputs):
        calls.append(1)
        return {"b": np.arange(inputs["a"][0])}

    model = moka.Model(saved(spec, tmp_path / "m.mlmodel"))
    assert model.predict({"a": [3, 0]})["b"].tolist() == [0, 1, 2]
    assert model.predict({"a": [5, 0]})["b"].tolist() == [0, 1, 2, 3, 4]
    assert len(calls) == 2


def pipeline_with_feature_print(path, weights, elements=2048):
    """An image classifier's shape: Apple's features, then a linear model of them."""
    rgb = ct.proto.FeatureTypes_pb2.ImageFeatureType.RGB
    spec = spec_of([("image", "image", (299, 299), rgb)], [("value", "double")])
    pipeline = spec.pipeline
    first = pipeline.models.add()
    first.CopyFrom(spec_of([("image", "image", (299, 299), rgb)], [("features", "array", (elements,))]))
    first.visionFeaturePrint.scene.version = 1
    second = pipeline.models.add()
    second.CopyFrom(spec_of([("features", "array", (elements,))], [("value", "double")]))
    second.description.predictedFeatureName = "value"
    second.glmRegressor.weights.add().value.extend(weights)
    second.glmRegressor.offset.append(1.0)
    return saved(spec, path)


def test_a_function_in_the_place_of_apples_part(tmp_path):
    weights = rng.standard_normal(2048)
    path = pipeline_with_feature_print(tmp_path / "p.mlmodel", weights)
    with pytest.raises(moka.UnsupportedError, match="part of Apple's systems.*visionFeaturePrint.scene.1.*2048"):
        moka.Model(path)
    features = rng.random(2048)
    picture = rng.integers(0, 256, (299, 299, 3), dtype=np.uint8)
    seen = []

    @moka.register_model("visionFeaturePrint.scene.1")
    def scene(inputs):
        seen.append(np.asarray(inputs["image"])[..., :3])
        return {"features": features}

    value = moka.Model(path).predict({"image": picture})["value"]
    np.testing.assert_allclose(value, features @ weights + 1, rtol=1e-9)
    np.testing.assert_array_equal(seen[0], picture)
    moka.unregister_model("visionFeaturePrint.scene.1")
    moka.register_model("visionFeaturePrint.scene", lambda inputs: {"features": features[:7]})
    with pytest.raises(moka.DataError, match="features"):
        moka.Model(path).predict({"image": picture})
    other = pipeline_with_feature_print(tmp_path / "q.mlmodel", weights[:100], 100)
    with pytest.raises(moka.MalformedModelError, match="expected an output of 2048 elements, got one of 100"):
        moka.Model(other)


def test_a_file_in_the_place_of_apples_part(tmp_path):
    weights = rng.standard_normal(2048)
    path = pipeline_with_feature_print(tmp_path / "p.mlmodel", weights)
    bgr = ct.proto.FeatureTypes_pb2.ImageFeatureType.BGR

    def stand_in(elements):
        arrays = ct.models.datatypes.Array
        table = rng.standard_normal((elements, 3)).astype(np.float32) / 255
        builder = ct.models.neural_network.NeuralNetworkBuilder([("picture", arrays(3, 299, 299))], [("out", arrays(elements))])
        builder.add_pooling("mean", 0, 0, 0, 0, "AVERAGE", "VALID", "picture", "pooled", is_global=True)
        builder.add_flatten("flat", 0, "pooled", "flat")
        builder.add_inner_product("product", table, None, 3, elements, False, "flat", "out")
        builder.set_pre_processing_parameters(image_input_names=["picture"], is_bgr=True)
        assert builder.spec.description.input[0].type.imageType.colorSpace == bgr
        file = str(tmp_path / f"stand_in_{elements}.mlmodel")
        ct.models.utils.save_spec(builder.spec, file)
        return file, table

    file, table = stand_in(2048)
    moka.register_model("visionFeaturePrint.scene.1", file)
    picture = rng.integers(0, 256, (299, 299, 3), dtype=np.uint8)
    means = picture.reshape(-1, 3).mean(0)[::-1]
    expected = (table.astype(np.float64) @ means) @ weights + 1
    np.testing.assert_allclose(moka.Model(path).predict({"image": picture})["value"], expected, rtol=1e-4)
    moka.register_model("visionFeaturePrint.scene.1", stand_in(16)[0])
    with pytest.raises(moka.UnsupportedError, match="expected 2048 elements.*got 16"):
        moka.Model(path)
    moka.register_model("visionFeaturePrint.scene.1", str(tmp_path / "absent.mlmodel"))
    with pytest.raises(moka.NotFoundError, match="absent.mlmodel.*visionFeaturePrint.scene.1"):
        moka.Model(path)


def test_text_models_get_their_bytes(tmp_path):
    spec = spec_of([("text", "string")], [("label", "string")])
    spec.textClassifier.revision = 1
    spec.textClassifier.language = "en"
    spec.textClassifier.modelParameterData = b"abc"
    spec.textClassifier.stringClassLabels.vector.extend(["no", "yes"])

    @moka.register_model("textClassifier.1")
    class Classifier:
        def __init__(self, description, parameters):
            assert bytes(parameters["modelParameterData"]) == b"abc"
            assert parameters["language"] == "en"
            self.labels = parameters["labels"]

        def predict(self, inputs):
            return {"label": self.labels["!" in inputs["text"]]}

    model = moka.Model(saved(spec, tmp_path / "m.mlmodel"))
    assert [model.predict({"text": t})["label"] for t in ("hm", "yes!")] == ["no", "yes"]


def linked(path, name, search):
    spec = spec_of([("x", "array", (3,))], [("y", "double")])
    spec.linkedModel.linkedModelFile.linkedModelFileName.defaultValue = name
    spec.linkedModel.linkedModelFile.linkedModelSearchPath.defaultValue = search
    return saved(spec, path)


def test_linked_models_only_in_folders_that_are_allowed(tmp_path):
    parts, elsewhere = tmp_path / "parts", tmp_path / "elsewhere"
    parts.mkdir()
    elsewhere.mkdir()
    linear(parts / "part.mlmodel", [1, 2, 3], 0.5)
    linear(elsewhere / "secret.mlmodel", [1, 2, 3], 0.5)
    model = linked(tmp_path / "m.mlmodel", "part.mlmodelc", "missing:parts")
    with pytest.raises(moka.UnsupportedError, match="no folder is allowed"):
        moka.Model(model)
    moka.set_linked_model_folders(parts)
    assert moka.Model(model).predict({"x": [1, 1, 2]})["y"] == 9.5
    assert moka.Model(linked(tmp_path / "b.mlmodel", "part.mlmodel", "$BUNDLE_MAIN")).predict({"x": [1, 1, 2]})["y"] == 9.5
    os.symlink(elsewhere / "secret.mlmodel", parts / "link.mlmodel")
    for name, search in [("secret.mlmodel", "elsewhere"), ("../elsewhere/secret.mlmodel", "parts"),
                         ("link.mlmodel", "parts"), (str(elsewhere / "secret.mlmodel"), "parts")]:
        with pytest.raises(moka.NotFoundError, match="outside of the folders"):
            moka.Model(linked(tmp_path / "c.mlmodel", name, search))
    with pytest.raises(moka.NotFoundError, match="absent.mlmodel"):
        moka.Model(linked(tmp_path / "c.mlmodel", "absent.mlmodel", "parts"))


def test_linked_models_that_link_themselves_end(tmp_path):
    moka.set_linked_model_folders(tmp_path)
    with pytest.raises(moka.MalformedModelError, match="nested"):
        moka.Model(linked(tmp_path / "m.mlmodel", "m.mlmodel", ""))


def test_serialized_models(tmp_path):
    inner = linear(tmp_path / "inner.mlmodel", [1, 2, 3], 0.5)
    spec = spec_of([("x", "array", (3,))], [("y", "double")])
    spec.serializedModel.identifier = "inner"
    spec.serializedModel.model = open(inner, "rb").read()
    assert moka.Model(saved(spec, tmp_path / "m.mlmodel")).predict({"x": [1, 1, 2]})["y"] == 9.5
    spec.serializedModel.model = b"not a model"
    with pytest.raises(moka.Error, match="serialized model 'inner'"):
        moka.Model(saved(spec, tmp_path / "n.mlmodel"))


def log_mel(samples):
    """VGGish's features, from their published definition."""
    window = 0.5 - 0.5 * np.cos(2 * np.pi / 400 * np.arange(400))
    frames = np.lib.stride_tricks.sliding_window_view(samples, 400)[::160]
    magnitude = np.abs(np.fft.rfft(frames * window, 512))

    def mel(hertz):
        return 1127.0 * np.log(1.0 + hertz / 700.0)

    bins = mel(np.linspace(0.0, 8000.0, 257))[:, None]
    edges = np.linspace(mel(125.0), mel(7500.0), 66)
    lower, center, upper = edges[:-2], edges[1:-1], edges[2:]
    weights = np.maximum(0, np.minimum((bins - lower) / (center - lower), (upper - bins) / (upper - center)))
    weights[0] = 0
    return np.log(magnitude @ weights + 0.01)


def test_sound_analysis_preprocessing(tmp_path):
    spec = spec_of([("audioSamples", "array", (15600,))], [("preprocessedSamples", "array", (1, 96, 64))])
    spec.soundAnalysisPreprocessing.vggish.SetInParent()
    model = moka.Model(saved(spec, tmp_path / "m.mlmodel"))
    seconds = np.arange(15600) / 16000
    for samples in (np.sin(2 * np.pi * 440 * seconds), rng.standard_normal(15600) * 0.1, np.zeros(15600)):
        out = model.predict({"audioSamples": samples})["preprocessedSamples"]
        assert out.shape == (1, 96, 64)
        np.testing.assert_allclose(out[0], log_mel(samples), atol=1e-9)
    spec.description.input[0].type.multiArrayType.shape[0] = 399
    with pytest.raises(moka.Error, match="at least 400 samples"):
        moka.Model(saved(spec, tmp_path / "short.mlmodel"))


def test_the_sound_classifier_of_turi_create(tmp_path, monkeypatch):
    """The page of the documentation, and a pipeline that begins with the custom model, as Turi Create writes it."""
    monkeypatch.chdir(tmp_path)
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs/custom-layers.md").read_text()
    (snippet,) = [s for s in re.findall(r"```python\n(.*?)```", page, re.S) if "TCSoundClassifierPreprocessing" in s]
    samples = np.sin(2 * np.pi * 440 * np.arange(15600) / 16000).astype(np.float32)
    first = spec_of([("x", "array", (15600,))], [("y", "array", (1, 96, 64))])
    first.customModel.className = "TCSoundClassifierPreprocessing"
    second = build.model("neuralNetwork", {"y": build.array((1, 96, 64), np.float64)}, {"mean": build.array((1,), np.float64)}, version=4)
    second.neuralNetwork.layers.add(name="mean", input=["y"], output=["mean"], reduce={"mode": "AVG", "axis": "CHW"})
    whole = build.pipeline(
        [("sound", saved(first, tmp_path / "first.mlmodel")), ("mean", second)],
        {"x": build.array((15600,))},
        {"mean": build.array((1,), np.float64)},
    )
    with pytest.raises(moka.UnsupportedError, match="TCSoundClassifierPreprocessing"):
        whole.load()
    exec(snippet, {})
    mean = whole.load().predict({"x": samples})["mean"]
    np.testing.assert_allclose(mean.ravel(), log_mel(samples).mean(), rtol=1e-5)

# SPDX-License-Identifier: Apache-2.0
"""Models that moka.edit changes: predicted by Moka against numpy and the model before, and read by coremltools."""

import moka
import numpy as np
import pytest
from moka import build, compress, edit

rng = np.random.default_rng(5)
WEIGHT = rng.standard_normal((5, 3, 3, 3)).astype(np.float32)
X = rng.integers(0, 256, (1, 3, 8, 8)).astype(np.float32)


def source(opset="ios16"):
    """A convolution, the mean of each channel, softmax."""
    program = build.Program(opset)
    x = program.input("x", build.array((1, 3, 8, 8)))
    y = program.relu(x=program.conv(x=x, weight=WEIGHT, pad_type="same"), name="features")
    y = program.reduce_mean(x=y, axes=[2, 3], name="means")
    program.output(program.softmax(x=y, axis=-1), "y")
    return program.source()


def features_of(x):
    out = np.zeros((1, 5, *x.shape[2:]))
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    for i in range(x.shape[2]):
        for k in range(x.shape[3]):
            out[0, :, i, k] = (WEIGHT * padded[:, :, i : i + 3, k : k + 3]).sum((1, 2, 3))
    return np.maximum(out, 0)


def expected_of(x):
    means = features_of(x).mean((2, 3))
    e = np.exp(means - means.max())
    return e / e.sum()


def predict(model, name="x", x=X, output="y"):
    return model.load().predict({name: x})[output]


def test_each_edit_predicts_as_numpy(tmp_path):
    np.testing.assert_allclose(predict(edit.rename(source(), {"x": "a", "y": "b"}), "a", output="b"), expected_of(X), atol=1e-5)
    half = edit.set_type(edit.set_type(source(), "x", np.float16), "y", "float16")
    np.testing.assert_allclose(predict(half, x=X.astype(np.float16)), expected_of(X), atol=1e-3)
    image = edit.set_image(source(), "x", "rgb", scale=1 / 255, bias=[-0.5, -0.25, 0])
    pixels = X[0].transpose(1, 2, 0).astype(np.uint8)
    bias = np.array([-0.5, -0.25, 0]).reshape(1, 3, 1, 1)
    np.testing.assert_allclose(predict(image, x=pixels), expected_of(X / 255 + bias), atol=1e-5)
    mean, std = [1.0, 2.0, 3.0], [4.0, 5.0, 6.0]
    normalized = (X - np.reshape(mean, (1, 3, 1, 1))) / np.reshape(std, (1, 3, 1, 1))
    np.testing.assert_allclose(predict(edit.normalize(source(), "x", mean, std)), expected_of(normalized), atol=1e-5)
    np.testing.assert_allclose(predict(edit.cut(source(), outputs=["features"]), output="features"), features_of(X), rtol=1e-4, atol=1e-3)
    labels = ["a", "b", "c", "d", "e"]
    classes = edit.set_labels(source(), labels).load().predict({"x": X})
    assert classes["classLabel"] == labels[expected_of(X).argmax()]
    np.testing.assert_allclose([classes["classLabel_probs"][k] for k in labels], expected_of(X)[0], atol=1e-5)
    wide = rng.standard_normal((1, 3, 5, 12)).astype(np.float32)
    np.testing.assert_allclose(predict(edit.set_sizes(source(), {"x": (1, 3, (4, 16), (4, -1))}), x=wide), expected_of(wide), atol=1e-5)


def test_models_are_joined_inlined_and_cut_in_halves():
    after = build.Program("ios16")
    y = after.input("y", build.array((1, 5)))
    after.output(after.mul(x=y, y=2.0), "z")
    joined = edit.join({"net": source(), "twice": after.source()})
    for model in (joined, edit.inline_pipeline(joined), edit.bisect_into_pipeline(edit.inline_pipeline(joined))):
        np.testing.assert_allclose(predict(model, output="z"), 2 * expected_of(X), atol=1e-5)
    np.testing.assert_allclose(predict(edit.extract_stage(joined, 0)), expected_of(X), atol=1e-5)
    first, second = edit.bisect(source())
    between = first.load().predict({"x": X})
    read = {f.name: between.get(f.name, X) for f in second.load().description.inputs}
    np.testing.assert_allclose(second.load().predict(read)["y"], expected_of(X), atol=1e-5)


def test_functions_share_weights():
    both = edit.add_function(source(), "other", edit.rename(source(), {"x": "a"}))
    assert len(both.weights["weights/weight.bin"]) == len(source().weights["weights/weight.bin"])
    np.testing.assert_allclose(predict(edit.set_default_function(both, "other"), "a"), expected_of(X), atol=1e-5)
    np.testing.assert_allclose(predict(edit.extract_function(both, "main")), expected_of(X), atol=1e-5)


def test_texts_and_stripped_weights():
    model = edit.set_metadata(source(), author="me", version="2", user_defined={"k": "v"}, features={"x": "a picture"})
    description = model.load().description
    assert (description.author, description.version, description.user_defined["k"]) == ("me", "2", "v")
    assert description.inputs[0].description == "a picture"
    zeros = edit.strip_weights(model)
    np.testing.assert_allclose(predict(zeros), np.full((1, 5), 0.2), atol=1e-6)
    assert len(zeros.weights["weights/weight.bin"]) == len(model.weights["weights/weight.bin"])
    again = [predict(edit.strip_weights(model, seed=3)) for _ in range(2)]
    np.testing.assert_array_equal(*again)


def test_mistakes_raise():
    with pytest.raises(moka.NotFoundError, match="no input or output 'q'"):
        edit.rename(source(), {"q": "a"})
    with pytest.raises(moka.InvalidArgumentError, match="cannot be float64"):
        edit.set_type(source(), "x", np.float64)
    with pytest.raises(moka.InvalidArgumentError, match="cyan"):
        edit.set_image(source(), "x", "cyan")
    with pytest.raises(moka.UnsupportedError, match="expected an ML program"):
        edit.bisect(edit.join({"one": source()}))


# Compression whose operations have other parameters since iOS 18, and one whose operation stays.
OLD_FORMS = {
    **{f"palette of {bits} bits": compress.palette(bits) for bits in (1, 2, 4, 6, 8)},
    "pruned": compress.pruned(sparsity=0.5),
    "nearly all pruned": compress.pruned(sparsity=0.98),
    "8 bits": compress.linear(),
}


def compressed(form):
    made = compress.weights(source(), form, least_elements=0)
    assert [w.skipped for w in made.weights] == [""]
    return made.model


@pytest.mark.parametrize("name", OLD_FORMS)
def test_compressed_weights_of_a_newer_target(name):
    old = compressed(OLD_FORMS[name])
    new = edit.set_target(old, "ios18")
    np.testing.assert_array_equal(predict(new), predict(old))


def test_stages_for_different_systems_become_one_program():
    old, new = build.Program("ios16"), build.Program("ios18")
    weight = WEIGHT.reshape(15, 9)
    old.output(old.linear(x=old.input("x", build.array((1, 9))), weight=weight), "h")
    new.output(new.linear(x=new.input("h", build.array((1, 15))), weight=weight.T), "y")
    first = compress.weights(old.source(), compress.palette(2), least_elements=0).model
    pipeline = edit.join({"first": first, "second": new.source()})
    x = rng.standard_normal((1, 9)).astype(np.float32)
    np.testing.assert_array_equal(predict(edit.inline_pipeline(pipeline), x=x), predict(pipeline, x=x))


EDITS = {
    "rename": lambda m: edit.rename(m, {"x": "a", "y": "b"}),
    "type": lambda m: edit.set_type(edit.set_type(m, "x", "float16"), "y", "float16"),
    "image": lambda m: edit.set_image(m, "x", "bgr", scale=0.5, bias=[1, 2, 3]),
    "normalize": lambda m: edit.normalize(m, "x", [1, 2, 3], [4, 5, 6]),
    "labels": lambda m: edit.set_labels(m, ["a", "b", "c", "d", "e"]),
    "numbers as labels": lambda m: edit.set_labels(m, [1, 2, 3, 4, 5]),
    "labels of float16": lambda m: edit.set_labels(edit.set_type(m, "y", "float16"), ["a", "b", "c", "d", "e"]),
    "no labels": lambda m: edit.remove_labels(edit.set_labels(m, ["a", "b", "c", "d", "e"])),
    "cut": lambda m: edit.cut(m, ["features"], ["means"]),
    "ranges": lambda m: edit.set_sizes(m, {"x": (1, 3, (4, 16), (4, -1))}),
    "shapes": lambda m: edit.set_sizes(m, {"x": [(1, 3, 8, 8), (1, 3, 16, 16)]}),
    "functions": lambda m: edit.add_function(m, "other", m),
    "target": lambda m: edit.set_target(m, "ios18"),
    **{f"target of {name}": lambda m, form=form: edit.set_target(compressed(form), "ios18") for name, form in OLD_FORMS.items()},
    "strip": lambda m: edit.strip_weights(m, 1),
    "halves": lambda m: edit.bisect_into_pipeline(m),
    "inlined": lambda m: edit.inline_pipeline(edit.bisect_into_pipeline(m)),
}


@pytest.mark.parametrize("name", EDITS)
def test_coremltools_reads_the_result(name, tmp_path):
    ct = pytest.importorskip("coremltools")
    from coremltools.converters.mil.frontend.milproto.load import load

    path = EDITS[name](source()).save(tmp_path / "edited.mlpackage")
    model = ct.models.MLModel(path, skip_model_load=True)
    spec = model.get_spec()
    stages = spec.pipeline.models if spec.WhichOneof("Type") == "pipeline" else [spec]
    for stage in stages:
        program = load(stage, stage.specificationVersion, model.weights_dir)
        # coremltools infers the types again and compares them with the declared ones.
        for function in program.functions.values():
            assert function.outputs


def test_coremltools_renames_alike(tmp_path):
    ct = pytest.importorskip("coremltools")
    source().save(tmp_path / "net.mlpackage")
    spec = ct.utils.load_spec(str(tmp_path / "net.mlpackage"))
    ct.utils.rename_feature(spec, "x", "a")
    theirs = [f.name for f in spec.description.input], sorted(spec.mlProgram.functions["main"].inputs[0].name)
    path = edit.rename(source(), {"x": "a"}).save(tmp_path / "ours.mlpackage")
    ours = ct.utils.load_spec(path)
    assert ([f.name for f in ours.description.input], sorted(ours.mlProgram.functions["main"].inputs[0].name)) == theirs

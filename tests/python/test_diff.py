# SPDX-License-Identifier: Apache-2.0
"""moka.diff: what differs in operations, weights and values."""

import math

import numpy as np
import pytest

import moka
from moka import InvalidArgumentError, NotFoundError, build, diff, edit

WEIGHT = np.random.default_rng(4).standard_normal((8, 8)).astype(np.float32)


def net(path, weight=WEIGHT, scale=2.0, name="scaled"):
    p = build.Program("ios17")
    x = p.input("x", build.array((1, 8)))
    y = p.mul(x=p.relu(x=p.linear(x=x, weight=weight, name="dense")), y=np.float32(scale), name=name)
    p.output(p.add(x=y, y=x, name="sum"), "y")
    return p.save(str(path))


def test_names_do_not_matter(tmp_path):
    a, b = net(tmp_path / "a.mlpackage"), net(tmp_path / "b.mlpackage", name="other")
    found = diff.structure(a, build.open(b))
    assert found.same and not found.differences
    by_name = {op.name: op for op in found.a}
    assert found.b[by_name["scaled"].partner].name == "other"
    values = diff.values(a, b)
    assert values.same and values.first is None
    assert values.equal == values.compared > 3
    assert values.outputs[0].equal and values.outputs[0].snr == math.inf


def test_an_altered_weight(tmp_path):
    altered = WEIGHT.copy()
    altered[3, 5] += 0.5
    a, b = net(tmp_path / "a.mlpackage"), net(tmp_path / "b.mlpackage", altered)
    found = diff.structure(a, b)
    [difference] = found.differences
    assert (difference.kind, difference.parameter, found.a[difference.a].name) == ("weight", "weight", "dense")
    numbers = difference.numbers
    assert (numbers.elements, numbers.different, numbers.at) == (64, 1, [3, 5])
    assert numbers.largest == pytest.approx(0.5) and numbers.first == pytest.approx(float(WEIGHT[3, 5]))
    noise = np.square(altered - WEIGHT).sum()
    assert numbers.snr == pytest.approx(10 * math.log10(np.square(WEIGHT).sum() / noise), abs=1e-3)


def test_the_first_value_that_differs(tmp_path):
    a, b = net(tmp_path / "a.mlpackage"), net(tmp_path / "b.mlpackage", scale=3.0)
    x = np.linspace(-1, 1, 8, dtype=np.float32)[None]
    values = diff.values(a, b, inputs=[{"x": x}])
    assert not values.same
    assert values.first.operation == "scaled"
    hidden = np.maximum(x @ WEIGHT.T, 0)
    assert values.first.difference == pytest.approx(hidden.max(), rel=1e-5)
    assert values.first.snr == pytest.approx(20 * math.log10(2), abs=1e-4)
    assert [v.operation for v in values.trail] == ["scaled", "sum"]
    [output] = values.outputs
    signal = np.square(hidden * 3 + x).sum() / np.square(hidden).sum()
    assert output.snr == pytest.approx(10 * math.log10(signal), abs=1e-3) or output.snr == pytest.approx(
        10 * math.log10(np.square(hidden * 2 + x).sum() / np.square(hidden).sum()), abs=1e-3)
    assert values.facts["first"]["operationsOfA"][0]["type"] == "mul"


def test_other_settings(tmp_path):
    values = diff.values(net(tmp_path / "a.mlpackage"), device="reference", runs=2)
    assert values.same and values.predictions == 2


def test_mistakes(tmp_path):
    a = net(tmp_path / "a.mlpackage")
    with pytest.raises(InvalidArgumentError, match="expected another model"):
        diff.values(a)
    with pytest.raises(InvalidArgumentError, match="no input 'z'"):
        diff.values(a, a, inputs=[{"z": np.zeros(3)}])
    with pytest.raises(NotFoundError, match="absent"):
        diff.structure(a, str(tmp_path / "absent.mlpackage"))
    with pytest.raises(NotFoundError, match="main2"):
        diff.structure(a, a, function_a="main2")
    with pytest.raises(moka.Error, match="absent"):
        diff.values(a, str(tmp_path / "absent.mlpackage"))


def custom(path, alpha, label="dog", weights=(), class_name="Mine"):
    features = [{"x": build.array((4,))}, {"y": build.array((4,))}]
    spec = build.model("neuralNetwork", *features, version=4, shortDescription=label)
    layer = spec.neuralNetwork.layers.add(name="own", input=["x"], output=["y"])
    layer.custom = {"className": class_name, "parameters": {"alpha": {"doubleValue": alpha}}}
    for values in weights:
        layer.custom.weights.add(**({"rawValue": values} if isinstance(values, bytes) else {"floatValue": values}))
    return build.Source(spec).save(str(path))


def test_fields_of_models_that_cannot_be_imported(tmp_path):
    a, b = custom(tmp_path / "a.mlmodel", 0.5), custom(tmp_path / "b.mlmodel", 0.25, "cat")
    found = diff.structure(a, b)
    assert not found.same and "'Mine'" in found.fault
    [field] = found.fields
    assert (field.first, field.second) == ("0.5", "0.25") and field.what.startswith("neuralNetwork.layers[0 'own'].custom.parameters")
    assert [(m.what, m.first, m.second) for m in found.metadata] == [("description", "dog", "cat")]
    assert diff.structure(a, a).same


def test_values_of_the_same_size(tmp_path):
    a = custom(tmp_path / "a.mlmodel", 0.5, weights=[bytes(12), [1, 2, 3]])
    b = custom(tmp_path / "b.mlmodel", 0.5, weights=[b"twelve bytes", [1, 5, 6]])
    told = [(f.first, f.second) for f in diff.structure(a, b).fields]
    assert told == [("12 bytes", "12 bytes, differ"), ("3 values", "3 values, 2 of them differ")]


def test_labels(tmp_path):
    made = [edit.set_labels(net(tmp_path / f"{i}.mlpackage"), [f"label {k}" for k in range(7)] + [last]) for i, last in enumerate("ab")]
    found = diff.structure(*made)
    assert not found.same and [d.parameter for d in found.differences] == ["classes"]
    assert [(f.what, f.first, f.second) for f in found.interface] == [("class label 7", "a", "b")]


@moka.register_layer("TimesAlpha")
class TimesAlpha:
    def __init__(self, parameters):
        self.alpha = np.float32(parameters["alpha"])

    def output_shapes(self, shapes):
        return shapes

    def evaluate(self, inputs, outputs):
        outputs[0][...] = self.alpha * inputs[0]


def test_a_layer_of_this_process(tmp_path, no_process):
    a, b = (custom(tmp_path / f"{alpha}.mlmodel", alpha, class_name="TimesAlpha") for alpha in (0.5, 0.25))
    inputs = [{"x": np.array([1, -8, 2, 4], np.float32)}]
    assert diff.values(a, a, inputs=inputs).same
    values = diff.values(a, b, inputs=inputs)
    assert values.first.operation == "own" and values.first.difference == 2
    with pytest.raises(moka.UnsupportedError, match="'Mine'"):
        diff.values(custom(tmp_path / "mine.mlmodel", 1), a)


def test_a_layer_of_a_plugin(tmp_path, no_process):
    plugin = tmp_path / "mine.py"
    plugin.write_text(
        "import moka\n\n@moka.register_layer('Mine')\nclass Mine:\n    def __init__(self, parameters):\n        pass\n"
        "    def output_shapes(self, shapes):\n        return shapes\n    def evaluate(self, inputs, outputs):\n        outputs[0][...] = inputs[0]\n"
    )
    a, other = custom(tmp_path / "a.mlmodel", 1), custom(tmp_path / "b.mlmodel", 1, class_name="TimesAlpha")
    before = moka.registered_layers()
    inputs = [{"x": np.array([1, -8, 2, 4], np.float32)}]
    assert diff.values(a, a, plugins=[plugin]).same
    assert diff.values(a, other, inputs=inputs, plugins=[plugin]).first is None  # TimesAlpha is of this process
    assert moka.registered_layers() == before and "Mine" not in before
    with pytest.raises(moka.UnsupportedError, match="'Mine'"):
        diff.values(a, a)


def test_encrypted_models(tmp_path):
    a, b = net(tmp_path / "a.mlpackage"), net(tmp_path / "b.mlpackage", scale=3.0)
    pair = moka.encryption.generate_key_pair()
    for path in (a, b):
        moka.encryption.encrypt_model(path, path + ".age", recipients=[pair.recipient])
    assert diff.values(a, a + ".age", key=pair.identity).same
    assert diff.values(a + ".age", b + ".age", key=pair.identity).first.operation == "scaled"
    assert not diff.values(a + ".age", b + ".age", key=pair.identity, function="main").same
    with pytest.raises(moka.Error, match="key|identity"):
        diff.values(a + ".age", b)


def test_arguments_that_do_not_fit(tmp_path):
    a = net(tmp_path / "a.mlpackage")
    with pytest.raises(InvalidArgumentError, match="tolerance: expected a number of at least 0"):
        diff.values(a, a, tolerance=-1)
    with pytest.raises(InvalidArgumentError, match="range of 'z': the model has no array input of that name; it takes 'x'"):
        diff.values(a, a, ranges={"z": (0, 1)})
    with pytest.raises(InvalidArgumentError, match="precision: expected"):
        diff.values(a, precision="some")

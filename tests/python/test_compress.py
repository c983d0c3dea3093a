# SPDX-License-Identifier: Apache-2.0
"""moka.compress: what it makes is smaller, predicts, and opens in coremltools."""

import math

import numpy as np
import pytest

from moka import InvalidArgumentError, UnsupportedError, build, compress

RNG = np.random.default_rng(3)
WEIGHTS = [RNG.standard_normal((64, 64)).astype(np.float32) for _ in range(3)]


@pytest.fixture
def net(tmp_path):
    """Three linear layers of 64 x 64."""
    p = build.Program("ios18")
    x = p.input("x", build.array((1, 64)))
    for i, weight in enumerate(WEIGHTS):
        x = p.linear(x=x, weight=weight, name=f"layer_{i}")
        x = p.relu(x=x) if i < 2 else x
    p.output(x, "y")
    return p.save(str(tmp_path / "net.mlpackage"))


def rows(count, seed=0):
    rng = np.random.default_rng(seed)
    return [{"x": rng.standard_normal((1, 64)).astype(np.float32)} for _ in range(count)]


def predicted(model, inputs):
    return np.concatenate([model.predict(row)["y"] for row in inputs])


def expected(inputs):
    x = np.concatenate([row["x"] for row in inputs])
    for i, weight in enumerate(WEIGHTS):
        x = x @ weight.T
        x = np.maximum(x, 0) if i < 2 else x
    return x


def decibels(signal, other):
    return 10 * math.log10(np.square(signal, dtype=np.float64).sum() / np.square(signal - other, dtype=np.float64).sum())


def test_integers_are_those_of_numpy(net):
    made = compress.weights(net)
    assert [w.form for w in made.weights] == ["linear 8 bits, channel"] * 3
    inputs = rows(4)
    x = np.concatenate([row["x"] for row in inputs])
    for i, (weight, facts) in enumerate(zip(WEIGHTS, made.weights)):
        scale = np.abs(weight).max(1, keepdims=True).astype(np.float64) / 127
        decoded = (np.clip(np.rint(weight / scale), -128, 127) * scale.astype(np.float32)).astype(np.float32)
        assert facts.signal_to_noise == pytest.approx(decibels(weight, decoded), abs=0.1)
        assert (facts.shape, facts.bytes_before) == ([64, 64], weight.nbytes)
        x = x @ decoded.T
        x = np.maximum(x, 0) if i < 2 else x
    np.testing.assert_allclose(predicted(made.model.load(), inputs), x, rtol=1e-4, atol=1e-3)


def test_forms_of_some_weights(net):
    layers = {"layer_1*": compress.palette(4, "group", group_size=16), "layer_2*": compress.unchanged()}
    made = compress.weights(build.open(net), compress.linear(4, "block", block_size=32), layers=layers)
    names = {w.name.split("_")[1]: (w.form, w.signal_to_noise) for w in made.weights}
    assert "linear 4 bits" in names["0"][0] and "32" in names["0"][0]
    assert "palette 4 bits" in names["1"][0] and "16" in names["1"][0]
    assert names["2"] == ("", math.inf)


def test_pruning(net):
    made = compress.weights(net, compress.pruned(n_of_m=(2, 4)), layers={"layer_0*": compress.pruned(compress.palette(6), sparsity=0.5)})
    parts = [w.bytes_after / w.bytes_before for w in made.weights]
    assert parts[0] < 0.25 and all(0.5 < part < 0.6 for part in parts[1:])
    two_of_four = WEIGHTS[1].reshape(64, 16, 4).copy()
    np.put_along_axis(two_of_four, np.argsort(np.abs(two_of_four), -1)[..., :2], 0, -1)
    assert made.weights[1].signal_to_noise == pytest.approx(decibels(WEIGHTS[1], two_of_four.reshape(64, 64)), abs=1e-3)


def test_a_search_holds_its_goal_on_other_inputs(net):
    found = compress.search(net, signal_to_noise=30, inputs=rows(12))
    assert found.size_after < 0.5 * found.size_before
    assert found.bound >= 30 and found.separate
    assert found.measured_inputs + found.checked_inputs == 12
    model = found.model.load()
    for row in rows(10, seed=99):
        assert decibels(expected([row]), predicted(model, [row])) >= 30
    sizes = [point.size for point in found.curve]
    assert sizes == sorted(sizes, reverse=True)
    assert sum(point.measured is not None for point in found.curve) >= 2
    assert {trial.form for trial in found.sensitivity[0].trials} >= {"linear 8 bits, channel"}


def test_a_search_by_size(net):
    found = compress.search(net, share=0.3, forms=[compress.linear(8), compress.palette(4), compress.palette(2)])
    assert found.size_after <= 0.3 * found.size_before
    assert {w.form for w in found.weights} <= {"", "linear 8 bits, channel", "palette 4 bits, tensor", "palette 2 bits, tensor"}
    by_bytes = compress.search(build.open(net), size=found.size_after, forms=[compress.linear(8), compress.palette(4)])
    assert by_bytes.size_after <= found.size_after


def test_mistakes(net):
    with pytest.raises(InvalidArgumentError, match="one goal"):
        compress.search(net)
    with pytest.raises(InvalidArgumentError, match="share"):
        compress.search(net, share=0.4, size=100)
    with pytest.raises(UnsupportedError, match="smallest"):
        compress.search(net, share=0.001)
    with pytest.raises(InvalidArgumentError, match="tensor, channel, .*'row'"):
        compress.linear(8, "row")
    with pytest.raises(InvalidArgumentError, match="got group"):
        compress.weights(net, compress.linear(8, "group"))
    with pytest.raises(InvalidArgumentError, match="'z'"):
        compress.search(net, share=0.4, inputs=[{"z": np.zeros(3)}])
    skipped = compress.weights(net, compress.linear(5)).weights[0]
    assert skipped.form == "" and skipped.skipped == "expected 4 or 8 bits, got 5"


def test_coremltools_opens_what_was_made(net, tmp_path):
    coremltools = pytest.importorskip("coremltools")
    path = compress.weights(net, compress.palette(4)).model.save(str(tmp_path / "small.mlpackage"))
    model = coremltools.models.MLModel(path)
    function = model.get_spec().mlProgram.functions["main"]
    types = [op.type for op in function.block_specializations["CoreML8"].operations]
    assert types.count("constexpr_lut_to_dense") == 3


def edges(path):
    """What operations read from a dequantize: the quantized value, its scale and its zero point."""
    from coremltools.models import MLModel
    from coremltools.proto import MIL_pb2

    (function,) = MLModel(path, skip_model_load=True).get_spec().mlProgram.functions.values()
    (block,) = function.block_specializations.values()
    producer = {output.name: op for op in block.operations for output in op.outputs}

    def number(op, name):
        if name not in op.inputs:
            return 0.0
        value = producer[op.inputs[name].arguments[0].name].attributes["val"]
        tensor, element = value.immediateValue.tensor, MIL_pb2.DataType.Name(value.type.tensorType.dataType)
        return float(np.frombuffer(tensor.bytes.values, {"FLOAT16": np.float16, "INT8": np.int8, "UINT8": np.uint8}[element])[0])

    out = {}
    for op in block.operations:
        for key, argument in op.inputs.items():
            for i, binding in enumerate(argument.arguments):
                read = producer.get(binding.name)
                if read is not None and read.type == "dequantize":
                    quantize = producer[read.inputs["input"].arguments[0].name]
                    out[op.outputs[0].name, key, i] = (quantize.inputs["input"].arguments[0].name, number(quantize, "scale"), number(quantize, "zero_point"))
    return out


def test_activations_are_those_of_coremltools(tmp_path):
    ct = pytest.importorskip("coremltools")
    import coremltools.optimize.coreml as cto
    from coremltools.converters.mil import Builder as mb

    import moka.coremltools  # noqa: F401

    def weight(*shape):
        return (RNG.standard_normal(shape) * 0.3).astype(np.float32)

    @mb.program(input_specs=[mb.TensorSpec(shape=(1, 4, 8, 8))], opset_version=ct.target.iOS17)
    def program(x):
        a = mb.relu(x=mb.conv(x=x, weight=weight(8, 4, 3, 3), pad_type="same", name="c1"), name="r1")
        b = mb.conv(x=a, weight=weight(8, 8, 3, 3), pad_type="same", name="c2")
        s = mb.max_pool(x=mb.abs(x=mb.add(x=a, y=mb.tanh(x=b), name="s")), kernel_sizes=[2, 2], strides=[2, 2], pad_type="valid", name="p")
        c = mb.add(x=mb.concat(values=(s, mb.sigmoid(x=s, name="g")), axis=1, name="c"), y=np.float32(1.5), name="plus")
        return mb.softmax(x=mb.linear(x=mb.reshape(x=c, shape=(1, -1), name="f"), weight=weight(10, 256) * 0.01, name="l"), axis=-1, name="y")

    source = ct.convert(program, minimum_deployment_target=ct.target.iOS17)
    path = str(tmp_path / "source.mlpackage")
    source.save(path)
    row = {"x": weight(1, 4, 8, 8)}
    for mode in ("linear_symmetric", "linear"):
        config = cto.OptimizationConfig(global_config=cto.OpLinearQuantizerConfig(mode=mode))
        theirs, ours = str(tmp_path / f"{mode}_theirs.mlpackage"), str(tmp_path / f"{mode}_ours.mlpackage")
        cto.linear_quantize_activations(source, config, [dict(row)]).save(theirs)
        made = compress.activations(path, [row], compress.unchanged(), symmetric=mode == "linear_symmetric")
        made.model.save(ours)
        got, expected = edges(ours), edges(theirs)
        assert set(got) == set(expected) and len(got) > 6
        for place, (value, scale, zero) in expected.items():
            if got[place][0] == value and place[0].startswith(("c1", "c2", "f", "l")):  # around additions coremltools scales both sides
                assert got[place][1] == pytest.approx(scale, rel=2e-3), place
            assert got[place][0] == value
        assert len(made.activations) == len({value for value, _, _ in expected.values()})
        answers = [ct.models.MLModel(p).predict(row)["y"] for p in (path, ours, theirs)]
        assert decibels(answers[0], answers[1]) > decibels(answers[0], answers[2]) - 1
        assert decibels(answers[1], answers[2]) > 20


def test_activations_and_weights(net):
    made = compress.activations(net, rows(8))
    assert [w.form for w in made.weights] == ["linear 8 bits, channel"] * 3
    assert [a.zero_point for a in made.activations] == [0] * len(made.activations)
    other = rows(5, seed=9)
    assert decibels(expected(other), predicted(made.model.load(), other)) > 20
    assert made.signal_to_noise > 20
    with pytest.raises(InvalidArgumentError, match="inputs"):
        compress.activations(net, [])


FORMS = {
    "linear8": ("ios16", compress.linear(8)),
    "linear8_tensor": ("ios16", compress.linear(8, "tensor", symmetric=False)),
    "palette4": ("ios16", compress.palette(4)),
    "sparse": ("ios16", compress.pruned(sparsity=0.5)),
    "linear4_blocks": ("ios18", compress.linear(4, "block", block_size=16, symmetric=False)),
    "palette3_groups": ("ios18", compress.palette(3, "group", group_size=16)),
    "palette_vectors": ("ios18", compress.palette(4, vector_size=4)),
    "palette_scales": ("ios18", compress.palette(4, per_channel_scale=True)),
    "sparse_linear": ("ios18", compress.pruned(compress.linear(8), n_of_m=(2, 4))),
    "sparse_palette": ("ios18", compress.pruned(compress.palette(4), sparsity=0.3)),
}


def constants(path):
    """The weights of linear operations by the operation's result, as coremltools reads them."""
    from coremltools.models import MLModel
    from coremltools.converters.mil.frontend.milproto.load import load

    model = MLModel(path, skip_model_load=True)
    spec = model.get_spec()
    program = load(spec, spec.specificationVersion, model.weights_dir)
    operations = program.functions["main"].operations
    assert not [op for op in operations if op.op_type.startswith("constexpr_")]
    return {op.outputs[0].name: op.weight.val for op in operations if op.op_type == "linear"}


@pytest.mark.parametrize("name", FORMS)
def test_decompressed_weights_are_those_of_coremltools(name, tmp_path):
    ct = pytest.importorskip("coremltools")
    import coremltools.optimize.coreml as cto

    target, form = FORMS[name]
    p = build.Program(target)
    x = p.input("x", build.array((1, 64)))
    for i, weight in enumerate(WEIGHTS):
        x = p.linear(x=x, weight=weight, name=f"layer_{i}")
    p.output(x, "y")
    plain, small, ours, theirs = (str(tmp_path / f"{n}.mlpackage") for n in ("plain", "small", "ours", "theirs"))
    p.save(plain)
    compress.weights(plain, form).model.save(small)
    made = compress.decompress(small)
    made.model.save(ours)
    assert [(w.form, w.shape, w.bytes_after) for w in made.weights] == [("float32", [64, 64], 16384)] * 3
    assert all(w.bytes_before < w.bytes_after for w in made.weights)
    cto.decompress_weights(ct.models.MLModel(small, skip_model_load=True)).save(theirs)
    got, expected = constants(ours), constants(theirs)
    assert len(got) == 3
    for (_, mine), (_, other) in zip(sorted(got.items()), sorted(expected.items())):
        np.testing.assert_array_equal(mine, other)

    stays = compress.weights(small).weights
    assert len(stays) == 3 and all("compressed already" in w.skipped and w.form == "" for w in stays)
    again = compress.weights(small, compress.linear(8), decompress=True)
    assert [w.form for w in again.weights] == ["linear 8 bits, channel"] * 3
    assert again.weights[0].bytes_before == made.weights[0].bytes_before


def sparse_parts(path):
    """The values, mask and shape of sparse weights by the result of the operation that reads them, and the results of the other ones."""
    from coremltools.models import MLModel
    from coremltools.converters.mil.frontend.milproto.load import load

    model = MLModel(path, skip_model_load=True)
    spec = model.get_spec()
    operations = load(spec, spec.specificationVersion, model.weights_dir).functions["main"].operations
    out = {}
    for op in operations:
        weight = {"conv": "weight", "linear": "weight", "gather": "x", "matmul": "y"}.get(op.op_type)
        source = weight and op.inputs[weight].op
        if source is not None and source.op_type == "constexpr_sparse_to_dense":
            out[op.outputs[0].name] = [source.nonzero_data.val, source.mask.val] + ([source.shape.val] if "shape" in source.inputs else [])
        elif source is not None:
            out[op.outputs[0].name] = None
    return out


@pytest.mark.skipif(tuple(map(int, np.__version__.split(".")[:2])) < (2, 4), reason="older numpy ranks halves in float16")
@pytest.mark.parametrize("precision", ["FLOAT16", "FLOAT32"])
@pytest.mark.parametrize("target", ["iOS16", "iOS18"])
def test_pruned_weights_are_those_of_coremltools(target, precision, tmp_path):
    ct = pytest.importorskip("coremltools")
    import coremltools.optimize.coreml as cto
    from coremltools.converters.mil import Builder as mb

    rng = np.random.default_rng(11)

    def weight(*shape):
        return (rng.standard_normal(shape) * 0.1).astype(np.float32)

    table = np.round(weight(300, 64) * 20) / 20  # many equal values

    @mb.program(input_specs=[mb.TensorSpec(shape=(1, 24, 6, 6)), mb.TensorSpec(shape=(5,), dtype=ct.converters.mil.mil.types.int32)])
    def program(x, i):
        x = mb.conv(x=x, weight=weight(50, 24, 3, 3), pad_type="same", name="plain")
        x = mb.conv(x=x, weight=weight(400, 1, 3, 3), groups=50, pad_type="same", name="depthwise")
        x = mb.conv(x=x, weight=weight(30, 400, 1, 1), pad_type="same", name="point")
        x = mb.linear(x=mb.reshape(x=x, shape=(1, -1)), weight=weight(310, 1080), name="large")
        x = mb.matmul(x=x, y=weight(310, 64), name="product")
        return mb.add(x=mb.linear(x=x, weight=weight(64, 64), name="small"), y=mb.gather(x=table, indices=i, axis=0, name="table"), name="y")

    source = ct.convert(program, minimum_deployment_target=getattr(ct.target, target), compute_precision=getattr(ct.precision, precision))
    path, theirs, ours = (str(tmp_path / f"{n}.mlpackage") for n in ("source", "theirs", "ours"))
    source.save(path)
    cases = [(cto.OpMagnitudePrunerConfig(target_sparsity=s), {"sparsity": s}) for s in (0.3, 0.5, 1.0)]
    cases += [(cto.OpMagnitudePrunerConfig(target_sparsity=0.6, block_size=7), {"sparsity": 0.6, "block": 7})]
    cases += [(cto.OpMagnitudePrunerConfig(n_m_ratio=r), {"n_of_m": r}) for r in ((2, 4), (3, 7))]
    cases += [(cto.OpThresholdPrunerConfig(threshold=t), {"threshold": t}) for t in (0.05, 0.3)]
    cases += [(cto.OpThresholdPrunerConfig(threshold=0.05, minimum_sparsity_percentile=0.2), {"threshold": 0.05, "least_sparsity": 0.2})]
    pruned = 0
    for config, form in cases:
        cto.prune_weights(source, cto.OptimizationConfig(global_config=config)).save(theirs)
        compress.weights(path, compress.pruned(**form)).model.save(ours)
        got, expected = sparse_parts(ours), sparse_parts(theirs)
        assert {k for k, v in got.items() if v is None} == {k for k, v in expected.items() if v is None}, form
        assert len(got) == len(expected) == 7
        for name, parts in expected.items():
            pruned += parts is not None
            for mine, other in zip(got[name] or [], parts or [], strict=True):
                np.testing.assert_array_equal(mine, other, err_msg=f"{form} {name}", strict=True)
    assert pruned > 40

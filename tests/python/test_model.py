# SPDX-License-Identifier: Apache-2.0
"""moka.Model: loading, predicting, describing."""

import asyncio
import concurrent.futures
import gc
import inspect
import mmap
import pickle
import subprocess
import sys

import numpy as np
import pytest
from conftest import program, relu

import moka
from moka import build


def test_predicts_with_arrays_of_any_type_and_strides(numbers):
    model = relu()
    expected = np.maximum(numbers, 0)
    for given in (
        numbers,
        numbers.astype(np.float64),
        numbers.astype(np.float16),
        np.asfortranarray(numbers),
        np.repeat(numbers, 2, axis=1)[:, ::2],
        np.ascontiguousarray(numbers[:, ::-1])[:, ::-1],
        numbers.tolist(),
        memoryview(numbers),
    ):
        out = model.predict({"x": given})["y"]
        assert out.dtype == np.float32 and out.shape == (1, 3)
        np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(model.predict({"x": np.array([[1, -2, 3]], np.int8)})["y"], [[1, 0, 3]])


def test_float16_goes_in_and_out_untouched():
    out = relu("fp16").predict({"x": np.array([[-1, 0.1, 3]], np.float16)})["y"]
    assert out.dtype == np.float16
    np.testing.assert_array_equal(out, np.array([[0, 0.1, 3]], np.float16))


def test_outputs_own_their_memory_and_survive_the_model(numbers):
    model = relu()
    out = model.predict({"x": numbers})["y"]
    kept = out.copy()
    model.predict({"x": numbers + 5})
    del model
    np.testing.assert_array_equal(out, kept)
    assert out.flags.writeable


def test_output_backings_are_written_in_place(numbers):
    model = relu()
    backing = np.full((1, 3), 7, np.float32)
    out = model.predict({"x": numbers}, outputs={"y": backing})
    assert out["y"] is backing
    np.testing.assert_array_equal(backing, np.maximum(numbers, 0))
    strided = np.zeros((1, 6), np.float32)
    model.predict({"x": numbers}, outputs={"y": strided[:, ::2]})
    np.testing.assert_array_equal(strided, [[0, 0, 0.5, 0, 2, 0]])
    frozen = np.zeros((1, 3), np.float32)
    frozen.flags.writeable = False
    with pytest.raises(moka.InvalidArgumentError, match="output 'y': expected a writable array, got a read-only one"):
        model.predict({"x": numbers}, outputs={"y": frozen})
    with pytest.raises(ValueError, match="'y'.*room for"):
        model.predict({"x": numbers}, outputs={"y": np.zeros((3, 1), np.float32)})


def test_batches_keep_their_order(numbers):
    outs = relu().predict([{"x": numbers + i} for i in range(5)])
    for i, out in enumerate(outs):
        np.testing.assert_array_equal(out["y"], np.maximum(numbers + i, 0))


def test_futures_and_coroutines(numbers):
    model = relu()

    async def all_of_them():
        return await asyncio.gather(*(model.predict_async({"x": numbers * i}) for i in range(4)))

    for i, out in enumerate(asyncio.run(all_of_them())):
        np.testing.assert_array_equal(out["y"], np.maximum(numbers * i, 0))
    np.testing.assert_array_equal(model.predict_future({"x": numbers}).result()["y"], np.maximum(numbers, 0))


def test_many_threads_on_one_model(models):
    model = moka.Model(models / "basic_pitch" / "nmp.mlpackage")
    inputs = [model.random_inputs(seed) for seed in range(4)]
    expected = [model.predict(x) for x in inputs]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for i, out in enumerate(pool.map(lambda n: model.predict(inputs[n % 4]), range(16))):
            for name, value in out.items():
                np.testing.assert_array_equal(value, expected[i % 4][name])


def test_states():
    model = moka.Model.from_mil(
        program(
            "tensor<fp32, [2]> x, state<tensor<fp16, [2]>> s",
            """tensor<fp16, [2]> old = read_state(input = s)[name = string("r")];
               tensor<fp16, [2]> h = cast(dtype = string("fp16"), x = x)[name = string("h")];
               tensor<fp16, [2]> sum = add(x = old, y = h)[name = string("sum")];
               write_state(data = sum, input = s)[name = string("w")];
               tensor<fp32, [2]> y = cast(dtype = string("fp32"), x = sum)[name = string("y")];""",
            "y",
        )
    )
    state, other = model.new_state(), model.state()
    assert state.names == ["s"]
    for i in range(1, 4):
        np.testing.assert_array_equal(model.predict({"x": [1, 2]}, state=state)["y"], [i, 2 * i])
    np.testing.assert_array_equal(state.read("s"), np.array([3, 6], np.float16))
    np.testing.assert_array_equal(other.read("s"), [0, 0])
    for value in ("text", None):
        with pytest.raises(TypeError):
            state.write("s", value)
    state.write("s", np.array([10.0, 20.0]))
    np.testing.assert_array_equal(model.predict({"x": [1, 2]}, state=state)["y"], [11, 22])
    with pytest.raises(moka.NotFoundError):
        state.read("t")
    with pytest.raises(ValueError, match="new_state"):
        model.predict({"x": [1, 2]})


def test_description_prints_and_renders(models):
    model = moka.Model(models / "silero_vad" / "unified_int8.mlpackage")
    text = repr(model.description)
    assert "mlProgram" in text and "audio_input" in text and "MultiArray (Float32" in text
    html = model.description._repr_html_()
    assert html.startswith("<table>") and "audio_input" in html
    x = model.description.inputs[0]
    assert x.type == "MultiArray" and x.dtype == "float32" and isinstance(x.shape, tuple)


def test_explain_and_structure(models):
    model = moka.Model(models / "basic_pitch" / "nmp.mlpackage")
    plan = model.explain(measure=True)
    assert plan.measured_seconds > 0 and any(p.device == "cpu" for p in plan.operations)
    assert all(p.refusals or p.device != "reference" for p in plan.operations)
    body = model.structure().functions[0].body
    assert {"const", "conv"} <= {op.type for op in body.operations}
    assert "func main<ios15>" in model.mil()


def test_kernels_by_measured_times_and_pins(models, tmp_path):
    path, cache = models / "basic_pitch" / "nmp.mlpackage", tmp_path / "kernels.json"
    model = moka.Model(path, kernel_cache=cache, measure_kernels="missing", threads=1)
    assert model.kernel_cache_file == str(cache)
    measured = [p for p in model.explain().operations if p.chosen_by == "measured"]
    assert measured and all(p.kernel in p.candidates and p.shape and p.kernel_by_rule for p in measured)
    again = moka.Model(path, kernel_cache=cache, threads=1).explain().operations
    assert {p.name: p.kernel for p in measured}.items() <= {p.name: p.kernel for p in again if p.chosen_by == "cache"}.items()
    name = measured[0].name
    pinned = moka.Model(path, kernel_cache="off", pinned_kernels={name: "reference"}).explain().operations
    assert [p.kernel for p in pinned if p.name == name and p.chosen_by == "pin"] == ["reference"]
    with pytest.raises(moka.NotFoundError, match="does not exist; those for conv are"):
        moka.Model(path, pinned_kernels={name: "cpu.fast"})
    with pytest.raises(ValueError, match="measure_kernels"):
        moka.Model(path, measure_kernels="some")


def test_pins_of_devices(models, caplog):
    path = models / "basic_pitch" / "nmp.mlpackage"
    plan = moka.Model(path, pins={"*": "cpu", "type:conv": "reference"}).explain()
    assert {p.device for p in plan.operations if p.type == "conv"} == {"reference"}
    assert plan.rates == "table" and plan.regions == []
    device = moka.Model(path, pins="type:conv=simulator").explain()
    assert {r.device for r in device.regions} == {"simulator"}
    region = device.regions[0]
    assert repr(region) == (
        f"<moka.PlannedRegion of {region.operations} operation{'' if region.operations == 1 else 's'} on simulator: "
        f"{region.upload_bytes} bytes in, {region.download_bytes} out>")
    assert repr(device.cost).startswith(f"<moka.PlannedCost compute {device.cost.compute:.3g} s, transfers ")
    conv = next(p for p in device.operations if p.type == "conv")
    assert [b.device for b in conv.bids] == ["cpu", "simulator"] and conv.region == 0
    transfers = [p for p in device.operations if p.type == "transfer"]
    assert transfers and all(p.bytes > 0 for p in transfers) and any(p.reason for p in transfers)
    assert repr(device.pins) == f"[<moka.PlannedPin type:conv=simulator: {device.pins[0].matched} operations>]"
    text = "pin 'type:convolution=cpu' matches no operation; did you mean 'type:conv'\\?"
    with pytest.raises(moka.NotFoundError, match=text):
        moka.Model(path, pins={"type:convolution": "cpu"}, strict=True)
    unused = moka.Model(path, pins={"type:convolution": "cpu"}).explain()
    assert [r.getMessage() for r in caplog.records if r.name == "moka"] == [unused.pins[0].note]
    assert [(p.matched, p.decided) for p in unused.pins] == [(0, 0)] and unused.pins[0].note in {r.text for r in unused.remarks}
    with pytest.raises(moka.NotFoundError, match="got 'tpu'"):
        moka.Model(path, pins={"*": "tpu"})
    with pytest.raises(moka.InvalidArgumentError, match="expected OPERATIONS=DEVICE"):
        moka.Model(path, pins="conv")


def test_packed_weights_are_kept(models, tmp_path):
    path = models / "basic_pitch" / "nmp.mlpackage"
    first = moka.Model(path, cache=tmp_path, threads=1)
    file, times, inputs = first.cache_file, first.load_times, first.random_inputs()
    expected = first.predict(inputs)
    del first
    again = moka.Model(path, cache=tmp_path, threads=1)
    assert file == again.cache_file
    assert times.cached_bytes == 0 < again.load_times.cached_bytes
    assert again.explain().cached_bytes == again.load_times.cached_bytes
    assert not moka.Model(path, cache="off").cache_file
    for name, value in expected.items():
        np.testing.assert_array_equal(again.predict(inputs)[name], value)


def two_functions(path):
    """Both multiply by a weight of 2 MiB; `positive` drops what is negative."""
    weight = (np.arange(512 * 1024) % 7 - 3).reshape(512, 1024).astype(np.float32)
    program = build.Program("ios18")
    for name in ("plain", "positive"):
        program.function(name)
        y = program.linear(x=program.input("x", build.array((8, 1024))), weight=weight)
        program.output(program.relu(x=y) if name == "positive" else y, "y")
    program.save(path)
    return weight


def test_functions_of_one_file_share_weights(tmp_path):
    path = tmp_path / "two.mlpackage"
    weight = two_functions(path)
    plain, positive = (moka.Model(path, function=f, pack_while_loading=True) for f in ("plain", "positive"))
    assert plain.load_times.packed_bytes >= weight.nbytes and plain.load_times.shared_bytes == 0
    assert positive.load_times.packed_bytes == 0
    assert positive.load_times.shared_bytes == plain.load_times.packed_bytes
    assert ", shared 2" in str(positive.load_times)
    memory = positive.explain().memory
    assert (memory.packed, memory.shared) == (0, plain.load_times.packed_bytes)
    x = (np.arange(8 * 1024) % 5).reshape(8, 1024).astype(np.float32)
    for model, expected in ((plain, x @ weight.T), (positive, np.maximum(x @ weight.T, 0))):
        np.testing.assert_array_equal(model.predict({"x": x})["y"], expected)


def test_intermediates_show_every_operation():
    model = moka.Model.from_mil(
        program(
            "tensor<fp32, [2, 3]> x",
            """tensor<fp32, [2, 3]> a = relu(x = x)[name = string("a")];
               tensor<int32, [1]> s = const()[name = string("s"), val = tensor<int32, [1]>([6])];
               tensor<fp32, [6]> b = reshape(x = a, shape = s)[name = string("b")];
               tensor<fp32, [6]> y = exp(x = b)[name = string("y")];""",
            "y",
        )
    )
    x = np.array([[-1, 0, 1], [2, 3, 4]], np.float32)
    seen = {i.value: i.array for i in model.intermediates({"x": x})}
    assert set(seen) == {"a", "b", "y"}
    np.testing.assert_array_equal(seen["a"], np.maximum(x, 0))
    np.testing.assert_array_equal(seen["b"], np.maximum(x, 0).reshape(6))
    np.testing.assert_allclose(seen["y"], np.exp(np.maximum(x, 0).reshape(6)), rtol=1e-6)


def test_networks_that_keep_their_specification(tmp_path):
    def feature(name):
        return {"name": name, "type": {"multiArrayType": {"dataType": "FLOAT32", "shape": [3]}}}

    model = moka.build.Message(
        "Model",
        specificationVersion=4,
        description={"input": [feature("x")], "output": [feature("y")]},
        neuralNetwork={"layers": [{"name": "limit", "input": ["x"], "output": ["y"], "clip": {"minVal": 0, "maxVal": 1}}]},
    )
    asset = moka.ModelAsset(model.serialize())
    with pytest.warns(UserWarning, match=r"layer 'limit' \(clip\): no compiled form is known"):
        folder = moka.compile_model(asset, tmp_path / "m.mlmodelc")
    np.testing.assert_array_equal(moka.Model(folder).predict({"x": np.array([-1, 0.5, 2], np.float32)})["y"], [0, 0.5, 1])
    with pytest.raises(moka.UnsupportedError, match="layer 'limit'"):
        moka.compile_model(asset, tmp_path / "strict.mlmodelc", strict=True)
    assert not (tmp_path / "strict.mlmodelc").exists()


def test_compiled_models_and_assets(models, tmp_path, numbers):
    source = models / "basic_pitch" / "nmp.mlpackage"
    folder = moka.compile_model(source, tmp_path / "m.mlmodelc")
    a, b = moka.Model(source), moka.Model(folder)
    x = a.random_inputs()
    for name, value in a.predict(x).items():
        np.testing.assert_array_equal(value, b.predict(x)[name])
    data = source / "Data" / "com.apple.CoreML"
    asset = moka.ModelAsset(
        next(data.glob("*.mlmodel")).read_bytes(), {"weights/weight.bin": (data / "weights" / "weight.bin").read_bytes()}
    )
    for name, value in moka.Model(asset).predict(x).items():
        np.testing.assert_array_equal(value, a.predict(x)[name])
    with open(data / "weights" / "weight.bin", "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        specification = bytearray(next(data.glob("*.mlmodel")).read_bytes())
        asset = moka.ModelAsset(specification, {"weights/weight.bin": mapped})
        specification.clear()
        model, copy = moka.Model(asset), pickle.loads(pickle.dumps(asset))
        del asset
        with pytest.raises(BufferError):  # the model reads its weights there
            mapped.close()
        for each in (model, moka.Model(copy)):
            for name, value in each.predict(x).items():
                np.testing.assert_array_equal(value, a.predict(x)[name])
        folder = moka.compile_model(copy, tmp_path / "from_memory.mlmodelc")
        np.testing.assert_array_equal(moka.Model(folder).predict(x)[name], value)
        del each, model
        gc.collect()
    with pytest.raises(TypeError, match="specification: expected bytes, got int"):
        moka.ModelAsset(5)
    spec = (models / "sentiment_glm" / "SentimentPolarity.mlmodel").read_bytes()
    assert moka.Model(spec).description.type.startswith("pipeline")


def test_images(models):
    image = pytest.importorskip("PIL.Image")
    model = moka.Model(models / "image_nn" / "MNIST.mlmodel")
    width, height = model.description.inputs[0].image_size
    pixels = np.arange(width * height, dtype=np.uint8).reshape(height, width)
    from_array = model.predict({model.description.inputs[0].name: pixels})
    from_picture = model.predict({model.description.inputs[0].name: image.fromarray(pixels)})
    assert str(from_array) == str(from_picture)
    with pytest.raises(ValueError, match="Image"):
        model.predict({model.description.inputs[0].name: image.new("L", (width + 1, height))})
    with pytest.raises(TypeError, match="CMYK"):
        model.predict({model.description.inputs[0].name: image.new("CMYK", (width, height))})


def test_dlpack(numbers):
    class Foreign:
        """An array of another library."""

        def __dlpack__(self, **kw):
            return numbers.__dlpack__()

        def __dlpack_device__(self):
            return numbers.__dlpack_device__()

    np.testing.assert_array_equal(relu().predict({"x": Foreign()})["y"], np.maximum(numbers, 0))


def test_the_command_line(models):
    done = subprocess.run(
        [sys.executable, "-m", "moka", "inspect", str(models / "basic_pitch" / "nmp.mlpackage")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0 and "MultiArray (Float32 1 x 43844 x 1)" in done.stdout
    wrong = subprocess.run([sys.executable, "-m", "moka", "inspect", "/nowhere.mlmodel"], capture_output=True, text=True)
    assert wrong.returncode == 3 and "/nowhere.mlmodel" in wrong.stderr


def test_everything_public_is_documented():
    for name in moka.__all__:
        thing = getattr(moka, name)
        if inspect.isclass(thing):
            assert thing.__doc__, name
    for name, member in inspect.getmembers(moka.Model, inspect.isfunction):
        if not name.startswith("_"):
            assert member.__doc__, name


def test_variables_choose_precision_and_device(monkeypatch, tmp_path):
    p = moka.build.Program("ios17")
    x = p.input("x", moka.build.array((1,)))
    p.output(p.cast(x=p.cast(x=p.relu(x=x), dtype="fp16"), dtype="fp32"), "y")
    path = p.save(tmp_path / "net.mlpackage")
    value = {"x": np.array([2049], np.float32)}
    assert moka.Model(path).predict(value)["y"] == [2049]
    monkeypatch.setenv("MOKA_PRECISION", "exact")  # float16 has only even numbers from 2048 on
    assert moka.Model(path).predict(value)["y"] == [2048]
    assert moka.Model(path, precision="at_least").predict(value)["y"] == [2049]
    assert moka.Model.from_mil(moka.Model(path).mil()).predict(value)["y"] == [2048]
    monkeypatch.setenv("MOKA_DEVICE", "reference")
    assert {o.device for o in moka.Model(path).explain().operations} == {"reference"}
    assert "cpu" in {o.device for o in moka.Model(path, device="cpu").explain().operations}
    monkeypatch.setenv("MOKA_PRECISION", "half")
    with pytest.raises(ValueError, match="MOKA_PRECISION: expected at_least or exact, got 'half'"):
        moka.Model(path)


def test_explain_names_integers_that_wrap():
    body = """tensor<int16, [3]> a = cast(x = ids, dtype = string("int16"))[name = string("narrow")];
              tensor<int32, [3]> y = cast(x = a, dtype = string("int32"))[name = string("y_op")];"""
    model = moka.Model.from_mil(program("tensor<int32, [3]> ids", body, "y"))

    def remarks(**options):
        return [r.text for r in model.explain(**options).remarks if r.pass_name == "integers"]

    assert "nothing bounds input 'ids'" in remarks()[0]
    assert "40000 becomes -25536" in remarks(ranges={"ids": (0, 40000)})[0]
    assert remarks(ranges={"ids": (0, 32767)}) == []
    with pytest.raises(moka.InvalidArgumentError, match="range of 'id': not an array input"):
        model.explain(ranges={"id": (0, 1)})


def test_parameters_are_replaced_without_loading(tmp_path):
    path = tmp_path / "two.mlpackage"
    weight = two_functions(path)
    model = moka.Model(path, function="plain", parameters=["*weight*"])
    (parameter,) = model.parameters
    assert (parameter.dtype, parameter.shape) == ("float32", list(weight.shape)) and parameter.name in repr(parameter)
    np.testing.assert_array_equal(model.parameter(parameter.name), weight)
    x = (np.arange(8 * 1024) % 5).reshape(8, 1024).astype(np.float32)
    new = np.roll(weight, 1, axis=0)
    replaced = model.with_parameters({parameter.name: new})
    for m, w in ((replaced, new), (model, weight), (pickle.loads(pickle.dumps(replaced)), new)):
        np.testing.assert_array_equal(m.predict({"x": x})["y"], x @ w.T)
    new[:] = 0  # the model has its own copy
    np.testing.assert_array_equal(replaced.parameter(parameter.name), np.roll(weight, 1, axis=0))
    with pytest.raises(moka.NotFoundError, match="'v'"):
        model.with_parameters({"v": new})
    with pytest.raises(ValueError, match="expected shape"):
        model.with_parameters({parameter.name: new[1:]})
    with pytest.raises(TypeError, match="an array of numbers"):
        model.with_parameters({parameter.name: "text"})
    with pytest.raises(moka.NotFoundError, match=r"'head\*'"):
        moka.Model(path, parameters="head*")

# SPDX-License-Identifier: Apache-2.0
"""The drop-in: coremltools predicts on systems where it otherwise cannot."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest

ct = pytest.importorskip("coremltools")
from coremltools.converters.mil import Builder as mb  # noqa: E402

import moka  # noqa: E402


def run(code, **environment):
    env = {**os.environ, **environment}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    return done.returncode, done.stdout, done.stderr


def small():
    @mb.program(input_specs=[mb.TensorSpec(shape=(1, 3))], opset_version=ct.target.iOS17)
    def prog(x):
        return mb.relu(x=x, name="y")

    return ct.convert(prog, convert_to="mlprogram", minimum_deployment_target=ct.target.iOS17)


def test_coremltools_finds_it_without_being_told():
    code = "import coremltools as ct, sys; print(ct.models.model._MLModelProxy is not None, sys.platform)"
    status, out, err = run(code)
    assert (status, out.split()) == (0, ["True", "linux"]) and "_MLModelProxy" not in err
    status, out, err = run(code, MOKA_COREMLTOOLS="off")
    assert (status, out.split()[0]) == (0, "False")
    status, out, _ = run("import sys, numpy; print('moka' in sys.modules, 'coremltools' in sys.modules)")
    assert out.split() == ["False", "False"]


@pytest.mark.parametrize("precision, expected", [("", 2049), ("at_least", 2049), ("exact", 2048)])
def test_exact_precision_rounds_to_float16(monkeypatch, precision, expected):
    @mb.program(input_specs=[mb.TensorSpec(shape=(1,))], opset_version=ct.target.iOS15)
    def prog(x):
        return mb.cast(x=mb.relu(x=mb.cast(x=x, dtype="fp16")), dtype="fp32", name="y")

    monkeypatch.setenv("MOKA_PRECISION", precision)
    assert ct.convert(prog, convert_to="mlprogram").predict({"x": np.array([2049], np.float32)})["y"] == [expected]


@pytest.mark.parametrize("value, got", [([[1, 2**40]], "1099511627776"), ([[1, 3.7]], "3.7")])
def test_integer_inputs_refuse_what_they_cannot_hold(value, got):
    @mb.program(input_specs=[mb.TensorSpec(shape=(1, 2), dtype=ct.converters.mil.mil.types.int32)], opset_version=ct.target.iOS17)
    def prog(ids):
        return mb.add(x=ids, y=1, name="y")

    model = ct.convert(prog, convert_to="mlprogram", minimum_deployment_target=ct.target.iOS17)
    assert model.predict({"ids": np.array([[1.0, 2.0]])})["y"].tolist() == [[2, 3]]
    with pytest.raises(RuntimeError, match=rf"input 'ids': expected whole numbers of type int32, got {got} at \[0, 1\]"):
        model.predict({"ids": np.array(value)})


def test_an_unknown_precision_is_an_error(monkeypatch):
    monkeypatch.setenv("MOKA_PRECISION", "half")
    with pytest.raises(RuntimeError, match="MOKA_PRECISION: expected at_least or exact, got 'half'"):
        small().predict({"x": np.zeros((1, 3), np.float32)})


def test_a_device_by_name(monkeypatch):
    x = {"x": np.array([[1, -2, 3]], np.float32)}
    expected = small().predict(x)
    monkeypatch.setenv("MOKA_DEVICE", "reference")
    model = small()
    for name, value in model.predict(x).items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-6)
    monkeypatch.setenv("MOKA_DEVICE", "abacus")
    with pytest.raises(RuntimeError, match="abacus"):
        small().predict(x)


def test_an_import_by_hand_after_coremltools():
    code = (
        "import coremltools as ct, moka.coremltools\n"
        "assert ct.models.model._MLModelProxy is not None\n"
        "assert ct.models.utils._macos_version() >= (15, 0)"
    )
    status, _, err = run(code, MOKA_COREMLTOOLS="off")
    assert status == 0, err


def test_convert_and_predict():
    model = small()
    out = model.predict({"x": np.array([[-1, 0, 2.5]], np.float32)})
    assert out["y"].dtype == np.float32
    np.testing.assert_array_equal(out["y"], [[0, 0, 2.5]])
    assert len(model.predict([{"x": np.zeros((1, 3))}] * 3)) == 3
    with pytest.raises(RuntimeError, match="'x'"):
        model.predict({"x": np.zeros((1, 4))})
    with pytest.raises(KeyError):
        model.predict({"z": np.zeros((1, 3))})


def test_compiled_models(tmp_path):
    model = small()
    folder = model.get_compiled_model_path()
    assert "func main<ios17>" in open(os.path.join(folder, "model.mil")).read()
    path = str(tmp_path / "m.mlpackage")
    model.save(path)
    compiled = ct.utils.compile_model(path, str(tmp_path / "c.mlmodelc"))
    x = {"x": np.array([[1, -1, 3]], np.float32)}
    expected = model.predict(x)["y"]
    np.testing.assert_array_equal(ct.models.CompiledMLModel(compiled).predict(x)["y"], expected)
    np.testing.assert_array_equal(moka.Model(compiled).predict(x)["y"], expected)
    del model
    assert not os.path.exists(folder)


def two_functions(folder):
    """A package of two functions with one weight of 2 MiB, compiled by coremltools."""
    weight = (np.arange(512 * 1024) % 7 - 3).reshape(512, 1024).astype(np.float32)
    descriptor = ct.utils.MultiFunctionDescriptor()
    for name in ("plain", "positive"):

        @mb.program(input_specs=[mb.TensorSpec(shape=(8, 1024))], opset_version=ct.target.iOS18)
        def prog(x):
            y = mb.linear(x=x, weight=weight, name="y" if name == "plain" else "product")
            return y if name == "plain" else mb.relu(x=y, name="y")

        path = str(folder / f"{name}.mlpackage")
        ct.convert(
            prog, minimum_deployment_target=ct.target.iOS18, compute_precision=ct.precision.FLOAT32, skip_model_load=True
        ).save(path)
        descriptor.add_function(path, "main", name)
    descriptor.default_function_name = "plain"
    ct.utils.save_multifunction(descriptor, str(folder / "two.mlpackage"))
    return str(folder / "two.mlpackage"), weight


def test_functions_share_weights_and_the_compiled_folder(tmp_path):
    path, weight = two_functions(tmp_path)
    time.sleep(0.03)  # a package that changed a moment ago may be changing still
    plain, positive = (ct.models.MLModel(path, function_name=f) for f in ("plain", "positive"))
    x = {"x": (np.arange(8 * 1024) % 5).reshape(8, 1024).astype(np.float32)}
    expected = x["x"] @ weight.T
    for model, answer in ((plain, expected), (positive, np.maximum(expected, 0))):
        for _ in range(8):
            np.testing.assert_array_equal(model.predict(x)["y"], answer)
    proxies = [model.__proxy__ for model in (plain, positive)]
    assert proxies[0]._path == proxies[1]._path
    times = ct.models.MLModel(path, function_name="positive").__proxy__._model.load_times
    assert times.shared_bytes >= weight.nbytes and times.packed_bytes == 0

    # Each model's folder is its own, because callers move it away.
    shared = proxies[0]._path
    folders = [model.get_compiled_model_path() for model in (plain, positive)]
    assert len({shared, *folders}) == 3
    shutil.rmtree(folders[0])
    later = ct.models.MLModel(path, function_name="plain")
    np.testing.assert_array_equal(later.predict(x)["y"], expected)
    copy = ct.models.CompiledMLModel(folders[1], function_name="positive")
    np.testing.assert_array_equal(copy.predict(x)["y"], np.maximum(expected, 0))
    del plain, positive, proxies, model, later
    assert not any(os.path.exists(f) for f in (shared, *folders))


def test_a_package_that_changed_is_compiled_anew(tmp_path):
    path, weight = two_functions(tmp_path)
    time.sleep(0.03)
    before = ct.models.MLModel(path, function_name="plain")
    weights = os.path.join(path, "Data", "com.apple.CoreML", "weights", "weight.bin")
    stat = os.stat(weights)
    with open(weights, "r+b") as f:
        f.seek(f.read().index(weight.tobytes()))
        f.write((2 * weight).tobytes())
    os.utime(weights, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    after = ct.models.MLModel(path, function_name="plain")
    x = {"x": (np.arange(8 * 1024) % 5).reshape(8, 1024).astype(np.float32)}
    np.testing.assert_array_equal(before.predict(x)["y"], x["x"] @ weight.T)
    np.testing.assert_array_equal(after.predict(x)["y"], 2 * (x["x"] @ weight.T))


def test_executorch_moves_the_compiled_folder(tmp_path):
    """ExecuTorch moves the folder next to a metadata.json of its own and packs regular files only."""
    model = small()
    x = {"x": np.array([[1, -1, 3]], np.float32)}
    expected = model.predict(x)["y"]
    moved = tmp_path / "model.mlmodelc"
    shutil.move(model.get_compiled_model_path(), moved)
    np.testing.assert_array_equal(model.predict(x)["y"], expected)
    del model
    files = {str(p.relative_to(moved)) for p in moved.rglob("*") if p.is_file()}
    assert {"coremldata.bin", "model.mil", "metadata.json", "analytics/coremldata.bin"} <= files
    assert not any(p.is_symlink() for p in moved.rglob("*"))
    copy = tmp_path / "copy.mlmodelc"
    for name in files:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_bytes((moved / name).read_bytes())
    shutil.rmtree(moved)
    np.testing.assert_array_equal(ct.models.CompiledMLModel(str(copy)).predict(x)["y"], expected)


def test_a_model_does_not_mind_what_becomes_of_its_file(tmp_path):
    path = str(tmp_path / "m.mlpackage")

    @mb.program(input_specs=[mb.TensorSpec(shape=(1, 2000))], opset_version=ct.target.iOS17)
    def prog(x):
        return mb.linear(x=x, weight=np.ones((10, 2000), np.float32), name="y")

    ct.convert(prog, convert_to="mlprogram", minimum_deployment_target=ct.target.iOS17).save(path)
    model = ct.models.MLModel(path)
    open(os.path.join(path, "Data/com.apple.CoreML/weights/weight.bin"), "wb").close()
    np.testing.assert_allclose(model.predict({"x": np.ones((1, 2000))})["y"], np.full((1, 10), 2000.0))


def test_models_of_hugging_faces_cache(tmp_path):
    """Its files are symbolic links to blobs outside of the package."""
    weights = np.arange(64, dtype=np.float32)

    @mb.program(input_specs=[mb.TensorSpec(shape=(1, 64))], opset_version=ct.target.iOS17)
    def prog(x):
        return mb.add(x=x, y=weights, name="y")

    model = ct.convert(prog, convert_to="mlprogram", minimum_deployment_target=ct.target.iOS17)
    saved, repository = tmp_path / "m.mlpackage", tmp_path / "models--owner--name"
    model.save(saved)
    ct.models.utils.compile_model(str(saved), str(tmp_path / "m.mlmodelc"))
    for name in ("m.mlpackage", "m.mlmodelc"):
        for count, file in enumerate(f for f in sorted((tmp_path / name).rglob("*")) if f.is_file()):
            blob = repository / "blobs" / f"{name}{count}"
            link = repository / "snapshots" / "5f3a" / file.relative_to(tmp_path)
            blob.parent.mkdir(parents=True, exist_ok=True)
            link.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, blob)
            link.symlink_to(os.path.relpath(blob, link.parent))
    folder = repository / "snapshots" / "5f3a"
    for loaded in (
        ct.models.MLModel(str(folder / "m.mlpackage")),
        ct.models.CompiledMLModel(str(folder / "m.mlmodelc")),
        moka.Model(folder / "m.mlpackage"),
    ):
        np.testing.assert_array_equal(loaded.predict({"x": np.ones((1, 64), np.float32)})["y"], weights[None] + 1)


def test_states():
    @mb.program(
        input_specs=[mb.TensorSpec(shape=(2,), dtype=ct.converters.mil.mil.types.fp16), mb.StateTensorSpec(shape=(2,), dtype=ct.converters.mil.mil.types.fp16)],
        opset_version=ct.target.iOS18,
    )
    def prog(x, s):
        total = mb.add(x=mb.read_state(input=s), y=x)
        return mb.identity(x=mb.coreml_update_state(state=s, value=total), name="y")

    model = ct.convert(prog, convert_to="mlprogram", minimum_deployment_target=ct.target.iOS18)
    state = model.make_state()
    x = {"x": np.array([1, 2], np.float16)}
    with pytest.raises(RuntimeError, match="made by make_state") as caught:
        model.predict(x)
    assert "new_state" not in str(caught.value)
    model.predict(x, state)
    np.testing.assert_array_equal(model.predict(x, state)["y"], [2, 4])
    name = model.get_spec().description.state[0].name
    assert state.read_state(name).dtype == np.float32
    state.write_state(name, np.array([5.0, 5.0], np.float32))
    np.testing.assert_array_equal(model.predict(x, state)["y"], [6, 7])
    with pytest.raises(RuntimeError):
        state.read_state("nothing")


def test_devices_and_durations():
    devices = ct.models.model.MLModel.get_available_compute_devices()
    assert [type(d).__name__ for d in devices][0] == "MLCPUComputeDevice"
    assert {type(d).__name__ for d in devices[1:]} <= {"MLGPUComputeDevice"}
    model = small()
    proxy = model.__proxy__
    assert proxy.get_load_duration_in_nano_seconds() > 0
    assert proxy.get_last_predict_duration_in_nano_seconds() is None
    model.predict({"x": np.zeros((1, 3))})
    assert proxy.get_last_predict_duration_in_nano_seconds() > 0
    plan = ct.models.compute_plan.MLComputePlan.load_from_path(model.get_compiled_model_path())
    operations = plan.model_structure.program.functions["main"].block.operations
    usage = plan.get_compute_device_usage_for_mlprogram_operation(operations[-1])
    assert type(usage.preferred_compute_device).__name__ == "MLCPUComputeDevice"


@pytest.mark.parametrize("precision, preferred", [("FLOAT16", "MLNeuralEngineComputeDevice"), ("FLOAT32", "MLCPUComputeDevice")])
def test_compute_plans_name_all_units(precision, preferred):
    @mb.program(input_specs=[mb.TensorSpec(shape=(1, 4, 8, 8))])
    def program(x):
        return mb.softmax(x=x, axis=1, name="probabilities")

    model = ct.convert(program, convert_to="mlprogram", compute_precision=ct.precision[precision])
    plan = ct.models.compute_plan.MLComputePlan.load_from_path(
        model.get_compiled_model_path(), compute_units=ct.ComputeUnit.CPU_AND_NE
    )
    for operation in plan.model_structure.program.functions["main"].block.operations:
        if operation.operator_name.endswith("softmax"):
            usage = plan.get_compute_device_usage_for_mlprogram_operation(operation)
            assert type(usage.preferred_compute_device).__name__ == preferred
            supported = {type(d).__name__ for d in usage.supported_compute_devices}
            assert supported == {"MLCPUComputeDevice", preferred}
            return
    raise AssertionError("no softmax")


@pytest.mark.parametrize("units", ["CPU_ONLY", "CPU_AND_GPU", "CPU_AND_NE", "ALL"])
@pytest.mark.parametrize("device", ["", "vulkan"])
def test_compute_plans_say_what_explain_says(monkeypatch, units, device):
    @mb.program(input_specs=[mb.TensorSpec(shape=(1, 16, 64, 64))])
    def program(x):
        weights = np.random.default_rng(1).standard_normal((32, 16, 3, 3)).astype(np.float32)
        x = mb.conv(x=x, weight=weights, pad_type="same", name="conv")
        x = mb.relu(x=x, name="relu")
        noise = mb.random_normal(shape=np.array([1, 32, 64, 64], np.int32), name="noise")
        return mb.softmax(x=mb.add(x=x, y=noise, name="sum"), axis=1, name="probabilities")

    monkeypatch.setenv("MOKA_RATES", "off")
    monkeypatch.setenv("MOKA_DEVICE", device)
    model = ct.convert(program, convert_to="mlprogram", compute_precision=ct.precision.FLOAT32)
    path = model.get_compiled_model_path()  # as long as the model lives
    explained = moka.Model(path, compute_units=units, device=device or None).explain().operations
    plan = ct.models.compute_plan.MLComputePlan.load_from_path(path, compute_units=ct.ComputeUnit[units])
    classes = {"cpu": "MLCPUComputeDevice", "gpu": "MLGPUComputeDevice", "neuralEngine": "MLNeuralEngineComputeDevice"}
    total = sum(o.estimated_seconds for o in explained)
    compared = set()
    for operation in plan.model_structure.program.functions["main"].block.operations:
        name = operation.outputs[0].name
        ran = [o for o in explained if name == o.name and o.bids]
        if not ran:
            continue
        compared.add(name)
        usage = plan.get_compute_device_usage_for_mlprogram_operation(operation)
        unit = next(b.unit for b in ran[0].bids if b.device == ran[0].device)
        assert type(usage.preferred_compute_device).__name__ == classes[unit]
        takes = {classes[b.unit] for b in ran[0].bids if not b.refusal}
        assert {type(d).__name__ for d in usage.supported_compute_devices} == takes
        weight = plan.get_estimated_cost_for_mlprogram_operation(operation).weight
        assert weight == pytest.approx(sum(o.estimated_seconds for o in explained if o.name == name) / total)
        by_rates = next(b.seconds for b in ran[0].bids if b.device == ran[0].device)
        assert ran[0].estimated_seconds in (0, pytest.approx(by_rates))
    assert {"conv", "noise"} <= compared


@pytest.mark.parametrize("name", ["program.mlpackage", "pipeline.mlmodel", "compiled.mlmodelc"])
def test_a_detector_needs_only_the_picture(name):
    folder = pathlib.Path(__file__).parent.parent / "golden" / "detectors"
    case = json.loads((folder / "truth.json").read_text())[0]
    image = pytest.importorskip("PIL.Image")
    pixels = np.array(case["pixels"], np.uint8).reshape(3, 4, 4).transpose(1, 2, 0)
    load = ct.models.CompiledMLModel if name.endswith("c") else ct.models.MLModel
    found = load(str(folder / name)).predict({"image": image.fromarray(pixels)})
    np.testing.assert_allclose(found["confidence"].reshape(-1), case["confidence"], atol=1e-5)
    np.testing.assert_allclose(found["coordinates"].reshape(-1), case["coordinates"], atol=1e-5)

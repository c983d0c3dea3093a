# SPDX-License-Identifier: Apache-2.0
"""Updates of models on examples, beside the same training in numpy in double precision."""

import collections
import os
import pickle
import signal
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

import moka
from moka import edit, update

ct = pytest.importorskip("coremltools")
from coremltools.models import datatypes, neural_network  # noqa: E402
from update_models import WEIGHTS, assert_weights, classes_of, examples, network, trained  # noqa: E402


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_weights_are_those_of_double_precision(optimizer):
    rate = 0.1 if optimizer == "sgd" else 0.02
    rows = examples()
    seen = []
    context = moka.UpdateTask(network(optimizer, rate=rate), rows, progress=lambda c: seen.append((c.event, c.metrics.loss))).run()
    expected, losses = trained(rows["x"], classes_of(rows), optimizer=optimizer, rate=lambda epoch: rate)
    assert_weights(context.weights, expected)
    np.testing.assert_allclose([loss for event, loss in seen if event == "miniBatchEnd"], losses, rtol=1e-5)


def test_front_that_does_not_learn_is_computed_once():
    rows = examples()
    context = moka.UpdateTask(network(frozen=True), rows).run()
    expected, _ = trained(rows["x"], classes_of(rows), layers=["second"])
    assert_weights(context.weights, expected, ["second_weights", "second_bias"])
    again = moka.UpdateTask(network(frozen=True), rows, kept_bytes=0).run()
    for name, value in context.weights.items():
        np.testing.assert_array_equal(again.weights[name], value)


def test_regressor_with_mean_squared_error():
    x = examples()["x"]
    y = (x[:, :3] * [1, -2, 0.5] + 0.25).astype(np.float32)
    seen = []
    source = network(classifier=False, loss="mse", rate=0.05)
    assert [f.name for f in source.load().update_description.training_inputs] == ["x", "p_true"]
    context = moka.UpdateTask(source, {"x": x, "p_true": y}, progress=seen.append).run()
    expected, losses = trained(x, y, loss="mse", rate=lambda epoch: 0.05)
    assert_weights(context.weights, expected)
    assert losses[-1] < losses[0] / 2


def test_events_and_metrics_are_those_of_core_ml():
    seen = []
    rows = examples()
    context = moka.UpdateTask(
        network(epochs=2), rows, progress=lambda c: seen.append((c.event, c.metrics.epoch, c.metrics.mini_batch, c.metrics.mini_batches, c.metrics.loss, c.parameters))
    ).run()
    assert [s[0] for s in seen] == ["trainingBegin"] + (["miniBatchEnd"] * 3 + ["epochEnd"]) * 2
    assert [s[1:4] for s in seen if s[0] == "miniBatchEnd"] == [(e, b, 3) for e in range(2) for b in range(3)]
    losses = [s[4] for s in seen if s[0] == "miniBatchEnd"][:3]
    epoch = next(s for s in seen if s[0] == "epochEnd")
    assert epoch[4] == pytest.approx((4 * losses[0] + 4 * losses[1] + 2 * losses[2]) / 10)
    assert seen[0][5] == {"learningRate": 0.1, "momentum": 0.9, "miniBatchSize": 4, "epochs": 2, "shuffle": False}
    assert context.event == "epochEnd" and context.metrics.epoch == 1 and not context.is_cancelled
    assert "UpdateMetrics(loss=" in repr(context)


@pytest.mark.parametrize("form", ["dicts", "columns", "lazy", "pandas"])
def test_rows_of_every_form(form):
    columns = examples()
    rows = [{"x": x, "label": label} for x, label in zip(columns["x"], columns["label"])]
    asked = []

    class Lazy:
        def __len__(self):
            return len(rows)

        def __getitem__(self, i):
            asked.append(i)
            return rows[i]

    given = {"dicts": rows, "columns": {**columns, "label": tuple(columns["label"])}, "lazy": Lazy()}
    if form == "pandas":
        pandas = pytest.importorskip("pandas")
        given["pandas"] = pandas.DataFrame({"x": list(columns["x"]), "label": columns["label"]})
    context = moka.UpdateTask(network(), given[form]).run()
    expected, _ = trained(columns["x"], classes_of(columns))
    assert_weights(context.weights, expected)
    if form == "lazy":
        assert asked == list(range(10))  # once: what they become is kept


@pytest.mark.parametrize("form", ["path", "compiled", "bytes", "spec", "coremltools", "model", "message", "package"])
def test_models_of_every_form(form, tmp_path):
    source = network()
    path = source.save(tmp_path / "net.mlmodel")
    spec = ct.models.utils.load_spec(path)
    given = {"path": path, "bytes": source.specification.serialize(), "spec": spec, "message": source.specification, "model": moka.Model(path)}
    if form == "compiled":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            given[form] = moka.compile_model(path, tmp_path / "compiled")
    elif form == "coremltools":
        given[form] = ct.models.MLModel(spec)
    elif form == "package":
        given[form] = source.save(tmp_path / "net.mlpackage")
    rows = examples()
    context = moka.UpdateTask(given[form], rows).run()
    assert_weights(context.weights, trained(rows["x"], classes_of(rows))[0])


@pytest.mark.parametrize("ending", ["mlmodel", "mlpackage", "mlmodelc"])
def test_saved_models_predict_what_the_updated_one_predicts(ending, tmp_path):
    rows = examples()
    context = moka.UpdateTask(network(), rows).run()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = context.save(tmp_path / f"new.{ending}")
    before, after = context.model.predict({"x": rows["x"][0]}), moka.Model(path).predict({"x": rows["x"][0]})
    assert before == after and before["label"] == rows["label"][0]
    assert network().load().predict({"x": rows["x"][0]})["p"] != before["p"]
    assert pickle.loads(pickle.dumps(context.model)).predict({"x": rows["x"][0]}) == before
    if ending == "mlmodel":
        spec = ct.models.utils.load_spec(path)
        assert spec.isUpdatable
        layer = spec.neuralNetworkClassifier.layers[2].innerProduct
        np.testing.assert_array_equal(np.array(layer.weights.floatValue, np.float32), context.weights["second_weights"].ravel())
        assert ct.models.MLModel(path).predict({"x": rows["x"][0]}) == before
        again = moka.UpdateTask(path, rows).run()  # it can go on
        assert again.metrics.loss < context.metrics.loss
    (tmp_path / "other.mlmodel").write_text("another file")
    with pytest.raises(moka.InvalidArgumentError):
        context.save(tmp_path / "other.mlmodel")
    assert (tmp_path / "other.mlmodel").read_text() == "another file"
    context.save(tmp_path / "other.mlmodel", force=True)
    assert moka.Model(tmp_path / "other.mlmodel").predict({"x": rows["x"][0]}) == before


def test_pictures_of_every_kind(tmp_path):
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    b = neural_network.NeuralNetworkBuilder([("picture", datatypes.Array(1, 8, 8))], [("p", datatypes.Array(2))], mode="classifier")
    b.add_convolution("conv", 1, 3, 3, 3, 1, 1, "same", 1, W=rng.normal(size=(3, 3, 1, 3)) * 0.2, b=np.zeros(3), has_bias=True, input_name="picture", output_name="c")
    b.add_activation("relu", "RELU", "c", "r")
    b.add_flatten("flat", 0, "r", "f")
    b.add_inner_product("dense", rng.normal(size=(2, 192)) * 0.05, np.zeros(2), 192, 2, True, "f", "d")
    b.add_softmax("softmax", "d", "p")
    b.set_class_labels(["bar", "beam"], predicted_feature_name="label", prediction_blob="p")
    b.set_pre_processing_parameters(image_input_names=["picture"], image_scale=1 / 255)
    b.make_updatable(["conv", "dense"])
    b.set_categorical_cross_entropy_loss("loss", "p")
    b.set_adam_optimizer(neural_network.AdamParams(lr=0.01, batch=4))
    b.set_epochs(30)
    source = moka.build.Source(moka.build.Message.parse("Model", b.spec.SerializeToString()))
    rows = []
    for i in range(8):
        pixels = np.zeros((8, 8), np.uint8)
        if i % 2 == 0:
            pixels[:, i // 2 + 1] = 255
        else:
            pixels[i // 2 + 1] = 255
        rows.append({"picture": pixels, "label": ["bar", "beam"][i % 2]})
    rows[0]["picture"] = image.fromarray(rows[0]["picture"])
    large = image.fromarray(rows[1]["picture"]).resize((32, 32), image.Resampling.NEAREST)
    large.save(tmp_path / "beam.png")
    rows[1]["picture"] = str(tmp_path / "beam.png")
    with pytest.raises(moka.InvalidArgumentError, match="example 1: .*picture"):
        moka.UpdateTask(source, rows).run()
    context = moka.UpdateTask(source, rows, fit="scaleFill").run()
    assert context.metrics.loss < 0.1
    for row in rows[2:]:
        assert context.model.predict({"picture": row["picture"]})["label"] == row["label"]
    assert source.load().predict({"picture": rows[2]["picture"]})["p"]["bar"] == pytest.approx(0.5, abs=0.2)


def neighbors(k=(1, [1, 3]), default="none", samples=()):
    """A nearest-neighbors classifier of two numbers."""
    from coremltools.models.nearest_neighbors import KNearestNeighborsClassifierBuilder

    b = KNearestNeighborsClassifierBuilder("x", "label", 2, default, number_of_neighbors=k[0])
    b.set_number_of_neighbors_with_bounds(k[0], allowed_set=set(k[1]))
    if samples:
        b.add_samples(*samples)
    return moka.build.Source(moka.build.Message.parse("Model", b.spec.SerializeToString()))


def test_nearest_neighbors_keep_examples(tmp_path):
    empty = neighbors()
    assert empty.load().predict({"x": [0.0, 0.0]})["label"] == "none"
    rows = [{"x": [0.0, 1.0], "label": "up"}, {"x": [0.0, -1.0], "label": "down"}, {"x": [0.2, -1.0], "label": "down"}]
    seen = []
    context = moka.UpdateTask(empty, rows, progress=lambda c: seen.append((c.event, c.model.predict({"x": [0.0, 0.9]})["label"]))).run()
    assert seen == [("trainingBegin", "none"), ("epochEnd", "up")]
    assert context.model.predict({"x": [0.0, 0.9]})["label"] == "up"
    spec = ct.models.utils.load_spec(context.save(tmp_path / "near.mlmodel"))
    assert list(spec.kNearestNeighborsClassifier.stringClassLabels.vector) == ["up", "down", "down"]
    three = moka.UpdateTask(context.source, rows[1:], parameters={"numberOfNeighbors": 3}).run()
    assert three.parameters == {"numberOfNeighbors": 3}
    assert three.model.update_description.nearest_neighbors.samples == 5
    assert three.model.predict({"x": [0.0, 0.9]})["label"] == "down"
    assert three.weights == {}
    with pytest.raises(moka.InvalidArgumentError, match="numberOfNeighbors: the model allows 1, 3, got 2"):
        moka.UpdateTask(empty, rows, parameters={"numberOfNeighbors": 2})
    with pytest.raises(moka.InvalidArgumentError, match="example 1: 'x': expected 2 numbers, got 3"):
        moka.UpdateTask(empty, [rows[0], {"x": [1.0, 2.0, 3.0], "label": "up"}]).run()
    with pytest.raises(moka.InvalidArgumentError, match="finite"):
        moka.UpdateTask(empty, [{"x": [np.nan, 0.0], "label": "up"}]).run()
    with pytest.raises(TypeError, match="example 0: .*label.*expected String, got int"):
        moka.UpdateTask(empty, [{"x": [1.0, 0.0], "label": 1}]).run()
    with pytest.raises(ValueError, match="surrogates"):
        moka.UpdateTask(empty, [{"x": [1.0, 0.0], "label": "\ud800"}]).run()
    with pytest.raises(ValueError, match="surrogates"):
        moka.UpdateTask(empty, [{"x": [1.0, 0.0], "\ud800": "up"}]).run()


def test_nearest_neighbors_take_every_form_of_an_example(tmp_path):
    points = np.random.default_rng(4).normal(size=(700, 2)).astype(np.float32)
    labels = [str(i % 5) for i in range(700)]
    wide = np.zeros((2, 4), np.float32)
    wide[:, ::2] = points[3:5]
    many = [{"x": points[i], "label": labels[i]} for i in range(700)]
    other = list(many)
    other[1] = {"label": labels[1], "x": points[1].astype(np.float64)}
    other[2] = {"x": points[2].tolist(), "label": labels[2]}
    other[3] = {"x": wide[0, ::2], "label": "".join([labels[3]])}
    other[4] = collections.OrderedDict(x=wide[1, ::2], label=labels[4])
    other[5] = {"".join(["x"]): points[5], "".join(["la", "bel"]): labels[5]}
    task = moka.UpdateTask(neighbors(), many)
    contexts = [task.run(), moka.UpdateTask(neighbors(), other).run(), moka.UpdateTask(neighbors(), {"x": points, "label": labels}).run()]
    asked = np.random.default_rng(5).normal(size=(50, 2)).astype(np.float32)
    nearest = ((asked[:, None].astype(np.float64) - points[None]) ** 2).sum(-1).argmin(-1)
    want = [labels[i] for i in nearest]
    for number, context in enumerate(contexts):
        model = context.model
        assert list(model.predict_rows({"x": asked})["label"]) == want
        assert model.predict({"x": asked[0]})["label"] == want[0]
        again = pickle.loads(pickle.dumps(model))
        saved = context.save(tmp_path / f"{number}.mlmodel")
        for same in (again, moka.Model(saved), context.source.load(), moka.Model(saved, memory_budget=1 << 30)):
            assert list(same.predict_rows({"x": asked})["label"]) == want
            assert same.update_description.nearest_neighbors.samples == 700
        spec = ct.models.utils.load_spec(saved).kNearestNeighborsClassifier
        assert np.array_equal([s.vector for s in spec.nearestNeighborsIndex.floatSamples], points)
        assert list(spec.stringClassLabels.vector) == labels
        compiled = context.save(tmp_path / f"{number}.mlmodelc")
        twice = moka.UpdateTask(compiled, [{"x": asked[0], "label": "new"}]).run()
        assert twice.model.predict({"x": asked[0]})["label"] == "new"
        assert twice.model.update_description.nearest_neighbors.samples == 701
    assert str(contexts[0].model.description) == str(contexts[1].model.description)
    with pytest.raises(moka.InvalidArgumentError, match="example 1: 'x': expected finite numbers, got inf"):
        moka.UpdateTask(neighbors(), [many[0], {"x": np.float32([np.inf, 0]), "label": "up"}]).run()
    with pytest.raises(moka.InvalidArgumentError, match="example 1: 'y': not a training input"):
        moka.UpdateTask(neighbors(), [many[0], {"x": points[0], "y": "up"}]).run()


def test_sources_of_nearest_neighbors_are_independent():
    context = moka.UpdateTask(neighbors(), [{"x": [0.0, 1.0], "label": "up"}]).run()
    source, model = context.source, context.model
    source.specification.clear("kNearestNeighborsClassifier")
    assert context.source.load().predict({"x": [0.0, 0.0]})["label"] == "up"
    assert pickle.loads(pickle.dumps(model)).predict({"x": [0.0, 0.0]})["label"] == "up"


def front():
    """A net that gives (x0 - x1, x0 + x1) as `y`."""
    b = neural_network.NeuralNetworkBuilder([("x", datatypes.Array(2))], [("y", datatypes.Array(2))])
    b.add_inner_product("turn", np.array([[1.0, -1], [1, 1]]), np.zeros(2), 2, 2, True, "x", "y")
    return moka.build.Source(moka.build.Message.parse("Model", b.spec.SerializeToString()))


def test_pipeline_that_ends_with_nearest_neighbors(tmp_path):
    model = edit.join({"front": front(), "near": edit.rename(neighbors(), {"x": "y"})})
    rows = [{"x": [1.0, 1.0], "label": "same"}, {"x": [1.0, -1.0], "label": "different"}]
    context = moka.UpdateTask(model, rows).run()
    for row in rows:
        assert context.model.predict({"x": row["x"]})["label"] == row["label"]
    spec = ct.models.utils.load_spec(context.save(tmp_path / "p.mlmodel"))
    stages = spec.pipelineClassifier.pipeline if spec.HasField("pipelineClassifier") else spec.pipeline
    samples = stages.models[1].kNearestNeighborsClassifier.nearestNeighborsIndex.floatSamples
    assert [list(s.vector) for s in samples] == [[0, 2], [2, 0]]
    with pytest.raises(moka.InvalidArgumentError, match="example 1: input 'x': expected .* got shape 3"):
        moka.UpdateTask(model, [rows[0], {"x": [1.0, 2.0, 3.0], "label": "same"}]).run()


def test_pipeline_whose_last_network_learns(tmp_path):
    b = neural_network.NeuralNetworkBuilder([("x", datatypes.Array(6))], [("z", datatypes.Array(6))])
    turn = np.eye(6)[::-1] * 2
    b.add_inner_product("turn", turn, np.zeros(6), 6, 6, True, "x", "z")
    first = moka.build.Source(moka.build.Message.parse("Model", b.spec.SerializeToString()))
    model = edit.join({"front": first, "net": edit.rename(network(), {"x": "z"})})
    assert model.load().update_description.stage == [1]
    rows = examples()
    context = moka.UpdateTask(model, rows).run()
    expected, _ = trained(rows["x"][:, ::-1] * 2, classes_of(rows))
    assert_weights({n.replace("model1_", ""): w for n, w in context.weights.items()}, expected)
    path = context.save(tmp_path / "pipeline.mlmodel")
    assert moka.Model(path).predict({"x": rows["x"][3]}) == context.model.predict({"x": rows["x"][3]})


def test_resume_changes_the_rate_of_the_next_mini_batches():
    rows = examples()

    def halve(context):
        if context.event == "epochEnd":
            task.resume({"learningRate": context.parameters["learningRate"] / 2})

    task = moka.UpdateTask(network(), rows, progress=halve)
    expected, _ = trained(rows["x"], classes_of(rows), rate=lambda epoch: 0.1 / 2**epoch)
    assert_weights(task.run().weights, expected)


def test_cancel_and_go_on():
    rows = examples()
    stop = [5]

    def count(context):
        stop[0] -= context.event == "miniBatchEnd"
        if stop[0] == 0:
            task.cancel()

    task = moka.UpdateTask(network(), rows, progress=count)
    partial = task.run()
    assert partial.is_cancelled and (partial.metrics.epoch, partial.metrics.mini_batch) == (1, 1)
    held = partial.weights
    whole = task.run()
    assert not whole.is_cancelled
    assert_weights(whole.weights, trained(rows["x"], classes_of(rows))[0])
    again = partial.load(parameters=list(WEIGHTS))  # the first context keeps its own weights
    for name, value in held.items():
        np.testing.assert_array_equal(again.parameter(name), value)


def test_order_depends_on_the_seed():
    rows = examples()

    def weights(**parameters):
        return moka.UpdateTask(network(shuffle=True), rows, parameters=parameters).run().weights["first_weights"]

    np.testing.assert_array_equal(weights(), weights(seed=3))
    assert not np.array_equal(weights(), weights(seed=4))
    np.testing.assert_array_equal(weights(shuffle=False), moka.UpdateTask(network(), rows).run().weights["first_weights"])


def test_threads_give_the_same_weights():
    rows = examples(40)
    one = moka.UpdateTask(network(), rows, threads=1).run().weights
    for name, value in moka.UpdateTask(network(), rows, threads=3).run().weights.items():
        np.testing.assert_array_equal(value, one[name])


def test_parameters_replace_defaults():
    rows = examples()
    given = {"epochs": np.int64(2), "learningRate": np.float32(0.25), "miniBatchSize": 2, "momentum": 0.9}
    context = moka.UpdateTask(network(), rows, parameters=given).run()
    assert context.parameters == {"epochs": 2, "learningRate": 0.25, "miniBatchSize": 2, "momentum": 0.9, "shuffle": False}
    assert_weights(context.weights, trained(rows["x"], classes_of(rows), epochs=2, batch=2, rate=lambda epoch: 0.25)[0])


class Unusual(Exception):
    pass


def test_what_python_raises_reaches_the_caller():
    rows = examples()
    thrown = Unusual("no more")

    def refuse(context):
        if context.event == "miniBatchEnd":
            raise thrown

    with pytest.raises(Unusual) as caught:
        moka.UpdateTask(network(), rows, progress=refuse).run()
    assert caught.value is thrown

    class Broken:
        def __len__(self):
            return 3

        def __getitem__(self, i):
            raise thrown

    with pytest.raises(Unusual) as caught:
        moka.UpdateTask(network(), Broken()).run()
    assert caught.value is thrown


def test_contexts_of_handlers_end_with_them():
    contexts, predicted = [], []

    def keep(context):
        contexts.append(context)
        predicted.append(context.load().predict({"x": np.ones(6, np.float32)})["p"]["ant"])

    context = moka.UpdateTask(network(epochs=1), examples(), progress=keep).run()
    assert len(set(predicted)) == 4  # three mini-batches change the weights
    assert predicted[-1] == context.model.predict({"x": np.ones(6, np.float32)})["p"]["ant"]
    with pytest.raises(moka.InvalidArgumentError, match="the handler of this context has returned"):
        contexts[0].source
    assert contexts[0].metrics.mini_batches == 0


def test_one_run_at_a_time():
    def again(context):
        with pytest.raises(moka.InvalidArgumentError, match="the task is running already"):
            task.run()

    task = moka.UpdateTask(network(epochs=1), examples(), progress=again)
    task.run()
    errors = []

    def resume(context):
        def change():
            try:
                task.resume({"learningRate": 0.5})
            except moka.InvalidArgumentError as e:
                errors.append(str(e))

        thread = threading.Thread(target=change)
        thread.start()
        thread.join()

    task = moka.UpdateTask(network(epochs=1), examples(), progress=resume)
    task.run()
    assert errors == ["the task is running: only its handler changes parameters"] * 5


def test_cancel_on_another_thread():
    begun = threading.Event()
    task = moka.UpdateTask(network(epochs=199), examples(), progress=lambda c: begun.set() or c.event == "miniBatchEnd" and stopper.join())
    stopper = threading.Thread(target=lambda: begun.wait() and task.cancel())
    stopper.start()
    assert task.run().is_cancelled


def test_control_c_ends_the_run(tmp_path):
    network(epochs=199).save(tmp_path / "net.mlmodel")
    code = f"""if True:
        import moka, numpy, sys
        def show(context):
            if context.event == "trainingBegin": print("begun", flush=True)
        rows = [{{"x": numpy.ones(6, numpy.float32), "label": "ant"}}] * 20000
        try:
            moka.UpdateTask({str(tmp_path / "net.mlmodel")!r}, rows, progress=show).run()
        except KeyboardInterrupt:
            sys.exit("interrupted")
        """
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "begun\n"
        os.kill(child.pid, signal.SIGINT)
        _, error = child.communicate(timeout=60)
    assert child.returncode == 1 and error == "interrupted\n"


def bad(column, value, rows=None):
    rows = rows or examples()
    out = [{"x": x, "label": label} for x, label in zip(rows["x"], rows["label"])]
    out[6] = {**out[6], column: value}
    return out


@pytest.mark.parametrize(
    "rows, error, text",
    [
        (bad("label", "dog"), moka.InvalidArgumentError, "example 6: 'label': expected one of the classes 'ant', 'bee', 'cow', got 'dog'"),
        (bad("label", 1), TypeError, "example 6: input 'label': expected String, got int"),
        (bad("label", None), moka.InvalidArgumentError, "example 6: 'label'"),
        (bad("x", np.ones(5)), moka.InvalidArgumentError, "example 6: .*'x'.*6.*5"),
        (bad("x", "text"), TypeError, "example 6: input 'x'"),
        (bad("x", np.full(6, np.nan)), moka.DataError, "example 6: input 'x': expected finite numbers, got nan"),
        (bad("x", np.full(6, np.inf)), moka.DataError, "example 6: input 'x': expected finite numbers"),
        (bad("y", 1), moka.InvalidArgumentError, "example 6: 'y': not a training input of the model, which has 'x', 'label'"),
        ([{"x": np.ones(6)}], moka.InvalidArgumentError, "example 0: input 'label': .*got nothing"),
        ([{"x": np.ones(6), "label": "ant"}] * 6 + [{"x": np.ones(6)}], moka.InvalidArgumentError, "example 6: input 'label': .*got nothing"),
        ([{"label": "ant"}], moka.InvalidArgumentError, "example 0: input 'x': expected .*, got nothing"),
        ([3], TypeError, "example 0: expected a dict of inputs by name, got int"),
    ],
)
def test_errors_name_the_example(rows, error, text):
    begun = []
    with pytest.raises(error, match=text):
        moka.UpdateTask(network(), rows, progress=begun.append).run()
    if len(rows) > 1 and not isinstance(rows[6]["x"], str):  # which may be a file
        assert not begun


def test_errors_of_what_is_given():
    for rows in ([], {"x": np.zeros((0, 6)), "label": []}):
        with pytest.raises(moka.InvalidArgumentError, match="expected at least one example, got none"):
            moka.UpdateTask(network(), rows)
    with pytest.raises(moka.InvalidArgumentError, match="expected columns of the same length, got 10 in 'x', 9 in 'label'"):
        moka.UpdateTask(network(), {"x": examples()["x"], "label": examples()["label"][:9]})
    with pytest.raises(TypeError, match="rows, column 'label': expected a list or an array, got str"):
        moka.UpdateTask(network(), {"x": examples()["x"], "label": "ant"})
    with pytest.raises(TypeError, match="got generator"):
        moka.UpdateTask(network(), (row for row in []))
    with pytest.raises(TypeError, match="progress: expected a function, got int"):
        moka.UpdateTask(network(), examples(), progress=3)
    with pytest.raises(TypeError, match="expected a path, a model, a Source, .*, got int"):
        moka.UpdateTask(3, examples())
    with pytest.raises(moka.NotFoundError):
        moka.UpdateTask("none.mlmodel", examples())
    with pytest.raises(moka.InvalidArgumentError, match="the model is not updatable"):
        moka.UpdateTask(front(), examples())


@pytest.mark.parametrize(
    "parameters, error, text",
    [
        ({"miniBatchSize": 3}, moka.InvalidArgumentError, "miniBatchSize: the model allows 1, 2, 4, 100, got 3"),
        ({"epochs": 0}, moka.InvalidArgumentError, "epochs: the model allows"),
        ({"learningRate": -1.0}, moka.InvalidArgumentError, "learningRate: the model allows 0 to"),
        ({"momentum": 2}, moka.InvalidArgumentError, "momentum: the model allows 0 to 1, got 2"),
        ({"epochs": 2.5}, moka.InvalidArgumentError, "epochs: expected a whole number, got 2.5"),
        ({"epochs": 2**70}, moka.InvalidArgumentError, "epochs: expected an integer of 64 bits"),
        ({"beta1": 0.5}, moka.InvalidArgumentError, "the model has no parameter 'beta1' for updates"),
        ({"learning_rate": 0.5}, moka.InvalidArgumentError, "the model has no parameter 'learning_rate' for updates"),
        ({"learningRate": "fast"}, TypeError, "learningRate: expected a number or a bool, got str"),
        ({"learningRate": True}, moka.InvalidArgumentError, "learningRate: expected a number, got true"),
        ({"learningRate": float("nan")}, moka.InvalidArgumentError, "learningRate: expected a finite number, got nan"),
    ],
)
def test_parameters_that_are_not_allowed(parameters, error, text):
    with pytest.raises(error, match=text):
        moka.UpdateTask(network(), examples(), parameters=parameters)
    task = moka.UpdateTask(network(), examples())
    with pytest.raises(error, match=text):
        task.resume(parameters)
    rows = examples()
    assert_weights(task.run().weights, trained(rows["x"], classes_of(rows))[0])


def test_a_training_that_diverges_is_an_error():
    y = np.ones((10, 3), np.float32)
    source = network(classifier=False, loss="mse")
    with pytest.raises(moka.DataError, match="diverges.* learning rate 1e\\+20"):
        moka.UpdateTask(source, {"x": examples()["x"], "p_true": y}, parameters={"learningRate": 1e20}).run()
    # The last step of a run has no loss behind it.
    with pytest.raises(moka.DataError, match="diverges"):
        moka.UpdateTask(source, {"x": examples()["x"], "p_true": y * 1e10}, parameters={"learningRate": 1e30, "miniBatchSize": 100, "epochs": 1}).run()


def test_targets_of_another_size(tmp_path):
    source = network(classifier=False, loss="mse")
    rows = {"x": examples()["x"], "p_true": np.ones((10, 4), np.float32)}
    with pytest.raises(moka.InvalidArgumentError, match="example 0: 'p_true': expected 3 numbers"):
        moka.UpdateTask(source, rows).run()
    rows["p_true"] = np.full((10, 3), np.nan)
    with pytest.raises(moka.InvalidArgumentError, match="example 0: 'p_true': expected finite numbers, got nan"):
        moka.UpdateTask(source, rows).run()


def test_classes_by_index():
    """A network that is no classifier takes the index of a class as the target of a cross entropy."""
    rows = examples()
    source = network(classifier=False, loss="cross-entropy")
    context = moka.UpdateTask(source, {"x": rows["x"], "p_true": classes_of(rows)}).run()
    assert_weights(context.weights, trained(rows["x"], classes_of(rows))[0])
    for wrong, text in ((3, "expected a class from 0 to 2, got 3"), (-1, "expected the index of a class, got -1"), ([1, 1], "got 2 numbers")):
        with pytest.raises(moka.InvalidArgumentError, match=f"example 4: 'p_true': .*{text}"):
            moka.UpdateTask(source, [{"x": x, "p_true": wrong if i == 4 else 1} for i, x in enumerate(rows["x"])]).run()


def test_models_made_updatable_by_moka():
    b = neural_network.NeuralNetworkBuilder([("x", datatypes.Array(6))], [("y", datatypes.Array(1))])
    b.add_inner_product("dense", np.zeros((1, 6)), np.zeros(1), 6, 1, True, "x", "y")
    marked = update.mark(
        moka.build.Message.parse("Model", b.spec.SerializeToString()), ["dense"], loss="mse", learning_rate=(0.1, 0, 1), mini_batch=5, epochs=300
    )
    x = examples(40)["x"]
    y = x @ np.arange(6, dtype=np.float32) + 2
    context = moka.UpdateTask(marked, {"x": x, "y_true": y[:, None]}).run()
    np.testing.assert_allclose(context.weights["dense_weights"].ravel(), np.arange(6), atol=1e-4)
    np.testing.assert_allclose(context.weights["dense_bias"], [2], atol=1e-4)

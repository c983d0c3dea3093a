# SPDX-License-Identifier: Apache-2.0
"""Models that learn.

    from moka import update

    model = update.mark("Digits.mlmodel", ["dense"], loss="cross-entropy", optimizer="sgd", learning_rate=0.05, epochs=10)
    model.save("UpdatableDigits.mlmodel")

    model = update.nearest_neighbors("Drawings.mlmodel", rows, ["cat", "dog"])
    model.load().predict(...)
    model.save("Drawings.mlmodel", force=True)

`Model.update_description` says what a model can learn. Each function takes a `moka.build.Source`, a message or a path, and returns a
changed `Source`; what it was given stays as it was. Files are replaced as a whole, so one that is there survives a crash.
"""

import operator
from typing import Any, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _moka
from .build import Source, _source_of
from .edit import Editable, extract_stage

#: A number; (number, lowest, highest); or (integer, [allowed integers]).
Setting = Union[float, Tuple[float, float, float], Tuple[int, Sequence[int]]]


def _set(source: Any, name: str, setting: Setting) -> Any:
    if not isinstance(setting, tuple):
        return _moka.edit.set_update_parameter(source, name, float(setting), None, [])
    if len(setting) == 3:
        return _moka.edit.set_update_parameter(source, name, float(setting[0]), (float(setting[1]), float(setting[2])), [])
    if len(setting) == 2 and not isinstance(setting[1], (int, float, str)) and len(setting[1]) > 0:
        return _moka.edit.set_update_parameter(source, name, float(setting[0]), None, [operator.index(v) for v in setting[1]])
    raise ValueError(f"{name}: expected a number, (number, lowest, highest) or (integer, [allowed integers]), got {setting!r}")


def mark(
    model: Editable,
    layers: Sequence[str] = (),
    *,
    loss: str = "cross-entropy",
    loss_input: str = "",
    loss_name: str = "loss",
    optimizer: str = "sgd",
    learning_rate: Setting = 0.01,
    mini_batch: Setting = 10,
    momentum: Optional[Setting] = None,
    beta1: Optional[Setting] = None,
    beta2: Optional[Setting] = None,
    eps: Optional[Setting] = None,
    epochs: Setting = 1,
    shuffle: bool = True,
    seed: Optional[int] = None,
) -> Source:
    """Makes layers of a neural network updatable, as coremltools' NeuralNetworkBuilder does, or a nearest-neighbors classifier.

    layers: names of convolutions, inner products, and products with constant matrices, with weights of float32; none for a
    nearest-neighbors classifier, which takes none of the other arguments. The last model of a pipeline is the one that learns.
    loss: "cross-entropy" or "mse". loss_input: the value that it reads; empty: the result of the only softmax, or the only output.
    optimizer: "sgd" (momentum) or "adam" (beta1, beta2, eps).
    A setting is a number, (number, lowest, highest), or (integer, [allowed integers]). Without more, real numbers may be from 0 to 1
    and integers only the number.

    Raises NotFoundError for an unknown layer or value, UnsupportedError for a layer or a model that cannot be updated."""
    source = _moka.edit.make_updatable(_source_of(model)._source, list(layers))
    if layers:
        source = _moka.edit.set_loss(source, loss, loss_input, loss_name)
        source = _moka.edit.set_optimizer(source, optimizer)
        settings = {"learningRate": learning_rate, "miniBatchSize": mini_batch, "momentum": momentum, "beta1": beta1, "beta2": beta2, "eps": eps}
        settings.update(epochs=epochs, shuffle=shuffle, seed=seed)
        for name, setting in settings.items():
            if setting is not None:
                source = _set(source, name, setting)
    _moka.edit.check(source)
    return Source._of(source)


def _computed(model: Source, examples: Sequence[Mapping[str, Any]]) -> List[np.ndarray]:
    """What the models of a pipeline before the last one give to it, for examples of the pipeline's inputs."""
    pipeline = model.load()
    update = pipeline.update_description
    if update is None or not update.stage:
        raise ValueError("rows: expected an array, got dictionaries, which only an updatable pipeline takes")
    last = extract_stage(model, str(update.stage[0]))
    stages = [extract_stage(model, str(i)).load() for i in range(update.stage[0])]
    out = []
    for example in examples:
        values = dict(example)
        for stage in stages:
            values.update(stage.predict({f.name: values[f.name] for f in stage.description.inputs if f.name in values}))
        out.append(values)
    if len(update.stage) > 1:
        return _computed(last, out)
    (name,) = [f.name for f in last.load().description.inputs]
    return [np.ravel(values[name]) for values in out]


def nearest_neighbors(model: Editable, rows: Any, labels: Sequence[Union[str, int]], k: Optional[int] = None) -> Source:
    """Appends samples to an updatable nearest-neighbors classifier, also to one without samples.

    rows: an array [count, dimensions] of finite numbers, which become float32. For a pipeline that ends with such a classifier also a
    list of dictionaries with the pipeline's inputs; the models before the last one compute the rows.
    labels: one for each row, all texts or all integers as the classifier has them. k: how many neighbors predictions look for, within
    what the model allows.

    Raises InvalidArgumentError where rows, labels or k do not fit, or the model is not updatable."""
    source = _source_of(model)
    if len(rows) and isinstance(rows[0], Mapping):
        rows = _computed(source, rows)
    array = np.ascontiguousarray(rows, dtype=np.float32)
    if array.size == 0 and array.ndim < 2:
        raise ValueError("rows: expected an array [count, dimensions], got none")
    if array.ndim != 2:
        raise ValueError(f"rows: expected an array [count, dimensions], got the shape {list(array.shape)}")
    plain = [label.item() if isinstance(label, np.generic) else label for label in labels]
    return Source._of(_moka.edit.add_samples(source._source, array, plain, k))

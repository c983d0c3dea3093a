# SPDX-License-Identifier: Apache-2.0
"""Edits saved models.

    from moka import edit

    model = edit.rename("net.mlpackage", {"x": "image"})
    model = edit.set_type(model, "image", np.float16)
    model.save("renamed.mlpackage")

Each function takes a `moka.build.Source`, a message or a path, and returns a changed `Source`; what it was given stays as it was. What an
edit does not concern is saved byte for byte. Raises NotFoundError for a feature or value that the model does not have,
InvalidArgumentError for an edit that contradicts the model, UnsupportedError for a kind of model that cannot be edited so.
"""

from typing import Any, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _moka
from ._message import Message
from .build import Path, Range, Source, _source_of

Editable = Union[Source, Message, Path]
Numbers = Union[float, Sequence[float]]


def _numbers(value: Numbers) -> List[float]:
    return [float(v) for v in np.atleast_1d(value)]


def _side(inputs: bool, outputs: bool) -> "_moka.edit.Side":
    if not inputs and not outputs:
        raise ValueError("expected inputs, outputs or both, got neither")
    side = _moka.edit.Side
    return side.any if inputs and outputs else side.inputs if inputs else side.outputs


def rename(model: Editable, names: Mapping[str, str], *, inputs: bool = True, outputs: bool = True) -> Source:
    """Renames inputs, outputs and states, from old to new names, in the whole model: in all functions, layers and stages of a pipeline.

    Two features may swap names. inputs, outputs: the sides on which names are looked for; states count as inputs."""
    return Source._of(_moka.edit.rename_features(_source_of(model)._source, dict(names), _side(inputs, outputs)))


def rename_operations(model: Editable, names: Mapping[str, str]) -> Source:
    """Renames operations of an ML program or layers of a neural network."""
    return Source._of(_moka.edit.rename_operations(_source_of(model)._source, dict(names)))


def rename_values(model: Editable, names: Mapping[str, str]) -> Source:
    """Renames inner values of an ML program or a neural network: those that are not features."""
    return Source._of(_moka.edit.rename_values(_source_of(model)._source, dict(names)))


def set_type(model: Editable, feature: str, dtype: Any, *, inputs: bool = True, outputs: bool = True) -> Source:
    """Changes the element type of an array to float16, float32, float64, int32 or int8. Programs get a cast, or lose the one they had."""
    return Source._of(_moka.edit.set_type(_source_of(model)._source, feature, np.dtype(dtype).name, _side(inputs, outputs)))


def set_image(
    model: Editable,
    feature: str,
    color: str = "rgb",
    *,
    scale: Numbers = 1.0,
    bias: Numbers = 0.0,
    layout: str = "",
    inputs: bool = True,
    outputs: bool = True,
) -> Source:
    """Makes an image of an array [1, C, H, W], [C, H, W], [1, H, W, C] or [H, W, C], or [H, W] for one channel.

    color: "rgb", "bgr", "grayscale" or "grayscale_float16". The numbers of an input are pixel * scale + bias, the pixels of an output are
    number * scale + bias: one number, or one for each channel. layout: "chw" or "hwc" where the shape does not say it."""
    side = _side(inputs, outputs)
    return Source._of(_moka.edit.set_image(_source_of(model)._source, feature, color, _numbers(scale), _numbers(bias), layout, side))


def normalize(model: Editable, input: str, mean: Numbers = 0.0, std: Numbers = 1.0, *, axis: Optional[int] = None) -> Source:
    """Lets the model compute (x - mean) / std of an input first: one number, or one per channel or element of an axis."""
    return Source._of(_moka.edit.normalize(_source_of(model)._source, input, _numbers(mean), _numbers(std), axis))


Shape = Tuple[Union[int, Range], ...]


def set_sizes(model: Editable, inputs: Mapping[str, Union[Shape, List[Tuple[int, ...]]]], *, default: Optional[Mapping[str, Sequence[int]]] = None) -> Source:
    """Sets the allowed sizes of inputs of an ML program or a neural network, together where they depend on each other.

    A tuple is one shape, in which a range (lower, upper) allows several sizes, upper -1 any: ``{"x": (1, 3, (32, 512), (32, -1))}``. A list
    has the allowed shapes, the first of which is the default: ``{"x": [(1, 8), (1, 16)]}``. Images have (height, width). default: the default
    shapes of ranges. The model is imported for the default, each shape and both ends of the ranges; a size that it cannot have is an error."""
    given = {}
    for name, sizes in inputs.items():
        listed = [list(shape) for shape in sizes] if isinstance(sizes, list) else []
        ranges = [] if listed else [(s[0], s[1]) if isinstance(s, (tuple, list)) else (s, s) for s in sizes]
        given[name] = (ranges, listed, list((default or {}).get(name, ())))
    return Source._of(_moka.edit.set_sizes(_source_of(model)._source, given))


def set_labels(
    model: Editable, labels: Sequence[Union[str, int]], *, output: str = "", label: str = "classLabel", probabilities: str = "classLabel_probs"
) -> Source:
    """Makes a classifier of an ML program or a neural network, or replaces the labels of a classifier.

    output: the array with one number per label, where there are several. label, probabilities: names of the new outputs."""
    return Source._of(_moka.edit.set_labels(_source_of(model)._source, list(labels), output, label, probabilities))


def remove_labels(model: Editable) -> Source:
    """Makes an ML program or a neural network, which returns the probabilities, of a classifier."""
    return Source._of(_moka.edit.remove_labels(_source_of(model)._source))


def strip_weights(model: Editable, seed: Optional[int] = None) -> Source:
    """Replaces the weights of ML programs and neural networks by zeros, or by random numbers of this seed, of the same size."""
    return Source._of(_moka.edit.strip_weights(_source_of(model)._source, seed))


def set_target(model: Editable, target: str) -> Source:
    """Raises the specification version to that of a system, "ios18", and the opset of ML programs with it. For iOS 18 and later,
    rewrites palettized and sparse weights as the operations of iOS 18."""
    return Source._of(_moka.edit.set_target(_source_of(model)._source, target))


def cut(model: Editable, inputs: Sequence[str] = (), outputs: Sequence[str] = ()) -> Source:
    """A model that begins at `inputs` and ends at `outputs`: features, values or operations. An empty list leaves that end as it is.

    Inputs, operations and weights that are not needed are dropped."""
    return Source._of(_moka.edit.cut(_source_of(model)._source, list(inputs), list(outputs)))


def bisect(model: Editable) -> Tuple[Source, Source]:
    """Two models that run one after the other, of about the same size of weights. The second reads what the first returns, and perhaps inputs
    of the model. `bisect_into_pipeline` joins them."""
    first, second = _moka.edit.bisect(_source_of(model)._source)
    return Source._of(first), Source._of(second)


def bisect_into_pipeline(model: Editable) -> Source:
    """A pipeline of the two halves of an ML program, with the features of the model."""
    return Source._of(_moka.edit.bisect_into_pipeline(_source_of(model)._source))


def join(models: Mapping[str, Editable]) -> Source:
    """A pipeline of models by the names of the stages, which run in this order.

    A model reads what earlier ones return under the names of its inputs. The pipeline returns what no later model reads."""
    return Source._of(_moka.edit.join([(name, _source_of(model)._source) for name, model in models.items()]))


def extract_stage(model: Editable, stage: Union[str, int]) -> Source:
    """A model of a pipeline, by the name of the stage or its number from 0 on."""
    return Source._of(_moka.edit.extract_stage(_source_of(model)._source, str(stage)))


def inline_pipeline(model: Editable) -> Source:
    """One ML program of a pipeline of ML programs."""
    return Source._of(_moka.edit.inline_pipeline(_source_of(model)._source))


def extract_function(model: Editable, function: str) -> Source:
    """A model that has one function of an ML program only."""
    return Source._of(_moka.edit.extract_function(_source_of(model)._source, function))


def add_function(model: Editable, name: str, other: Editable, function: str = "") -> Source:
    """Adds a function of another ML program under a new name: its default function, or `function`. Equal weights are stored once."""
    return Source._of(_moka.edit.add_function(_source_of(model)._source, name, _source_of(other)._source, function))


def set_default_function(model: Editable, function: str) -> Source:
    """Chooses the function that runs when none is asked for."""
    return Source._of(_moka.edit.set_default_function(_source_of(model)._source, function))


def set_metadata(
    model: Editable,
    *,
    short_description: Optional[str] = None,
    author: Optional[str] = None,
    license: Optional[str] = None,
    version: Optional[str] = None,
    user_defined: Optional[Mapping[str, str]] = None,
    features: Optional[Mapping[str, str]] = None,
) -> Source:
    """Sets texts of the description; an empty text removes one. features: descriptions of features, by name."""
    source = _source_of(model)._source
    texts = {"shortDescription": short_description, "author": author, "license": license, "versionString": version}
    for field, text in texts.items():
        if text is not None:
            source = _moka.edit.set_metadata(source, field, text)
    for key, text in (user_defined or {}).items():
        source = _moka.edit.set_user_defined(source, key, text)
    for name, text in (features or {}).items():
        source = _moka.edit.describe_feature(source, name, text)
    return Source._of(source)


def check(model: Editable) -> None:
    """Raises what loading the model would raise for a model that contradicts itself."""
    _moka.edit.check(_source_of(model)._source)

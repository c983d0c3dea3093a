# SPDX-License-Identifier: Apache-2.0
"""Builds models and saves them as .mlmodel and .mlpackage.

    from moka import build

    program = build.Program("ios16")
    x = program.input("x", build.array((1, 3, 8, 8)))
    y = program.relu(x=program.conv(x=x, weight=weight, pad_type="same"))
    program.output(y, "y")
    program.save("model.mlpackage")

`Program` is for ML programs. Neural networks, classic models and pipelines are messages of the specification: `model` makes such a
message, and the caller fills in its fields. `open` reads a saved model, which can be changed and saved again.
"""

import os
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import _files, _moka
from ._message import Message, Messages
from ._asset import ModelAsset
from ._model import Model
from ._moka.build import ProgramValue

Range = Tuple[int, int]
Path = Union[str, "os.PathLike[str]"]


class Feature:
    """The type of an input, an output or a state."""

    def __init__(self, make: Callable[[str, str, bool], "_moka.FeatureDescription"], description: str, optional: bool) -> None:
        self._make, self.description, self.optional = make, description, optional

    def named(self, name: str) -> "_moka.FeatureDescription":
        return self._make(name, self.description, self.optional)


def _sizes(shape: Sequence[Union[int, Range]]) -> Tuple[List[int], List[Range]]:
    """The default shape, and the ranges if any size has one."""
    ranges = [(s[0], s[1]) if isinstance(s, (tuple, list)) else (s, s) for s in shape]
    if all(lower == upper for lower, upper in ranges):
        return [lower for lower, _ in ranges], []
    return [lower for lower, _ in ranges], ranges


def array(
    shape: Sequence[Union[int, Range]] = (),
    dtype: Any = np.float32,
    *,
    default: Optional[Sequence[int]] = None,
    shapes: Sequence[Sequence[int]] = (),
    value: Optional[float] = None,
    description: str = "",
    optional: bool = False,
) -> Feature:
    """A multi-array. A size is a number or a range (lower, upper), upper -1 for any.

    default: the default shape if sizes have ranges. shapes: the allowed shapes, the first of which is the default. value: all
    elements have this value if an optional input is missing."""
    name = np.dtype(dtype).name
    sizes, ranges = _sizes(shape if not shapes else shapes[0])
    sizes = sizes if default is None else list(default)
    listed = [list(s) for s in shapes]
    make = _moka.build.make_array_feature
    return Feature(lambda n, d, o: make(n, "array", d, o, name, sizes, ranges, listed, value), description, optional)


def state(shape: Sequence[int], dtype: Any = np.float16) -> Feature:
    """A state: an array that a program keeps between predictions."""
    name, sizes = np.dtype(dtype).name, list(shape)
    make = _moka.build.make_array_feature
    return Feature(lambda n, d, o: make(n, "state", d, o, name, sizes, [], [], None), "", False)


def image(
    width: Union[int, Range],
    height: Union[int, Range],
    color: str = "rgb",
    *,
    default: Optional[Tuple[int, int]] = None,
    sizes: Sequence[Tuple[int, int]] = (),
    description: str = "",
    optional: bool = False,
) -> Feature:
    """An image: 'rgb', 'bgr', 'grayscale' or 'grayscale_float16'. A size is a number or a range.

    default: (width, height), where they have ranges. sizes: the allowed (width, height)."""
    (w, h), ranges = _sizes((width, height))
    size = (w, h) if default is None else default
    listed = [(width, height) for width, height in sizes]
    make = _moka.build.make_image_feature
    return Feature(lambda n, d, o: make(n, d, o, color, size, ranges, listed), description, optional)


def _plain(type: str) -> Callable[..., Feature]:
    def make(*, description: str = "", optional: bool = False) -> Feature:
        return Feature(lambda n, d, o: _moka.build.make_feature(n, type, d, o), description, optional)

    make.__name__ = type
    make.__doc__ = f"A feature of type {type}."
    return make


int64 = _plain("int64")
double = _plain("double")
string = _plain("string")


def dictionary(keys: type = str, *, description: str = "", optional: bool = False) -> Feature:
    """A dictionary from texts (str) or integers (int) to numbers."""
    make = _moka.build.make_keyed_feature
    return Feature(lambda n, d, o: make(n, "dictionary", d, o, keys is str, (0, -1)), description, optional)


def sequence(items: type = str, length: Range = (0, -1), *, description: str = "", optional: bool = False) -> Feature:
    """A sequence of texts (str) or integers (int)."""
    make = _moka.build.make_keyed_feature
    return Feature(lambda n, d, o: make(n, "sequence", d, o, items is str, length), description, optional)


def model(
    kind: str,
    inputs: Mapping[str, Feature],
    outputs: Mapping[str, Feature],
    *,
    version: int = 1,
    predicted: str = "",
    probabilities: str = "",
    **metadata: Any,
) -> Message:
    """A message Model with an empty model of a kind, such as "neuralNetwork", "treeEnsembleClassifier" or "pipeline".

    version: of the specification. predicted, probabilities: the outputs of a classifier or regressor. metadata: author, license,
    versionString, shortDescription, userDefined."""
    out = Message("Model", specificationVersion=version)
    description = out.description
    for field, features in (("input", inputs), ("output", outputs)):
        for name, feature in features.items():
            described = _moka.build.describe_feature(feature.named(name))
            getattr(description, field).append(Message._of(described))
    description.update(predictedFeatureName=predicted, predictedProbabilitiesName=probabilities)
    if metadata:
        description.metadata = metadata
    setattr(out, kind, {})
    return out


class Source:
    """A model as its files hold it: a specification and its weights.

    Made from a Model message, or opened with `open`. Changes of `specification` are saved with the model."""

    def __init__(self, specification: Message) -> None:
        self._source = _moka.build.ModelSource(specification._read())

    @classmethod
    def _of(cls, source: "_moka.build.ModelSource") -> "Source":
        out = cls.__new__(cls)
        out._source = source
        return out

    @property
    def specification(self) -> Message:
        return Message._of(self._source.specification())

    @property
    def weights(self) -> Dict[str, np.ndarray]:
        """The bytes of the weight files, by name."""
        return {name: self._source.weight_file(name) for name in self._source.weight_files()}

    def set_weights(self, name: str, data: Any) -> None:
        """Adds or replaces a weight file, such as "weights/weight.bin"."""
        self._source.set_weight_file(name, np.frombuffer(data, np.uint8))

    def add_stage(self, model: Union["Source", Message, Path], name: str) -> None:
        """Adds a model to this pipeline, with its weights."""
        self._source.add_stage(_source_of(model)._source, name)

    def save(self, path: Path, *, force: bool = False) -> str:
        """Writes an .mlpackage, or an .mlmodel for models without an ML program, by the end of the path. Replaces a model of that
        kind, which may be the one that was opened, and with force every file and model.

        Returns the path. Raises InvalidArgumentError, IOError."""
        destination = _files.path_of(path)
        self._source.save(destination, force)
        return destination

    def load(self, **options: Any) -> Model:
        """The model, ready to predict. options: those of Model."""
        return Model(ModelAsset(self.specification.serialize(), self.weights), **options)


class OnnxSource(Source):
    """An ONNX model converted to an ML program.

    inputs and outputs: the features in the order of the graph. Each has its name in the graph, its name in the program and its element
    type in ONNX; an element of a sequence also has its position. remarks: differences between the program and the graph, such as
    integers of 32 bits."""

    def __init__(self, made: "_moka.build.OnnxImport") -> None:
        self._source = made.source
        self.inputs, self.outputs, self.remarks = made.inputs, made.outputs, made.remarks


def _source_of(model: Union[Source, Message, Path, Any]) -> Source:
    """Also of a specification of coremltools, which is copied."""
    if isinstance(model, Source):
        return model
    specification = None if isinstance(model, Message) else _files.specification_of(model)
    if specification is not None:
        model = Message.parse("Model", specification)
    return Source(model) if isinstance(model, Message) else open(model)


def open(path: Path) -> Source:
    """Opens a saved model to change it. Reads its parts when they are needed. Raises what loading a model raises."""
    return Source._of(_moka.build.ModelSource.open(_files.path_of(path)))


def from_onnx(
    model: Union[Path, bytes],
    *,
    opset: str = "",
    dimensions: Optional[Mapping[str, int]] = None,
    shapes: Optional[Mapping[str, Sequence[int]]] = None,
    constants: Optional[Mapping[str, Any]] = None,
    lengths: Optional[Mapping[str, int]] = None,
    absent: Iterable[str] = (),
) -> "OnnxSource":
    """Converts an ONNX model to an ML program, which can be saved or loaded.

    model: a path, or the bytes of a model without external data.
    opset: opset of the program; None: the oldest one with all operations that the model needs.
    dimensions: sizes of named dimensions. shapes: shapes of inputs. Other dimensions stay flexible.
    constants: values of inputs that become constants. Core ML needs some parameters as constants.
    lengths: lengths of inputs that are sequences. Each element of a sequence `x` becomes an input `x_0`, `x_1` and so on, whose shape
    `shapes` may give.
    absent: optional inputs without a value.

    Raises UnsupportedError, which names the node and the operator."""
    options = _moka.build.OnnxImportOptions()
    options.opset = opset
    options.dimensions = dict(dimensions or {})
    options.shapes = {name: list(shape) for name, shape in (shapes or {}).items()}
    options.lengths = dict(lengths or {})
    options.absent = set(absent)
    for name, value in (constants or {}).items():
        options.set_constant(name, np.array(value, order="C"))
    if isinstance(model, bytes):
        return OnnxSource(_moka.build.import_onnx_bytes(model, options))
    return OnnxSource(_moka.build.import_onnx(_files.path_of(model), options))


def pipeline(
    stages: Iterable[Tuple[str, Union[Source, Message, Path]]],
    inputs: Mapping[str, Feature],
    outputs: Mapping[str, Feature],
    kind: str = "pipeline",
    **options: Any,
) -> Source:
    """A pipeline of models, each with its name. kind: also "pipelineClassifier" or "pipelineRegressor"; options: those of `model`.

    Its specification version is at least the newest of its models."""
    parts = [(name, _source_of(part)) for name, part in stages]
    newest = max([part.specification.specificationVersion for _, part in parts], default=1)
    out = Source(model(kind, inputs, outputs, **{**options, "version": max(newest, options.get("version", 1))}))
    for name, part in parts:
        out.add_stage(part, name)
    return out


class Program:
    """An ML program. Every operation of MIL is a method: ``program.conv(x=x, weight=weight, pad_type="same", name="first")``.

    Arguments are values of the program, arrays, numbers, texts and lists of them. Numbers and lists of numbers get the element type that
    the parameter needs; arrays keep their type. The program refers to arrays until it is saved, so they must not change. An operation
    returns its output, or a tuple of several. Errors name the operation and the parameter."""

    def __init__(self, opset: str = "ios17") -> None:
        self._builder = _moka.build.ProgramBuilder(opset)
        self.opset = opset

    def function(self, name: str) -> None:
        """Starts a function. Without a call, everything belongs to `main`. The first function is the default one."""
        self._builder.function(name)

    def input(self, name: str, feature: Feature) -> ProgramValue:
        """Adds an input: an array, or an image, whose value has the shape [1, channels, height, width]."""
        return self._builder.input(feature.named(name))

    def state(self, name: str, shape: Sequence[int], dtype: Any = np.float16) -> ProgramValue:
        """Adds a state, which read_state and coreml_update_state access."""
        return self._builder.state(name, np.dtype(dtype).name, list(shape))

    def constant(self, values: Any, type: str = "", name: str = "") -> ProgramValue:
        """A constant; type: an element type of MIL, such as "fp16" or "uint4"."""
        return self._builder.constant(np.ascontiguousarray(values), type, name)

    def op(self, type: str, *, name: str = "", **arguments: Any) -> Any:
        """Adds an operation by its name. Returns its output, a ProgramValue, or a tuple of several."""
        return self._add(type, arguments, name, [])

    def cond(self, pred: ProgramValue, true: Callable[[], Any], false: Callable[[], Any], name: str = "") -> Any:
        """Runs `true` or `false` and returns its result: a value, or a list of values."""
        return self._add("cond", {"pred": pred}, name, [true, false])

    def while_loop(self, loop_vars: Sequence[ProgramValue], condition: Callable[..., Any], body: Callable[..., Any], name: str = "") -> Any:
        """Repeats `body` while `condition` gives true. `body` returns the next values of its arguments."""
        return self._add("while_loop", {"loop_vars": list(loop_vars)}, name, [condition, body])

    def _add(self, type: str, arguments: Dict[str, Any], name: str, blocks: List[Callable[..., Any]]) -> Any:
        given = {key: value for key, value in arguments.items() if value is not None}
        out = self._builder.op(type, given, name, blocks)
        return out[0] if len(out) == 1 else tuple(out)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_") or name not in operations(self.opset):
            raise AttributeError(f"opset {self.opset} has no operation '{name}'")
        return lambda **arguments: self.op(name, **arguments)

    def __dir__(self) -> List[str]:
        return [*super().__dir__(), *operations(self.opset)]

    def output(self, value: ProgramValue, name: str = "", *, image: Optional[str] = None) -> None:
        """Makes a value an output of the function. image: the color of an image, for a value of shape [1, channels, height, width]."""
        if image is None:
            self._builder.output(value, name)
        else:
            self._builder.image_output(value, image, name)

    def classify(
        self, probabilities: ProgramValue, labels: Sequence[Union[str, int]], label: str = "classLabel", probabilities_name: str = "classLabel_probs"
    ) -> None:
        """Makes the program a classifier. Its outputs are the most probable label and a dictionary of all probabilities."""
        self._builder.classify(probabilities, list(labels), label, probabilities_name)

    def metadata(self, **texts: Any) -> None:
        """Sets short_description, author, license, version, and user_defined, a dict."""
        self._builder.metadata(texts)

    def mil(self) -> str:
        """The program as MIL text."""
        return self._builder.mil()

    def source(self) -> Source:
        return Source._of(self._builder.source())

    def save(self, path: Path, *, force: bool = False) -> str:
        """Writes an .mlpackage, as Source.save does. Weights go from their arrays to the file. Returns the path."""
        return self.source().save(path, force=force)

    def load(self, **options: Any) -> Model:
        """The model, ready to predict. options: those of Model."""
        return self.source().load(**options)


_operations: Dict[str, List[str]] = {}


def operations(opset: str = "ios18") -> List[str]:
    """The names of the operations in an opset."""
    if opset not in _operations:
        _operations[opset] = _moka.build.operations_of(opset)
    return _operations[opset]


def parameters(operation: str, opset: str = "ios18") -> Dict[str, str]:
    """The parameters of an operation and the values that they accept."""
    return {
        name: type + (", constant" if constant else "") + (", optional" if optional else "")
        for name, type, constant, optional in _moka.build.parameters_of(operation, opset)
    }


__all__ = [
    "Feature",
    "Message",
    "Messages",
    "Program",
    "ProgramValue",
    "Source",
    "array",
    "dictionary",
    "double",
    "image",
    "int64",
    "model",
    "open",
    "operations",
    "parameters",
    "pipeline",
    "sequence",
    "state",
    "string",
]

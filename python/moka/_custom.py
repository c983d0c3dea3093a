# SPDX-License-Identifier: Apache-2.0
"""Custom layers, operations of ML programs and models that are written in Python."""

import contextlib
import inspect
import os
import runpy
from typing import Any, Callable, Iterator, List, Optional, Sequence, Union

from . import _moka


def takes_info(factory: Any) -> bool:
    """Whether a factory has a parameter `info`."""
    try:
        return "info" in inspect.signature(factory).parameters
    except (TypeError, ValueError):
        return False


def _registers(register: Callable[[Any], None], made: Optional[Any]) -> Any:
    def decorate(factory: Any) -> Any:
        register(factory)
        return factory

    return decorate if made is None else decorate(made)


def register_layer(class_name: str, factory: Optional[Any] = None) -> Any:
    """Registers `factory` for custom layers of neural networks with this class name. Models that are already loaded do not
    change.

    `factory` is a class, or a function that makes an object, with Core ML's protocol:

    * `__init__(self, parameters)`: the layer's parameters by name. With a parameter `info` it also gets the layer's
      name, class_name, description and numbers of inputs and outputs.
    * `set_weights(self, weights)`, optional: read-only arrays of rank 1 that share the file's memory.
    * `output_shapes(self, input_shapes)`, optional: a shape for each output. Without it there is one output, which has
      the shape of input 0.
    * `evaluate(self, inputs, outputs)`: float32 arrays, of rank 5 in networks with the legacy mapping. It writes into
      the outputs, which are views of Moka's memory and must not be kept.

    * `shader(self, input_shapes)`, optional: what a GPU runs instead of evaluate, for inputs of these shapes, or None. A
      dict with `code`, the shader by kind, of which a device takes the first that it can: `{"spirv": bytes}`, or
      `{"glsl": str}`, which needs the program glslangValidator. Also `groups` (workgroups along x, y, z), `constants` (specialization constants), `parameters` (bytes of push constants),
      `buffers` (arrays, bound behind the inputs and outputs) and `seconds` (an estimate) where needed. See
      docs/custom-layers.md.

    Attributes of the object: `in_place = 0` lets the output have the memory of that input, which evaluate may then find
    in both; `channels_last = True` asks for arrays whose channels are the innermost elements.

    Also a decorator: `@moka.register_layer("Swish")`. Replaces an earlier class; loaded models keep theirs.
    """
    return _registers(lambda made: _moka.register_layer(class_name, made), factory)


def register_operation(
    name: str, factory: Optional[Any] = None, *, inputs: Sequence[str] = (), weights: Sequence[str] = ()
) -> Any:
    """Registers an operation of ML programs that Moka does not know. Models that are already loaded do not change.

    `factory` is as for register_layer. `inputs` and `weights` name the parameters that are passed to evaluate and to
    set_weights, in this order. Other constants become `parameters`. Other values are inputs, in the order of their names,
    if `inputs` is empty, and otherwise an error. Outputs have the element types that the program declares; float16
    arrives as float32. Raises InvalidArgumentError for Moka's own operations. Also a decorator.
    """
    return _registers(lambda made: _moka.register_operation(name, made, list(inputs), list(weights)), factory)


def unregister_layer(class_name: str) -> bool:
    """Removes a registration. Returns whether there was one. Models that are already loaded keep it."""
    return _moka.unregister_layer(class_name)


def unregister_operation(name: str) -> bool:
    """Removes a registration. Returns whether there was one. Models that are already loaded keep it."""
    return _moka.unregister_operation(name)


def registered_layers() -> List[str]:
    """The class names that are registered, sorted."""
    return _moka.registered_layers()


def registered_operations() -> List[str]:
    """The operations that are registered, sorted."""
    return _moka.registered_operations()


def register_model(name: str, model: Optional[Any] = None) -> Any:
    """Registers `model` for custom models of the class `name`, or in place of a model of Apple's systems:
    "visionFeaturePrint.scene.1", "visionFeaturePrint.objects.1", "audioFeaturePrint.sound.1", "textClassifier.1",
    "wordTagger.1", "gazetteer.1", "wordEmbedding.1". A name without the version stands for all versions. Models that are
    already loaded do not change.

    `model` is one of

    * a class with Core ML's protocol: `__init__(self, description, parameters)`, of which `description` has inputs and
      outputs, and `predict(self, inputs)`, which returns a dict of outputs;
    * a function that takes the dict of inputs and returns the dict of outputs;
    * the path of a model file. Its inputs and outputs are matched by name, or by order where the names differ.

    Also a decorator: `@moka.register_model("MyModel")`. Replaces an earlier one; loaded models keep theirs.
    """

    def register(made: Any) -> None:
        if isinstance(made, (str, os.PathLike)):
            _moka.register_model_file(name, os.fspath(made))
        else:
            _moka.register_model(name, made)

    return _registers(register, model)


def unregister_model(name: str) -> bool:
    """Removes a registration. Returns whether there was one. Models that are already loaded keep it."""
    return _moka.unregister_model(name)


def registered_models() -> List[str]:
    """The names of registered models, sorted."""
    return _moka.registered_models()


def set_linked_model_folders(*folders: Any) -> None:
    """Sets the folders that may contain files of linked models, also in subfolders. Initially there are none."""
    _moka.set_linked_model_folders([os.fspath(f) for f in folders])


def load_plugin(path: Union[str, "os.PathLike[str]"]) -> None:
    """Loads a plug-in: a shared library that registers layers, operations or models (docs/custom-layers.md), or a Python
    file, which is run.

    Raises NotFoundError if there is no such file, UnsupportedError if the library is not a plug-in.
    """
    path = os.fspath(path)
    if not path.endswith(".py"):
        _moka.load_plugin(path)
        return
    if not os.path.exists(path):
        raise _moka.NotFoundError(f"plug-in '{path}': there is no such file")
    runpy.run_path(path, run_name="moka_plugin")


@contextlib.contextmanager
def plugins(paths: Sequence[Union[str, "os.PathLike[str]"]]) -> Iterator[None]:
    """Loads plug-ins. At the end of the block, what is registered is again what was registered before."""
    if not paths:
        yield
        return
    registrations = _moka.Registrations()
    try:
        for path in paths:
            load_plugin(path)
        yield
    finally:
        registrations.restore()


def check_layers(on: bool = True) -> None:
    """Turns checks of custom layers on or off. With checks, outputs lie between guard pages, and inputs are checked to be
    unchanged. A layer that writes outside its outputs causes an error that names it, or ends the process at that write.
    Slow, for tests of layers. The environment variable MOKA_CHECK_LAYERS=1 turns the checks on."""
    _moka.set_check_layers(on)

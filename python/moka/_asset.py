# SPDX-License-Identifier: Apache-2.0
"""Models in memory and compiled folders."""

import os
import warnings
from typing import Any, List, Mapping, Optional, Union

from . import _files, _moka


def _read_only(name: str, data: Any) -> Union[bytes, memoryview]:
    """The bytes of an object. A buffer that is writable or not contiguous is copied."""
    if isinstance(data, bytes):
        return data
    try:
        view = memoryview(data)
    except TypeError:
        raise TypeError(f"{name}: expected bytes, got {type(data).__name__}") from None
    return view if view.readonly and view.c_contiguous else bytes(view)


class ModelAsset:
    """Core ML's MLModelAsset: a model in memory.

    specification: the bytes of an .mlmodel file, or coremltools' specification object.
    blobs: the weight files by the names that the program uses, e.g. {"weights/weight.bin": data}.

    Data is bytes or another object with the buffer protocol. A writable buffer is copied. A read-only buffer, such as a
    memoryview of a mapped file, is not copied and must not change while a loaded model uses it.
    """

    def __init__(self, specification: Any, blobs: Optional[Mapping[str, Any]] = None) -> None:
        specification = _files.specification_of(specification) or specification
        self.specification = _read_only("specification", specification)
        self.blobs = {name: _read_only(name, data) for name, data in (blobs or {}).items()}

    def __reduce__(self) -> Any:
        return ModelAsset, (bytes(self.specification), {name: bytes(data) for name, data in self.blobs.items()})


class SourceAsset(ModelAsset):
    """The model of a source that nobody changes. Its bytes are made when they are read."""

    def __init__(self, source: "_moka.build.ModelSource") -> None:
        self.source = source

    def __getattr__(self, name: str) -> Any:
        if name == "specification":
            self.specification = self.source.specification().serialize()
            return self.specification
        if name == "blobs":
            self.blobs = {file: self.source.weight_file(file).tobytes() for file in self.source.weight_files()}
            return self.blobs
        raise AttributeError(name)


def size_of(source: Union[str, ModelAsset, bytes]) -> int:
    """Bytes of the file, folder or data that a model was loaded from."""
    if isinstance(source, ModelAsset):
        return len(source.specification) + sum(len(data) for data in source.blobs.values())
    if isinstance(source, bytes):
        return len(source)
    if os.path.isfile(source):
        return os.path.getsize(source)
    return sum(os.path.getsize(os.path.join(folder, f)) for folder, _, files in os.walk(source) for f in files)


def compile_quietly(
    model: Union[str, "os.PathLike[str]", ModelAsset], folder: str, *, strict: bool = False, force: bool = False
) -> List[str]:
    """Compiles a model. Returns a sentence for each network that keeps its specification."""
    if isinstance(model, ModelAsset):
        return _moka.compile_asset(model.specification, model.blobs, folder, strict, force)
    return _moka.compile_model(_files.path_of(model), folder, strict, force)


def compile_model(
    model: Union[str, "os.PathLike[str]", ModelAsset],
    destination: Union[str, "os.PathLike[str]"],
    *,
    strict: bool = False,
    force: bool = False,
) -> str:
    """Compiles a model into the folder `destination` (X.mlmodelc). The folder does not refer to the source. What only the
    application or Apple's systems have, such as the class of a custom layer, is not needed.

    A neural network with a part whose compiled form is not known keeps its specification, which only Moka reads. A
    warning says so. With `strict` it is an UnsupportedError, and nothing is written.

    force: replaces models of any kind; otherwise only compiled ones. Other folders stay.

    Returns the folder's path. Raises what loading raises; UnsupportedError, InvalidArgumentError, IOError."""
    folder = _files.path_of(destination)
    for text in compile_quietly(model, folder, strict=strict, force=force):
        warnings.warn(text, stacklevel=2)
    return folder

# SPDX-License-Identifier: Apache-2.0
"""ONNX files."""

import os
from typing import Any, List, Optional, Union

from . import _files, _keys, _moka
from ._asset import ModelAsset
from ._model import Model, _restore, _restore_parameters


def _export(model: Any, path: Any, options: "_moka.OnnxExportOptions") -> "_moka.OnnxExport":
    destination = os.path.expanduser(os.fspath(path))
    if isinstance(model, Model):
        made_by, source = model._made_by
        if made_by is _restore_parameters:
            raise _moka.UnsupportedError("expected a model with the weights of its file, got one with replaced parameters")
        if made_by is not _restore:
            return _moka.export_mil_onnx(source[0], source[1], destination, options)
        unpacked, model = model._unpacked, source[0]
        if _keys.is_reader(model):
            raise _moka.UnsupportedError("expected a model from a path, bytes, a ModelAsset or MIL text, got one from a reader")
        if unpacked:
            model = unpacked.path
        if not options.function:
            options.function = source[1]["function"] or ""
    if isinstance(model, ModelAsset):
        return _moka.export_asset_onnx(model.specification, model.blobs, destination, options)
    if isinstance(model, (bytes, bytearray, memoryview)):
        return _moka.export_asset_onnx(bytes(model), {}, destination, options)
    return _moka.export_onnx(os.path.abspath(_files.path_of(model)), destination, options)


def _options(opset: Optional[int], function: Optional[str]) -> "_moka.OnnxExportOptions":
    options = _moka.OnnxExportOptions()
    options.opset = opset or 0
    options.function = function or ""
    return options


def to_onnx(
    model: Union[str, "os.PathLike[str]", Model, ModelAsset],
    path: Union[str, "os.PathLike[str]"],
    *,
    opset: Optional[int] = None,
    function: Optional[str] = None,
    external_data: bool = False,
    force: bool = False,
) -> "_moka.OnnxExport":
    """Writes a model of any kind as an ONNX file: the path of a model, or a model that was loaded.

    opset: 17 to 23; without it, the oldest one from 17 on in which ONNX has the model's operations.
    function: of an ML program.
    external_data: writes weights to `path`.data. Models above 64 MB always do.
    force: replaces files of any kind; otherwise only ONNX models.

    Raises UnsupportedError, which names an operation that ONNX cannot express; what loading raises; IOError."""
    options = _options(opset, function)
    options.external_data = external_data
    options.force = force
    return _export(model, path, options)


def check_onnx(
    model: Union[str, "os.PathLike[str]", Model, ModelAsset],
    *,
    opset: Optional[int] = None,
    function: Optional[str] = None,
) -> "List[_moka.UnsupportedOperation]":
    """All operations of the model that ONNX cannot express; nothing is written."""
    options = _options(opset, function)
    options.check = True
    return list(_export(model, "", options).unsupported)


__all__: List[str] = ["check_onnx", "to_onnx"]

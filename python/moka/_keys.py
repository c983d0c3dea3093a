# SPDX-License-Identifier: Apache-2.0
"""Keys of encrypted models, and models that the application reads itself."""

import os
from typing import Any, Callable, Optional, Union

Key = Union[str, bytes, "os.PathLike[str]", Callable[[str, bool], Optional[str]]]

IDENTITY = "AGE-SECRET-KEY-"


def source_of(key: Key) -> Callable[[str, bool], str]:
    """The key as a function of the model's path and a bool: True asks for a passphrase, False for an identity. The function
    returns "" if it has none."""
    if callable(key):
        function = key
        return lambda model, passphrase: function(model, passphrase) or ""
    if isinstance(key, os.PathLike):
        path = os.fspath(key)

        def from_file(model: str, passphrase: bool) -> str:
            from . import _moka

            return "" if passphrase else _moka.read_identity_file(os.path.expanduser(path))

        return from_file
    if isinstance(key, bytes):
        key = key.decode("utf-8")
    if not isinstance(key, str):
        raise TypeError(f"key: expected text, a path or a function, got {type(key).__name__}")
    text = key
    return lambda model, passphrase: text if passphrase != (IDENTITY in text) else ""


def is_reader(model: Any) -> bool:
    """Whether the object has a `size` and `read(offset, length)`; an open file has `seek` and no `size`."""
    return hasattr(model, "read") and hasattr(model, "size") and not hasattr(model, "seek")

# SPDX-License-Identifier: Apache-2.0
"""Encrypted models, in the format age v1 (docs/protecting.md).

    identity, recipient = moka.encryption.generate_key_pair()
    moka.encryption.encrypt_model("Net.mlpackage", "Net.mlpackage.age", recipients=[recipient])
    model = moka.Model("Net.mlpackage.age", key=identity)
"""

import os
from typing import NamedTuple, Optional, Sequence, Union

from . import _moka
from ._keys import Key, source_of

__all__ = ["KeyPair", "decrypt_model", "encrypt_model", "generate_key_pair"]


class KeyPair(NamedTuple):
    """An X25519 key pair in age's text form: the secret identity and the public recipient."""

    identity: str
    recipient: str


def generate_key_pair() -> KeyPair:
    """A new key pair."""
    return KeyPair(*_moka.generate_key_pair())


def encrypt_model(
    model: Union[str, "os.PathLike[str]"],
    destination: Union[str, "os.PathLike[str]"],
    *,
    recipients: Sequence[str] = (),
    passphrase: Optional[str] = None,
    work_factor: int = 18,
    force: bool = False,
) -> None:
    """Encrypts a model into one file, which every age tool opens.

    recipients: public keys "age1...". passphrase: instead of recipients. work_factor: 2 to this is scrypt's N; 18 takes
    256 MiB and about a second. force: replaces files of any kind; otherwise only encrypted models.
    """
    _moka.encrypt_model(os.fspath(model), os.fspath(destination), list(recipients), passphrase or "", work_factor, force)


def decrypt_model(
    model: Union[str, "os.PathLike[str]"],
    destination: Union[str, "os.PathLike[str]"],
    *,
    key: Optional[Key] = None,
    force: bool = False,
) -> None:
    """Writes the model in an encrypted file as plain files. `key` is that of moka.Model. force: replaces files of any kind;
    otherwise only models."""
    _moka.decrypt_model(os.fspath(model), os.fspath(destination), None if key is None else source_of(key), force)

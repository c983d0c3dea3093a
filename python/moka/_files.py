# SPDX-License-Identifier: Apache-2.0
"""Model files in all forms: paths, open files, bytes, archives and objects of coremltools."""

import os
import pathlib
import shutil
import tempfile
import weakref
import zipfile
from typing import Any, BinaryIO, List, Optional, Tuple, Union

import numpy as np

from . import _moka

_ENDINGS = (".wav", ".npy", ".npz", ".json", ".txt")


def path_of(file: Any) -> str:
    """The path of a file, with ~ as the home folder. Raises NotFoundError (no name), InvalidArgumentError (a name that is not UTF-8
    or has a zero byte)."""
    path = os.path.expanduser(os.fsdecode(file))
    if not path:
        raise _moka.NotFoundError("expected the path of a file, got an empty text")
    try:
        is_name = b"\0" not in path.encode()
    except UnicodeEncodeError:
        is_name = False
    if not is_name:
        raise _moka.InvalidArgumentError(f"{path!r}: expected a path in UTF-8 without zero bytes")
    return path


def name_of(file: Any) -> str:
    """The name of an open file in messages."""
    name = getattr(file, "name", None)
    return name if isinstance(name, str) else f"<{type(file).__name__}>"


def contents(file: Any) -> bytes:
    """The rest of an open file, which must be binary."""
    try:
        data = file.read()
    except ValueError as e:  # the file is closed
        raise TypeError(f"{name_of(file)}: {e}") from None
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"{name_of(file)}: expected a file opened for bytes, as by open(path, 'rb')")
    return bytes(data)


def as_file(file: Any) -> Tuple[str, Optional[bytes]]:
    """The path of a file with numbers, text or sound, and None; or the name of an open file and its contents."""
    if hasattr(file, "read"):
        data = contents(file)
        name = name_of(file)
        return name if os.path.splitext(name)[1] else name + ".txt", data
    path = path_of(file)
    if isinstance(file, str) and not path.lower().endswith(_ENDINGS):
        raise TypeError(f"a file of it ends with {', '.join(_ENDINGS[:-1])} or {_ENDINGS[-1]}")
    if not os.path.exists(path):
        raise _moka.NotFoundError(f"{path}: does not exist")
    return path, None


def read_picture(file: Union[str, bytes, "os.PathLike[str]", BinaryIO]) -> np.ndarray:
    """The pixels of a PNG, JPEG or WebP file, given as a path, an open file or its bytes."""
    if isinstance(file, (bytes, bytearray, memoryview)):
        return _moka.read_picture(bytes(file), "<bytes>")
    if hasattr(file, "read"):
        return _moka.read_picture(contents(file), name_of(file))
    path = path_of(file)
    try:
        data = pathlib.Path(path).read_bytes()
    except FileNotFoundError:
        raise _moka.NotFoundError(f"{path}: does not exist") from None
    except OSError as e:
        raise _moka.IOError(f"{path}: {e.strerror}") from None
    return _moka.read_picture(data, path)


def is_zip(data: bytes) -> bool:
    return data.startswith((b"PK\x03\x04", b"PK\x05\x06"))


class Unpacked:
    """The model in a ZIP archive, extracted to a folder that exists as long as this object."""

    def __init__(self, archive: Union[str, BinaryIO], name: str) -> None:
        folder = tempfile.mkdtemp(prefix="moka-zip-")
        weakref.finalize(self, _remove, folder, os.getpid())
        try:
            with zipfile.ZipFile(archive) as z:
                size = sum(member.file_size for member in z.infolist())
                if size > shutil.disk_usage(folder).free:
                    raise _moka.IOError(f"{name}: unpacked it takes {size} bytes, more than {folder} has room for")
                z.extractall(folder)
        except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError) as e:
            if isinstance(e, _moka.Error):
                raise
            raise _moka.MalformedModelError(f"{name}: cannot be unpacked: {e}") from e
        except OSError as e:
            raise _moka.IOError(f"{name}: cannot be unpacked: {e}") from e
        found = _models_in(folder)
        if len(found) != 1:
            listed = ", ".join(sorted(os.path.relpath(f, folder) for f in found)) or "none"
            raise _moka.MalformedModelError(
                f"{name}: expected an archive with one .mlmodel, .mlpackage or .mlmodelc, got {listed}"
            )
        self.path = found[0]


def _models_in(folder: str) -> List[str]:
    if os.path.exists(os.path.join(folder, "Manifest.json")):
        return [folder]  # the contents of a package, without its folder
    found: List[str] = []
    for at, folders, files in os.walk(folder):
        for name in list(folders):
            if name == "__MACOSX":
                folders.remove(name)
            elif name.endswith((".mlpackage", ".mlmodelc")):
                found.append(os.path.join(at, name))
                folders.remove(name)
        found += [os.path.join(at, f) for f in files if f.endswith(".mlmodel") and not f.startswith("._")]
    return found


def _remove(folder: str, pid: int) -> None:
    if os.getpid() == pid:  # a forked child does not delete its parent's files
        shutil.rmtree(folder, ignore_errors=True)


def specification_of(model: Any) -> Optional[bytes]:
    """The bytes of a specification, coremltools' Model_pb2.Model; None for anything else."""
    if hasattr(model, "SerializeToString") and hasattr(model, "DESCRIPTOR"):
        kind = model.DESCRIPTOR.full_name
        if not kind.endswith("Specification.Model"):
            raise TypeError(f"expected a specification of type CoreML.Specification.Model, got {kind}")
        return bytes(model.SerializeToString())
    return None


def of_coremltools(model: Any) -> Optional[Tuple[Optional[str], Optional[bytes]]]:
    """The package's path or the specification of a coremltools model; None for anything else."""
    if not (hasattr(model, "get_spec") and hasattr(model, "predict")):
        return None
    package = getattr(model, "package_path", None)
    if package and os.path.exists(package):
        return package, None
    return None, specification_of(model.get_spec())


def plain(model: Any) -> Any:
    """The path of the package or the bytes of the specification of what coremltools made; anything else as it is."""
    converted = of_coremltools(model)
    if converted is not None:
        model = converted[0] or converted[1]
    specification = specification_of(model)
    return model if specification is None else specification

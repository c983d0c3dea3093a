# SPDX-License-Identifier: Apache-2.0
"""The viewer's page of a model, for notebooks and browsers."""

import json
import os
import pathlib
import subprocess
import tempfile
import weakref
import webbrowser

from typing import Any, Dict, Optional, Union

from . import _moka
from ._command import command, environment
from ._reports import frame


def _stop(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.wait()
    if process.stdout:
        process.stdout.close()


class View:
    """The page of `moka view`: graph, weights with their statistics, and description. Displays in notebooks as a frame that
    needs no server and no network. `open` adds predictions, values and times."""

    def __init__(self, path: str, kept: Any = None) -> None:
        """path: of the model. kept: what keeps it there."""
        self._path, self._kept = path, kept
        self._page: Optional[str] = None
        self._address: Optional[str] = None

    @property
    def page(self) -> str:
        """The page as one text of HTML. Raises Error for a build without the viewer."""
        if self._page is None:
            with tempfile.TemporaryDirectory(prefix="moka-view-") as folder:
                file = pathlib.Path(folder, "model.html")
                done = subprocess.run(command("view", self._path, "-o", str(file)), env=environment(), stderr=subprocess.PIPE)
                if done.returncode != 0:
                    raise _moka.Error(done.stderr.decode(errors="replace").strip())
                self._page = file.read_text(encoding="utf-8")
        return self._page

    def save(self, path: Union[str, "os.PathLike[str]"], *, force: bool = False) -> None:
        """Writes the page as a file. Replaces a page of Moka, and with force every file. Raises InvalidArgumentError, IOError."""
        _moka.write_page(os.fspath(path), self.page, force)

    def serve(self) -> str:
        """Starts a server on this machine that also predicts and measures, and returns its address. It ends with the View or
        with Python."""
        if self._address is None:
            # A pipe that nobody reads would stop the server at one of its warnings.
            with tempfile.TemporaryFile("w+") as messages:
                process = subprocess.Popen(
                    command("view", self._path, "--no-open"), env=environment(), stdout=subprocess.PIPE, stderr=messages, text=True
                )
                address = process.stdout.readline().strip() if process.stdout else ""
                if not address:
                    _stop(process)
                    messages.seek(0)
                    raise _moka.Error(messages.read().strip())
            self._address = address
            weakref.finalize(self, _stop, process)
        return self._address

    def open(self) -> None:
        """Opens the served page in a browser."""
        webbrowser.open(self.serve())

    def __repr__(self) -> str:
        return f"<moka view of {os.path.basename(self._path)}>"

    def _repr_html_(self) -> str:
        return frame(self.page, os.path.basename(self._path))


def view_of_asset(specification: bytes, blobs: Dict[str, Any]) -> View:
    """The page of a model in memory, which is written as a package while the View exists."""
    folder = tempfile.TemporaryDirectory(prefix="moka-view-")
    package = pathlib.Path(folder.name, "model.mlpackage")
    data = package / "Data" / "com.apple.CoreML"
    (data / "weights").mkdir(parents=True)
    (data / "model.mlmodel").write_bytes(specification)
    for name, content in blobs.items():
        file = (data / name).resolve()
        if data.resolve() not in file.parents:
            raise _moka.InvalidArgumentError(f"weight file '{name}': expected a name inside the package")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    entry = {"author": "com.apple.CoreML", "description": "CoreML Model Specification"}
    manifest = {
        "fileFormatVersion": "1.0.0",
        "itemInfoEntries": {
            "model": {**entry, "name": "model.mlmodel", "path": "com.apple.CoreML/model.mlmodel"},
            "weights": {**entry, "name": "weights", "path": "com.apple.CoreML/weights"},
        },
        "rootModelIdentifier": "model",
    }
    (package / "Manifest.json").write_text(json.dumps(manifest))
    return View(str(package), folder)

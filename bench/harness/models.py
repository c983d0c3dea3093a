# SPDX-License-Identifier: Apache-2.0
"""The models of a run, built once into a cache folder and reused.

A net's folder is named after the net and a hash of everything that affects its numbers. Inside, each engine's model has a
folder named after the engine, the precision and a hash of the engine's file and package versions. A folder without done.json
is incomplete and is built again.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import engines
import nets

HERE = pathlib.Path(__file__).resolve().parent
TIMEOUT = 1800  # seconds for one step


def digest(*parts):
    joined = hashlib.sha256()
    for part in parts:
        joined.update(part if isinstance(part, bytes) else json.dumps(part, sort_keys=True).encode())
        joined.update(b"\0")
    return joined.hexdigest()[:12]


def folder_bytes(folder):
    return sum(f.stat().st_size for f in pathlib.Path(folder).rglob("*") if f.is_file())


def package_versions(names):
    import importlib.metadata

    found = {}
    for name in names:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found


class InUse(Exception):
    """Another run uses the cache."""


class Cache:
    def __init__(self, root, logs, timeout=TIMEOUT):
        self.root, self.logs, self.timeout = pathlib.Path(root), pathlib.Path(logs), timeout
        self.logs.mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def locked(self):
        """Locks the cache. Two runs would remove each other's unfinished models and disturb each other's times."""
        self.root.mkdir(parents=True, exist_ok=True)
        with open(self.root / "lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InUse(f"{self.root} is in use by another run") from None
            yield

    def step(self, folder, log, arguments):
        """Runs one step of build.py for `folder` and returns done.json. A failed step runs again only if its key changed or its
        folder was removed."""
        done = folder / "done.json"
        if done.is_file():
            return json.loads(done.read_text())
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        start = time.monotonic()
        result = self.ask(log, arguments)
        result["seconds"] = round(time.monotonic() - start, 1)
        if result.get("reason"):
            for entry in folder.iterdir():
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        result["size"] = folder_bytes(folder)
        done.write_text(json.dumps(result))
        return result

    def ask(self, log, arguments):
        """The answer of a step of build.py."""
        with open(self.logs / f"{log}.log", "wb") as out:
            process = subprocess.Popen([sys.executable, str(HERE / "build.py"), *arguments], stdout=subprocess.PIPE, stderr=out,
                                       stdin=subprocess.DEVNULL, start_new_session=True)
            try:
                answer, _ = process.communicate(timeout=self.timeout)
                lines = answer.decode().strip().splitlines()
                return json.loads(lines[-1]) if lines else {"reason": ended(process.returncode, self.logs / f"{log}.log")}
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.wait()
                return {"reason": f"not converted within {self.timeout} s"}
            except BaseException:
                os.killpg(process.pid, 9)
                process.wait()
                raise

    def net(self, name):
        """(folder, reason) of the net with its inputs and expected outputs. The reason is set if the net is not available."""
        made_by = package_versions(("torch", "torchvision", "transformers"))
        key = digest(nets.source(name), (HERE / "network.py").read_bytes(), made_by)
        folder = self.root / f"{name}-{key}"
        result = self.step(folder, name, ["net", name, str(folder)])
        return folder, result.get("reason")

    def floor(self, name, net_folder):
        """PyTorch's own error when the weights are rounded to float16, or None if unknown."""
        key = digest((HERE / "floor.py").read_bytes())
        return self.step(net_folder / f"floor-{key}", f"{name}-floor", ["floor", name, str(net_folder)]).get("floor")

    def exported(self, name, net_folder):
        """The answers of the net as ONNX, by moka and by onnxruntime (harness/exported.py), or the reason why there are none."""
        versions = {**engines.versions("moka"), **engines.versions("onnxruntime")}
        key = digest((HERE / "exported.py").read_bytes(), versions, engines.module("moka").build())
        folder = net_folder / f"exported-{key}"
        return self.step(folder, f"{name}-exported", ["exported", name, str(net_folder), str(folder)])

    def model(self, name, net_folder, engine, precision):
        """The folder of the net for an engine, and done.json's content."""
        key = digest(engines.source(engine), engines.versions(engine))
        folder = net_folder / f"{engine}-{precision}-{key}"
        return folder, self.step(folder, f"{name}-{engine}-{precision}-convert",
                                 ["convert", name, str(net_folder), engine, precision, str(folder)])


def ended(code, log):
    """The reason for a process that ended without giving one."""
    lines = [line.strip() for line in pathlib.Path(log).read_text(errors="replace").splitlines() if line.strip()]
    how = f"killed by signal {-code}" if code and code < 0 else f"ended with status {code}"
    return f"{how}: {lines[-1][:200]}" if lines else how


def facts(net_folder):
    return json.loads((net_folder / "net.json").read_text())


def read_through(folder):
    """Reads a model's files once, so that they are in the page cache for every engine."""
    for path in pathlib.Path(folder).rglob("*"):
        if path.is_file():
            with open(path, "rb", buffering=0) as file:
                while file.read(1 << 22):
                    pass

# SPDX-License-Identifier: Apache-2.0
"""A process that holds one model in one engine. It reads requests and answers each with one line of JSON.

worker.py ENGINE FOLDER NET_FOLDER THREADS PRECISION CPUS [DEVICE]

DEVICE is a device that the engine's `load` supports, for example "vulkan". Without it the engine computes on the CPU.

{"do": "load"}                      {"import": s, "load": s, "first": s}
{"do": "run", "seconds": s, "least": n, "warm": n}   {"times": [s, ...], "cpu": s}: `warm` predictions that are not timed, then as
                                    many as fit into `seconds`, `least` at least
{"do": "check"}                     {"error": e, "outputs": {name: e}}: first and latest outputs against PyTorch's
{"do": "bits"}                      {"first": {name: hash}, "latest": {name: hash}}: of the outputs' bytes
{"do": "profile"}                   {"kernels": {name: s}}: the time of each kernel in one prediction, by an engine that says so
{"do": "peak"}                      {"peak": bytes}: of the whole process
{"do": "vulkan"}                    {"counts": {name: n}, "placement": ..., "driver": name}: what submissions of one prediction do,
                                    counted by the layer whose library MOKA_COUNT_LAYER names, and what the engine says of its plan
An answer with "reason" says what went wrong.
"""

import os
import sys

# Set before importing anything that starts threads.
os.sched_setaffinity(0, {int(cpu) for cpu in sys.argv[6].split(",")})
os.environ["OMP_NUM_THREADS"] = sys.argv[4]
# otherwise NumPy's threads would spin next to the engine's for their first tenth of a second
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import ctypes
import gc
import hashlib
import json
import pathlib
import time
import traceback

sys.path[0] = str(pathlib.Path(__file__).resolve().parent.parent)

import numpy as np

import engines
from harness import samples, stats


class Worker:
    def __init__(self, engine, folder, net_folder, threads, precision, device=None):
        self.engine, self.threads, self.precision, self.device = engines.module(engine), int(threads), precision, device
        self.folder, self.net_folder = pathlib.Path(folder), pathlib.Path(net_folder)
        with np.load(self.net_folder / "inputs.npz") as file:
            self.inputs = dict(file)
        self.first = self.latest = None

    def load(self):
        start = time.perf_counter()
        for name in self.engine.IMPORTS:
            __import__(name)
        imported = time.perf_counter()
        on = {"device": self.device} if self.device else {}
        self.predict = self.engine.load(self.folder, self.threads, self.precision, **on)
        loaded = time.perf_counter()
        prepare = getattr(self.predict, "prepare", None)
        if prepare:
            prepare(self.inputs)
        ready = time.perf_counter()
        outputs = self.predict(self.inputs)
        first = time.perf_counter() - ready
        self.first = {name: np.array(array) for name, array in outputs.items()}
        return {"import": imported - start, "load": loaded - imported, "first": first}

    def run(self, seconds, least, warm):
        predict, inputs, clock = self.predict, self.inputs, time.perf_counter
        for _ in range(warm):
            predict(inputs)
        times = []
        gc.collect()
        gc.disable()
        cpu, begin = time.process_time(), clock()
        while len(times) < least or clock() - begin < seconds:
            start = clock()
            outputs = predict(inputs)
            times.append(clock() - start)
        cpu = time.process_time() - cpu
        gc.enable()
        self.latest = {name: np.array(array) for name, array in outputs.items()}
        return {"times": times, "cpu": cpu}

    def check(self):
        own = self.folder / samples.ANSWERS
        with np.load(own if own.is_file() else self.net_folder / samples.ANSWERS) as file:
            expected = dict(file)
        errors = {}
        for found in (self.first, self.latest):
            if found is None:
                continue
            wanted = getattr(self.predict, "outputs", None) or list(expected)
            missing = [name for name in wanted if name not in found]
            if missing:
                raise ValueError(f"expected outputs {', '.join(wanted)}, got {', '.join(found)}")
            for name in wanted:
                errors[name] = max(errors.get(name, 0), stats.relative_error(found[name], expected[name]))
        return {"error": max(errors.values()), "outputs": errors}

    def bits(self):
        def hashes(outputs):
            return {name: hashlib.sha256(array.tobytes()).hexdigest() for name, array in outputs.items()}

        return {"first": hashes(self.first), "latest": hashes(self.latest)}

    def profile(self):
        return {"kernels": self.engine.profile(self.folder, self.threads, self.precision, self.inputs)}

    def peak(self):
        for line in pathlib.Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return {"peak": int(line.split()[1]) * 1024}
        return {"peak": 0}


    def vulkan(self):
        before = vulkan_counts()
        self.predict(self.inputs)
        counts = {name: after - before[name] for name, after in vulkan_counts().items()}
        placement = getattr(self.predict, "placement", None)
        return {"counts": counts, "placement": placement() if placement else None, "driver": count_layer().moka_count_device().decode()}


def count_layer():
    layer = ctypes.CDLL(os.environ["MOKA_COUNT_LAYER"])
    layer.moka_count_device.restype = ctypes.c_char_p
    return layer


def vulkan_counts():
    """The counts of all submissions of this process (struct Counts in vulkan/count_layer.cpp)."""
    names = ("submissions", "dispatches", "copies", "barriers", "waits", "bytes", "copy_bytes", "pipelines")
    numbers = (ctypes.c_uint64 * len(names))()
    count_layer().moka_count_read(numbers)
    return dict(zip(names, numbers))


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # engines' output goes to the log
    worker = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            worker = worker or Worker(*sys.argv[1:6], *sys.argv[7:8])
            answer = getattr(worker, request.pop("do"))(**request)
        except Exception as error:
            traceback.print_exc()
            text = next((t.strip() for t in str(error).splitlines() if t.strip()), "")
            answer = {"reason": f"{type(error).__name__}: {text}"[:300]}
        print(json.dumps(answer), file=answers, flush=True)
    answers.flush()
    os._exit(0)


main()

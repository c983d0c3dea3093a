# SPDX-License-Identifier: Apache-2.0
"""The benchmark's connection to a worker."""

import json
import os
import pathlib
import select
import subprocess
import sys
import time

from harness.models import ended

HERE = pathlib.Path(__file__).resolve().parent


class Failed(Exception):
    """The reason why a worker gives no answer."""


class Worker:
    """A worker process that computes on `device` (None: the CPU), with the variables `more` added to its environment. `ask` raises
    Failed when the worker reports an error, dies or takes longer than `timeout` seconds."""

    def __init__(self, engine, folder, net_folder, threads, precision, cpus, log, program=HERE / "worker.py", more=None, device=None):
        self.log = pathlib.Path(log)
        with open(self.log, "wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, str(program), engine, str(folder), str(net_folder), str(threads), precision, ",".join(map(str, cpus)), *([device] if device else [])],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env={**os.environ, **(more or {})})
        self.rest = b""

    def ask(self, do, timeout=600, **more):
        try:
            self.process.stdin.write(json.dumps({"do": do, **more}).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failed(self.end()) from None
        answer = self.line(time.monotonic() + timeout, timeout)
        if "reason" in answer:
            raise Failed(answer["reason"])
        return answer

    def line(self, until, timeout):
        pipe = self.process.stdout.fileno()
        while b"\n" not in self.rest:
            if not select.select([pipe], [], [], max(0, until - time.monotonic()))[0]:
                self.close()
                raise Failed(f"no answer within {timeout} s")
            more = os.read(pipe, 1 << 16)
            if not more:
                raise Failed(self.end())
            self.rest += more
        line, self.rest = self.rest.split(b"\n", 1)
        return json.loads(line)

    def end(self):
        try:
            code = self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.close()
            code = self.process.returncode
        return ended(code, self.log)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                pipe.close()
            except BrokenPipeError:
                pass

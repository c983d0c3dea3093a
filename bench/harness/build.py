# SPDX-License-Identifier: Apache-2.0
"""Runs one step of building the models in a separate process, so that converters cannot affect the run.

build.py net NET FOLDER                        the net's folder of the cache
build.py convert NET FOLDER ENGINE PRECISION TARGET   the net for an engine, into the folder TARGET
build.py floor NET FOLDER                      {"floor": error} of PyTorch with weights of float16
build.py exported NET FOLDER TARGET            the answers of the net as ONNX, converted by moka into TARGET (harness/exported.py)

The last line of the standard output is JSON: {} or {"reason": text}.
"""

import contextlib
import io
import json
import os
import pathlib
import sys
import traceback
import warnings

sys.path[0] = str(pathlib.Path(__file__).resolve().parent.parent)

import engines
from harness import exported, floor, network

LONGEST_REASON = 300


def reason_of(error):
    """The kind of the error and the first nonempty line of its message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip(" -=^")]
    text = lines[0] if lines else ""
    if isinstance(error, engines.Refused):
        return text
    return f"{type(error).__name__}: {text}"[:LONGEST_REASON]


def step(arguments):
    what, net, folder, *rest = arguments
    if what == "net":
        network.make(net, folder)
    elif what == "floor":
        return {"floor": floor.of(network.Network(net, folder))}
    elif what == "exported":
        return exported.errors(network.Network(net, folder), rest[0])
    else:
        engine, precision, target = rest
        engines.module(engine).convert(network.Network(net, folder), pathlib.Path(target), precision)
    return {}


def main():
    warnings.simplefilter("ignore")
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # converters' output goes to the log
    result = {}
    try:
        with contextlib.redirect_stdout(io.TextIOWrapper(os.fdopen(2, "wb", 0, closefd=False), write_through=True)):
            result = step(sys.argv[1:])
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        result = {"reason": reason_of(error)}
    print(json.dumps(result), file=answer, flush=True)
    answer.close()
    os._exit(0)  # some converters' libraries hang or crash at the end of the process


main()

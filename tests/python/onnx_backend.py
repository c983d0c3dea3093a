# SPDX-License-Identifier: Apache-2.0
"""Moka as a backend of the package onnx, and onnx's own tests on it.

    python tests/python/onnx_backend.py [--kind node ...] [--filter TEXT] [--json FILE] [--failures]

Runs every test for which the package has data, in separate processes because a test may crash. Prints how many pass and why the others fail. With
`BackendTest(MokaBackend, __name__)` the same tests run under unittest.
"""

import argparse
import collections
import glob
import json
import os
import re
import signal
import sys
import time
import warnings

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.base import Backend, BackendRep
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

import moka

LIMIT = 20  # seconds for a test
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
FLOAT_TYPES = {"float", "double", "bfloat16", "float16"}


def array_of(value):
    if value is None:
        return None  # an optional without a value
    if isinstance(value, list):
        return [array_of(v) for v in value]
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)


def plain(array):
    """Numbers of types that NumPy lacks, such as float8, as float32."""
    return array if array.dtype.type.__module__ == "numpy" else array.astype(np.float32)


def fed(value, description):
    """A value of a test, converted for the program's input."""
    array = plain(value)
    if array.ndim == 0:
        array = array.reshape(1)
    return array.astype(description.dtype)


class MokaRep(BackendRep):
    """A model, imported when its inputs are known: parameters that Core ML wants constant are fixed to their values."""

    def __init__(self, model):
        self.graph = model.graph
        self.bytes = model.SerializeToString()
        self.names = [i.name for i in self.graph.input if i.name not in {t.name for t in self.graph.initializer}]
        self.fixed = {}

    def prepare(self, values):
        # Core ML has no sequences: each element is an input, and its shape is known now.
        lengths = {name: len(v) for name, v in values.items() if isinstance(v, list)}
        shapes = {"%s_%d" % (name, i): a.shape for name, v in values.items() if isinstance(v, list) for i, a in enumerate(v)}
        absent = [name for name, v in values.items() if v is None]
        self.source = moka.from_onnx(self.bytes, constants=self.fixed, lengths=lengths, shapes=shapes, absent=absent)
        self.model = self.source.load(compute_units="CPU_ONLY", threads=1)
        self.inputs = {f.name: f for f in self.model.description.inputs}

    def prepare_for(self, values):
        """Imports the model and fixes the inputs that must be constant."""
        # Core ML has no inputs without elements.
        self.fixed = {name: plain(v) for name, v in values.items() if isinstance(v, np.ndarray) and v.size == 0 and v.dtype != object}
        while True:
            try:
                return self.prepare(values)
            except moka.UnsupportedError as e:
                asked = re.search(r"input '([^']*)'\): expected a constant", str(e))
                if not asked:
                    raise
                parameters = [n for n, v in values.items() if getattr(v, "dtype", None) == np.int64 and v.ndim < 2]
                chosen = [asked.group(1)] if asked.group(1) in values else parameters
                new = {name: values[name] for name in chosen if name not in self.fixed}
                if not new:
                    raise
                self.fixed.update(new)

    def run(self, inputs, **kwargs):
        values = dict(zip(self.names, map(array_of, inputs)))
        self.prepare_for(values)
        given = {}
        for f in self.source.inputs:
            value = values[f.name]
            given[f.feature] = fed(value if f.element is None else value[f.element], self.inputs[f.feature])
        answer = self.model.predict(given)
        out = []
        for info in self.graph.output:
            found = [f for f in self.source.outputs if f.name == info.name]
            arrays = [answered(np.asarray(answer[f.feature]), info.type) for f in found]
            is_sequence = element_type(info.type)[1]
            out.append(arrays if is_sequence else arrays[0] if arrays else None)
        return tuple(out)


def element_type(declared):
    """The message for the tensors of a type, and whether the type is a sequence of tensors."""
    if declared.HasField("optional_type"):
        return element_type(declared.optional_type.elem_type)
    if declared.HasField("sequence_type"):
        return declared.sequence_type.elem_type.tensor_type, True
    return declared.tensor_type, False


def answered(array, declared):
    """An output of the program with ONNX's element type and rank."""
    tensor = element_type(declared)[0]
    if tensor.HasField("shape") and not tensor.shape.dim:
        array = array.reshape(())
    return array.astype(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type))


class MokaBackend(Backend):
    @classmethod
    def prepare(cls, model, device="CPU", **kwargs):
        return MokaRep(model)

    @classmethod
    def supports_device(cls, device):
        return device == "CPU"


def data_sets(case):
    """Inputs and outputs of a test."""
    if case.data_sets is not None:
        yield from case.data_sets
        return
    folder = case.model_dir
    for path in sorted(glob.glob(os.path.join(folder, "test_data_set_*"))):
        sets = []
        for kind in ("input", "output"):
            values = []
            for i in range(len(glob.glob(os.path.join(path, kind + "_*.pb")))):
                with open(os.path.join(path, "%s_%d.pb" % (kind, i)), "rb") as f:
                    tensor = onnx.TensorProto()
                    tensor.ParseFromString(f.read())
                values.append(numpy_helper.to_array(tensor))
            sets.append(values)
        yield tuple(sets)


def kind_of(value):
    """The length of a sequence, "tensor", or None."""
    return len(value) if isinstance(value, list) else None if value is None else "tensor"


def flat(values):
    """All tensors, including those in sequences."""
    return [a for v in values if v is not None for a in (v if isinstance(v, list) else [v])]


def check(case):
    model = case.model if case.model is not None else onnx.load(os.path.join(case.model_dir, "model.onnx"))
    sets = list(data_sets(case))
    rep = MokaBackend.prepare(model)
    for inputs, outputs in sets:
        expected, actual = [array_of(x) for x in outputs], rep.run(inputs)
        assert list(map(kind_of, expected)) == list(map(kind_of, actual))
        Runner.assert_similar_outputs(flat(expected), flat(actual), case.rtol, case.atol)


def run_here(cases, write):
    for name, case in cases:
        begin = time.time()
        signal.alarm(LIMIT)  # ends the process
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                check(case)
            result, why = "pass", ""
        except moka.Error as e:
            result, why = type(e).__name__, str(e)
        except AssertionError as e:
            result, why = "differs", " ".join(str(e).split())
        except Exception as e:
            result, why = "harness", "%s: %s" % (type(e).__name__, e)
        signal.alarm(0)
        write(json.dumps([name, result, why[:600], time.time() - begin]) + "\n")


def run_all(cases):
    """Name -> (result, reason). A process that dies fails the test that it was running."""
    results = {}
    todo = list(cases)
    while todo:
        batch = todo[:100]
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read_end)
            with os.fdopen(write_end, "w", buffering=1) as out:
                run_here(batch, out.write)
            os._exit(0)
        os.close(write_end)
        done = 0
        with os.fdopen(read_end) as lines:
            for line in lines:
                name, result, why, seconds = json.loads(line)
                results[name] = (result, why, seconds)
                done += 1
        status = os.waitpid(child, 0)[1]
        if done < len(batch):
            results[batch[done][0]] = ("crash", "the process ended with status %d" % status, 0)
            done += 1
        todo = todo[done:]
        if sys.stderr.isatty() or os.environ.get("PROGRESS"):
            print("\r%d tests, %d to go " % (len(results), len(todo)), end="", file=sys.stderr)
    return results


def load(kinds, pattern):
    out = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in kinds:
            for case in load_model_tests(kind=kind):
                if re.search(pattern, case.name):
                    out.append((kind + "/" + case.name, case))
    return out


def operators_of(case):
    model = case.model if case.model is not None else onnx.load(os.path.join(case.model_dir, "model.onnx"), load_external_data=False)
    return [n.op_type for n in model.graph.node]


def short(why):
    """A reason without the parts that differ from test to test."""
    why = re.sub(r"'[^']*'", "'..'", why)
    return re.sub(r"-?\d[\d.e+-]*", "N", why)[:130]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", action="append", choices=KINDS)
    parser.add_argument("--filter", default="")
    parser.add_argument("--json")
    parser.add_argument("--failures", action="store_true", help="list every test that fails")
    parser.add_argument("--least", type=int, default=0, help="exit with status 1 when fewer tests pass")
    options = parser.parse_args()
    cases = load(options.kind or KINDS, options.filter)
    results = run_all(cases)
    by_name = dict(cases)
    counts = collections.Counter((name.split("/")[0], result) for name, (result, _, _) in results.items())
    for kind in KINDS:
        row = {result: n for (k, result), n in counts.items() if k == kind}
        if row:
            print("%-18s %5d of %5d pass   %s" % (kind, row.get("pass", 0), sum(row.values()),
                  ", ".join("%d %s" % (n, r) for r, n in sorted(row.items()) if r != "pass")))
    reasons = collections.Counter()
    for name, (result, why, _) in results.items():
        if result != "pass":
            reasons[result + ": " + short(why)] += 1
    for reason, n in reasons.most_common(60):
        print("%5d  %s" % (n, reason))
    if options.failures:
        for name, (result, why, _) in sorted(results.items()):
            if result != "pass":
                print("%-60s %s: %s" % (name, result, why[:300]))
    if options.json:
        with open(options.json, "w") as f:
            json.dump({name: {"result": r, "why": why, "seconds": round(s, 4), "operators": sorted(set(operators_of(by_name[name])))}
                       for name, (r, why, s) in sorted(results.items())}, f, indent=1)
    passed = sum(r == "pass" for r, _, _ in results.values())
    print(f"{passed} of {len(results)} tests passed")
    sys.exit(passed < options.least)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Writes conformance cases: a MIL program, its inputs, and the outputs that numpy (or another library) computed.

A family's file in cases/ calls `op_case` for each case. Only generate.py calls `write(op)`. The expected values must come
from outside Moka: numpy, scipy, PyTorch, onnxruntime, or coremltools' own value inference.
"""
import json
import os

import numpy as np

CASES = {}

_DTYPES = {
    "float16": "fp16", "float32": "fp32", "float64": "fp64", "int8": "int8", "int16": "int16", "int32": "int32",
    "int64": "int64", "uint8": "uint8", "uint16": "uint16", "uint32": "uint32", "uint64": "uint64", "bool": "bool",
}


def dtype_name(a):
    """MIL's name of the element type of an array; strings are "string"."""
    a = np.asarray(a)
    return "string" if a.dtype.kind in "US" else _DTYPES[a.dtype.name]


def type_text(a, shape=None):
    """MIL text of the type of an array; `shape` may hold None for unknown dimensions."""
    a = np.asarray(a)
    dims = a.shape if shape is None else shape
    return "tensor<%s, [%s]>" % (dtype_name(a), ", ".join("?" if d is None else str(d) for d in dims))


def _scalar(v, kind):
    if kind == "string":
        return json.dumps(str(v))
    if kind == "bool":
        return "true" if v else "false"
    if kind in ("fp16", "fp32", "fp64"):
        v = float(v)
        if np.isnan(v):
            return "nan"
        if np.isinf(v):
            return "inf" if v > 0 else "-inf"
        return v.hex()
    return str(int(v))


def literal(a):
    """MIL text of a constant: `tensor<int32, [2]>([1, 2])`."""
    a = np.asarray(a)
    kind = dtype_name(a)

    def nest(x):
        if x.ndim == 0:
            return _scalar(x.item() if kind != "string" else str(x), kind)
        return "[%s]" % ", ".join(nest(y) for y in x)

    return "%s(%s)" % (type_text(a), nest(a))


def array_json(a):
    a = np.asarray(a)
    kind = dtype_name(a)
    flat = a.reshape(-1)
    if kind in ("fp16", "fp32", "fp64"):
        data = [float(v) if np.isfinite(v) else ("nan" if np.isnan(v) else ("inf" if v > 0 else "-inf")) for v in flat]
        if kind != "fp64":
            data = [float("%.9g" % v) if not isinstance(v, str) else v for v in data]
    elif kind == "bool":
        data = [bool(v) for v in flat]
    elif kind == "string":
        data = [str(v) for v in flat]
    else:
        data = [int(v) for v in flat]
    return {"dtype": kind, "shape": list(a.shape), "data": data}


def program_case(op, name, program, inputs, outputs, tolerance=None):
    """A case with a whole program as text. `inputs`, `outputs`: name -> array. Outputs are matched by order."""
    case = {"name": name, "program": program,
            "inputs": {k: array_json(v) for k, v in inputs.items()},
            "outputs": [dict(array_json(v), name=k) for k, v in outputs.items()]}
    if tolerance is not None:
        case["tolerance"] = tolerance
    cases = CASES.setdefault(op, [])
    assert all(c["name"] != name for c in cases), (op, name)
    cases.append(case)


def op_case(op, name, inputs, consts, outputs, opset="ios15", out_shapes=None, in_shapes=None, tolerance=None):
    """A program of one operation.

    inputs: parameter -> array, or list of arrays for a variadic parameter: function inputs.
    consts: parameter -> array, scalar or str (numpy dtype decides the MIL type; Python ints become int32, floats fp32):
            constants. A list of arrays is a tuple of constants.
    outputs: the expected arrays, in order.
    in_shapes / out_shapes: shapes with None to declare unknown dimensions.
    """
    feeds, params, args, body = {}, [], [], []
    for p, v in inputs.items():
        arrays = v if isinstance(v, list) else [v]
        names = [p if not isinstance(v, list) else "%s_%d" % (p, i) for i in range(len(arrays))]
        for n, a in zip(names, arrays):
            a = np.asarray(a)
            feeds[n] = a
            params.append("%s %s" % (type_text(a, (in_shapes or {}).get(n)), n))
        args.append((p, names[0] if not isinstance(v, list) else "(%s)" % ", ".join(names)))
    for p, v in consts.items():
        arrays = v if isinstance(v, list) and v and isinstance(v[0], np.ndarray) else [v]
        names = []
        for i, a in enumerate(arrays):
            if isinstance(a, bool):
                a = np.bool_(a)
            elif isinstance(a, int) or (isinstance(a, (list, tuple)) and all(isinstance(x, int) and not isinstance(x, bool) for x in a)):
                a = np.array(a, np.int32)
            elif isinstance(a, float):
                a = np.float32(a)
            a = np.asarray(a)
            n = "%s_%d" % (p, i) if arrays is v else p
            n = "c_" + n
            names.append(n)
            body.append("%s %s = const()[name = tensor<string, []>(\"%s\"), val = %s];" % (type_text(a), n, n, literal(a)))
        args.append((p, names[0] if arrays is not v else "(%s)" % ", ".join(names)))
    outs = {"y_%d" % i: np.asarray(a) for i, a in enumerate(outputs)}
    types = ["%s %s" % (type_text(a, (out_shapes or {}).get(n)), n) for n, a in outs.items()]
    body.append("%s = %s(%s)[name = tensor<string, []>(\"op\")];" % (
        ", ".join(types), op, ", ".join("%s = %s" % a for a in sorted(args))))
    text = "program(1.0)\n{\n    func main<%s>(%s) {\n%s\n        } -> (%s);\n}\n" % (
        opset, ", ".join(params), "\n".join("            " + s for s in body), ", ".join(outs))
    program_case(op, name, text, feeds, outs, tolerance)


def write_all(folder):
    """One JSON file per operation."""
    os.makedirs(folder, exist_ok=True)
    for op, cases in sorted(CASES.items()):
        with open(os.path.join(folder, op + ".json"), "w") as f:
            f.write('{"op": "%s", "cases": [\n' % op)
            f.write(",\n".join(json.dumps(c, allow_nan=False) for c in cases))
            f.write("\n]}\n")

# SPDX-License-Identifier: Apache-2.0
"""Compares ONNX files that Moka writes, run by onnxruntime, with recorded outputs or with Moka's own.

python tests/python/onnx_judge.py [-k TEXT] [--list] [--json FILE] [--networks FILE]: all cases of the corpus; exit code 1
when an answer differs. tests/python/test_to_onnx.py runs a sample of them.
"""

import argparse
import base64
import collections
import gzip
import json
import os
import pathlib
import re
import sys
import tempfile

import numpy as np

import moka

ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
CONFORMANCE = ROOT / "tests" / "conformance" / "golden"
MODELS = pathlib.Path(os.environ.get("MOKA_TEST_MODELS", ROOT.parent / "shared" / "models"))

RELATIVE = 1e-4  # of float32, against the larger of 1 and the expected number
STEP = 2.0**-10  # between neighbors of float16: both sides round their results

DTYPES = {"fp16": np.float16, "fp32": np.float32, "fp64": np.float64, "bool": np.bool_, "string": object}
ORT_TYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(int16)": np.int16,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
    "tensor(uint16)": np.uint16,
    "tensor(uint32)": np.uint32,
    "tensor(uint64)": np.uint64,
    "tensor(bool)": np.bool_,
    "tensor(string)": object,
}

# Answers that may differ, and why: runtimes of ONNX decide them.
NAN = "onnxruntime orders NaN and infinities in its own way"
EDGES = {
    "argsort/special_descending": NAN,
    "clip/nan_to_0.5_fp32": "onnxruntime ignores a limit that is NaN",
    "clip/nan_to_0.5_fp16": "onnxruntime ignores a limit that is NaN",
    "clip/-1_to_nan_fp32": "onnxruntime ignores a limit that is NaN",
    "clip/-1_to_nan_fp16": "onnxruntime ignores a limit that is NaN",
    "floor_div/zero_and_infinity": NAN,
    "max_pool/nan_and_infinity": NAN,
    "mod/zero_and_infinity": NAN,
    "reduce_argmax/nan_and_infinity": NAN,
    "reduce_argmin/nan_and_infinity": NAN,
    "reduce_max/nan": NAN,
    "reduce_min/nan": NAN,
    "resample/not_finite_is_outside": NAN,
    "sign/edges_fp16": NAN,
    "topk/special": NAN,
    "lstm/no_steps": "onnxruntime gives zeros for a layer without steps",
    "reduce_mean/no_elements": "onnxruntime gives 0 for the mean of nothing",
    "reduce_sum/int32_wraps": "onnxruntime's sums of integers saturate",
    "resample/documented_symmetric": "a position halfway between two elements, which rounds either way",
    "crop/unknown_sizes": "the default sizes, which the graph is made for, are smaller than what is cut off",
    "local_response_norm/negative_alpha_0.7": "onnxruntime refuses an alpha below 0",
    "local_response_norm/negative_alpha_0.75": "onnxruntime refuses an alpha below 0",
    "scatter_nd/ios17_outside": "onnxruntime refuses indices outside, which MIL ignores",
    "scatter/ios17_outside": "onnxruntime refuses indices outside, which MIL ignores",
    "scatter/ios17_outside_fp16": "onnxruntime refuses indices outside, which MIL ignores",
    "scatter_along_axis/ios17_outside": "onnxruntime refuses indices outside, which MIL ignores",
    "dict_vectorizer": "onnxruntime refuses an empty dictionary",
    "state_shared.mlmodel": "onnxruntime does not round a state of float16 that one model of a pipeline writes and another reads",
}
# Models that amplify rounding errors, and how far float32 may be off. docs/onnx.md compares both runtimes with float64.
ROUNDING = {"nmp.mlpackage": 2e-4, "SSDOcr.mlmodel": 2e-4, "SSDOcr.mlmodelc": 2e-4}
OWN = ("moka_attention", "moka_group_norm")  # made by passes that the export does not run

Case = collections.namedtuple("Case", "name load runs relative")
Result = collections.namedtuple("Result", "state reason nodes operations opset")


class Skip(Exception):
    """The case is not one of the export; the text says why."""


def array_of(v):
    """An array of the conformance cases."""
    kind = DTYPES.get(v["dtype"]) or np.dtype(v["dtype"])
    data = v["data"] if v["dtype"] == "string" else [float(x) if isinstance(x, str) else x for x in v["data"]]
    return np.array(data, kind).reshape(v["shape"])


def conformance_cases():
    for path in sorted(CONFORMANCE.glob("*.json")):
        data = json.loads(path.read_text())
        for c in data["cases"]:

            def runs(_, c=c):
                inputs = {k: array_of(v) for k, v in c["inputs"].items() if "dtype" in v}
                if len(inputs) != len(c["inputs"]):
                    raise Skip("an input is not an array")
                yield inputs, [array_of(o) if "dtype" in o else None for o in c["outputs"]]

            yield Case(
                f"conformance/{path.stem}/{c['name']}",
                lambda c=c: moka.Model.from_mil(c["program"]),
                runs,
                max(RELATIVE, c.get("tolerance") or 0),
            )


def layer_cases():
    for path in sorted((GOLDEN / "nn_layers").glob("*.json")):
        for c in json.loads(path.read_text())["cases"]:

            def runs(model, c=c):
                names = [f.name for f in model.outputs]
                to = lambda v: np.array(v["data"], np.float32).reshape(v["shape"])
                yield (
                    {k: to(v) for k, v in c["inputs"].items()},
                    [to(c["outputs"][n]) if n in c["outputs"] and "data" in c["outputs"][n] else None for n in names],
                )

            yield Case(
                f"layers/{path.stem}/{c['name']}",
                lambda c=c: moka.Model(moka.ModelAsset(base64.b64decode(c["model"]))),
                runs,
                max(RELATIVE, c["tolerance"]),
            )


def classic_cases():
    for path in sorted((GOLDEN / "classic").glob("*.json")):

        def runs(model, path=path):
            for c in json.loads(path.read_text())["cases"]:
                if "error" in c:
                    continue
                names = [f.name for f in model.outputs]
                yield c["inputs"], [c["outputs"].get(n) for n in names]

        yield Case(f"classic/{path.stem}", lambda p=path: classic_model(p), runs, RELATIVE)


def classic_model(path):
    other = json.loads(path.read_text()).get("model")
    if other is None:
        return moka.Model(path.with_suffix(".mlmodel"))
    if not (MODELS / other).exists():
        raise Skip("no folder of published models: MOKA_TEST_MODELS names one")
    return moka.Model(moka.ModelAsset(gzip.decompress((MODELS / other).read_bytes())))


def own_runs(model):
    for seed in (1, 2):
        inputs = model.random_inputs(seed)
        if model.states:
            outputs = model.predict(inputs, state=model.new_state())
        else:
            outputs = model.predict(inputs)
        yield inputs, [outputs[f.name] for f in model.outputs]


def file_cases():
    files = []
    for folder in (GOLDEN, MODELS):
        for kind in (".mlmodel", ".mlpackage", ".mlmodelc", ".mlmodel.gz"):
            files += [(folder, p) for p in folder.rglob("*" + kind)]
    for folder, path in sorted(files):
        if any(p.suffix in (".mlpackage", ".mlmodelc") for p in path.parents) or path.parent == GOLDEN / "classic":
            continue
        relative = path.relative_to(folder)

        def load(path=path):
            try:
                if path.suffix == ".gz":
                    return moka.Model(moka.ModelAsset(gzip.decompress(path.read_bytes())))
                return moka.Model(path)
            except moka.Error as e:
                raise Skip(f"Moka does not run it: {e}") from None

        yield Case(f"{'golden' if folder == GOLDEN else 'models'}/{relative}", load, own_runs, RELATIVE)


def network_cases(path):
    """Random networks, as test_conformance prints them with MOKA_PRINT_NETWORKS. Those of unknown sizes are left out, as
    are those that round to float16 or 8 bits, where a small difference may become a step."""
    for number, text in enumerate(re.split(r"(?m)^(?=program\()", path.read_text())[1:]):
        program = text[: text.rindex("\n}") + 2]
        if not any(part in program for part in ("?", "fp16", " = quantize(", "-> ();")):
            yield Case(f"networks/{number}", lambda p=program: moka.Model.from_mil(p), own_runs, RELATIVE)


def all_cases(networks=None):
    yield from conformance_cases()
    yield from layer_cases()
    yield from classic_cases()
    yield from file_cases()
    if networks:
        yield from network_cases(networks)


def planes(value, shape):
    """An image as the tensor [1, channels, height, width]."""
    a = np.asarray(value)
    if a.ndim == 3 and a.shape[-1] in (3, 4):
        return a[None, :, :, :3].transpose(0, 3, 1, 2)
    return a.reshape(shape if all(isinstance(d, int) for d in shape) else (1, 1) + a.shape[-2:])


def fed(session, model, inputs):
    """The inputs in the form that the graph takes."""
    colors = json.loads(session.get_modelmeta().custom_metadata_map.get("moka.images", "{}"))
    feeds = {}
    for i in session.get_inputs() + session.get_overridable_initializers():
        if i.name not in inputs:
            continue
        value = inputs[i.name]
        if isinstance(value, dict) and "keys" in value:
            value = dict(zip(value["keys"], value["values"]))
        if i.type.startswith("map"):
            feeds[i.name] = value
            continue
        if i.name in colors:
            value = planes(value, i.shape)
            if colors[i.name]["color"] == "bgr":
                value = value[:, ::-1]
        if isinstance(value, dict) and "data" in value:
            value = np.array(value["data"]).reshape(value["shape"])
        a = np.asarray(value)
        a = a.astype(object) if i.type == "tensor(string)" else a.astype(ORT_TYPES[i.type])
        if len(i.shape) != a.ndim:
            if a.size == 1 and i.shape == []:
                a = a.reshape(())
            elif all(isinstance(d, int) for d in i.shape) and a.size == np.prod(i.shape):
                a = a.reshape(i.shape)
            else:
                raise Skip(f"the input has rank {a.ndim}; the graph takes the described rank {len(i.shape)}")
        elif any(isinstance(d, int) and d != n for d, n in zip(i.shape, a.shape)):
            raise Skip(f"the input has shape {a.shape}; the graph is for the default size {tuple(i.shape)}")
        feeds[i.name] = a
    for i in session.get_inputs():
        if i.name not in feeds and i.name in {s.name for s in model.states}:
            feeds[i.name] = np.zeros(i.shape, ORT_TYPES[i.type])
    return feeds


def difference(got, expected, relative, classes, is_bgr=False, rounding=0.0):
    """Why the answers differ; None where they do not. is_bgr: `got` has the planes of an image in this order. rounding: what the
    numbers may differ by besides."""
    if isinstance(expected, dict) and "data" in expected:
        expected = np.array(expected["data"]).reshape(expected["shape"])
    if isinstance(expected, dict):
        if "keys" in expected:
            expected = dict(zip(expected["keys"], expected["values"]))
        if isinstance(got, list) and got and isinstance(got[0], dict):
            got = got[0]
        if not isinstance(got, dict):
            g = np.ravel(got)
            keys = classes if classes is not None and len(classes) == g.size else list(range(g.size))
            got = {k: v for k, v in zip(keys, g.tolist())}
        got = {str(k): v for k, v in got.items()}
        expected = {str(k): v for k, v in expected.items()}
        for k in set(got) | set(expected):
            a, b = float(got.get(k, 0)), float(expected.get(k, 0))
            if not (abs(a - b) <= relative * max(1, abs(b)) + rounding or a == b or (np.isnan(a) and np.isnan(b))):
                return f"{k}: got {a}, expected {b}"
        return None
    if hasattr(expected, "convert"):
        expected = planes(np.asarray(expected), np.asarray(got).shape)
        got = np.asarray(got, np.float64)[:, :: -1 if is_bgr else 1]
        if np.asarray(expected).dtype.kind in "iu":
            got = np.clip(np.round(got), 0, 255)
        relative = 1.0 / 128  # one of 255 steps
    e, g = np.asarray(expected), np.asarray(got)
    if e.dtype.kind in "UO":
        return None if [str(x) for x in np.ravel(e)] == [str(x) for x in np.ravel(g)] else f"got {g}, expected {e}"
    if e.size != g.size:
        return f"shape {g.shape}, expected {e.shape}"
    if e.shape != g.shape and not (e.ndim == 0 or g.ndim == 0 or e.ndim == 1):
        return f"shape {g.shape}, expected {e.shape}"
    if np.float16 in (e.dtype, g.dtype):
        relative = max(relative, STEP)
    a, b = g.astype(np.float64).ravel(), e.astype(np.float64).ravel()
    with np.errstate(invalid="ignore"):
        bad = ~((np.abs(a - b) <= relative * np.maximum(1, np.abs(b)) + rounding) | (a == b) | (np.isnan(a) & np.isnan(b)))
    if not bad.any():
        return None
    i = int(np.flatnonzero(bad)[0])
    return f"{int(bad.sum())} of {b.size} differ, at {i}: got {a[i]}, expected {b[i]}"


def computes_in_half(path):
    """Whether the graph has values of float16, which its runtime rounds."""
    import onnx

    model = onnx.load(path, load_external_data=False)
    half = onnx.TensorProto.FLOAT16
    return any(v.type.tensor_type.elem_type == half for v in [*model.graph.value_info, *model.graph.input, *model.graph.output]) or any(
        a.name == "to" and a.i == half for n in model.graph.node if n.op_type == "Cast" for a in n.attribute
    )


def numbers_of(value):
    """The numbers of an output; none of texts and images."""
    values = list(value.values()) if isinstance(value, dict) else value
    return np.array(values if np.asarray(values).dtype.kind in "fiu" else [], np.float64)


def roundings(model, inputs):
    """How far each output moves when Moka rounds every value of the program to its type. onnxruntime rounds some of them to float16,
    and Moka by default only the results."""
    names = {f.name for f in model.inputs}
    answers = []
    for exact in (False, True):
        configuration = moka._moka.ModelConfiguration()
        configuration.exact_precision = exact
        core = model._core.configured(configuration)
        state = core.new_state() if model.states else None
        for f in model.states:
            if f.name in inputs:
                state.write(f.name, inputs[f.name])
        answers.append(core.predict({name: value for name, value in inputs.items() if name in names}, state=state))
    plain, rounded = answers
    with np.errstate(invalid="ignore"):
        moved = {name: np.abs(numbers_of(plain[name]) - numbers_of(rounded[name])) for name in plain}
    return {name: float(np.max(d[np.isfinite(d)], initial=0)) for name, d in moved.items()}


def of_case(table, case, default=None):
    """The value of a table for the case whose name ends with the key."""
    return next((value for name, value in table.items() if case.name.endswith("/" + name)), default)


def judge(case):
    edge = of_case(EDGES, case)
    if case.name.split("/")[1] in OWN:
        return Result("skipped", "only passes for devices make this operation", 0, 0, 0)
    result = compared(case._replace(relative=of_case(ROUNDING, case, case.relative)))
    return result._replace(state="edge", reason=edge) if edge and result.state in ("differs", "failed") else result


def reason_of(model, error):
    """Each operation that ONNX lacks and why, or the error of a model that has all operations."""
    try:
        return "; ".join(sorted({f"{u.type}: {u.reason}" for u in moka.check_onnx(model)})) or str(error)
    except moka.UnsupportedError:
        return str(error)


def compared(case):
    import onnx
    import onnxruntime

    facts = (0, 0, 0)
    try:
        model = case.load()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.onnx")
            try:
                made = moka.to_onnx(model, path)
            except moka.UnsupportedError as e:
                return Result("refused", reason_of(model, e), *facts)
            facts = (made.nodes, made.operations, made.opset)
            onnx.checker.check_model(path, full_check=True)
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 4
            # The default rounds activations to 8 bits before it multiplies them with quantized weights; 1 is float32.
            options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
            session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
            meta = session.get_modelmeta().custom_metadata_map
            classes = json.loads(meta["moka.classes"]) if "moka.classes" in meta else None
            colors = json.loads(meta.get("moka.images", "{}"))
            in_half = computes_in_half(path)
            for inputs, expected in case.runs(model):
                rounding = roundings(model, inputs) if in_half else {}
                outputs = session.run(None, fed(session, model, inputs))
                for o, got, want in zip(session.get_outputs(), outputs, expected):
                    if want is None:
                        continue
                    is_bgr = colors.get(o.name, {}).get("color") == "bgr"
                    wrong = difference(got, want, case.relative, classes, is_bgr, rounding.get(o.name, 0.0))
                    if wrong:
                        return Result("differs", f"{o.name}: {wrong}", *facts)
            return Result("equal", "", *facts)
    except Skip as e:
        return Result("skipped", str(e), *facts)
    except Exception as e:  # whatever onnx and onnxruntime throw
        if "NOT_IMPLEMENTED" in str(e):
            return Result("not implemented", str(e).splitlines()[0], *facts)
        return Result("failed", f"{type(e).__name__}: {str(e).strip()[:400]}", *facts)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-k", default="", help="only cases whose name contains this text")
    parser.add_argument("--list", action="store_true", help="print every case that is not equal")
    parser.add_argument("--json", help="write the results to this file")
    parser.add_argument("--networks", type=pathlib.Path, help="random networks, in MIL")
    args = parser.parse_args()
    counts = collections.defaultdict(collections.Counter)
    reasons = collections.Counter()
    results = {}
    for case in all_cases(args.networks):
        if args.k not in case.name:
            continue
        r = judge(case)
        results[case.name] = r
        counts[case.name.split("/")[0]][r.state] += 1
        if r.state != "equal":
            reasons[f"{r.state}: {r.reason[:160]}"] += 1
            if args.list:
                print(f"{case.name}: {r.state}: {r.reason[:300]}", flush=True)
    states = ["equal", "refused", "not implemented", "skipped", "edge", "differs", "failed"]
    print(f"{'corpus':<14}" + "".join(f"{s:>16}" for s in states))
    for corpus, c in counts.items():
        print(f"{corpus:<14}" + "".join(f"{c[s]:>16}" for s in states))
    for reason, n in reasons.most_common():
        print(f"{n:>5}  {reason}")
    total = sum(counts.values(), collections.Counter())
    print(f"{total['equal']} of {total.total()} cases passed, {total['differs']} differ, {total['failed']} failed, the others as above")
    if args.json:
        with open(args.json, "w") as f:
            json.dump({k: r._asdict() for k, r in results.items()}, f, indent=1)
    return 1 if total["differs"] + total["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())

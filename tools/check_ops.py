#!/usr/bin/env python3
"""Compares the definitions of operations with those that coremltools registers. Run by hand: `make check-ops`.

tools/check_ops.py OPS.JSON    the file that `moka_opdocs --json` wrote; needs coremltools

Compared are names, operation sets, parameters (name, kind, const, optional, element types) and those defaults that
coremltools states as literals. Prints every difference; exit status 1 when one is not in INTENDED.
"""
import ast
import inspect
import json
import logging
import sys
import textwrap

logging.disable(logging.CRITICAL)
import coremltools as ct  # noqa: E402
from coremltools.converters.mil.mil import types  # noqa: E402
from coremltools.converters.mil.mil.ops.registry import SSAOpRegistry  # noqa: E402

OPSETS = {ct.target.iOS15: "ios15", ct.target.iOS16: "ios16", ct.target.iOS17: "ios17", ct.target.iOS18: "ios18"}

# (operation or *, parameter or *, what) -> why it is right. An entry that meets no difference is a finding, too.
INTENDED = {
    ("_const_symbolic", "*", "exists"): "only a converter's intermediate form",
    ("coreml_update_state", "*", "exists"): "not registered for an operation set there",
    ("write_state", "*", "exists"): "of files; coremltools reads it as coreml_update_state",
    ("const", "val", "exists"): "the value is not a parameter here",
    ("cond", "*", "exists"): "blocks are not parameters here",
    ("while_loop", "*", "exists"): "blocks are not parameters here",
}

KINDS = {"ListInputType": "list", "TupleInputType": "tuple", "StateInputType": "state",
         "ListOrTensorOrDictInputType": "anything", "InternalInputType": "internal", "PyFunctionInputType": "internal"}
UNKNOWN = object()
COMPARED = {"params": 0, "dtypes": 0, "defaults": 0}  # over all operation sets


def dtype_names(domain):
    return sorted({types.builtin_to_string(t) for t in domain})


def literal(node):
    """The value of an expression of literals, or UNKNOWN."""
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return UNKNOWN


def defaults(cls):
    """Parameter -> default, of the keywords of DefaultInputs(...) in the class and those it inherits from."""
    out = {}
    for base in reversed(cls.__mro__):
        if "default_inputs" not in base.__dict__:
            continue
        own = {}
        tree = ast.parse(textwrap.dedent(inspect.getsource(base.__dict__["default_inputs"])))
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "DefaultInputs":
                own.update({k.arg: literal(k.value) for k in call.keywords if k.arg})
        inherits = any(isinstance(n, ast.Call) and getattr(n.func, "id", "") == "super" for n in ast.walk(tree))
        out = {**out, **own} if inherits else own
    return out


def theirs(cls):
    """Parameters as moka_opdocs writes them; a default that needs an instance is UNKNOWN."""
    out = {}
    given = defaults(cls)
    domains = getattr(cls, "type_domains", None) or {}
    for name, p in cls.input_spec.input_types.items():
        kind = KINDS.get(type(p).__name__, "tensor")
        dtypes = None
        if kind == "tensor":
            domain = p.type_domain or domains.get(p.type_domain_id, ())
            dtypes = dtype_names(domain) or None
        out[name] = {"kind": kind, "const": bool(p.const), "optional": bool(p.optional), "dtypes": dtypes,
                     "default": given.get(name, UNKNOWN)}
    return out


def same_value(a, b):
    if isinstance(a, (list, tuple)) or isinstance(b, (list, tuple)):
        return isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)) and len(a) == len(b) and all(map(same_value, a, b))
    if isinstance(a, (bool, str)) or isinstance(b, (bool, str)):
        return type(a) is type(b) and a == b
    if a is None or b is None:
        return a is b
    return abs(float(a) - float(b)) <= 1e-6 * max(1e-6, abs(float(b)))  # they are stored as fp32


def compare_params(mine, cls):
    """(parameter, what, mine, theirs) for each difference."""
    ours, other = {p["name"]: p for p in mine}, theirs(cls)
    for name in sorted(set(ours) | set(other)):
        if name not in ours or name not in other:
            yield name, "exists", name in ours, name in other
            continue
        a, b = ours[name], other[name]
        COMPARED["params"] += 1
        COMPARED["dtypes"] += b["dtypes"] is not None
        COMPARED["defaults"] += b["default"] is not UNKNOWN
        kind = "tuple" if a["variadic"] else {"dictionary": "anything"}.get(a["kind"], a["kind"])
        if kind != b["kind"]:
            yield name, "kind", kind, b["kind"]
        for what in ("const", "optional"):
            if a[what] != b[what]:
                yield name, what, a[what], b[what]
        if kind == "tensor" and b["dtypes"] is not None and sorted(a["dtypes"]) != b["dtypes"]:
            yield name, "dtypes", " ".join(sorted(a["dtypes"])), " ".join(b["dtypes"])
        if b["default"] is not UNKNOWN and not same_value(a["default"], b["default"]):
            yield name, "default", a["default"], b["default"]


def version_at(versions, opset):
    best = None
    for since in sorted(versions):
        if since <= opset:
            best = versions[since]
    return best


def compare(ops):
    """(operation, operation set, parameter, what, mine, theirs); a difference that lasts is told once."""
    registered = {name: {OPSETS[t]: c for t, c in v.items() if t in OPSETS} for name, v in SSAOpRegistry.core_ops.items()}
    for name in sorted(set(ops) | set(registered)):
        if name.startswith(("nn_", "ml_", "moka_")):
            continue
        if name not in ops or not registered.get(name):
            yield name, "", "*", "exists", name in ops, bool(registered.get(name))
            continue
        told = set()
        for opset in OPSETS.values():
            mine, cls = version_at(ops[name], opset), registered[name].get(opset)
            if (mine is None) != (cls is None):
                yield name, opset, "*", "registered", mine is not None, cls is not None
            elif mine is not None:
                for difference in compare_params(mine, cls):
                    if str(difference) not in told:
                        told.add(str(difference))
                        yield (name, opset) + difference


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as f:
        ops = json.load(f)
    met, wrong, total = set(), 0, 0
    for name, opset, param, what, mine, other in compare(ops):
        keys = [k for k in ((name, param, what), (name, "*", what), ("*", param, what), ("*", "*", what)) if k in INTENDED]
        met.update(keys[:1])
        total += 1
        wrong += not keys
        print("%s %s%s%s, %s: %s here, %s in coremltools%s" % ("intended" if keys else "DIFFERS ", name, opset and " " + opset,
              "" if param == "*" else " " + param, what, mine, other, " (%s)" % INTENDED[keys[0]] if keys else ""))
    for key in sorted(set(INTENDED) - met):
        wrong += 1
        print("DIFFERS  the table of intended differences has %s %s, %s, which is none" % key)
    print("%d operations, %d parameters (%d with element types, %d with defaults) compared; %d differences, %d of them not intended"
          % (len(ops), COMPARED["params"], COMPARED["dtypes"], COMPARED["defaults"], total, wrong))
    sys.exit(1 if wrong else 0)


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the definitions of operations with those that coremltools registers.

tools/check_ops.py OPS.JSON REGISTRY.JSON    written by `moka_opdocs --json` and tests/conformance/registry.py

Compares names, operation sets, parameters (name, kind, const, optional, element types) and the defaults that coremltools states
as literals. Prints every difference; exit status 1 when a difference is not in INTENDED.
"""
import json
import sys

OPSETS = ("ios15", "ios16", "ios17", "ios18")

# (operation or *, parameter or *, what) -> reason. An entry that matches no difference is also a finding.
INTENDED = {
    ("_const_symbolic", "*", "exists"): "only a converter's intermediate form",
    ("coreml_update_state", "*", "exists"): "not registered for an operation set there",
    ("write_state", "*", "exists"): "of files; coremltools reads it as coreml_update_state",
    ("const", "val", "exists"): "the value is not a parameter here",
    ("cond", "*", "exists"): "blocks are not parameters here",
    ("while_loop", "*", "exists"): "blocks are not parameters here",
}

COMPARED = {"params": 0, "dtypes": 0, "defaults": 0}  # over all operation sets


def same_value(a, b):
    if isinstance(a, (list, tuple)) or isinstance(b, (list, tuple)):
        return isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)) and len(a) == len(b) and all(map(same_value, a, b))
    if isinstance(a, (bool, str)) or isinstance(b, (bool, str)):
        return type(a) is type(b) and a == b
    if a is None or b is None:
        return a is b
    return abs(float(a) - float(b)) <= 1e-6 * max(1e-6, abs(float(b)))  # defaults are stored as fp32


def compare_params(mine, other):
    """(parameter, what, mine, theirs) for each difference."""
    ours = {p["name"]: p for p in mine}
    for name in sorted(set(ours) | set(other)):
        if name not in ours or name not in other:
            yield name, "exists", name in ours, name in other
            continue
        a, b = ours[name], other[name]
        COMPARED["params"] += 1
        COMPARED["dtypes"] += b["dtypes"] is not None
        COMPARED["defaults"] += "default" in b
        kind = "tuple" if a["variadic"] else {"dictionary": "anything"}.get(a["kind"], a["kind"])
        if kind != b["kind"]:
            yield name, "kind", kind, b["kind"]
        for what in ("const", "optional"):
            if a[what] != b[what]:
                yield name, what, a[what], b[what]
        if kind == "tensor" and b["dtypes"] is not None and sorted(a["dtypes"]) != b["dtypes"]:
            yield name, "dtypes", " ".join(sorted(a["dtypes"])), " ".join(b["dtypes"])
        if "default" in b and not same_value(a["default"], b["default"]):
            yield name, "default", a["default"], b["default"]


def version_at(versions, opset):
    best = None
    for since in sorted(versions):
        if since <= opset:
            best = versions[since]
    return best


def compare(ops, registry):
    """(operation, operation set, parameter, what, mine, theirs). A difference in several operation sets is listed once."""
    for name in sorted(set(ops) | set(registry)):
        if name.startswith(("nn_", "ml_", "moka_")):
            continue
        if name not in ops or name not in registry:
            yield name, "", "*", "exists", name in ops, name in registry
            continue
        told = set()
        for opset in OPSETS:
            mine, other = version_at(ops[name], opset), version_at(registry[name], opset)
            if (mine is None) != (other is None):
                yield name, opset, "*", "registered", mine is not None, other is not None
            elif mine is not None:
                for difference in compare_params(mine, other):
                    if str(difference) not in told:
                        told.add(str(difference))
                        yield (name, opset) + difference


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    ops, registry = (json.load(open(path, encoding="utf-8")) for path in sys.argv[1:])
    met, wrong, total = set(), 0, 0
    for name, opset, param, what, mine, other in compare(ops, registry):
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

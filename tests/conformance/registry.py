#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/conformance/registry.json: the operations that coremltools registers. Needs coremltools.

tests/conformance/registry.py [FILE]    FILE: instead of registry.json

Operation -> operation set -> parameter -> kind, const, optional, element types, and the default if coremltools states it as a
literal. Operation sets without changes are omitted.
"""
import ast
import inspect
import json
import logging
import os
import sys
import textwrap

logging.disable(logging.CRITICAL)
import coremltools as ct  # noqa: E402
from coremltools.converters.mil.mil import types  # noqa: E402
from coremltools.converters.mil.mil.ops.registry import SSAOpRegistry  # noqa: E402

OPSETS = {ct.target.iOS15: "ios15", ct.target.iOS16: "ios16", ct.target.iOS17: "ios17", ct.target.iOS18: "ios18"}
KINDS = {"ListInputType": "list", "TupleInputType": "tuple", "StateInputType": "state",
         "ListOrTensorOrDictInputType": "anything", "InternalInputType": "internal", "PyFunctionInputType": "internal"}
UNKNOWN = object()


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
    """Parameters in the form of moka_opdocs. Omits a default that needs an instance."""
    out = {}
    given = defaults(cls)
    domains = getattr(cls, "type_domains", None) or {}
    for name, p in cls.input_spec.input_types.items():
        kind = KINDS.get(type(p).__name__, "tensor")
        dtypes = None
        if kind == "tensor":
            domain = p.type_domain or domains.get(p.type_domain_id, ())
            dtypes = dtype_names(domain) or None
        out[name] = {"kind": kind, "const": bool(p.const), "optional": bool(p.optional), "dtypes": dtypes}
        if given.get(name, UNKNOWN) is not UNKNOWN:
            out[name]["default"] = given[name]
    return out


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "registry.json")
    lines = []
    for name in sorted(SSAOpRegistry.core_ops):
        versions = {OPSETS[t]: theirs(c) for t, c in SSAOpRegistry.core_ops[name].items() if t in OPSETS}
        changes, before = {}, None
        for opset in sorted(versions):
            if versions[opset] != before:
                changes[opset] = before = versions[opset]
        if changes:
            lines.append("%s: %s" % (json.dumps(name), json.dumps(changes)))
    with open(path, "w", encoding="utf-8") as f:
        f.write("{\n" + ",\n".join(lines) + "\n}\n")


main()

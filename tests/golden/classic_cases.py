# SPDX-License-Identifier: Apache-2.0
"""What tests/golden/classic_truth.py and its parts share: writing golden/classic."""
import json
import os

import numpy as np
from coremltools.proto import FeatureTypes_pb2, Model_pb2

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "classic")
DOUBLE = FeatureTypes_pb2.ArrayFeatureType.DOUBLE
rng = np.random.RandomState(7)


def number(v):
    v = float(v)
    return v if np.isfinite(v) else str(v)


def plain(v):
    if isinstance(v, dict) and "shape" in v:
        return v
    if isinstance(v, dict):
        keys = [k if isinstance(k, str) else int(k) for k in v]
        return {"keys": keys, "values": [number(x) for x in v.values()]}
    if isinstance(v, np.ndarray):
        return [number(x) for x in v.reshape(-1)]
    if isinstance(v, (list, tuple)):
        return [x if isinstance(x, (str, int)) else number(x) for x in v]
    if isinstance(v, (str, np.str_)):
        return str(v)
    if isinstance(v, (int, np.integer)):
        return int(v)
    return number(v)


def write(name, spec, cases, tolerance=1e-12, model=None):
    if spec is not None:
        with open(os.path.join(HERE, name + ".mlmodel"), "wb") as f:
            f.write(spec.SerializeToString(deterministic=True))
    out = {"tolerance": tolerance, "cases": [{"inputs": {k: plain(v) for k, v in i.items()},
                                             "outputs": {k: plain(v) for k, v in o.items()}} for i, o in cases]}
    if model is not None:
        out["model"] = model
    with open(os.path.join(HERE, name + ".json"), "w") as f:
        json.dump(out, f, allow_nan=False)
        f.write("\n")


def probabilities(classes, row):
    return {c if isinstance(c, str) else int(c): p for c, p in zip(classes, row)}


def spec_of(inputs, outputs, version=1):
    """A specification with features given as name -> "double", "int64", "string", "dict:string", "dict:int64",
    "seq:string", "seq:int64" or a shape."""
    spec = Model_pb2.Model()
    spec.specificationVersion = version
    for features, target in ((inputs, spec.description.input), (outputs, spec.description.output)):
        for name, kind in features.items():
            f = target.add()
            f.name = name
            t = f.type
            if isinstance(kind, (list, tuple)):
                t.multiArrayType.shape.extend(kind)
                t.multiArrayType.dataType = DOUBLE
            elif kind.startswith("dict"):
                getattr(t.dictionaryType, kind[5:] + "KeyType").SetInParent()
            elif kind.startswith("seq"):
                getattr(t.sequenceType, kind[4:] + "Type").SetInParent()
                t.sequenceType.sizeRange.upperBound = -1
            else:
                getattr(t, kind + "Type").SetInParent()
    return spec


def data(n=60, d=4, classes=3):
    x = rng.randn(n, d)
    y = np.argmax(x @ rng.randn(d, classes) + 0.3 * rng.randn(n, classes), axis=1)
    return x, y

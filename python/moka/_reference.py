# SPDX-License-Identifier: Apache-2.0
"""Runs an ONNX file or a PyTorch program for `moka.verify`, and as a script for `moka verify`, which needs no installed package.

    python3 -c SCRIPT describe MODEL FOLDER     writes FOLDER/description.json
    python3 -c SCRIPT run MODEL FOLDER          reads FOLDER/I.N.in.npy, writes FOLDER/I.N.out.npy

I is the prediction, N the input or output in the order of the description. Optional inputs may be missing.
"""
import collections
import json
import os
import sys
from typing import Any, DefaultDict, Dict, List, Mapping, Sequence, Tuple, Union

Feature = Dict[str, Any]


class RefusedError(Exception):
    """The file cannot be compared."""


def wanted(module: str, why: str) -> Any:
    try:
        return __import__(module)
    except ImportError as e:
        raise RefusedError(f"Python {sys.version.split()[0]} ({sys.executable}) has no module '{module}', which {why}: {e}") from None


class Onnx:
    TYPES = {f"tensor({name})": name for name in ("float16", "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32",
                                                  "uint64", "bool")}
    TYPES |= {"tensor(float)": "float32", "tensor(double)": "float64"}

    def __init__(self, path: str) -> None:
        runtime = wanted("onnxruntime", "runs ONNX files")
        options = runtime.SessionOptions()
        options.log_severity_level = 3
        # By default, onnxruntime rounds activations to 8 bits for products with quantized weights. 1 selects float32.
        options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
        self.session = runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.engine = f"onnxruntime {runtime.__version__}"

    def optional(self) -> List[Any]:
        """The initializers that a caller may override."""
        return [node for node in self.session.get_overridable_initializers() if node.type in self.TYPES]

    def features(self, nodes: Sequence[Any]) -> List[Feature]:
        out = []
        for node in nodes:
            if node.type not in self.TYPES:
                raise RefusedError(f"'{node.name}' has the type {node.type}; only arrays of numbers can be compared")
            shape = [d if isinstance(d, int) else -1 for d in node.shape]
            out.append({"name": node.name, "type": self.TYPES[node.type], "shape": shape})
        return out

    def describe(self) -> Tuple[List[Feature], List[Feature]]:
        optional = [{**feature, "optional": True} for feature in self.features(self.optional())]
        return self.features(self.session.get_inputs()) + optional, self.features(self.session.get_outputs())

    def run(self, arrays: Mapping[int, Any]) -> List[Any]:
        inputs = [*self.session.get_inputs(), *self.optional()]
        return list(self.session.run(None, {inputs[n].name: array for n, array in arrays.items()}))


class Torch:
    def __init__(self, path: str) -> None:
        self.torch = wanted("torch", "runs PyTorch programs")
        self.program = self.torch.export.load(path)
        self.module = self.program.module()
        self.engine = f"PyTorch {self.torch.__version__}"

    def describe(self) -> Tuple[List[Feature], List[Feature]]:
        signature = self.program.graph_signature
        values = {node.name: node.meta.get("val") for node in self.program.graph.nodes}

        def feature(name: str) -> Feature:
            value = values.get(name)
            if not isinstance(value, self.torch.Tensor):
                raise RefusedError(f"'{name}' is not a tensor; only arrays of numbers can be compared")
            shape = [d if isinstance(d, int) else -1 for d in value.shape]
            return {"name": name, "type": str(value.dtype).removeprefix("torch."), "shape": shape}

        outputs = next(n for n in self.program.graph.nodes if n.op == "output").args[0]
        known = {n.name for n in outputs if hasattr(n, "name")}
        return ([feature(n) for n in signature.user_inputs],
                [feature(n) for n in signature.user_outputs if n in known])

    def run(self, arrays: Mapping[int, Any]) -> List[Any]:
        with self.torch.no_grad():
            out = self.module(*[self.torch.from_numpy(a) for a in arrays.values()])
        flat, _ = self.torch.utils._pytree.tree_flatten(out)
        return [t.detach().to("cpu").numpy() for t in flat]


def opened(path: str) -> Union[Torch, Onnx]:
    return Torch(path) if path.lower().endswith(".pt2") else Onnx(path)


def main(what: str, path: str, folder: str) -> None:
    np = wanted("numpy", "exchanges arrays")
    model = opened(path)
    if what == "describe":
        inputs, outputs = model.describe()
        with open(os.path.join(folder, "description.json"), "w", encoding="utf-8") as f:
            json.dump({"engine": model.engine, "inputs": inputs, "outputs": outputs}, f)
        return
    given: DefaultDict[str, List[int]] = collections.defaultdict(list)
    for file in os.listdir(folder):
        if file.endswith(".in.npy"):
            item, n = file.split(".")[:2]
            given[item].append(int(n))
    for item, numbers in given.items():
        arrays = {n: np.load(os.path.join(folder, f"{item}.{n}.in.npy"), allow_pickle=False) for n in sorted(numbers)}
        for index, value in enumerate(model.run(arrays)):
            np.save(os.path.join(folder, f"{item}.{index}.out.npy"), np.asarray(value))


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except RefusedError as e:
        sys.exit(str(e))
    except Exception as e:
        sys.exit(f"{type(e).__name__}: {' '.join(str(e).split())[:600]}")

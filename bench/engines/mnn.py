# SPDX-License-Identifier: Apache-2.0
"""MNN, converted from ONNX. Float16 rows store the weights in float16. Precision "high" means float32 arithmetic; lower
precisions exceed the allowed error."""

import json
import subprocess
import sys

TITLE = "MNN"
PACKAGES = ("MNN",)
IMPORTS = ("MNN",)
PRECISIONS = ("fp32", "fp16")


def convert(net, folder, precision):
    from engines import Refused

    target = folder / "model.mnn"
    code = "import sys; from MNN.tools.mnnconvert import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "-f", "ONNX", "--modelFile", str(net.onnx()), "--MNNModel", str(target), "--bizCode", "bench"]
    done = subprocess.run(command + (["--fp16"] if precision == "fp16" else []), capture_output=True, text=True)
    sys.stderr.write(done.stdout + done.stderr)
    if not target.is_file():
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise Refused(f"MNN's converter: {said[-1] if said else f'status {done.returncode}'}")
    (folder / "names.json").write_text(json.dumps({"inputs": list(net.inputs), "outputs": list(net.outputs)}))


def load(folder, threads, precision):
    import MNN
    import numpy as np

    names = json.loads((folder / "names.json").read_text())
    config = {"backend": "CPU", "numThread": threads, "precision": "high"}
    runtime = MNN.nn.create_runtime_manager((config,))
    module = MNN.nn.load_module_from_file(str(folder / "model.mnn"), names["inputs"], names["outputs"], runtime_manager=runtime)
    kinds = {"float32": MNN.expr.float, "int32": MNN.expr.int}
    variables = {}

    def predict(inputs):
        for name in names["inputs"]:
            array = inputs[name]
            if name not in variables:
                variables[name] = MNN.expr.placeholder(list(array.shape), MNN.expr.NCHW, kinds[array.dtype.name])
            variables[name].write(np.ascontiguousarray(array))
        results = module.forward([variables[name] for name in names["inputs"]])
        return {name: np.array(MNN.expr.convert(v, MNN.expr.NCHW).read()) for name, v in zip(names["outputs"], results)}

    return predict

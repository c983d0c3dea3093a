# SPDX-License-Identifier: Apache-2.0
"""LiteRT (TensorFlow Lite) with XNNPACK, which its interpreter applies by default; converted by litert-torch."""

import json

TITLE = "LiteRT"
PACKAGES = ("ai-edge-litert", "litert-torch")
IMPORTS = ("ai_edge_litert.interpreter",)
PRECISIONS = ("fp32",)


def convert(net, folder, precision):
    import litert_torch

    converted = litert_torch.convert(net.model(), net.tensors())
    converted.export(str(folder / "model.tflite"))
    (folder / "names.json").write_text(json.dumps({"inputs": list(net.inputs), "outputs": list(net.outputs)}))


def load(folder, threads, precision):
    from ai_edge_litert.interpreter import Interpreter

    names = json.loads((folder / "names.json").read_text())
    interpreter = Interpreter(str(folder / "model.tflite"), num_threads=threads)
    interpreter.allocate_tensors()
    signature = interpreter.get_signature_list()["serving_default"]
    runner = interpreter.get_signature_runner("serving_default")
    # The signature's own names count the arguments: args_0, output_0.
    arguments = sorted(signature["inputs"], key=lambda name: int(name.rsplit("_", 1)[-1]))
    results = sorted(signature["outputs"], key=lambda name: int(name.rsplit("_", 1)[-1]))
    given = dict(zip(arguments, names["inputs"]))

    def predict(inputs):
        found = runner(**{argument: inputs[name] for argument, name in given.items()})
        return {name: found[result] for name, result in zip(names["outputs"], results)}

    return predict

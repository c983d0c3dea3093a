# SPDX-License-Identifier: Apache-2.0
"""ncnn, converted from TorchScript by pnnx. Its blobs have no batch dimension."""

import json

TITLE = "ncnn"
PACKAGES = ("ncnn", "pnnx", "torch")
IMPORTS = ("ncnn",)
PRECISIONS = ("fp32", "fp16")


def convert(net, folder, precision):
    import pnnx

    from engines import Refused

    parts = {suffix: str(folder / f"part.{suffix}") for suffix in ("pt", "pnnx.param", "pnnx.bin", "py", "onnx", "ncnn.py")}
    files = {"ncnnparam": str(folder / "model.param"), "ncnnbin": str(folder / "model.bin")}
    pnnx.export(net.model(), parts["pt"], net.tensors(), pnnxparam=parts["pnnx.param"], pnnxbin=parts["pnnx.bin"], pnnxpy=parts["py"],
                pnnxonnx=parts["onnx"], ncnnpy=parts["ncnn.py"], check_trace=False, fp16=precision == "fp16", **files)
    for path in parts.values():
        folder.joinpath(path).unlink(missing_ok=True)
    if not (folder / "model.param").is_file():
        raise Refused("pnnx wrote no model")
    unknown = sorted({line.split()[0] for line in (folder / "model.param").read_text().splitlines()[2:]
                      if line.split()[0].startswith(("pnnx.", "aten::", "prim::", "torch.", "Tensor.", "F.", "nn."))})
    if unknown:
        raise Refused(f"pnnx leaves operations that ncnn does not have: {', '.join(unknown)}")
    (folder / "names.json").write_text(json.dumps({
        "inputs": list(net.inputs), "outputs": {name: list(array.shape) for name, array in net.expected.items()}}))


def load(folder, threads, precision, device=None):
    import ncnn
    import numpy as np

    names = json.loads((folder / "names.json").read_text())
    net = ncnn.Net()
    net.opt.num_threads = threads
    net.opt.use_vulkan_compute = device == "vulkan"
    net.opt.use_fp16_arithmetic = net.opt.use_bf16_storage = False
    if precision == "fp32":
        net.opt.use_fp16_packed = net.opt.use_fp16_storage = False
    for read, name in ((net.load_param, "model.param"), (net.load_model, "model.bin")):
        if read(str(folder / name)) != 0:
            raise RuntimeError(f"ncnn does not load {name}")

    def predict(inputs):
        extractor = net.create_extractor()
        items = [np.ascontiguousarray(inputs[name][0]) for name in names["inputs"]]  # a Mat does not own their memory
        for i, item in enumerate(items):
            extractor.input(f"in{i}", ncnn.Mat(item))
        outputs = {}
        for i, (name, shape) in enumerate(names["outputs"].items()):
            status, blob = extractor.extract(f"out{i}")
            if status != 0:
                raise RuntimeError(f"ncnn gives no output {name}: status {status}")
            outputs[name] = np.array(blob).reshape(shape)
        return outputs

    predict.placement = lambda: {"off": [[layer.name, layer.type, ""] for layer in net.layers()
                                         if not layer.support_vulkan and layer.type != "Input"]}
    return predict

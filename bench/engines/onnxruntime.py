# SPDX-License-Identifier: Apache-2.0
"""ONNX with onnxruntime's own kernels and all graph optimizations, which run when the session is created."""

import shutil

TITLE = "onnxruntime"
PACKAGES = ("onnxruntime",)
IMPORTS = ("onnxruntime",)
PRECISIONS = ("fp32",)


def convert(net, folder, precision):
    shutil.copyfile(net.onnx(), folder / "model.onnx")


def load(folder, threads, precision):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    wanted = {i.name for i in session.get_inputs()}

    def predict(inputs):
        return dict(zip(names, session.run(names, {name: array for name, array in inputs.items() if name in wanted})))

    return predict

# SPDX-License-Identifier: Apache-2.0
"""OpenVINO's CPU plugin with its own format. It runs with float32 arithmetic, because its default on CPUs with bfloat16 exceeds
the allowed error. Float16 rows store the weights in float16."""

TITLE = "OpenVINO"
PACKAGES = ("openvino",)
IMPORTS = ("openvino",)
PRECISIONS = ("fp32", "fp16")


def convert(net, folder, precision):
    import openvino

    openvino.save_model(openvino.Core().read_model(net.onnx()), folder / "model.xml", compress_to_fp16=precision == "fp16")


def load(folder, threads, precision):
    import openvino

    options = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"}
    compiled = openvino.Core().compile_model(folder / "model.xml", "CPU", options)
    request = compiled.create_infer_request()
    names = [output.get_names() for output in compiled.outputs]  # an output may have several
    wanted = {i.get_any_name() for i in compiled.inputs}

    def predict(inputs):
        request.infer({name: array for name, array in inputs.items() if name in wanted}, share_inputs=True)
        return {name: request.get_output_tensor(i).data for i, of in enumerate(names) for name in of}

    return predict


def profile(folder, threads, precision, inputs):
    """The seconds of each kind of kernel: the sum of its operations' shortest times in ten predictions."""
    import openvino

    options = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32", "PERF_COUNT": True}
    compiled = openvino.Core().compile_model(folder / "model.xml", "CPU", options)
    request = compiled.create_infer_request()
    wanted = {i.get_any_name() for i in compiled.inputs}
    shortest = {}
    for _ in range(10):
        request.infer({name: array for name, array in inputs.items() if name in wanted})
        for node in request.get_profiling_info():
            if node.status == node.Status.EXECUTED:
                seconds = node.real_time.total_seconds()
                shortest[node.node_name, node.exec_type] = min(seconds, shortest.get((node.node_name, node.exec_type), seconds))
    kernels = {}
    for (_, kernel), seconds in shortest.items():
        kernels[kernel] = kernels.get(kernel, 0) + seconds
    return kernels

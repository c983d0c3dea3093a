# SPDX-License-Identifier: Apache-2.0
"""Independent results that several families of cases share."""
import numpy as np
import onnxruntime
from onnx import TensorProto, helper


def run_onnx(op, inputs, attributes, opset=18, outputs=1):
    """The outputs (one: itself, more: a list) of one ONNX node in float32; an input None is left out."""
    names = ["" if a is None else "i%d" % i for i, a in enumerate(inputs)]
    results = ["y%d" % i for i in range(outputs)]
    graph = helper.make_graph(
        [helper.make_node(op, names, results, **attributes)], "g",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(np.asarray(a).dtype), a.shape) for n, a in zip(names, inputs) if a is not None],
        [helper.make_tensor_value_info(r, TensorProto.FLOAT, None) for r in results])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    got = session.run(None, {n: a for n, a in zip(names, inputs) if a is not None})
    return got[0] if outputs == 1 else got


def pads_of(sizes, kernel, strides, dilations, pad_type, pad):
    """[(begin, end)] for each spatial dimension."""
    out = []
    for i, n in enumerate(sizes):
        if pad_type == "custom":
            out.append((pad[2 * i], pad[2 * i + 1]))
        elif pad_type == "valid":
            out.append((0, 0))
        else:
            extent = (kernel[i] - 1) * dilations[i] + 1
            total = max(0, (-(-n // strides[i]) - 1) * strides[i] + extent - n)
            small, large = total // 2, total - total // 2
            out.append((small, large) if pad_type == "same" else (large, small))
    return out

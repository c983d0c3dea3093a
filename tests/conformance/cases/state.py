# SPDX-License-Identifier: Apache-2.0
import numpy as np

from case import program_case, type_text

rng = np.random.default_rng(6)


def stateful(op, name, dtype, body, outputs, state, value):
    t = type_text(state)
    text = "program(1.0)\n{\n    func main<ios18>(state<%s> kv, %s v) {\n%s\n        } -> (%s);\n}\n" % (
        t, t, "\n".join("            " + s for s in body), ", ".join(outputs))
    program_case(op, name, text, {"kv": state, "v": value}, outputs)


for dtype in (np.float32, np.float16, np.int32):
    s, v = (rng.integers(-9, 9, (2, 3)).astype(dtype) for _ in range(2))
    t, tag = type_text(s), np.dtype(dtype).name
    read = '%s %s = read_state(input = kv)[name = tensor<string, []>("%s")];'
    stateful("read_state", tag, dtype, [read % (t, "a", "a")], {"a": s}, s, v)
    # A value that was read before a write keeps the old content.
    stateful("write_state", tag, dtype, [read % (t, "a", "a"), 'write_state(data = v, input = kv)[name = tensor<string, []>("w")];', read % (t, "b", "b")],
             {"a": s, "b": v}, s, v)
    stateful("coreml_update_state", tag, dtype,
             [read % (t, "a", "a"), '%s u = coreml_update_state(state = kv, value = v)[name = tensor<string, []>("u")];' % t, read % (t, "b", "b")],
             {"a": s, "u": v, "b": v}, s, v)

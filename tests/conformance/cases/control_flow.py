# SPDX-License-Identifier: Apache-2.0
import numpy as np

from case import literal, program_case, type_text


def program(inputs, body, outputs, opset="ios15"):
    params = ", ".join("%s %s" % (type_text(v), k) for k, v in inputs.items())
    return "program(1.0)\n{\n    func main<%s>(%s) {\n%s\n        } -> (%s);\n}\n" % (opset, params, body, ", ".join(outputs))


def const(name, value):
    return "            %s %s = const()[val = %s];\n" % (type_text(value), name, literal(value))


x = np.array([-1.5, 0.25, 3.0], np.float32)

# const: each kind of literal, returned as it is
for name, value in [
    ("fp32", np.array([[1.5, -0.0, np.inf], [np.nan, -np.inf, 1e-45]], np.float32)),
    ("fp16", np.array([65504, 6e-8, -2.5], np.float16)),
    ("fp64", np.array([1e300, 5e-324, -0.1])),
    ("int8", np.array([-128, 127], np.int8)),
    ("int16", np.array([-32768, 32767], np.int16)),
    ("int32", np.array([[-2**31], [2**31 - 1]], np.int32)),
    ("int64", np.array([-2**63, 2**63 - 1], np.int64)),
    ("uint8", np.array([0, 255], np.uint8)),
    ("uint16", np.array([0, 65535], np.uint16)),
    ("uint32", np.array([0, 2**32 - 1], np.uint32)),
    ("bool", np.array([[True, False]])),
    ("string", np.array(["a \"b\" \\ c", "\t\n", "", "\u00e9"])),
    ("scalar", np.float32(0.1)),
    ("empty", np.zeros((2, 0), np.float32)),
    ("rank5", np.arange(16, dtype=np.int32).reshape(1, 2, 2, 2, 2)),
]:
    program_case("const", name, program({}, const("y", value), ["y"]), {}, {"y": value})

# cond: both branches, values of the outer block, several outputs, nesting
COND = """            tensor<fp32, [3]> a, tensor<fp32, [3]> b = cond(pred = p)[name = tensor<string, []>("c")] {
                block yes() {
                        tensor<fp32, [3]> s = add(x = x, y = x)[name = tensor<string, []>("s")];
                    } -> (s, x);
                block no() {
                        tensor<fp32, [3]> s = mul(x = x, y = x)[name = tensor<string, []>("s")];
                    } -> (x, s);
            };
"""
for p in (True, False):
    expected = {"a": x + x, "b": x} if p else {"a": x, "b": x * x}
    feeds = {"p": np.array(p), "x": x}
    program_case("cond", "pred_" + str(p).lower(), program(feeds, COND, ["a", "b"]), feeds, expected)

# a predicate of one element that is not a scalar
ONE = COND.replace("cond(pred = p)", "cond(pred = q)")
for p in (True, False):
    expected = {"a": x + x, "b": x} if p else {"a": x, "b": x * x}
    feeds = {"p": np.array([p]), "x": x}
    body = "            tensor<bool, [1]> q = identity(x = p)[name = tensor<string, []>(\"q\")];\n" + ONE
    program_case("cond", "pred_of_shape_1_" + str(p).lower(), program(feeds, body, ["a", "b"]), feeds, expected)

# branches of different sizes: the dimension is unknown until run
SIZES = const("begin", np.array([1], np.int32)) + const("end", np.array([3], np.int32)) + """
            tensor<fp32, [?]> y = cond(pred = p) {
                block() { } -> (x);
                block() {
                        tensor<fp32, [2]> s = slice_by_index(x = x, begin = begin, end = end);
                    } -> (s);
            };
"""
for p in (True, False):
    feeds = {"p": np.array(p), "x": x}
    program_case("cond", "sizes_" + str(p).lower(), program(feeds, SIZES, ["y"]), feeds, {"y": x if p else x[1:3]})

NESTED = """            tensor<fp32, [3]> y = cond(pred = p) {
                block() {
                        tensor<fp32, [3]> inner = cond(pred = q) {
                            block() {
                                    tensor<fp32, [3]> z = add(x = x, y = x);
                                } -> (z);
                            block() { } -> (x);
                        };
                        tensor<fp32, [3]> z = mul(x = inner, y = inner);
                    } -> (z);
                block() { } -> (x);
            };
"""
for p, q in ((True, True), (True, False), (False, True)):
    feeds = {"p": np.array(p), "q": np.array(q), "x": x}
    inner = x + x if q else x
    program_case("cond", "nested_%s_%s" % (str(p).lower(), str(q).lower()), program(feeds, NESTED, ["y"]), feeds, {"y": inner * inner if p else x})

# while_loop: powers of two below a limit; zero iterations; a value of the outer block in both blocks
LOOP = const("one", np.int32(1)) + """            tensor<int32, []> n, tensor<fp32, [3]> y = while_loop(loop_vars = (start, x)) {
                block condition(tensor<int32, []> i, tensor<fp32, [3]> v) {
                        tensor<bool, []> go_on = less(x = i, y = limit);
                    } -> (go_on);
                block body(tensor<int32, []> i, tensor<fp32, [3]> v) {
                        tensor<int32, []> next = add(x = i, y = one);
                        tensor<fp32, [3]> twice = add(x = v, y = v);
                    } -> (next, twice);
            };
"""
for start, limit in ((0, 5), (3, 3), (7, 2), (-2, 1)):
    feeds = {"start": np.array(start, np.int32), "limit": np.array(limit, np.int32), "x": x}
    steps = max(limit - start, 0)
    program_case("while_loop", "from_%d_to_%d" % (start, limit), program(feeds, LOOP, ["n", "y"]), feeds,
                 {"n": np.array(start + steps, np.int32), "y": (x * 2.0 ** steps).astype(np.float32)})

# a counter and a condition of shape [1]: converters write both
for start, limit in ((0, 5), (3, 3)):
    feeds = {"start": np.array([start], np.int32), "limit": np.array([limit], np.int32), "x": x}
    steps = max(limit - start, 0)
    body = LOOP.replace("tensor<int32, []>", "tensor<int32, [1]>").replace("tensor<bool, []>", "tensor<bool, [1]>")
    body = body.replace(const("one", np.int32(1)).replace("[]", "[1]"), const("one", np.array([1], np.int32)))
    program_case("while_loop", "shape_1_from_%d_to_%d" % (start, limit), program(feeds, body, ["n", "y"]), feeds,
                 {"n": np.array([start + steps], np.int32), "y": (x * 2.0 ** steps).astype(np.float32)})

# the loop variables change places, and grow
GROW = const("one", np.int32(1)) + const("zero", np.int32(0)) + const("axis", np.int32(0)) + const("no", np.bool_(False)) + """
            tensor<int32, []> n, tensor<fp32, [?]> y, tensor<fp32, [?]> z = while_loop(loop_vars = (zero, x, x)) {
                block(tensor<int32, []> i, tensor<fp32, [?]> a, tensor<fp32, [?]> b) {
                        tensor<bool, []> go_on = less(x = i, y = limit);
                    } -> (go_on);
                block(tensor<int32, []> i, tensor<fp32, [?]> a, tensor<fp32, [?]> b) {
                        tensor<int32, []> next = add(x = i, y = one);
                        tensor<fp32, [?]> both = concat(axis = axis, interleave = no, values = (a, b));
                    } -> (next, b, both);
            };
"""
for limit in (0, 1, 3):
    a = b = x
    for _ in range(limit):
        a, b = b, np.concatenate([a, b])
    feeds = {"limit": np.array(limit, np.int32), "x": x}
    program_case("while_loop", "grows_%d" % limit, program(feeds, GROW, ["n", "y", "z"]), feeds, {"n": np.array(limit, np.int32), "y": a, "z": b})

# a loop in a loop
INNER = const("one", np.int32(1)) + const("zero", np.int32(0)) + """
            tensor<int32, []> n, tensor<int32, []> total = while_loop(loop_vars = (zero, zero)) {
                block(tensor<int32, []> i, tensor<int32, []> t) {
                        tensor<bool, []> go_on = less(x = i, y = limit);
                    } -> (go_on);
                block(tensor<int32, []> i, tensor<int32, []> t) {
                        tensor<int32, []> next = add(x = i, y = one);
                        tensor<int32, []> k, tensor<int32, []> sum = while_loop(loop_vars = (zero, t)) {
                            block(tensor<int32, []> j, tensor<int32, []> s) {
                                    tensor<bool, []> go_on_2 = less(x = j, y = i);
                                } -> (go_on_2);
                            block(tensor<int32, []> j, tensor<int32, []> s) {
                                    tensor<int32, []> j_next = add(x = j, y = one);
                                    tensor<int32, []> s_next = add(x = s, y = j);
                                } -> (j_next, s_next);
                        };
                    } -> (next, sum);
            };
"""
feeds = {"limit": np.array(6, np.int32)}
program_case("while_loop", "loop_in_loop", program(feeds, INNER, ["n", "total"]), feeds,
             {"n": np.array(6, np.int32), "total": np.array(sum(j for i in range(6) for j in range(i)), np.int32)})

# a loop whose number of iterations is known while loading, and which reads a weight around it; the counter is a float in one
WEIGHT = np.array([0.5, -0.75, 1.25], np.float32)
for name, dtype in (("known_count", np.int32), ("known_float_count", np.float32)):
    text = "int32" if dtype is np.int32 else "fp32"
    body = (const("weight", WEIGHT) + const("one", dtype(1)) + const("start", dtype(0)) + const("limit", dtype(4)) + """
            tensor<TYPE, []> n, tensor<fp32, [3]> y = while_loop(loop_vars = (start, x)) {
                block(tensor<TYPE, []> i, tensor<fp32, [3]> v) {
                        tensor<bool, []> go_on = less(x = i, y = limit);
                    } -> (go_on);
                block(tensor<TYPE, []> i, tensor<fp32, [3]> v) {
                        tensor<TYPE, []> next = add(x = i, y = one);
                        tensor<fp32, [3]> scaled = mul(x = v, y = weight);
                        tensor<fp32, [3]> squashed = tanh(x = scaled);
                        tensor<fp32, [3]> sum = add(x = squashed, y = x);
                    } -> (next, sum);
            };
""").replace("TYPE", text)
    v = x.astype(np.float64)
    for _ in range(4):
        v = np.tanh(v * WEIGHT.astype(np.float64)) + x
    program_case("while_loop", name, program({"x": x}, body, ["n", "y"]), {"x": x}, {"n": dtype(4), "y": v.astype(np.float32)})

# a branch of weights in a loop: odd and even iterations differ
body = (const("weight", WEIGHT) + const("one", np.int32(1)) + const("two", np.int32(2)) + const("zero", np.int32(0)) + const("limit", np.int32(3)) + """
            tensor<int32, []> n, tensor<fp32, [3]> y = while_loop(loop_vars = (zero, x)) {
                block(tensor<int32, []> i, tensor<fp32, [3]> v) {
                        tensor<bool, []> go_on = less(x = i, y = limit);
                    } -> (go_on);
                block(tensor<int32, []> i, tensor<fp32, [3]> v) {
                        tensor<int32, []> next = add(x = i, y = one);
                        tensor<int32, []> rest = mod(x = i, y = two);
                        tensor<bool, []> is_even = equal(x = rest, y = zero);
                        tensor<fp32, [3]> w = cond(pred = is_even) {
                            block() {
                                    tensor<fp32, [3]> product = mul(x = v, y = weight);
                                } -> (product);
                            block() {
                                    tensor<fp32, [3]> power = square(x = v);
                                    tensor<fp32, [3]> all = add(x = power, y = x);
                                } -> (all);
                        };
                    } -> (next, w);
            };
""")
v = x.astype(np.float64)
for i in range(3):
    v = v * WEIGHT if i % 2 == 0 else v * v + x
program_case("while_loop", "known_count_with_branches", program({"x": x}, body, ["n", "y"]), {"x": x},
             {"n": np.int32(3), "y": v.astype(np.float32)})

# branches that share weights and values, several of which each branch uses
MATRIX = np.array([[0.5, -1, 2], [0.25, 1.5, -0.5], [1, 0.75, -1.25]], np.float32)
body = const("w", MATRIX) + const("b", WEIGHT) + """
            tensor<fp32, [3]> h = tanh(x = x)[name = tensor<string, []>("h")];
            tensor<fp32, [1, 3]> row = expand_dims(x = h, axes = axes);
            tensor<fp32, [1, 3]> y, tensor<fp32, [3]> z, tensor<fp32, [3]> same = cond(pred = p)[name = tensor<string, []>("c")] {
                block() {
                        tensor<fp32, [1, 3]> m = matmul(x = row, y = w);
                        tensor<fp32, [1, 3]> s = add(x = m, y = b);
                        tensor<fp32, [3]> t = mul(x = h, y = x);
                    } -> (s, t, h);
                block() {
                        tensor<fp32, [1, 3]> s = sub(x = row, y = b);
                        tensor<fp32, [3]> t = exp(x = b);
                    } -> (s, t, h);
            };
            tensor<fp32, [3]> all = add(x = z, y = same);
"""
body = const("axes", np.array([0], np.int32)) + body
for p in (True, False):
    h = np.tanh(x.astype(np.float64))
    y = h[None] @ MATRIX.astype(np.float64) + WEIGHT if p else h[None] - WEIGHT
    z = h * x if p else np.exp(WEIGHT.astype(np.float64))
    feeds = {"p": np.array(p), "x": x}
    program_case("cond", "weights_" + str(p).lower(), program(feeds, body, ["y", "all"]), feeds,
                 {"y": y.astype(np.float32), "all": (z + h).astype(np.float32)})

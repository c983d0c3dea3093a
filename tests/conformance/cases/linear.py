# SPDX-License-Identifier: Apache-2.0
"""linear, matmul and einsum, by numpy in float64."""
import numpy as np

from case import literal, op_case, program_case, type_text

rng = np.random.default_rng(5)


def draw(shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype) if np.dtype(dtype).kind == "f" else rng.integers(-9, 9, shape).astype(dtype)


def wide(a):
    return a.astype(np.float64 if a.dtype.kind == "f" else np.int64)


def linear(name, xs, ws, bias=True, dtype=np.float32, wdtype=None, opset="ios15", **more):
    x, w = draw(xs, dtype), draw(ws, wdtype or dtype)
    consts = {"weight": w}
    y = wide(x) @ wide(w).T
    if bias:
        consts["bias"] = draw(ws[:1], wdtype or dtype)
        y = y + wide(consts["bias"])
    op_case("linear", name, {"x": x}, consts, [y.astype(dtype)], opset=opset, **more)


linear("rank1", (4,), (3, 4))
linear("rank2", (2, 4), (3, 4))
linear("rank3_no_bias", (2, 3, 2), (4, 2), bias=False)
linear("rank4", (1, 2, 2, 3), (2, 3))
linear("fp16", (3, 4), (2, 4), dtype=np.float16)
linear("int32", (3, 4), (2, 4), dtype=np.int32)
linear("half_weight_ios17", (3, 4), (2, 4), wdtype=np.float16, opset="ios17")
linear("long_sum", (1, 200), (2, 200))
linear("no_rows", (0, 3), (2, 3))
linear("no_inputs", (2, 0), (3, 0))
linear("unknown_rows", (3, 4), (2, 4), in_shapes={"x": [None, 4]}, out_shapes={"y_0": [None, 2]})


def matmul(name, xs, ys, dtype=np.float32, ydtype=None, y_const=False, result=None, opset="ios15", **flags):
    x, y = draw(xs, dtype), draw(ys, ydtype or dtype)
    a = np.swapaxes(wide(x), -1, -2) if flags.get("transpose_x") else wide(x)
    b = np.swapaxes(wide(y), -1, -2) if flags.get("transpose_y") else wide(y)
    inputs, consts = {"x": x}, dict(flags)
    (consts if y_const else inputs)["y"] = y
    op_case("matmul", name, inputs, consts, [np.matmul(a, b).astype(result or dtype)], opset=opset)


matmul("square", (2, 3), (3, 4))
matmul("transpose_x", (3, 2), (3, 4), transpose_x=True)
matmul("transpose_y", (2, 3), (4, 3), transpose_x=False, transpose_y=True)
matmul("transpose_both", (2, 3, 2), (2, 4, 3), transpose_x=True, transpose_y=True)
matmul("batch_broadcast", (4, 1, 2, 3), (2, 3, 2))
matmul("batch_broadcast_both", (2, 1, 2, 2), (1, 3, 2, 2))
matmul("ranks_differ", (2, 3), (2, 2, 3, 2))
matmul("vector_matrix", (3,), (3, 2))
matmul("vector_batch", (3,), (2, 3, 2))
matmul("matrix_vector", (2, 3), (3,))
matmul("vector_vector", (4,), (4,))
matmul("fp16", (2, 5), (5, 2), dtype=np.float16)
matmul("int32", (2, 3), (3, 2), dtype=np.int32)
matmul("rank5", (1, 2, 1, 2, 2), (2, 2, 2))
matmul("half_constant_ios17", (2, 3), (3, 2), ydtype=np.float16, y_const=True, opset="ios17")
matmul("blocks", (5, 131), (131, 3))
matmul("no_terms", (2, 0), (0, 3))
matmul("no_rows", (2, 0, 3), (3, 2))
x = np.array([[1e5, -1e5], [np.inf, 1]], np.float32)
op_case("matmul", "infinities", {"x": x, "y": np.array([[1, 2], [1, 1]], np.float32)}, {},
        [np.array([[0, 1e5], [np.inf, np.inf]], np.float32)])


def einsum(name, equation, xs, ys, dtype=np.float32):
    x, y = draw(xs, dtype), draw(ys, dtype)
    op_case("einsum", name, {"values": [x, y]}, {"equation": equation},
            [np.asarray(np.einsum(equation, wide(x), wide(y))).astype(dtype)])


einsum("rank4", "nchw,nwhu->nchu", (2, 2, 3, 2), (2, 2, 3, 2))
einsum("rank4_other_letters", "abcd,adce->abce", (1, 2, 3, 4), (1, 4, 3, 2))
einsum("rank3", "chw,whr->chr", (2, 3, 4), (4, 3, 2))
einsum("rank4_broadcast", "nchw,nwhu->nchu", (1, 2, 1, 3), (2, 3, 2, 2))
einsum("rank3_broadcast", "chw,whr->chr", (2, 1, 4), (4, 3, 2))
einsum("attention_scores", "bchq,bkhc->bkhq", (1, 3, 2, 4), (1, 2, 2, 3))
einsum("matrix_product", "ik,kj->ij", (2, 3), (3, 4))
einsum("transposed_result", "ik,kj->ji", (2, 3), (3, 4))
einsum("spaces", "ik, jk -> ij", (2, 3), (4, 3))
einsum("outer", "i,j->ij", (3,), (4,))
einsum("dot", "i,i->", (5,), (5,))
einsum("sum_in_one_operand", "ij,k->ki", (2, 3), (2,))
einsum("two_summed", "abc,bcd->ad", (2, 3, 2), (3, 2, 2))
einsum("fp16", "nchw,nwhu->nchu", (1, 2, 2, 3), (1, 3, 2, 2), np.float16)
einsum("empty_sum", "ik,kj->ij", (2, 0), (0, 3))

# one weight of a single column as the matrix of a product and, transposed, as that of a linear layer: both are packed
x, z, w = draw((3, 5)), draw((3, 1)), draw((5, 1))
text = """program(1.0)
{
    func main<ios15>(%s x, %s z) {
            %s w = const()[val = %s];
            tensor<fp32, [3, 5]> l = linear(weight = w, x = z);
            tensor<fp32, [3, 1]> y = matmul(x = x, y = w, transpose_x = bool(false), transpose_y = bool(false));
        } -> (l, y);
}
""" % (type_text(x), type_text(z), type_text(w), literal(w))
program_case("matmul", "column_that_a_linear_layer_shares", text, {"x": x, "z": z},
             {"l": (wide(z) @ wide(w).T).astype(np.float32), "y": (wide(x) @ wide(w)).astype(np.float32)})

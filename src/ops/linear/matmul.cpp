// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <type_traits>

#include "ir/gradient.h"
#include "ir/program.h"
#include "ops/common/addend.h"
#include "ops/common/common.h"
#include "ops/common/product.h"
#include "ops/common/ranks.h"
#include "ops/common/runs.h"

namespace moka::ops {

namespace {

/// An operand as a batch of matrices. A vector is a matrix of one row (x) or one column (y).
struct Operand {
  Shape batch;
  int64_t rows = 1, cols = 1;
  int64_t row_step = 0, col_step = 0;  // in elements; valid if the shape is concrete
};

Operand operand_of(const Shape& s, bool transposed, bool left) {
  Operand o;
  if (s.rank() == 1) {
    (left ? o.cols : o.rows) = s[0];
    (left ? o.col_step : o.row_step) = 1;
    return o;
  }
  for (int i = 0; i + 2 < s.rank(); ++i) o.batch.push_back(s[i]);
  o.rows = s[s.rank() - 2];
  o.cols = s[s.rank() - 1];
  o.row_step = o.cols;
  o.col_step = 1;
  if (transposed) {
    std::swap(o.rows, o.cols);
    std::swap(o.row_step, o.col_step);
  }
  return o;
}

Result<DType> result_dtype(const OpCall& call) {
  const DType x = call.dtype("x"), y = call.dtype("y");
  if (x == y) return x;
  const bool x_known = call.is_known("x"), y_known = call.is_known("y");
  if (!x_known && !y_known) {
    return call.error("y", cat("the element type of x (", x, "), because neither is constant"), to_string(y));
  }
  if (x_known && y_known) {
    // At run time everything is known. The result keeps the type from when the program was built.
    if (call.op == nullptr || call.op->output_count() == 0) {
      return call.error("y", cat("the element type of x (", x, "), because both are constant"), to_string(y));
    }
    return call.op->output()->type.dtype();
  }
  return y_known ? x : y;
}

Result<std::vector<Type>> infer_matmul(const OpCall& call) {
  const DType dtype = MOKA_TRY(result_dtype(call));
  const bool tx = MOKA_TRY(call.flag("transpose_x")), ty = MOKA_TRY(call.flag("transpose_y"));
  if (any_unranked(call, {"x", "y"})) return one(Type::unranked(dtype));
  const Shape& xs = call.shape("x");
  const Shape& ys = call.shape("y");
  if (xs.rank() < 1) return call.error("x", "rank 1 or more", "rank 0");
  if (ys.rank() < 1) return call.error("y", "rank 1 or more", "rank 0");
  if (tx && xs.rank() == 1) return call.error("transpose_x", "false for an x of rank 1", "true");
  const Operand x = operand_of(xs, tx, true), y = operand_of(ys, ty, false);
  if (!may_equal(x.cols, y.rows)) {
    return call.error("y", cat(x.cols, " rows, as x (", xs, tx ? ", transposed" : "", ") has columns"),
                      cat(ys, ty ? ", transposed" : ""));
  }
  const Result<Shape> batch = broadcast(x.batch, y.batch);
  if (!batch) return call.error("y", cat("batch dimensions that broadcast with those of x, ", xs), cat(ys));
  Shape out = *batch;
  if (xs.rank() > 1) out.push_back(x.rows);
  if (ys.rank() > 1) out.push_back(y.cols);
  if (call.has("bias") && call.type("bias").is_ranked()) {
    const Shape& bias = call.shape("bias");
    if (ys.rank() < 2 || bias.rank() != 1 || !may_equal(bias[0], y.cols))
      return call.error("bias", "one number for each column of y", cat(bias));
  }
  return one(Type::tensor(dtype, out));
}

template <class Acc>
void run_matmul(const OpCall& call, const Operand& a, const Operand& b, const TensorView& out) {
  const TensorView &x = call.in("x"), &y = call.in("y");
  const TensorView* bias = call.has("bias") ? &call.in("bias") : nullptr;
  const int64_t a_size = a.rows * a.cols, b_size = b.rows * b.cols, c_size = a.rows * b.cols;
  auto one_matrix = [&](int64_t c_at, int64_t a_at, int64_t b_at) {
    const int64_t a0 = a_at * a_size, b0 = b_at * b_size, c0 = c_at * c_size;
    blocked_product<Acc>(
        a.rows, b.cols, a.cols,
        [&](int64_t i, int64_t k, int64_t n, Acc* to) {
          load_run(x, a0 + i * a.row_step + k * a.col_step, a.col_step, n, to);
        },
        [&](int64_t k, int64_t j, int64_t n, Acc* to) {
          load_run(y, b0 + k * b.row_step + j * b.col_step, b.col_step, n, to);
        },
        [&](int64_t i, int64_t j, int64_t n, Acc* c) {
          if constexpr (std::is_floating_point_v<Acc>)
            for (int64_t q = 0; bias != nullptr && q < n; ++q) c[q] += load_f64(*bias, j + q);
          store_run(out, c0 + i * b.cols + j, 1, n, c);
        });
  };
  const Result<Shape> batch = broadcast(a.batch, b.batch);
  for_each_broadcast(*batch, a.batch, b.batch, one_matrix);
}

Status matmul_reference(const OpCall& call, std::span<const TensorView> out) {
  if (out[0].count() == 0) return {};
  const TensorView& x = call.in("x");
  const TensorView& y = call.in("y");
  const Operand a = operand_of(x.shape, MOKA_TRY(call.flag("transpose_x")), true);
  const Operand b = operand_of(y.shape, MOKA_TRY(call.flag("transpose_y")), false);
  if (is_integer(x.dtype) && is_integer(y.dtype)) {
    run_matmul<int64_t>(call, a, b, out[0]);
  } else {
    run_matmul<double>(call, a, b, out[0]);
  }
  return {};
}

/// Adds the optional input `bias`, one number for each column. Only passes set it.
OpDef with_bias(OpDef def) {
  for (OpVersion& v : def.versions) {
    ParamDef& p = v.params.emplace_back();
    p.name = "bias";
    p.dtypes = only(DType::fp32);
    p.constant = p.optional = p.internal = true;
  }
  return def;
}

void matmul_gradient(Gradient& g) {
  const bool tx = g.flag("transpose_x"), ty = g.flag("transpose_y");
  Term x = g.x(), y = g.in("y"), dy = g.dy();
  Shape matrices;
  const int batch = dy.rank() - (x.rank() > 1) - (y.rank() > 1);
  for (int i = 0; i < batch; i++) matrices.push_back(dy.shape()[i]);
  matrices.push_back(x.rank() > 1 ? dy.shape()[batch] : 1);
  matrices.push_back(y.rank() > 1 ? dy.shape()[dy.rank() - 1] : 1);
  if (x.rank() == 1) x = g.reshape(x, {1, x.shape()[0]});
  if (y.rank() == 1) y = g.reshape(y, {y.shape()[0], 1});
  dy = g.reshape(dy, matrices);
  if (y.rank() == 2 && x.rank() > 2 && !tx) {
    const int64_t rows = x.shape().count(0, x.rank() - 1);
    x = g.reshape(x, {rows, x.shape()[x.rank() - 1]});
    dy = g.reshape(dy, {rows, matrices[matrices.rank() - 1]});
  }
  if (g.wants("x")) {
    const Term dx = tx ? g.product(y, ty, dy, true) : g.product(dy, false, y, !ty);
    g.set("x", g.reshape(g.to_shape(dx, x.shape()), g.x().shape()));
  }
  if (g.wants("y")) {
    const Term d = ty ? g.product(dy, true, x, tx) : g.product(x, !tx, dy, false);
    g.set("y", g.reshape(g.to_shape(d, y.shape()), g.in("y").shape()));
  }
  if (g.wants("bias")) g.set("bias", g.dy());
}

}  // namespace

OpDef define_matmul() {
  constexpr DTypes domain = any_of(DType::fp16, DType::fp32, DType::int32);
  return with_addend(with_bias(
      OpBuilder("matmul",
                "Matrix product over the last two dimensions. The others broadcast. Vectors work as in NumPy.")
          .type_var("T", domain)
          .in("x", "T")
          .in("y", "T")
          .constant("transpose_x", kBool)
          .or_else(Tensor::boolean(false))
          .constant("transpose_y", kBool)
          .or_else(Tensor::boolean(false))
          .infer(infer_matmul)
          .reference(matmul_reference)
          .traits(Trait::costly)
          .at(Opset::ios17,
              [](OpVersion& v) {
                v.set_domain("U", domain);
                v.edit("y").type_var = std::string("U");
              })
          .note("A vector on the left is a row, on the right a column, and its dimension is dropped. Other dimensions "
                "broadcast.",
                "numpy.matmul")
          .note("Since iOS17 a constant operand may have another type. The result has the type of the other operand.",
                "coremltools' definition")
          .note("transpose_y has no effect on a vector. transpose_x of a vector is refused.",
                "coremltools' type inference")
          .gradient(matmul_gradient)
          .build()));
}

}  // namespace moka::ops

// SPDX-License-Identifier: Apache-2.0
#include "ops/common/gradients.h"

#include <algorithm>

#include "ir/evaluate.h"
#include "ops/common/reduction.h"

namespace moka::ops {

using namespace ir;

Ints all_axes(int rank) {
  Ints out;
  for (int i = 0; i < rank; i++) out.push_back(i);
  return out;
}

Term channel_wise(Gradient& g, std::string_view param) {
  Shape s;
  for (int i = 0; i < g.x().rank(); i++) s.push_back(i == 1 ? g.x().shape()[1] : 1);
  return g.reshape(g.in(param), s);
}

Term sum_but_channels(Gradient& g, Term x) {
  Ints axes;
  for (int i = 0; i < x.rank(); i++)
    if (i != 1) axes.push_back(i);
  return g.sum(x, axes, false);
}

Term reduced(Gradient& g, Term of_result) {
  Shape s = g.x().shape();
  for (int64_t axis : g.take(reduced_axes(g.known(), s.rank()))) s[static_cast<int>(axis)] = 1;
  return g.reshape(of_result, s);
}

void extremum_gradient(Gradient& g) {
  const Term is_best = g.call("cast", {{"x", compare("equal", g.x(), reduced(g, g.y())).value()},
                                       {"dtype", std::string(to_string(g.y().value()->type.dtype()))}});
  const Ints axes = g.take(reduced_axes(g.known(), g.x().rank()));
  g.set("x", is_best * (reduced(g, g.dy()) / g.sum(is_best, axes, true)));
}

void pick_gradient(Gradient& g, std::string_view comparison) {
  const Term x = g.x(), y = g.in("y"), half = g.dy() * 0.5;
  const Term is_equal = compare("equal", x, y);
  if (g.wants("x")) g.set("x", select(compare(comparison, x, y), g.dy(), select(is_equal, half, 0.0)));
  if (g.wants("y")) g.set("y", select(compare(comparison, y, x), g.dy(), select(is_equal, half, 0.0)));
}

Term product_of_others(Term x, const std::function<Term(Term x, bool is_product)>& combine) {
  Gradient& g = x.gradient();
  const Term is_zero = compare("equal", x, 0.0);
  const Term counts = g.cast(is_zero, x.value()->type.dtype()), factors = select(is_zero, 1.0, x);
  const Term product = combine(factors, true);
  return select(compare("equal", combine(counts, false) - counts, 0.0), product / factors, 0.0);
}

void normalization_gradient(Gradient& g, const Ints& axes, const Ints& affine_axes) {
  const Term x = g.x();
  const auto mean = [&](Term t) {
    return g.call("reduce_mean", {{"x", t.value()}, {"axes", axes}, {"keep_dims", true}});
  };
  Shape affine;
  Ints summed;
  for (int i = 0; i < x.rank(); i++) {
    const bool has =
        std::any_of(affine_axes.begin(), affine_axes.end(), [&](int64_t a) { return (a + x.rank()) % x.rank() == i; });
    affine.push_back(has ? x.shape()[i] : 1);
    if (!has) summed.push_back(i);
  }
  const Term centered = x - mean(x);
  const Term inverse =
      g.call("rsqrt", {{"x", mean(square(centered)).value()}, {"epsilon", g.scalar(g.number("epsilon"))}});
  const Term normal = centered * inverse;
  if (g.wants("x")) {
    const Term dy = g.has("gamma") ? g.dy() * g.reshape(g.in("gamma"), affine) : g.dy();
    g.set("x", inverse * (dy - mean(dy) - normal * mean(dy * normal)));
  }
  if (g.wants("gamma")) g.set("gamma", g.reshape(g.sum(g.dy() * normal, summed, true), g.in("gamma").shape()));
  if (g.wants("beta")) g.set("beta", g.reshape(g.sum(g.dy(), summed, true), g.in("beta").shape()));
}

Term conv_weights_gradient(Gradient& g, const Window& w, Term wide, Term narrow) {
  Ints begins;
  for (int i = 0; i < w.rank; i++) begins.push_back(w.pads_begin[i]);
  return g.call("moka_conv_weights_gradient", {{"x", wide.value()},
                                               {"dy", narrow.value()},
                                               {"kernel", w.kernel},
                                               {"strides", w.strides},
                                               {"dilations", w.dilations},
                                               {"pad", begins},
                                               {"groups", static_cast<int>(w.groups)}});
}

void pool_gradient(Gradient& g, std::string_view op) {
  g.set("x", g.again_as(op, {{"x", g.x().value()}, {"dy", g.dy().value()}}));
}

namespace {

/// The matrix [out, in] of the operation along its last axis but `from_end`, whose values along the other one are
/// equal.
Result<Tensor> matrix_of(const Op& op, int from_end) {
  const Shape &x = op.input("x")->type.shape(), &y = op.output()->type.shape();
  const int64_t in = x[x.rank() - 1 - from_end], out = y[y.rank() - 1 - from_end], other = x[x.rank() - 2 + from_end];
  Tensor basis =
      MOKA_TRY(Tensor::zeros(DType::fp32, from_end == 1 ? Shape{1, in, in, other} : Shape{1, in, other, in}));
  for (int64_t i = 0; i < in; i++)
    for (int64_t k = 0; k < other; k++)
      store_f64(basis.view(), (i * in * other) + (from_end == 1 ? i * other + k : k * in + i), 1);
  std::vector<RuntimeValue> inputs;
  for (const Operand& o : op.operands())
    for (const Value* v : o.values)
      if (v == op.input("x"))
        inputs.emplace_back(basis);
      else if (v->constant() != nullptr)
        inputs.push_back(MOKA_TRY(runtime_value(*v->constant())));
      else
        return fail(ErrorCode::unsupported, "'", v->name, "' is not constant");
  const std::vector<RuntimeValue> results = MOKA_TRY(evaluate_op(op, inputs));
  const TensorView made = results[0].view();
  const int64_t columns = made.shape[3], rows = made.shape[2];
  Tensor matrix = MOKA_TRY(Tensor::zeros(DType::fp32, {out, in}));
  for (int64_t i = 0; i < in; i++)
    for (int64_t o = 0; o < out; o++)
      store_f64(matrix.view(), o * in + i, load_f64(made, i * rows * columns + (from_end == 1 ? o * columns : o)));
  return matrix;
}

}  // namespace

void resize_gradient(Gradient& g) {
  if (g.y().shape().count() == 0) return;
  const Tensor rows = g.take(matrix_of(g.op(), 1)), columns = g.take(matrix_of(g.op(), 0));
  if (g.has_failed()) return;
  const Term half = g.call("matmul", {{"x", g.dy().value()}, {"y", columns}});
  g.set("x", g.call("matmul", {{"x", rows}, {"y", half.value()}, {"transpose_x", true}}));
}

Term clamp_gradient(Gradient& g, Term y, double low, double high) {
  return g.call("moka_clamp_gradient",
                {{"x", y.value()}, {"dy", g.dy().value()}, {"alpha", g.scalar(low)}, {"beta", g.scalar(high)}});
}

namespace {

Term nearest_below(Gradient& g, std::string_view param, const Constant& size, const Constant& last) {
  const Term i = g.cast(g.in(param), DType::int32);
  const Constant zero(Tensor::scalar_i64(DType::int32, 0));
  const Term from_end = g.call("add", {{"x", i.value()}, {"y", size}});
  const Term is_from_end = g.call("less", {{"x", i.value()}, {"y", zero}});
  const Term front = g.call("select", {{"cond", is_from_end.value()}, {"a", from_end.value()}, {"b", i.value()}});
  const Term least = g.call("maximum", {{"x", front.value()}, {"y", zero}});
  return g.call("minimum", {{"x", least.value()}, {"y", last}});
}

}  // namespace

Term nearest_index(Gradient& g, std::string_view param, int64_t size) {
  return nearest_below(g, param, Constant(Tensor::scalar_i64(DType::int32, size)),
                       Constant(Tensor::scalar_i64(DType::int32, size - 1)));
}

Term nearest_indices(Gradient& g, std::string_view param, const Ints& sizes) {
  Ints last;
  for (const int64_t s : sizes) last.push_back(s - 1);
  return nearest_below(g, param, Constant(Tensor::i32(sizes.span())), Constant(Tensor::i32(last.span())));
}

Tensor int32s(Gradient& g, const Shape& shape, const std::function<int64_t(int64_t)>& at) {
  Tensor t = g.take(Tensor::zeros(DType::int32, shape));
  for (int64_t i = 0; i < t.count(); i++) store_i64(t.view(), i, at(i));
  return t;
}

Term counted(Gradient& g, const Shape& shape) {
  const auto number = [](int64_t n) { return Constant(Tensor::scalar_i64(DType::int32, n)); };
  return g.reshape(g.call("range_1d", {{"start", number(0)}, {"end", number(shape.count())}, {"step", number(1)}}),
                   shape);
}

}  // namespace moka::ops

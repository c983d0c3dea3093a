// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "import/onnx/node.h"

namespace moka::import::onnx {
namespace {

/// Axes are an attribute before opset 18 (13 for ReduceSum), and an input after. None: all, or nothing.
bool axes_of(const Node& n, const Value* x, std::vector<int64_t>& out) {
  auto given = n.integers_either("axes", 1);
  if (!given || given->empty()) {
    if (n.integer_or("noop_with_empty_axes", 0) != 0) return false;
    for (int64_t i = 0; i < n.rank(x); ++i) out.push_back(i);
    return true;
  }
  out = n.axes(*given, x);
  return true;
}

bool is_empty(const Value* x) {
  if (x->type.is_ranked())
    for (const int64_t d : x->type.shape())
      if (d == 0) return true;
  return false;
}

/// ONNX's result of a reduction of no elements: `value` everywhere.
Value* of_nothing(const Node& n, Value* x, const std::vector<int64_t>& axes, bool keep, double value) {
  const Shape& s = n.known_shape(x, "a reduction of an empty tensor");
  std::vector<int64_t> dims;
  for (int i = 0; i < s.rank(); ++i) {
    const bool reduced = std::find(axes.begin(), axes.end(), i) != axes.end();
    if (!reduced) dims.push_back(s[i]);
    if (reduced && keep) dims.push_back(1);
  }
  Tensor out = need(Tensor::zeros(x->type.dtype(), need(Shape::make(dims))));
  for (int64_t i = 0; i < out.count(); ++i) ir::store_f64(out.view(), i, value);
  return n.constant(out);
}

void reduce(Node& n, std::string_view op, double nothing, Value* (*before)(const Node&, Value*) = nullptr) {
  Value* x = n.in(0);
  std::vector<int64_t> axes;
  const bool keep = n.integer_or("keepdims", 1) != 0;
  const bool any = axes_of(n, x, axes);
  if (before != nullptr) x = before(n, x);
  if (!any) return n.set(0, x == n.in(0) ? n.unary("identity", x) : x);
  const DType own = x->type.dtype();
  if (own == DType::boolean) x = n.cast(x, DType::int32);
  if (axes.empty() || n.rank(x) == 0) return n.set(0, n.unary("identity", n.cast(x, own)));
  const bool is_log = op == "reduce_log_sum" || op == "reduce_log_sum_exp" || op == "reduce_l2_norm";
  if (is_empty(x)) return n.set(0, n.cast(of_nothing(n, x, axes, keep, nothing), own));
  // Integers: roots and logarithms are computed with fractions.
  if (is_log && x->type.dtype() == DType::int32) x = n.cast(x, DType::fp32);
  n.set(0, wrapped(n, n.cast(n.reduce(op, x, axes, keep), own), n.type()));
}

Value* square(const Node& n, Value* x) { return n.mul(x, x); }

void log_sum(Node& n, bool exponentials) {
  Value* x = n.in(0);
  std::vector<int64_t> axes;
  const bool keep = n.integer_or("keepdims", 1) != 0;
  const double infinity = std::numeric_limits<double>::infinity();
  if (!axes_of(n, x, axes)) return n.set(0, exponentials ? n.unary("identity", x) : n.log(x));
  if (is_empty(x)) return n.set(0, of_nothing(n, x, axes, keep, -infinity));
  if (axes.empty()) return n.set(0, exponentials ? n.unary("identity", x) : n.log(x));
  if (exponentials) return n.set(0, n.reduce("reduce_log_sum_exp", x, axes, keep));
  n.set(0, n.log(n.reduce("reduce_sum", x, axes, keep)));
}

void arg(Node& n, std::string_view op) {
  Value* x = n.in(0);
  const int64_t axis = n.axis(n.integer_or("axis", 0), x);
  const bool keep = n.integer_or("keepdims", 1) != 0;
  const bool last = n.integer_or("select_last_index", 0) != 0;
  const int64_t d = n.rank(x) > 0 ? x->type.shape()[static_cast<int>(axis)] : 1;
  if (last) x = n.op("reverse", {{"x", x}, {"axes", Tensor::i32({axis})}});
  Value* v = n.op(op, {{"x", x}, {"axis", static_cast<int>(axis)}, {"keep_dims", keep}});
  if (last && d < 0) n.unsupported("select_last_index along an axis of unknown size");
  if (last) v = n.sub(static_cast<double>(d - 1), v);
  n.set(0, v, DataType::int64);
}

/// The product of 0 elements is 1, the maximum of none the smallest number.
double lowest(const Node& n) {
  if (n.type() == DataType::boolean) return 0;
  return is_float(n.type()) ? -std::numeric_limits<double>::infinity() : std::numeric_limits<int32_t>::min();
}
double highest(const Node& n) {
  if (n.type() == DataType::boolean) return 1;
  return is_float(n.type()) ? std::numeric_limits<double>::infinity() : std::numeric_limits<int32_t>::max();
}

constexpr OperatorImport kReductionOperators[] = {
    {"ReduceSum", [](Node& n) { reduce(n, "reduce_sum", 0); }},
    {"ReduceMean", [](Node& n) { reduce(n, "reduce_mean", NAN); }},
    {"ReduceMax", [](Node& n) { reduce(n, "reduce_max", lowest(n)); }},
    {"ReduceMin", [](Node& n) { reduce(n, "reduce_min", highest(n)); }},
    {"ReduceProd", [](Node& n) { reduce(n, "reduce_prod", 1); }},
    {"ReduceL1", [](Node& n) { reduce(n, "reduce_l1_norm", 0); }},
    {"ReduceL2", [](Node& n) { reduce(n, "reduce_l2_norm", 0); }},
    {"ReduceSumSquare", [](Node& n) { reduce(n, "reduce_sum", 0, square); }},
    {"ReduceLogSum", [](Node& n) { log_sum(n, false); }},
    {"ReduceLogSumExp", [](Node& n) { log_sum(n, true); }},
    {"ArgMax", [](Node& n) { arg(n, "reduce_argmax"); }},
    {"ArgMin", [](Node& n) { arg(n, "reduce_argmin"); }},
};

}  // namespace

std::span<const OperatorImport> operators_reduction() { return kReductionOperators; }

}  // namespace moka::import::onnx

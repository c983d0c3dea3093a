// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "compiler/onnx/call.h"

namespace moka::compiler::onnx {
namespace {

struct ReductionNode {
  std::string_view op;
  const char* node;
  bool exact;  ///< of integers
};

constexpr ReductionNode kReductions[] = {
    {"reduce_sum", "ReduceSum", true},
    {"reduce_max", "ReduceMax", true},
    {"reduce_min", "ReduceMin", true},
    {"reduce_prod", "ReduceProd", true},
    {"reduce_mean", "ReduceMean", false},
    {"reduce_l1_norm", "ReduceL1", true},
    {"reduce_l2_norm", "ReduceL2", false},
    {"reduce_log_sum", "ReduceLogSum", false},
    {"reduce_sum_square", "ReduceSumSquare", true},
    {"reduce_log_sum_exp", "ReduceLogSumExp", false},
};

/// The type in which onnxruntime compares integers.
DType sortable(Call& c) {
  const DType t = c.dtype("x");
  return ir::is_integer(t) && ir::bits(t) < 32 ? DType::int32 : t == DType::uint32 ? DType::int64 : t;
}
Name compared(Call& c) { return sortable(c) == c.dtype("x") ? c.x() : c.cast(c.x(), sortable(c)); }

void reduce(Call& c) {
  const ReductionNode* s = kReductions;
  while (s->op != c.op.type_name()) s++;
  const DType t = c.dtype("x");
  const bool convert = ir::is_integer(t) && (!s->exact || t != DType::int32);
  const bool keep = c.flag("keep_dims");
  std::vector<int64_t> axes;
  if (c.has("axes")) {
    axes = c.ints("axes");
    const std::string_view op = c.op.type_name();
    if (axes.empty() &&
        (op == "reduce_sum" || op == "reduce_max" || op == "reduce_min" || op == "reduce_prod" || op == "reduce_mean"))
      return c.set(c.x());
    if (axes.empty()) return c.refuse("it reduces no axis");
  }
  const DType in = convert ? DType::fp64 : t;
  Name y = c.reduce(s->node, convert ? c.cast(c.x(), in) : c.x(), axes, keep);
  c.set(convert ? c.cast(y, t) : y);
}

void argument(Call& c) {
  const bool largest = c.op.type_name() == "reduce_argmax";
  const Name y = c.node(largest ? "ArgMax" : "ArgMin", {compared(c)},
                        {attr("axis", c.integer("axis")), attr("keepdims", c.flag("keep_dims"))});
  if (c.out().dtype() == DType::int32) return c.set_int64(y);
  c.set(c.cast(y, c.out().dtype()));
}

/// Indices in the order of the elements along an axis.
std::vector<Name> sorted(Call& c, const Name& k, int axis, bool ascending) {
  return c.nodes("TopK", {compared(c), k}, {attr("axis", axis), attr("largest", !ascending), attr("sorted", true)}, 2);
}

void topk(Call& c) {
  const int axis = c.axis("axis", c.rank("x"));
  const bool ascending = c.flag("ascending");
  Name k;
  if (c.is_constant("k")) {
    const int64_t n = c.integer("k");
    k = n == -1 ? c.node("Slice", {c.node("Shape", {c.x()}), c.i64({axis}), c.i64({axis + 1})}) : c.i64({n});
  } else {
    k = c.node("Reshape", {c.int64("k"), c.i64({1})});
  }
  const std::vector<Name> y = sorted(c, k, axis, ascending);
  c.set(sortable(c) == c.dtype("x") ? y[0] : c.cast(y[0], c.dtype("x")), 0);
  if (c.op.output_count() < 2) return;
  const DType t = c.out(1).dtype();
  if (t == DType::int32)
    c.set_int64(y[1], 1);
  else
    c.set(c.cast(y[1], t), 1);
}

void argsort(Call& c) {
  const int axis = c.axis("axis", c.rank("x"));
  if (c.refused()) return;
  const int64_t n = c.type("x").shape()[axis];
  const Name k = n >= 0 ? c.i64({n}) : c.node("Slice", {c.node("Shape", {c.x()}), c.i64({axis}), c.i64({axis + 1})});
  c.set_int64(sorted(c, k, axis, c.flag("ascending"))[1]);
}

void cumsum(Call& c) {
  const bool exclusive = c.flag("exclusive"), reverse = c.flag("reverse");
  c.set(c.node("CumSum", {c.x(), c.graph.int64_scalar(c.integer("axis"))},
               {attr("exclusive", exclusive), attr("reverse", reverse)}));
}

}  // namespace

std::span<const OpWriter> writers_reduction();
std::span<const OpWriter> writers_reduction() {
  static const auto* list = [] {
    auto* v = new std::vector<OpWriter>{{"reduce_argmax", argument},
                                        {"reduce_argmin", argument},
                                        {"topk", topk},
                                        {"argsort", argsort},
                                        {"cumsum", cumsum}};
    for (const ReductionNode& s : kReductions) v->push_back({s.op, reduce});
    return v;
  }();
  return *list;
}

}  // namespace moka::compiler::onnx

// SPDX-License-Identifier: Apache-2.0
#include "plan/program_facts.h"

#include <string_view>
#include <vector>

namespace moka::plan {

namespace {

/// The types of an operation's inputs by parameter.
class Inputs {
 public:
  Inputs(const Resolved& resolved, const ResolvedOp& op) : resolved_(resolved), op_(op) {}

  /// Null where the operation lacks the input or it is not a tensor.
  const ir::Shape* shape(std::string_view param) const {
    const ResolvedValue* v = value(param);
    return v != nullptr && v->type.is_tensor() ? &v->type.shape() : nullptr;
  }
  /// A constant's numbers; empty where they are not known.
  std::vector<int64_t> numbers(std::string_view param) const {
    const ResolvedValue* v = value(param);
    std::vector<int64_t> out;
    if (v == nullptr || !v->is_constant() || v->constant.empty_handle()) return out;
    const ir::TensorView view = v->constant.view();
    for (int64_t i = 0; i < view.count(); i++) out.push_back(ir::load_i64(view, i));
    return out;
  }

 private:
  const ResolvedValue* value(std::string_view param) const {
    const int p = op_.op->version().param_index(param);
    if (p < 0) return nullptr;
    const auto at = static_cast<size_t>(p);
    if (at + 1 >= op_.first.size() || op_.first[at] == op_.first[at + 1]) return nullptr;
    return &resolved_.at(op_.in[op_.first[at]]);
  }

  const Resolved& resolved_;
  const ResolvedOp& op_;
};

double count(const ir::Shape& s) { return static_cast<double>(s.count()); }

double size(const ir::Shape& s, int from_end) {
  return s.rank() >= from_end ? static_cast<double>(s[s.rank() - from_end]) : 1;
}

double multiply_adds(const Resolved& resolved, const ResolvedOp& op) {
  const std::string_view type = op.op->type_name();
  const Inputs in(resolved, op);
  if (op.out.empty() || !resolved.at(op.out[0]).type.is_tensor()) return 0;
  const double out = count(resolved.at(op.out[0]).type.shape());
  const ir::Shape* const x = in.shape("x");
  if (type == "conv" || type == "conv_transpose") {
    const ir::Shape* w = in.shape("weight");
    if (x == nullptr || w == nullptr || w->rank() == 0 || (*w)[0] == 0) return 0;
    return (type == "conv" ? out : count(*x)) * count(*w) / static_cast<double>((*w)[0]);
  }
  if (type == "linear") return x != nullptr ? out * size(*x, 1) : 0;
  if (type == "matmul") {
    const std::vector<int64_t> transposed = in.numbers("transpose_x");
    return x != nullptr ? out * size(*x, !transposed.empty() && transposed[0] != 0 ? 2 : 1) : 0;
  }
  if (type == "scaled_dot_product_attention") {
    const ir::Shape *q = in.shape("query"), *k = in.shape("key");
    return q != nullptr && k != nullptr ? (count(*q) + out) * size(*k, 2) : 0;
  }
  if (type == "moka_attention") {
    // [batch, heads, rows, keys, width, width of the result]
    const std::vector<int64_t> sizes = in.numbers("sizes");
    double products = sizes.size() == 6 ? static_cast<double>(sizes[4] + sizes[5]) : 0;
    for (size_t i = 0; i < 4 && products > 0; i++) products *= static_cast<double>(sizes[i]);
    return products;
  }
  return 0;
}

}  // namespace

kernel::ProgramFacts program_facts(const Resolved& resolved) {
  kernel::ProgramFacts facts;
  facts.operations = static_cast<int64_t>(resolved.ops.size());
  for (const ResolvedOp& op : resolved.ops) facts.multiply_adds += multiply_adds(resolved, op);
  for (const ResolvedValue& v : resolved.values)
    if (v.is_constant() && v.type.is_tensor() && v.type.is_concrete()) facts.parameters += count(v.type.shape());
  return facts;
}

}  // namespace moka::plan

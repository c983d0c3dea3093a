// SPDX-License-Identifier: Apache-2.0
#include "import/hints.h"

#include <algorithm>
#include <set>

namespace moka::import {
namespace {

using ir::Op;
using ir::Value;

constexpr int64_t kMostCategories = 1024;

/// Whether the operation's result consists of elements of `v`, one of its parameters.
bool passes_on(const Op& op, const Value& v) {
  static constexpr std::pair<std::string_view, std::string_view> kOps[] = {
      {"cast", "x"},           {"reshape", "x"},     {"expand_dims", "x"},    {"squeeze", "x"},
      {"transpose", "x"},      {"identity", "x"},    {"slice_by_index", "x"}, {"flatten2d", "x"},
      {"split", "x"},          {"concat", "values"}, {"stack", "values"},     {"ml_convert", "x"},
      {"ml_extract", "x"},     {"ml_impute", "x"},   {"select", "a"},         {"select", "b"},
      {"slice_by_size", "x"},  {"reverse", "x"},     {"tile", "x"},           {"floor", "x"},
      {"ml_impute_dict", "x"}, {"gather", "x"},      {"gather_nd", "x"},      {"gather_along_axis", "x"}};
  return std::any_of(std::begin(kOps), std::end(kOps), [&](const auto& known) {
    if (known.first != op.type_name()) return false;
    const auto values = op.inputs(known.second);
    return std::find(values.begin(), values.end(), &v) != values.end();
  });
}

class Finder {
 public:
  explicit Finder(FeatureDescription& feature) : feature_(feature) {}

  void follow(const Value& v) {
    if (!seen_.insert(&v).second) return;
    for (const Op* op : v.users()) {
      if (passes_on(*op, v)) {
        for (size_t i = 0; i < op->output_count(); ++i) follow(*op->output(i));
        continue;
      }
      follow_into_loop(*op, v);
      look(*op, v);
    }
  }

 private:
  void follow_into_loop(const Op& op, const Value& v) {
    if (op.type_name() != "while_loop") return;
    const auto vars = op.inputs("loop_vars");
    for (size_t i = 0; i < vars.size(); ++i)
      for (size_t b = 0; vars[i] == &v && b < op.block_count(); ++b)
        if (i < op.block(b)->inputs().size()) follow(*op.block(b)->inputs()[i]);
  }

  void look(const Op& op, const Value& v) {
    const std::string& type = op.type_name();
    if (type == "ml_one_hot" && op.input("x") == &v) categories(op.input("categories"));
    if ((type == "ml_map" || type == "ml_dict_vectorize") && op.input("x") == &v) categories(op.input("keys"));
    if (type == "ml_recommend" && op.input("count") != &v) categories(op.input("ids"));
    const bool reads = type.starts_with("gather"), writes = type.starts_with("scatter");
    if ((reads || writes) && op.input("indices") == &v) look_at_table(op, *op.input(reads ? "x" : "data"));
    if (type == "one_hot" && op.input("indices") == &v) {
      const Value* size = op.input("one_hot_vector_size");
      if (size != nullptr && size->constant() != nullptr) indices(ir::load_i64(size->constant()->tensor.view(), 0));
    }
  }

  void look_at_table(const Op& op, const Value& table) {
    if (!table.type.is_tensor() || !table.type.is_ranked() || table.type.rank() == 0) return;
    const ir::Shape& shape = table.type.shape();
    if (op.type_name().ends_with("_nd")) {
      // The last axis of the indices has one index for each leading axis, so one range must hold for all of them.
      const ir::Type& at = op.input("indices")->type;
      if (!at.is_ranked() || at.rank() == 0) return;
      const int64_t axes = at.shape()[at.rank() - 1];
      for (int i = 0; i < std::min<int64_t>(axes, shape.rank()); ++i) indices(shape[i]);
      return;
    }
    const Value* axis = op.input("axis");
    const bool given = axis != nullptr && axis->constant() != nullptr;
    int64_t at = given ? ir::load_i64(axis->constant()->tensor.view(), 0) : 0;
    if (at < 0) at += shape.rank();
    if (at >= 0 && at < shape.rank()) indices(shape[static_cast<int>(at)]);
  }

  /// The values that all encoders of one feature know.
  void categories(const Value* known) {
    if (known == nullptr || known->constant() == nullptr || !known->type.is_tensor()) return;
    const ir::TensorView all = known->constant()->tensor.view();
    std::vector<std::string> texts;
    for (int64_t i = 0; i < std::min(all.count(), kMostCategories); ++i)
      texts.push_back(all.dtype == ir::DType::string ? all.as<std::string>()[i] : std::to_string(ir::load_i64(all, i)));
    if (!feature_.categories.empty()) {
      const std::set<std::string> others(texts.begin(), texts.end());
      texts = feature_.categories;
      std::erase_if(texts, [&](const std::string& t) { return !others.contains(t); });
      if (texts.empty()) return;
    }
    feature_.categories = std::move(texts);
  }

  void indices(int64_t size) {
    if (size < 1) return;
    const int64_t upper = feature_.index_range ? std::min(feature_.index_range->upper, size - 1) : size - 1;
    feature_.index_range = SizeRange{0, upper};
  }

  FeatureDescription& feature_;
  std::set<const Value*> seen_;
};

}  // namespace

void find_hints(const ir::Function& function, FunctionDescription& description) {
  for (const auto& v : function.body().inputs())
    for (FeatureDescription& f : description.inputs)
      if (f.name == v->name) Finder(f).follow(*v);
}

}  // namespace moka::import

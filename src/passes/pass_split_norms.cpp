// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "passes/pass.h"
#include "passes/rewrite.h"

/// Normalizes the parts of a concat instead of its result where a batch norm is the concat's only reader: each part's
/// norm can then become part of the convolution that makes the part.
namespace moka::passes {

namespace {

using namespace ir;

constexpr size_t kMaxBytes = size_t{1} << 20;  ///< of a vector that is cut
constexpr int kMaxBetween = 8;                 ///< most operations between a convolution and the concat
constexpr std::array kVectors{"mean", "variance", "gamma", "beta"};

bool is_layer(const Op& op) {
  const std::string& type = op.type_name();
  return type == "conv" || type == "conv_transpose";
}

class NormSplitter {
 public:
  explicit NormSplitter(PassContext& c) : c_(c) {}

  Status visit(Op& norm) {
    if (norm.type_name() != "batch_norm" || !norm.epilogue.empty()) return {};
    Value* joined = norm.input("x");
    const Op* concat = made_by(joined, "concat");
    if (concat == nullptr || !has_one_use(*joined) || !joined->type.is_ranked() || joined->type.rank() < 3) return {};
    const DType dtype = joined->type.dtype();
    const auto axis = number_of(*concat, "axis"), interleave = number_of(*concat, "interleave");
    if ((dtype != DType::fp32 && dtype != DType::fp64) || !axis || interleave.value_or(1) != 0 ||
        (*axis != 1 && *axis != 1 - joined->type.rank()))
      return {};
    const auto values = concat->inputs("values");
    const std::vector<Value*> parts(values.begin(), values.end());
    bool has_functions = false;
    for (Value* part : parts)
      if (!comes_from_layer(*part, has_functions)) return {};
    // Functions behind the norm would be applied to each part, too, after the convolution's own.
    if (has_functions && precedes_functions(*norm.output())) return {};
    std::vector<std::vector<double>> vectors;
    for (const char* name : kVectors) {
      std::vector<double> v;
      if (norm.input(name) != nullptr) {
        const auto t = constant_value(*norm.input(name), kMaxBytes);
        if (!t) return {};
        v = as_doubles(*t);
      }
      vectors.push_back(std::move(v));
    }
    return split(norm, *joined, parts, vectors);
  }

 private:
  /// Whether the part is a convolution's result, or a function of one, that nothing else reads.
  static bool comes_from_layer(const Value& part, bool& has_functions) {
    const Value* v = &part;
    for (int i = 0; i < kMaxBetween; i++) {
      if (!has_one_use(*v) || !v->type.is_ranked() || v->type.shape()[1] < 0) return false;
      const Op& op = *v->producer();
      if (is_layer(op)) return true;
      if (!op.has_trait(Trait::elementwise) || op.output_count() != 1 || op.input("x") == nullptr) return false;
      has_functions = true;
      v = op.input("x");
    }
    return false;
  }

  static bool precedes_functions(const Value& v) {
    return has_one_use(v) && v.users()[0]->has_trait(Trait::elementwise) && v.users()[0]->output_count() == 1;
  }

  Status split(Op& norm, const Value& joined, const std::vector<Value*>& parts,
               const std::vector<std::vector<double>>& vectors) {
    Builder builder = Builder::before(c_.table, norm);
    std::vector<Value*> made;
    int64_t first = 0;
    for (Value* part : parts) {
      const int64_t channels = part->type.shape()[1];
      std::vector<NamedArg> args{{"x", part}};
      if (norm.input("epsilon") != nullptr) args.push_back(given("epsilon", norm.input("epsilon")));
      for (size_t i = 0; i < kVectors.size(); i++) {
        if (vectors[i].empty()) continue;
        const std::vector<double> cut(vectors[i].begin() + first, vectors[i].begin() + first + channels);
        args.emplace_back(kVectors[i], MOKA_TRY(rounded(cut, joined.type.dtype(), Shape{channels})));
      }
      made.push_back(MOKA_TRY(builder.op("batch_norm", std::move(args), cat(norm.name, "_of_", part->name))));
      first += channels;
    }
    Value* whole =
        MOKA_TRY(builder.op("concat", {{"values", made}, {"axis", 1}, {"interleave", false}}, norm.output()->name));
    c_.remark(cat(norm.name, " into the ", parts.size(), " parts of ", joined.name));
    take_name(*whole, *norm.output());
    replace_and_erase(norm, whole);
    return {};
  }

  PassContext& c_;
};

Status run_split_norms(PassContext& c) {
  NormSplitter splitter(c);
  return try_each_op(c.function.body(), [&](Op& op) { return splitter.visit(op); });
}

}  // namespace

Pass pass_split_norms() { return {"split_norms", run_split_norms}; }

}  // namespace moka::passes

// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "ops/common/common.h"
#include "ops/common/sorting.h"

namespace moka::ops {

namespace {

Result<std::vector<Type>> infer_classify(const OpCall& call) {
  const Type &classes = call.type("classes"), &p = call.type("probabilities");
  const DType label = classes.element().is_tensor() ? classes.element().dtype() : DType::none;
  if (label != DType::string && label != DType::int64) {
    return call.error("classes", "a list of strings or of int64", cat(classes));
  }
  if (p.is_ranked() && p.shape().is_concrete() && classes.length() >= 0) {
    const int64_t n = MOKA_TRY(p.shape().checked_count());
    if (n != classes.length())
      return call.error("classes", cat("one label for each of ", n, " probabilities"), cat(classes.length()));
    if (n == 0) return call.error("probabilities", "at least one value", cat("shape ", p.shape()));
  }
  const Type key = Type::scalar(label);
  std::vector<Type> types;
  types.push_back(key);
  types.push_back(Type::dict(key, Type::scalar(DType::fp64)));
  return types;
}

/// Labels are a list of scalars or one tensor.
struct Labels {
  const TensorView& v;
  int64_t size() const { return v.dtype == DType::none ? static_cast<int64_t>(v.list().size()) : v.count(); }
  TensorView holder(int64_t i) const { return v.dtype == DType::none ? v.list()[static_cast<size_t>(i)].view() : v; }
  int64_t index(int64_t i) const { return v.dtype == DType::none ? 0 : i; }
};

Status classify_reference(const OpCall& call, std::span<const TensorView> out) {
  const TensorView& p = call.in("probabilities");
  const Labels labels{call.in("classes")};
  const int64_t n = p.count();
  if (n == 0 || labels.size() != n) {
    return call.error("classes", cat("one label for each of ", n, " probabilities"), cat(labels.size()));
  }
  const DType kind = out[0].dtype;
  for (int64_t i = 0; i < n; i++) {
    const TensorView label = labels.holder(i);
    if (label.dtype != kind || label.count() <= labels.index(i)) {
      return call.error("classes", cat("a label of type ", kind), cat(label.dtype, " at ", i));
    }
  }
  const int64_t best = index_of_largest(p.as<float>(), n);
  copy_element(out[0], 0, labels.holder(best), labels.index(best));

  Dict& dict = out[1].dict();
  const auto count = static_cast<size_t>(n);
  dict.string_keys = kind == DType::string;
  dict.text_keys.resize(dict.string_keys ? count : 0);
  dict.int_keys.resize(dict.string_keys ? 0 : count);
  dict.values.resize(count);
  for (int64_t i = 0; i < n; i++) {
    const TensorView label = labels.holder(i);
    const auto at = static_cast<size_t>(i);
    if (dict.string_keys) {
      dict.text_keys[at] = label.as<std::string>()[labels.index(i)];
    } else {
      dict.int_keys[at] = load_i64(label, labels.index(i));
    }
    dict.values[at] = load_f64(p, i);
  }
  return {};
}

}  // namespace

OpDef define_classify() {
  OpDef def = OpBuilder("classify", "The label of the largest probability, and all labels with their probabilities.")
                  .in("probabilities", only(DType::fp32))
                  .in_kind("classes", ParamKind::list)
                  .infer(infer_classify)
                  .reference(classify_reference)
                  .note("Of equal probabilities the first label wins. NaN never wins.",
                        "numpy.argmax for numbers; there must be a label")
                  .note("The dictionary holds probabilities as doubles. There must be as many as labels.",
                        "Core ML's description of classifiers, whose dictionary has Double values")
                  .build();
  def.versions[0].edit("classes").constant = true;
  return def;
}

}  // namespace moka::ops

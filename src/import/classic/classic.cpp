// SPDX-License-Identifier: Apache-2.0
#include "import/classic/classic.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace moka::import::classic {

using ir::DType;
using ir::NamedArg;
using ir::Tensor;
using ir::Type;
using ir::Value;

Result<Site> Site::open(const proto::Model& model, const ImportContext& context, ir::Builder& builder,
                        Features& features) {
  Site s;
  s.context_ = &context;
  s.builder_ = &builder;
  s.features_ = &features;
  ModelDescription d = MOKA_TRY(describe(model, context.file));
  s.type_name_ = d.type_name;
  const FunctionDescription* f = d.function(d.default_function);
  if (f == nullptr) return fail(ErrorCode::malformed, d.type_name, " model without inputs and outputs");
  s.description_ = *f;
  return s;
}

Result<Value*> Site::op(std::string_view op, std::vector<NamedArg> args, std::string_view what) const {
  if (rows()) {
    const ir::OpDef* def = builder_->table().find(op);
    if (def != nullptr && def->versions.back().param_index("rows") >= 0) args.emplace_back("rows", true);
  }
  return builder_->op(op, std::move(args), name(what));
}

Result<const FeatureDescription*> Site::only_input() const {
  if (description_.inputs.size() != 1)
    return fail(ErrorCode::malformed, type_name_, " model: expected one input, got ", description_.inputs.size());
  return &description_.inputs[0];
}

Result<const FeatureDescription*> Site::only_output() const {
  if (description_.outputs.size() != 1)
    return fail(ErrorCode::malformed, type_name_, " model: expected one output, got ", description_.outputs.size());
  return &description_.outputs[0];
}

Result<Value*> Site::input(const FeatureDescription& feature) const {
  auto it = features_->find(feature.name);
  if (it != features_->end()) return it->second;
  if (feature.optional) return static_cast<Value*>(nullptr);
  return fail(ErrorCode::not_found, type_name_, " model: input '", feature.name, "' has no value");
}

Result<Value*> Site::input(std::string_view name) const {
  if (name.empty()) return static_cast<Value*>(nullptr);
  for (const FeatureDescription& f : description_.inputs)
    if (f.name == name) return input(f);
  return fail(ErrorCode::malformed, type_name_, " model: input '", name, "' is not described");
}

Result<Value*> Site::vector(int64_t expected) const {
  std::vector<Value*> values;
  std::vector<int64_t> dimensions;
  for (const FeatureDescription& f : description_.inputs) {
    Value* v = MOKA_TRY(input(f));
    if (v == nullptr) {
      if (f.kind != FeatureKind::float64)
        return fail(ErrorCode::unsupported, type_name_, " model: optional input '", f.name,
                    "' without a value is not a double");
      v = MOKA_TRY(builder_->constant(name(f.name), Tensor::scalar(DType::fp64, NAN)));
    }
    int64_t n = -1;
    const Type row = rows() ? without_rows(v->type) : v->type;
    if (row.is_tensor() && row.is_ranked() && row.shape().is_concrete())
      n = MOKA_TRY(row.shape().checked_count());
    else if (description_.inputs.size() == 1)
      n = expected;
    if (n < 0)
      return fail(ErrorCode::unsupported, type_name_, " model: input '", f.name, "' of type ", v->type,
                  " does not say its size");
    values.push_back(v);
    dimensions.push_back(n);
  }
  if (values.empty()) return fail(ErrorCode::malformed, type_name_, " model without inputs");
  const Type one = rows() ? without_rows(values[0]->type) : values[0]->type;
  if (values.size() == 1 && one == Type::tensor(DType::fp64, ir::Shape{dimensions[0]})) return values[0];
  Tensor d = MOKA_TRY(tensor(dimensions));
  return op("ml_feature_vectorize", {{"values", values}, {"dimensions", d}}, "features");
}

Status Site::output(const FeatureDescription& feature, Value* value) const {
  Type declared = MOKA_TRY(boundary_type(feature, true));
  const Type t = rows() ? without_rows(value->type) : value->type;
  bool text = t.is_tensor() && t.dtype() == DType::string;
  if (rows() && declared.is_dict() && t.is_tensor()) {
    // The scores of a classifier, or a one-hot vector, as columns.
  } else if (declared.is_dict() || t.is_dict() || !declared.is_tensor() || !t.is_tensor()) {
    if (!is_compatible(t, declared))
      return fail(ErrorCode::malformed, type_name_, " model: output '", feature.name, "' is declared as ", declared,
                  ", but is ", t);
  } else if (text != (declared.dtype() == DType::string)) {
    return fail(ErrorCode::malformed, type_name_, " model: output '", feature.name, "' is declared as ", declared,
                ", but is ", t);
  } else {
    bool reshape = declared.is_ranked() && declared.is_concrete() && t.is_ranked() && !(declared.shape() == t.shape());
    if (reshape || declared.dtype() != t.dtype()) {
      std::vector<NamedArg> args{{"x", value}, {"dtype", std::string(to_string(declared.dtype()))}};
      if (reshape) args.emplace_back("shape", Tensor::i32(declared.shape().dims()));
      value = MOKA_TRY_IN(op("ml_convert", std::move(args), feature.name), cat("output '", feature.name, "'"));
    }
  }
  (*features_)[feature.name] = value;
  return {};
}

Status Site::classify(Value* scores, Tensor classes) const {
  std::vector<NamedArg> args{{"x", scores}, {"classes", std::move(classes)}};
  if (rows()) args.emplace_back("rows", true);
  ir::Op* op = MOKA_TRY(
      builder_->append({"ml_classify", std::move(args), name("classify"), {name("label"), name("scores")}, {}}));
  const std::string& label = description_.predicted_feature_name;
  const std::string& probabilities = description_.predicted_probabilities_name;
  for (const FeatureDescription& f : description_.outputs) {
    bool is_label = f.name == label || (label.empty() && f.kind != FeatureKind::dictionary);
    if (!is_label && f.name != probabilities && (!probabilities.empty() || f.kind != FeatureKind::dictionary))
      return fail(ErrorCode::malformed, type_name_, " model: output '", f.name,
                  "' is neither the predicted class nor its probabilities");
    MOKA_TRY(output(f, op->output(is_label ? 0 : 1)));
  }
  return {};
}

Status Site::charge(size_t bytes) const {
  if (!context_->options.budget) return {};
  return context_->options.budget->take(bytes, cat("numbers of a ", type_name_, " model"));
}

Result<Tensor> Site::copy(DType dtype, const ir::Shape& shape, const void* data, size_t bytes) const {
  MOKA_TRY(charge(bytes));
  Tensor t = MOKA_TRY(Tensor::zeros(dtype, shape));
  if (bytes > 0) std::memcpy(t.mutable_data(), data, bytes);
  return t;
}

Result<Tensor> Site::tensor(std::span<const double> v, const ir::Shape& shape) const {
  return copy(DType::fp64, shape, v.data(), v.size_bytes());
}
Result<Tensor> Site::tensor(std::span<const float> v, const ir::Shape& shape) const {
  return copy(DType::fp32, shape, v.data(), v.size_bytes());
}
Result<Tensor> Site::tensor(std::span<const int64_t> v) const {
  return copy(DType::int64, {static_cast<int64_t>(v.size())}, v.data(), v.size_bytes());
}
Result<Tensor> Site::tensor(std::span<const int32_t> v) const {
  return copy(DType::int32, {static_cast<int64_t>(v.size())}, v.data(), v.size_bytes());
}
Result<Tensor> Site::tensor(std::span<const uint8_t> v, DType dtype) const {
  return copy(dtype, {static_cast<int64_t>(v.size())}, v.data(), v.size_bytes());
}
Result<Tensor> Site::tensor(Bytes bytes, DType dtype, const ir::Shape& shape) const {
  MOKA_TRY(charge(bytes.size()));
  return Tensor::wrap(dtype, shape, std::move(bytes));
}

namespace {

template <class Keys>
std::vector<int64_t> order_of(const Keys& keys) {
  std::vector<int64_t> order(static_cast<size_t>(keys.size()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return keys[static_cast<int>(a)] < keys[static_cast<int>(b)]; });
  return order;
}

}  // namespace

SortedKeys sorted_keys(const proto::StringVector& keys) {
  SortedKeys out;
  out.positions = order_of(keys.vector());
  std::vector<std::string> sorted;
  for (int64_t i : out.positions) sorted.push_back(keys.vector(static_cast<int>(i)));
  int64_t n = keys.vector_size();
  out.keys = Tensor::strings({n}, std::move(sorted));
  return out;
}

Result<SortedKeys> sorted_keys(const Site& site, const proto::Int64Vector& keys) {
  SortedKeys out;
  out.positions = order_of(keys.vector());
  std::vector<int64_t> sorted;
  for (int64_t i : out.positions) sorted.push_back(keys.vector(static_cast<int>(i)));
  out.keys = MOKA_TRY(site.tensor(sorted));
  return out;
}

Tensor strings(const google::protobuf::RepeatedPtrField<std::string>& values) {
  return Tensor::strings({static_cast<int64_t>(values.size())}, {values.begin(), values.end()});
}

}  // namespace moka::import::classic

// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/classifier.h"

#include <algorithm>

namespace moka::import::onnx {
namespace {

/// The value that operations gave another form, but no other content.
Value* origin(Value* v) {
  static constexpr std::string_view forms[] = {"identity", "reshape", "squeeze", "expand_dims", "cast"};
  while (v != nullptr && v->producer() != nullptr) {
    const ir::Op& op = *v->producer();
    if (std::find(std::begin(forms), std::end(forms), op.type_name()) == std::end(forms)) break;
    v = op.input("x");
  }
  return v;
}

int64_t count_of(const Value* v) {
  return v->type.is_tensor() && v->type.is_ranked() && v->type.is_concrete() ? v->type.shape().count() : -1;
}

/// The numbers of which the index is the position of the largest; nullptr: it is none of `n` numbers.
Value* decided_by(Value* index, int64_t n) {
  const Value* from = origin(index);
  const ir::Op* op = from->producer();
  if (op == nullptr || op->type_name() != "reduce_argmax") return nullptr;
  Value* numbers = op->input("x");
  return count_of(numbers) == n ? numbers : nullptr;
}

/// Whether an output has the numbers, as a vector or as a dictionary.
bool shows(const Item& item, Value* numbers, int64_t n) {
  Value* v = item.labels != nullptr ? item.labels->scores : item.value;
  return v != nullptr && v->type.is_tensor() && ir::is_float(v->type.dtype()) && count_of(v) == n &&
         origin(v) == origin(numbers);
}

ir::Constant constant_list(const Tensor& labels) {
  const bool texts = labels.dtype() == DType::string;
  std::vector<ir::Constant> parts;
  for (int64_t i = 0; i < labels.count(); ++i)
    if (texts)
      parts.emplace_back(Tensor::text(labels.as<std::string>()[static_cast<size_t>(i)]));
    else
      parts.emplace_back(Tensor::scalar_i64(DType::int64, ir::load_i64(labels.view(), i)));
  const ir::Type element = ir::Type::scalar(texts ? DType::string : DType::int64);
  return ir::Constant(ir::Type::list(element, labels.count()), std::move(parts));
}

/// One for the chosen label and zero for the others.
Value* only_chosen(Scope& scope, Value* index, int64_t n) {
  ir::Builder& b = scope.builder;
  return need(b.op("one_hot",
                   {{"indices", index},
                    {"one_hot_vector_size", static_cast<int>(n)},
                    {"axis", -1},
                    {"on_value", 1.f},
                    {"off_value", 0.f}},
                   "chosen"));
}

}  // namespace

std::optional<Classifier> find_classifier(Scope& scope, std::span<const Outcome> outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Labels* labels = outputs[i].item->labels.get();
    if (labels == nullptr || labels->index == nullptr) continue;
    const int64_t n = labels->list.count();
    const bool texts = labels->list.dtype() == DType::string;
    Classifier out{i, std::nullopt, nullptr, nullptr};
    Value* numbers = decided_by(labels->index, n);
    for (size_t k = 0; k < outputs.size() && numbers != nullptr && !out.probabilities; ++k)
      if (shows(*outputs[k].item, numbers, n)) out.probabilities = k;
    if (!texts && !out.probabilities) continue;
    if (count_of(labels->index) != 1)
      refuse(ErrorCode::unsupported, "output '", outputs[i].name,
             "': a classifier of Core ML gives one label; give the sizes of the model's inputs for one row");
    ir::Builder& b = scope.builder;
    if (numbers == nullptr) numbers = only_chosen(scope, labels->index, n);
    if (numbers->type.dtype() != DType::fp32)
      numbers = need(b.op("cast", {{"x", numbers}, {"dtype", "fp32"}}, "probabilities_fp32"));
    ir::OpSpec spec{
        "classify", {{"probabilities", numbers}, {"classes", constant_list(labels->list)}}, "classify", {}, {}};
    const ir::Op* op = need(b.append(std::move(spec)));
    out.chosen = op->output(0);
    out.dictionary = op->output(1);
    return out;
  }
  return std::nullopt;
}

}  // namespace moka::import::onnx

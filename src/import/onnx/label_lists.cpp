// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/label_lists.h"

#include <algorithm>

namespace moka::import::onnx {

Tensor list_of(const std::vector<std::string>& strings) {
  return Tensor::strings({static_cast<int64_t>(strings.size())}, strings);
}

Tensor list_of(const std::vector<int64_t>& integers) {
  Tensor t = need(Tensor::zeros(DType::int64, {static_cast<int64_t>(integers.size())}));
  std::copy(integers.begin(), integers.end(), t.mut<int64_t>().begin());
  return t;
}

Tensor class_labels(const Node& n, std::string_view strings, std::string_view integers) {
  if (const Attribute* a = n.attribute(strings); a != nullptr && !a->strings.empty()) return list_of(a->strings);
  const std::vector<int64_t> numbers = n.integers_or(integers);
  if (numbers.empty()) n.malformed(cat("it has neither ", strings, " nor ", integers));
  return list_of(numbers);
}

void set_classified(Node& n, const Tensor& labels, Value* scores) {
  Value* best = n.op("reduce_argmax", {{"x", scores}, {"axis", 1}, {"keep_dims", false}});
  Value* v = nullptr;
  if (labels.dtype() != DType::string && n.wants(0))
    v = n.op("gather", {{"x", n.constant(computed(labels, n.message.outputs[0]))}, {"indices", best}, {"axis", 0}});
  n.set_label(0, std::make_shared<Labels>(Labels{labels, best}), v);
  n.set(1, scores, DataType::float32);
}

}  // namespace moka::import::onnx

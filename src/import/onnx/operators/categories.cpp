// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>

#include "import/onnx/ensemble.h"
#include "import/onnx/label_lists.h"

namespace moka::import::onnx {
namespace {

/// The tensor of an attribute; nullopt: it has none.
std::optional<Tensor> tensor_attribute(const Node& n, const std::string& name) {
  const Attribute* a = n.attribute(name);
  if (a == nullptr || a->tensors.empty()) return std::nullopt;
  return tensor_of(a->tensors[0], n.scope.context.file);
}

/// Strings, int64 or float64 numbers of a vector.
Tensor list_attribute(const Node& n, const std::string& name) {
  if (const Attribute* a = n.attribute(name + "_strings"); a != nullptr) return list_of(a->strings);
  if (const Attribute* a = n.attribute(name + "_int64s"); a != nullptr) return list_of(a->integers);
  if (const auto t = tensor_attribute(n, name + "_tensor")) {
    if (t->dtype() == DType::string) return t->reshaped({t->count()});
    if (!ir::is_float(t->dtype())) return list_of(integers_of(*t));
    return converted(*t, DType::fp64).reshaped({t->count()});
  }
  const Attribute* a = n.attribute(name + "_floats");
  if (a == nullptr) n.malformed(cat("it has no ", name));
  Tensor t = need(Tensor::zeros(DType::fp64, {static_cast<int64_t>(a->numbers.size())}));
  for (size_t i = 0; i < a->numbers.size(); ++i) ir::store_f64(t.view(), static_cast<int64_t>(i), a->numbers[i]);
  return t;
}

/// The list with the value for unknown keys behind it.
Tensor with_default(const Node& n, const Tensor& values) {
  const auto given = tensor_attribute(n, "default_tensor");
  const int64_t count = values.count();
  const bool texts = values.dtype() == DType::string;
  if (given && (given->count() != 1 || texts != (given->dtype() == DType::string)))
    n.malformed("default_tensor: expected one element of the type of the values");
  if (texts) {
    std::vector<std::string> all;
    for (int64_t i = 0; i < count; ++i) all.push_back(values.as<std::string>()[static_cast<size_t>(i)]);
    all.push_back(given ? given->as<std::string>()[0] : n.text_or("default_string", "_Unused"));
    return list_of(all);
  }
  Tensor out = need(Tensor::zeros(values.dtype(), {count + 1}));
  for (int64_t i = 0; i <= count; ++i) {
    if (values.dtype() == DType::int64)
      ir::store_i64(out.view(), i,
                    i < count ? ir::load_i64(values.view(), i)
                    : given   ? integers_of(*given)[0]
                              : n.integer_or("default_int64", -1));
    else
      ir::store_f64(out.view(), i,
                    i < count ? ir::load_f64(values.view(), i)
                    : given   ? ir::load_f64(given->view(), 0)
                              : static_cast<double>(n.number_or("default_float", -0.0F)));
  }
  return out;
}

/// For each element of x, whether it is each of the keys: [..., keys].
Value* matches(const Node& n, Value* x, const Tensor& keys) {
  constexpr int64_t most = 1 << 16;
  if (keys.count() > most) n.unsupported(cat(keys.count(), " keys: expected at most ", most));
  Value* list = n.constant(computed(keys, "keys"));
  if (list->type.dtype() != x->type.dtype()) x = n.cast(x, list->type.dtype());
  Value* found = n.binary("equal", n.expand_dims(x, {n.rank(x)}), list);
  if (!ir::is_float(keys.dtype())) return found;
  std::vector<int64_t> missing;
  for (int64_t i = 0; i < keys.count(); ++i) missing.push_back(std::isnan(ir::load_f64(keys.view(), i)));
  if (std::count(missing.begin(), missing.end(), 1) == 0) return found;
  Value* is_missing = n.expand_dims(n.binary("not_equal", x, x), {n.rank(x)});
  return n.binary("logical_or", found,
                  n.binary("logical_and", is_missing, n.cast(n.integers_constant(missing), DType::boolean)));
}

/// The position of each element of x among the keys; their number where it is none of them.
Value* position(const Node& n, Value* x, const Tensor& keys) {
  Value* found = n.cast(matches(n, x, keys), DType::int32);
  const int last = n.rank(found) - 1;
  Value* at = n.op("reduce_argmax", {{"x", found}, {"axis", last}, {"keep_dims", false}});
  Value* any = n.cast(n.reduce("reduce_max", found, {last}, false), DType::boolean);
  return n.select(any, at, n.scalar(static_cast<double>(keys.count()), at));
}

/// The position of each label among the keys.
std::vector<int64_t> positions(const Tensor& labels, const Tensor& keys) {
  std::vector<int64_t> out;
  const bool texts = labels.dtype() == DType::string;
  if (texts != (keys.dtype() == DType::string))
    return std::vector<int64_t>(static_cast<size_t>(labels.count()), keys.count());
  std::map<std::string, int64_t> at;
  const auto text = [&](const Tensor& t, int64_t i) {
    return texts ? t.as<std::string>()[static_cast<size_t>(i)] : cat(ir::load_f64(t.view(), i));
  };
  for (int64_t i = 0; i < keys.count(); ++i) at.emplace(text(keys, i), i);
  for (int64_t i = 0; i < labels.count(); ++i) {
    const auto it = at.find(text(labels, i));
    out.push_back(it != at.end() ? it->second : keys.count());
  }
  return out;
}

/// The position of each element of input 0 among the keys, be it a number or a label that an index chooses.
Value* position_of_input(const Node& n, const Tensor& keys) {
  const Item& item = n.item(0);
  if (item.labels == nullptr || item.labels->index == nullptr) return position(n, n.in(0), keys);
  return n.op(
      "gather",
      {{"x", n.integers_constant(positions(item.labels->list, keys))}, {"indices", item.labels->index}, {"axis", 0}});
}

/// Before version 2, one list of strings maps to and from its positions.
void label_encoder(Node& n) {
  Tensor keys, values;
  if (const Attribute* classes = n.attribute("classes_strings"); classes != nullptr) {
    std::vector<int64_t> numbers;
    for (size_t i = 0; i < classes->strings.size(); ++i) numbers.push_back(static_cast<int64_t>(i));
    const bool to_texts = n.type(0) != DataType::string;
    keys = to_texts ? list_of(numbers) : list_of(classes->strings);
    values = to_texts ? list_of(classes->strings) : list_of(numbers);
  } else {
    keys = list_attribute(n, "keys");
    values = list_attribute(n, "values");
  }
  if (keys.count() != values.count() || keys.count() == 0)
    n.malformed(cat(keys.count(), " keys and ", values.count(), " values"));
  const Tensor all = with_default(n, values);
  Value* at = position_of_input(n, keys);
  if (all.dtype() == DType::string) return n.set_label(0, std::make_shared<Labels>(Labels{all, at}), nullptr);
  Value* v = n.op("gather", {{"x", n.constant(computed(all, "values"))}, {"indices", at}, {"axis", 0}});
  n.set(0, v, all.dtype() == DType::int64 ? DataType::int64 : DataType::float32);
}

void one_hot_encoder(Node& n) {
  const Attribute* texts = n.attribute("cats_strings");
  const Tensor categories = texts != nullptr ? list_of(texts->strings) : list_of(n.integers_or("cats_int64s"));
  const int64_t count = categories.count();
  if (count == 0) n.malformed("it has no categories");
  if (n.integer_or("zeros", 1) == 0)
    n.scope.context.remark("an unknown category gives zeros in Core ML, and is not an error");
  const Item& item = n.item(0);
  Value* hot = nullptr;
  if (item.labels == nullptr || item.labels->index == nullptr) {
    hot = n.cast(matches(n, n.in(0), categories), DType::fp32);
  } else {
    hot = n.op("one_hot", {{"indices", position_of_input(n, categories)},
                           {"one_hot_vector_size", static_cast<int>(count + 1)},
                           {"axis", -1},
                           {"on_value", 1.f},
                           {"off_value", 0.f}});
    hot = n.slice(hot, n.rank(hot) - 1, 0, count);
  }
  n.set(0, hot, DataType::float32);
}

/// A dictionary for each row: the scores by their labels.
void zip_map(Node& n) {
  if (!n.wants(0)) return;
  const Tensor labels = class_labels(n, "classlabels_strings", "classlabels_int64s");
  Item item{nullptr, {}, DataType::float32};
  item.labels = std::make_shared<Labels>(Labels{labels, nullptr, n.in(0)});
  n.set(0, std::move(item));
}

constexpr OperatorImport kCategoriesOperators[] = {
    {"LabelEncoder", label_encoder, "ai.onnx.ml"},
    {"OneHotEncoder", one_hot_encoder, "ai.onnx.ml"},
    {"ZipMap", zip_map, "ai.onnx.ml"},
};

}  // namespace

std::span<const OperatorImport> operators_categories() { return kCategoriesOperators; }

}  // namespace moka::import::onnx

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "import/onnx/node.h"

/// Sequences whose length is known while importing. They need no operations.
namespace moka::import::onnx {
namespace {

using Elements = std::vector<Item>;

Item sequence(Elements elements, DataType type) {
  return {nullptr, {}, type, true, false, std::make_shared<Elements>(std::move(elements))};
}

const Elements& elements_of(const Node& n, size_t i) {
  const Item& item = n.item(i);
  if (!item.is_sequence) n.malformed(cat("input ", i, ": expected a sequence"));
  return *item.elements;
}

size_t position(const Node& n, size_t i, size_t count) {
  int64_t at = n.integer(i, "position");
  if (at < 0) at += static_cast<int64_t>(count);
  if (at < 0 || at > static_cast<int64_t>(count)) n.malformed(cat("position ", at, " in a sequence of ", count));
  return static_cast<size_t>(at);
}

void construct(Node& n) {
  Elements out;
  for (size_t i = 0; i < n.inputs(); ++i) out.push_back(n.item(i));
  const DataType type = out.empty() ? DataType::float32 : out[0].type;
  n.set(0, sequence(std::move(out), type));
}

void empty(Node& n) { n.set(0, sequence({}, static_cast<DataType>(n.integer_or("dtype", 1)))); }

void insert(Node& n) {
  Elements out = elements_of(n, 0);
  const size_t at = n.has(2) ? position(n, 2, out.size()) : out.size();
  out.insert(out.begin() + static_cast<int64_t>(at), n.item(1));
  n.set(0, sequence(std::move(out), n.type(1)));
}

void erase(Node& n) {
  Elements out = elements_of(n, 0);
  if (out.empty()) n.malformed("an element of an empty sequence");
  const size_t at = n.has(1) ? position(n, 1, out.size()) : out.size() - 1;
  if (at >= out.size()) n.malformed("a position beyond the sequence");
  out.erase(out.begin() + static_cast<int64_t>(at));
  n.set(0, sequence(std::move(out), n.type(0)));
}

void at(Node& n) {
  const Elements& all = elements_of(n, 0);
  const size_t i = position(n, 1, all.size());
  if (i >= all.size()) n.malformed("a position beyond the sequence");
  n.set(0, Item(all[i]));
}

void length(Node& n) {
  const auto count = static_cast<int64_t>(elements_of(n, 0).size());
  n.set(0, Item{nullptr, Tensor::scalar_i64(DType::int64, count), DataType::int64});
}

void concatenate(Node& n) {
  std::vector<Value*> values;
  for (Item item : elements_of(n, 0)) values.push_back(n.scope.value(item, n.message.inputs[0]));
  if (values.empty()) n.unsupported("joining an empty sequence");
  int64_t axis = n.integer_or("axis", 0);
  const DataType type = elements_of(n, 0)[0].type;
  if (n.integer_or("new_axis", 0) != 0) {
    if (axis < 0) axis += n.rank(values[0]) + 1;
    return n.set(0, n.op("stack", {NamedArg("values", values), {"axis", static_cast<int>(axis)}}), type);
  }
  Value* v = n.concat(values, n.axis(axis, values[0]));
  n.set(0, values.size() == 1 ? n.unary("identity", v) : v, type);
}

void split_to_sequence(Node& n) {
  Value* x = n.in(0);
  const int64_t axis = n.axis(n.integer_or("axis", 0), x);
  // A vector of sizes tells how many elements there are, also where x has a size that is known only when it runs.
  const auto length = [&] {
    const int64_t d = n.known_shape(x, "SplitToSequence")[static_cast<int>(axis)];
    constexpr int64_t most = 4096;
    if (d > most) n.unsupported(cat("a sequence of ", d, " elements: expected at most ", most));
    return d;
  };
  std::vector<int64_t> sizes;
  bool keep = true;
  if (!n.has(1)) {
    sizes.assign(static_cast<size_t>(length()), 1);
    keep = n.integer_or("keepdims", 1) != 0;
  } else {
    sizes = n.integers(1, "split");
    for (const int64_t size : sizes)
      if (size < 0) n.malformed(cat("parts of ", size, " elements"));
    if (n.constant(1)->shape().rank() == 0) {
      const int64_t size = sizes[0], d = length();
      if (size < 1) n.malformed(cat("parts of ", size, " elements"));
      sizes.clear();
      for (int64_t at = 0; at < d; at += size) sizes.push_back(std::min(size, d - at));
    }
  }
  Elements out;
  int64_t at = 0;
  for (const int64_t size : sizes) {
    Value* part = n.slice(x, axis, at, at + size);
    at += size;
    out.push_back({keep ? part : n.squeeze(part, {axis}), {}, n.type(0)});
  }
  n.set(0, sequence(std::move(out), n.type(0)));
}

void optional(Node& n) {
  if (n.inputs() > 0) return n.set(0, Item(n.item(0)));
  Item none;
  none.is_absent = true;
  n.set(0, std::move(none));
}

void get_element(Node& n) {
  if (n.item(0).is_absent) n.malformed("the element of an optional without a value");
  n.set(0, Item(n.item(0)));
}

void has_element(Node& n) {
  const bool has = n.has(0) && !n.item(0).is_absent;
  n.set(0, Item{nullptr, Tensor::boolean(has), DataType::boolean});
}

constexpr OperatorImport kSequenceOperators[] = {
    {"SequenceConstruct", construct},
    {"SequenceEmpty", empty},
    {"SequenceInsert", insert},
    {"SequenceErase", erase},
    {"SequenceAt", at},
    {"SequenceLength", length},
    {"ConcatFromSequence", concatenate},
    {"SplitToSequence", split_to_sequence},
    {"Optional", optional},
    {"OptionalGetElement", get_element},
    {"OptionalHasElement", has_element},
};

}  // namespace

std::span<const OperatorImport> operators_sequence() { return kSequenceOperators; }

}  // namespace moka::import::onnx

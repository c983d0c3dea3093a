// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/node.h"

namespace moka::import::onnx {
namespace {

Value* all_of(const Node& n, Value* v, int64_t axis) {
  return n.reduce("reduce_min", n.cast(v, DType::int32), {axis}, false);
}

/// Slices that differ, compared each with each. How many there are is known only when it runs.
void unique(Node& n) {
  Value* x = n.in(0);
  const bool sorted = n.integer_or("sorted", 1) != 0;
  int64_t axis = 0;
  if (n.attribute("axis") != nullptr)
    axis = n.axis(n.integer_or("axis", 0), x);
  else
    x = n.reshape(x, {-1});
  const Shape s = n.known_shape(x, "Unique");
  const int64_t count = s[static_cast<int>(axis)], size = count > 0 ? need(s.checked_count()) / count : 0;
  constexpr int64_t most = int64_t{1} << 26;
  if (count < 1 || size > most / count / count)
    n.unsupported(cat("Unique of ", count, " slices of ", size, " elements"));
  std::vector<int64_t> order{axis};
  for (int64_t i = 0; i < n.rank(x); ++i)
    if (i != axis) order.push_back(i);
  Value* rows = n.reshape(n.transpose(x, order), {count, size});
  if (rows->type.dtype() == DType::boolean) rows = n.cast(rows, DType::int32);
  Value *a = n.expand_dims(rows, {1}), *b = n.expand_dims(rows, {0});
  Value* same = all_of(n, n.binary("equal", a, b), 2);
  // The first element that differs decides which of two slices is less.
  Value* other = n.cast(n.binary("not_equal", a, b), DType::int32);
  Value* before = n.op("cumsum", {{"x", other}, {"axis", 2}, {"exclusive", true}});
  Value* decides = n.mul(other, n.cast(n.binary("equal", before, n.scalar(0, before)), DType::int32));
  Value* less = n.reduce("reduce_max", n.mul(decides, n.cast(n.binary("less", a, b), DType::int32)), {2}, false);
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(i);
  Value* number = n.integers_constant(numbers);
  Value* none = n.scalar(static_cast<double>(count), number);
  Value* candidates = n.select(n.cast(same, DType::boolean), n.expand_dims(number, {0}), none);
  Value* first = n.reduce("reduce_min", candidates, {1}, false);
  Value* is_first = n.cast(n.binary("equal", first, number), DType::int32);
  // A slice's place is the number of distinct ones before it.
  Value* earlier =
      sorted ? less : n.cast(n.binary("less", n.expand_dims(number, {1}), n.expand_dims(first, {0})), DType::int32);
  Value* inverse = n.reduce("reduce_sum", n.mul(earlier, n.expand_dims(is_first, {1})), {0}, false);
  const auto gather = [&](Value* from, Value* at, int64_t along) {
    return n.op("gather", {{"x", from}, {"indices", at}, {"axis", static_cast<int>(along)}});
  };
  Value* firsts = n.squeeze(n.unary("non_zero", is_first), {1});
  Value* places = gather(inverse, firsts, 0);
  Value* indices = gather(firsts, n.op("argsort", {{"x", places}, {"axis", 0}, {"ascending", true}}), 0);
  n.set(0, gather(x, indices, axis));
  n.set(1, indices, DataType::int64);
  n.set(2, inverse, DataType::int64);
  Value* own = n.expand_dims(gather(inverse, indices, 0), {1});
  Value* matches = n.cast(n.binary("equal", own, n.expand_dims(inverse, {0})), DType::int32);
  n.set(3, n.reduce("reduce_sum", matches, {1}, false), DataType::int64);
}

constexpr OperatorImport kUniqueOperators[] = {
    {"Unique", unique},
};

}  // namespace

std::span<const OperatorImport> operators_unique() { return kUniqueOperators; }

}  // namespace moka::import::onnx

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <utility>

#include "import/onnx/node.h"

namespace moka::import::onnx {
namespace {

/// Neighboring elements of a known axis as a slice, which costs nothing where a gather copies; else nullptr.
Value* gathered_slice(const Node& n, Value* x, int64_t axis, const Tensor& indices) {
  const int64_t size = n.rank(x) > 0 && x->type.is_ranked() ? x->type.shape()[axis] : -1;
  const std::vector<int64_t> at = integers_of(indices);
  if (size < 0 || at.empty() || indices.shape().rank() > 1) return nullptr;
  const int64_t first = at[0] < 0 ? at[0] + size : at[0], count = static_cast<int64_t>(at.size());
  if (first < 0 || first + count > size) return nullptr;
  for (int64_t i = 1; i < count; ++i)
    if (const int64_t j = at[static_cast<size_t>(i)]; (j < 0 ? j + size : j) != first + i) return nullptr;
  Value* part = n.slice(x, axis, first, first + count);
  return indices.shape().rank() == 0 ? n.squeeze(part, {axis}) : part;
}

/// Labels of which the index, which is computed, chooses one; nullptr: the input has no labels.
std::shared_ptr<const Labels> chosen_label(const Node& n) {
  const Tensor* list = n.constant(0);
  if (list == nullptr || n.constant(1) != nullptr || list->shape().rank() != 1 ||
      (list->dtype() != DType::string && list->dtype() != DType::int64))
    return nullptr;
  return std::make_shared<Labels>(Labels{*list, n.in(1)});
}

bool are_int32(const Tensor& list) {
  if (list.dtype() == DType::string) return false;
  const std::vector<int64_t> all = integers_of(list);
  return std::all_of(all.begin(), all.end(), [](int64_t v) { return v == static_cast<int32_t>(v); });
}

void gather(Node& n) {
  const auto labels = chosen_label(n);
  if (labels != nullptr && !are_int32(labels->list)) return n.set_label(0, labels, nullptr);
  Value *x = n.in(0), *indices = n.in(1);
  const int64_t axis = n.axis(n.integer_or("axis", 0), x);
  const bool is_sizes = n.scope.context.sizes.contains(x) && n.rank(x) == 1 && x->constant() == nullptr;
  const Tensor* known = n.constant(1);
  Value* v = known != nullptr ? gathered_slice(n, x, axis, *known) : nullptr;
  if (v == nullptr)
    v = n.cast(n.op("gather", {{"x", numbers(n, x)}, {"indices", indices}, {"axis", static_cast<int>(axis)}}),
               x->type.dtype());
  if (is_sizes && known != nullptr && known->shape().rank() <= 1) {
    const std::vector<Size> all = n.sizes_of(x);
    std::vector<Size> taken;
    for (int64_t i : integers_of(*known)) {
      if (i < 0) i += static_cast<int64_t>(all.size());
      if (i < 0 || i >= static_cast<int64_t>(all.size())) n.malformed(cat("index ", i, " of ", all.size(), " sizes"));
      taken.push_back(all[static_cast<size_t>(i)]);
    }
    const bool complete = std::all_of(taken.begin(), taken.end(), [](const Size& s) { return s.known; });
    if (complete) {
      std::vector<int64_t> values;
      for (const Size& s : taken) values.push_back(s.value);
      v = known->shape().rank() == 0 ? n.constant(Tensor::scalar_i64(DType::int32, values[0]))
                                     : n.integers_constant(values);
    } else {
      n.set_sizes(v, std::move(taken));
    }
  }
  if (labels != nullptr) return n.set_label(0, labels, v);
  n.set(0, v);
}

void gather_elements(Node& n) {
  Value* x = n.in(0);
  const int64_t axis = n.axis(n.integer_or("axis", 0), x);
  n.set(0, n.cast(n.op("gather_along_axis",
                       {{"x", numbers(n, x)}, {"indices", n.in(1)}, {"axis", static_cast<int>(axis)}}),
                  x->type.dtype()));
}

/// Indices without negative ones, for operations that do not take them.
Value* positive(const Node& n, Value* indices, Value* sizes) {
  Value* negative = n.binary("less", indices, n.scalar(0, indices));
  return n.select(negative, n.add(indices, sizes), indices);
}

void gather_nd(Node& n) {
  Value *x = n.in(0), *indices = n.in(1);
  const auto batch = static_cast<int>(n.integer_or("batch_dims", 0));
  const Shape& s = n.known_shape(indices, "GatherND");
  const int64_t depth = s[s.rank() - 1];
  Value* sizes = n.slice(n.shape_of(x), 0, batch, batch + depth);
  Value* at = positive(n, indices, sizes);
  n.set(0, n.cast(n.op("gather_nd", {{"x", numbers(n, x)}, {"indices", at}, {"batch_dims", batch}}), x->type.dtype()));
}

std::string mode_of(const Node& n) {
  const std::string mode = n.text_or("reduction", "none");
  return mode == "none" ? "update" : mode;
}

void scatter_elements(Node& n) {
  Value *x = n.in(0), *indices = n.in(1);
  const int64_t axis = n.axis(n.integer_or("axis", 0), x);
  Value* at = positive(n, indices, n.size_of(x, static_cast<int>(axis)));
  Value* v = n.op("scatter_along_axis", {{"data", numbers(n, x)},
                                         {"indices", at},
                                         {"updates", numbers(n, n.in(2))},
                                         {"axis", static_cast<int>(axis)},
                                         {"mode", mode_of(n)}});
  n.set(0, n.cast(v, x->type.dtype()));
}

void scatter_nd(Node& n) {
  Value *x = n.in(0), *indices = n.in(1);
  const int last = n.rank(indices) - 1;
  const int64_t depth = last < 0 ? 0 : indices->type.shape()[last];
  if (depth < 1) n.known_shape(indices, "ScatterND");
  Value* at = positive(n, indices, n.slice(n.shape_of(x), 0, 0, depth));
  Value* v = n.op("scatter_nd",
                  {{"data", numbers(n, x)}, {"indices", at}, {"updates", numbers(n, n.in(2))}, {"mode", mode_of(n)}});
  n.set(0, n.cast(v, x->type.dtype()));
}

void one_hot(Node& n) {
  Value *indices = n.in(0), *values = n.in(2);
  const int64_t depth = n.integer(1, "depth");
  if (depth < 1 || depth > std::numeric_limits<int32_t>::max()) n.malformed(cat("a depth of ", depth));
  int64_t axis = n.integer_or("axis", -1);
  if (axis < 0) axis += n.rank(indices) + 1;
  indices = n.cast(indices, DType::int32);
  Value* at = n.binary("mod", indices, n.scalar(static_cast<double>(depth), indices));
  Value* inside =
      n.binary("logical_and", n.binary("greater_equal", indices, n.scalar(static_cast<double>(-depth), indices)),
               n.binary("less", indices, n.scalar(static_cast<double>(depth), indices)));
  at = n.select(inside, at, n.scalar(-1, at));
  const DType own = values->type.dtype();
  Value* hot = n.op("one_hot", {{"indices", at},
                                {"one_hot_vector_size", static_cast<int>(depth)},
                                {"axis", static_cast<int>(axis)},
                                {"on_value", 1},
                                {"off_value", 0}});
  values = numbers(n, values);
  Value* off = n.squeeze(n.slice(values, 0, 0, 1), {0});
  Value* on = n.squeeze(n.slice(values, 0, 1, 2), {0});
  n.set(0, n.cast(n.select(n.cast(hot, DType::boolean), on, off), own), n.type(2));
}

/// Whether k, a computed number, is the size of x along the axis.
bool is_whole(const Node& n, const Value* k, const Value* x, int64_t axis) {
  const std::vector<Size> sizes = n.sizes_of(k);
  const int64_t d = x->type.is_ranked() ? x->type.shape()[static_cast<int>(axis)] : ir::kAnyDim;
  if (sizes.size() == 1 && !sizes[0].known && sizes[0].symbol != ir::kAnyDim && sizes[0].symbol == d) return true;
  const ir::Op* op = k->producer();
  return op != nullptr && op->type_name() == "shape" && op->input("x") == x && n.rank(x) == 1;
}

/// All elements in order.
void sorted(Node& n, Value* x, int64_t axis) {
  const bool ascending = n.integer_or("largest", 1) == 0;
  Value* at = n.op("argsort", {{"x", x}, {"axis", static_cast<int>(axis)}, {"ascending", ascending}});
  n.set(0, n.op("gather_along_axis", {{"x", x}, {"indices", at}, {"axis", static_cast<int>(axis)}}));
  n.set(1, at, DataType::int64);
}

void top_k(Node& n) {
  Value* x = n.in(0);
  const int64_t axis = n.axis(n.integer_or("axis", -1), x);
  if (n.opset >= 10 && n.constant(1) == nullptr && is_whole(n, n.in(1), x, axis)) return sorted(n, x, axis);
  const int64_t k = n.opset < 10 ? n.integer_or("k", 1) : n.integer(1, "k");
  if (k < 0 || k > std::numeric_limits<int32_t>::max()) n.malformed(cat("k of ", k));
  const bool largest = n.integer_or("largest", 1) != 0;
  const auto out = n.ops("topk", {{"x", x},
                                  {"k", static_cast<int>(k)},
                                  {"axis", static_cast<int>(axis)},
                                  {"ascending", !largest},
                                  {"sort", true},
                                  {"return_indices", true}});
  n.set(0, out[0]);
  n.set(1, out[1], DataType::int64);
}

void non_zero(Node& n) {
  Value* x = n.in(0);
  n.set(0, n.transpose(n.op("non_zero", {{"x", x}}), {1, 0}), DataType::int64);
}

void compress(Node& n) {
  Value *x = n.in(0), *condition = n.in(1);
  const Attribute* axis = n.attribute("axis");
  if (axis == nullptr) x = n.reshape(x, {-1});
  const int64_t a = axis == nullptr ? 0 : n.axis(axis->integer, x);
  Value* rows = n.op("non_zero", {{"x", condition}});
  Value* indices = n.squeeze(rows, {1});
  Value* v = n.op("gather", {{"x", numbers(n, x)}, {"indices", indices}, {"axis", static_cast<int>(a)}});
  n.set(0, n.cast(v, n.in(0)->type.dtype()));
}

void trilu(Node& n) {
  Value* x = n.in(0);
  const int64_t k = n.has(1) ? n.integer(1, "k") : 0;
  const bool upper = n.integer_or("upper", 1) != 0;
  const Shape& s = n.known_shape(x, "Trilu");
  const int64_t rows = s[s.rank() - 2], columns = s[s.rank() - 1];
  Tensor mask = need(Tensor::zeros(DType::boolean, Shape{rows, columns}));
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      mask.mut<uint8_t>()[static_cast<size_t>(i * columns + j)] = upper ? j - i >= k : j - i <= k;
  if (x->type.dtype() == DType::boolean) return n.set(0, n.binary("logical_and", x, n.constant(mask)));
  // A mask times infinity would be NaN.
  n.set(0, n.select(n.constant(mask), x, n.scalar(0, x)));
}

void cum_sum(Node& n) {
  Value* x = n.in(0);
  n.set(0, n.op("cumsum", {{"x", x},
                           {"axis", static_cast<int>(n.axis(n.integer(1, "axis"), x))},
                           {"exclusive", n.integer_or("exclusive", 0) != 0},
                           {"reverse", n.integer_or("reverse", 0) != 0}}));
}

void cum_prod(Node& n) {
  Value* x = n.in(0);
  const int64_t axis = n.axis(n.integer(1, "axis"), x);
  std::vector<int64_t> dims = n.known_shape(x, "CumProd").to_vector();
  const int64_t d = std::exchange(dims[static_cast<size_t>(axis)], 1);
  const bool exclusive = n.integer_or("exclusive", 0) != 0, reverse = n.integer_or("reverse", 0) != 0;
  constexpr int64_t most = 4096;
  if (d > most) n.unsupported(cat("a product over ", d, " elements: expected at most ", most));
  std::vector<Value*> parts;
  Value *running = nullptr, *ones = n.op("fill", {{"shape", Tensor::i32(dims)}, n.arg("value", 1, x)});
  for (int64_t k = 0; k < d; ++k) {
    const int64_t at = reverse ? d - 1 - k : k;
    Value* one = n.slice(x, axis, at, at + 1);
    if (exclusive) parts.push_back(running == nullptr ? ones : running);
    running = running == nullptr ? one : n.mul(running, one);
    if (!exclusive) parts.push_back(running);
  }
  if (parts.empty()) return n.set(0, n.unary("identity", x));
  if (reverse) std::reverse(parts.begin(), parts.end());
  n.set(0, n.concat(parts, axis));
}

void array_feature_extractor(Node& n) {
  Value* x = n.in(0);
  Value* indices = n.reshape(n.in(1), {-1});
  n.set(0, n.op("gather", {{"x", x}, {"indices", indices}, {"axis", n.rank(x) - 1}}));
}

void tensor_scatter(Node& n) {
  Value *cache = n.in(0), *update = n.in(1);
  const int64_t axis = n.axis(n.integer_or("axis", -2), cache);
  const Shape &s = n.known_shape(cache, "TensorScatter"), &u = n.known_shape(update, "TensorScatter");
  const bool circular = n.text_or("mode", "linear") == "circular";
  const int64_t length = u[static_cast<int>(axis)], d = s[static_cast<int>(axis)];
  Value* starts = n.has(2) ? n.in(2) : n.integers_constant(std::vector<int64_t>(static_cast<size_t>(s[0]), 0));
  std::vector<int64_t> steps, first(static_cast<size_t>(s.rank()), 1), along(first);
  for (int64_t i = 0; i < length; ++i) steps.push_back(i);
  first[0] = s[0];
  along[static_cast<size_t>(axis)] = length;
  Value* at = n.add(n.reshape(starts, first), n.reshape(n.integers_constant(steps), along));
  if (circular) at = n.binary("mod", at, n.scalar(static_cast<double>(d), at));
  at = n.broadcast(at, u.to_vector());
  n.set(0, n.op("scatter_along_axis", {{"data", cache},
                                       {"indices", at},
                                       {"updates", update},
                                       {"axis", static_cast<int>(axis)},
                                       {"mode", "update"}}));
}

constexpr OperatorImport kIndexingOperators[] = {
    {"Gather", gather},
    {"GatherElements", gather_elements},
    {"GatherND", gather_nd},
    {"Scatter", scatter_elements},
    {"ScatterElements", scatter_elements},
    {"ScatterND", scatter_nd},
    {"OneHot", one_hot},
    {"TopK", top_k},
    {"NonZero", non_zero},
    {"Compress", compress},
    {"Trilu", trilu},
    {"CumSum", cum_sum},
    {"CumProd", cum_prod},
    {"ArrayFeatureExtractor", array_feature_extractor, "ai.onnx.ml"},
    {"TensorScatter", tensor_scatter},
};

}  // namespace

std::span<const OperatorImport> operators_indexing() { return kIndexingOperators; }

}  // namespace moka::import::onnx

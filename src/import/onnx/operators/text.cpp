// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "import/onnx/node.h"

namespace moka::import::onnx {
namespace {

/// How often each n-gram of a pool is in rows of integers, with up to max_skip_count elements left out between its own.
void tf_idf_vectorizer(Node& n) {
  const Attribute *pool = n.attribute("pool_int64s"), *weights = n.attribute("weights");
  if (pool == nullptr) n.unsupported("n-grams of strings, which Core ML has no tensors of");
  Value* x = n.in(0);
  const bool flat = n.rank(x) == 1;
  if (flat) x = n.expand_dims(x, {0});
  const Shape s = n.known_shape(x, "TfIdfVectorizer");
  if (s.rank() != 2) n.malformed(cat("expected a vector or a matrix, got ", x->type));
  const int64_t shortest = n.integer_or("min_gram_length", 1), longest = n.integer_or("max_gram_length", 1);
  const int64_t skips = n.integer_or("max_skip_count", 0);
  const std::vector<int64_t> starts = n.integers_or("ngram_counts"), columns = n.integers_or("ngram_indexes");
  const auto size = static_cast<int64_t>(pool->integers.size());
  constexpr int64_t longest_window = 1024;
  if (skips < 0 || skips > longest_window || static_cast<int64_t>(starts.size()) > longest_window)
    n.unsupported(cat("n-grams of up to ", starts.size(), " elements with ", skips, " skipped: expected at most ",
                      longest_window));
  constexpr int64_t most = int64_t{1} << 26;
  int64_t width = 0;
  for (const int64_t c : columns) {
    if (c < 0 || c > most) n.malformed(cat("ngram_indexes of ", c));
    width = std::max(width, c + 1);
  }
  std::vector<Value*> counts;
  size_t gram = 0;
  std::vector<std::pair<size_t, int64_t>> targets;  // a counted n-gram and its column
  for (int64_t length = 1; length <= static_cast<int64_t>(starts.size()); ++length) {
    const auto l = static_cast<size_t>(length);
    const int64_t begin = starts[l - 1], end = l < starts.size() ? starts[l] : size;
    if (begin < 0 || end < begin || end > size || (end - begin) % length != 0) n.malformed("ngram_counts");
    const int64_t grams = (end - begin) / length;
    if (gram + static_cast<size_t>(grams) > columns.size()) n.malformed("fewer ngram_indexes than n-grams");
    if (grams > 0 && length >= shortest && length <= longest) {
      Value* total = nullptr;
      for (int64_t skip = 0; skip <= (length == 1 ? 0 : skips); ++skip) {
        const int64_t places = s[1] - (length - 1) * (skip + 1);
        if (places < 1) break;
        if (places > most / grams) n.unsupported(cat(grams, " n-grams at ", places, " places"));
        Value* found = nullptr;
        for (int64_t k = 0; k < length; ++k) {
          std::vector<int64_t> wanted;
          for (int64_t g = 0; g < grams; ++g)
            wanted.push_back(pool->integers[static_cast<size_t>(begin + g * length + k)]);
          Value* part = n.expand_dims(n.slice(x, 1, k * (skip + 1), k * (skip + 1) + places), {1});
          Value* here = n.binary("equal", part, n.expand_dims(n.integers_constant(wanted), {1}));
          found = found == nullptr ? here : n.binary("logical_and", found, here);
        }
        Value* count = n.reduce("reduce_sum", n.cast(found, DType::fp32), {2}, false);
        total = total == nullptr ? count : n.add(total, count);
      }
      if (total != nullptr) {
        for (int64_t g = 0; g < grams; ++g)
          targets.emplace_back(targets.size(), columns[gram + static_cast<size_t>(g)]);
        counts.push_back(total);
      }
    }
    gram += static_cast<size_t>(grams);
  }
  const auto rows = static_cast<int64_t>(targets.size());
  if (rows > 0 && width > most / rows) n.unsupported(cat(rows, " n-grams in ", width, " columns"));
  Tensor spread = need(Tensor::zeros(DType::fp32, Shape{std::max<int64_t>(rows, 1), width}));
  for (const auto& [row, column] : targets) ir::store_f64(spread.view(), static_cast<int64_t>(row) * width + column, 1);
  if (counts.empty()) counts.push_back(n.op("fill", {{"shape", Tensor::i32({s[0], 1})}, {"value", 0.f}}));
  Value* v = n.matmul(n.concat(counts, 1), n.constant(spread));
  const std::string mode = n.text_or("mode", "TF");
  if (mode == "IDF") v = n.cast(n.binary("greater", v, n.scalar(0, v)), DType::fp32);
  if (mode != "TF" && weights != nullptr) {
    if (static_cast<int64_t>(weights->numbers.size()) != width)
      n.unsupported(cat(weights->numbers.size(), " weights for ", width, " columns"));
    v = n.mul(v, n.constant(Tensor::f32(Shape{width}, weights->numbers)));
  }
  n.set(0, flat ? n.squeeze(v, {0}) : v, DataType::float32);
}

constexpr OperatorImport kTextOperators[] = {
    {"TfIdfVectorizer", tf_idf_vectorizer},
};

}  // namespace

std::span<const OperatorImport> operators_text() { return kTextOperators; }

}  // namespace moka::import::onnx

// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/index_vectors.h"

#include "ops/common/indexing.h"

namespace moka::devices::cpu {

namespace {

template <class Index, class Find>
void find_positions(const IndexVectors& v, const Index* from, int64_t n, int64_t* at, Find find) {
  if (v.depth == 1) {
    for (int64_t i = 0; i < n; i++) at[i] = find(0, v.sizes[0], v.steps[0], static_cast<int64_t>(from[i]));
    return;
  }
  for (int64_t i = 0; i < n; i++, from += v.depth) {
    int64_t sum = 0;
    for (size_t d = 0; d < static_cast<size_t>(v.depth); d++)
      sum = find(sum, v.sizes[d], v.steps[d], static_cast<int64_t>(from[d]));
    at[i] = sum;
  }
}

/// find(sum, size, step, index) adds the position of one component to `sum`.
template <class Find>
void find_all(const IndexVectors& v, const ir::TensorView& indices, int64_t first, int64_t n, int64_t* at, Find find) {
  const int64_t start = first * v.depth;
  switch (indices.dtype) {
    case ir::DType::int8: return find_positions(v, indices.as<int8_t>() + start, n, at, find);
    case ir::DType::uint8: return find_positions(v, indices.as<uint8_t>() + start, n, at, find);
    case ir::DType::int16: return find_positions(v, indices.as<int16_t>() + start, n, at, find);
    case ir::DType::uint16: return find_positions(v, indices.as<uint16_t>() + start, n, at, find);
    default: return find_positions(v, indices.as<int32_t>() + start, n, at, find);
  }
}

}  // namespace

void IndexVectors::nearest(const ir::TensorView& indices, int64_t first, int64_t n, int64_t* at) const {
  find_all(*this, indices, first, n, at, [](int64_t sum, int64_t size, int64_t step, int64_t index) {
    return sum + ops::Indexer::nearest(index, size) * step;
  });
}

void IndexVectors::locate(const ir::TensorView& indices, int64_t first, int64_t n, bool wraps, int64_t* at) const {
  find_all(*this, indices, first, n, at, [wraps](int64_t sum, int64_t size, int64_t step, int64_t index) {
    index += index < 0 && wraps ? size : 0;
    return sum < 0 || index < 0 || index >= size ? -1 : sum + index * step;
  });
}

}  // namespace moka::devices::cpu

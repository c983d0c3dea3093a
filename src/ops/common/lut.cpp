// SPDX-License-Identifier: Apache-2.0
#include "ops/common/lut.h"

#include <algorithm>

#include "ops/common/common.h"
#include "ops/common/shapes.h"

namespace moka::ops {

namespace {
constexpr int64_t kChunk = 4096;
}  // namespace

Result<Lut> check_lut(const OpCall& call, const Shape& indices, DType index_type) {
  const Type& t = call.type("lut");
  const int rank = indices.rank();
  if (rank < 1 || !indices.is_concrete()) return call.error("indices of known shape and rank 1 or more are needed");
  if (!t.is_concrete() || t.rank() != rank + 2)
    return call.error("lut", cat("rank ", rank + 2, ", two more than the indices"), cat(t));
  Lut lut;
  for (int i = 0; i < rank; i++) lut.groups.push_back(t.shape()[i]);
  lut.entries = t.shape()[rank];
  lut.vector = t.shape()[rank + 1];
  MOKA_TRY(check_blocks(call, "lut", indices, lut.groups));
  if (lut.entries != int64_t{1} << bits(index_type)) {
    return call.error("lut", cat(int64_t{1} << bits(index_type), " entries for indices of type ", index_type),
                      cat(lut.entries));
  }
  if (lut.vector < 1) return call.error("lut", "vectors of at least 1 value", cat(lut.vector));
  lut.dense = indices;
  if (call.has("vector_axis")) {
    lut.axis = MOKA_TRY(axis_of(call, "vector_axis", rank));
    lut.dense[lut.axis] = MOKA_TRY(multiply_dims(indices[lut.axis], lut.vector));
  } else if (lut.vector > 1) {
    return call.error("vector_axis", cat("an axis for vectors of ", lut.vector, " values"), "nothing");
  }
  MOKA_TRY(expect_countable(call, lut.dense));
  return lut;
}

void expand_lut(const TensorView& out, const uint8_t* packed, int bits, int64_t n, const TensorView& lut,
                int64_t entries, BlockRuns& runs) {
  uint8_t indices[kChunk];
  with_element_size(out, lut, [&](auto* to, const auto* values) {
    for (int64_t at = 0; at < n; at += kChunk) {
      const int64_t chunk = std::min(kChunk, n - at);
      unpack_bits(packed, bits, at, chunk, indices);
      for (int64_t i = 0; i < chunk;) {
        const int64_t m = std::min(runs.left(), chunk - i);
        const auto* table = values + runs.group() * entries;
        for (int64_t k = i; k < i + m; k++) to[at + k] = table[indices[k]];
        runs.advance(m);
        i += m;
      }
    }
  });
}

void expand_vectors(const TensorView& out, const uint8_t* packed, int bits, const Shape& shape, const TensorView& lut,
                    const Lut& info) {
  uint8_t indices[kChunk];
  const int64_t n = shape.count(), inner = shape.count(info.axis + 1, shape.rank()), width = info.vector;
  BlockRuns runs(shape, info.groups);
  with_element_size(out, lut, [&](auto* to, const auto* values) {
    int64_t row = 0, column = 0;
    for (int64_t at = 0; at < n; at += kChunk) {
      const int64_t chunk = std::min(kChunk, n - at);
      unpack_bits(packed, bits, at, chunk, indices);
      for (int64_t i = 0; i < chunk; i++) {
        const auto* vector = values + (runs.group() * info.entries + indices[i]) * width;
        auto* place = to + row * width * inner + column;
        for (int64_t v = 0; v < width; v++) place[v * inner] = vector[v];
        runs.advance(1);
        if (++column == inner) {
          column = 0;
          row++;
        }
      }
    }
  });
}

}  // namespace moka::ops

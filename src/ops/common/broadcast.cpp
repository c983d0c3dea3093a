// SPDX-License-Identifier: Apache-2.0
#include "ops/common/broadcast.h"

namespace moka::ops {

BroadcastWalk::BroadcastWalk(const ir::Shape& out, std::initializer_list<const ir::Shape*> in) {
  std::array<std::array<int64_t, ir::kMaxRank>, 3> full{};
  const int r = out.rank();
  size_t k = 0;
  for (const ir::Shape* s : in) {
    int64_t step = 1;
    for (int i = s->rank() - 1, o = r - 1; i >= 0 && o >= 0; i--, o--) {
      full[k][static_cast<size_t>(o)] = (*s)[i] == 1 ? 0 : step;
      step *= (*s)[i];
    }
    k++;
  }
  for (int d = 0; d < r; d++) {
    if (out[d] == 1) continue;
    const auto from = static_cast<size_t>(d);
    bool merge = rank > 0;
    const auto last = static_cast<size_t>(merge ? rank - 1 : 0);
    for (size_t j = 0; merge && j < in.size(); j++) merge = stride[j][last] == full[j][from] * out[d];
    const auto to = merge ? last : static_cast<size_t>(rank++);
    size[to] = merge ? size[to] * out[d] : out[d];
    for (size_t j = 0; j < in.size(); j++) stride[j][to] = full[j][from];
  }
}

}  // namespace moka::ops

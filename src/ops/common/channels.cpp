// SPDX-License-Identifier: Apache-2.0
#include "ops/common/channels.h"

namespace moka::ops {

Status check_channel_params(const OpCall& call, int min_rank, std::initializer_list<std::string_view> params) {
  const Type& x = call.type("x");
  const bool ranked = x.is_ranked();
  if (ranked && x.rank() < min_rank)
    return call.error("x", cat("rank ", min_rank, " or more"), cat("shape ", x.shape()));
  for (std::string_view name : params) {
    if (!call.has(name)) continue;
    const Type& p = call.type(name);
    if (!p.is_ranked()) continue;
    if (p.rank() != 1) return call.error(name, "a vector", cat("shape ", p.shape()));
    if (ranked && p.shape()[0] >= 0 && x.shape()[1] >= 0 && p.shape()[0] != x.shape()[1]) {
      return call.error(name, cat("one value for each of the ", x.shape()[1], " channels of x"), cat(p.shape()[0]));
    }
  }
  return {};
}

}  // namespace moka::ops

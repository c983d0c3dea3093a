// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string_view>

#include "ops/common/common.h"

/// Operations with one parameter value per channel, which is axis 1 of x.
namespace moka::ops {

/// Checks that x has at least `min_rank` dimensions and that each present parameter is a vector of x's channels.
Status check_channel_params(const OpCall& call, int min_rank, std::initializer_list<std::string_view> params);

/// Calls fn(channel, first, n) for every run of n consecutive elements of one channel. Precondition: rank >= 2.
template <class F>
void each_channel_run(const Shape& x, F fn) {
  const int64_t inner = x.count(2, x.rank());
  if (inner == 0) return;
  int64_t at = 0;
  for (int64_t b = 0; b < x[0]; b++) {
    for (int64_t c = 0; c < x[1]; c++, at += inner) fn(c, at, inner);
  }
}

/// An element of an optional vector parameter; `missing` if the parameter is absent.
inline double channel_value(const TensorView* v, int64_t c, double missing) {
  return v == nullptr ? missing : load_f64(*v, c);
}

}  // namespace moka::ops

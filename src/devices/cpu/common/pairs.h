// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "devices/cpu/common/broadcast.h"

namespace moka::devices::cpu {

/// Adjacent elements of a result that is computed from x and y, with the elements of both that they need.
struct PairRun {
  const ir::TensorView &x, &y, &out;
  int64_t x_first, y_first, out_first;  ///< elements
  int x_step, y_step;                   ///< 0: the first element for all
  int64_t n;

  template <class T>
  const T* x_as() const {
    return x.as<T>() + x_first;
  }
  template <class T>
  const T* y_as() const {
    return y.as<T>() + y_first;
  }
  template <class T>
  T* out_as() const {
    return out.as<T>() + out_first;
  }
};

/// A kernel that calls f(PairRun) for an elementwise function of x and y, which are broadcast. An element takes the
/// time of `each` floating-point operations.
template <class F>
Match match_pairs(const MatchCall& m, std::string_view kernel, double each, F f) {
  const ir::Shape out = m.outputs[0].shape();
  if (out.count() == 0) return Match::no("an empty tensor");
  const ir::Shape shapes[] = {m.call.shape("x"), m.call.shape("y")};
  const int x = m.call.arg_index("x"), y = m.call.arg_index("y");
  const Chunks chunks{out.count()};
  KernelChoice c;
  c.kernel = kernel;
  if (m.call.dtype("x") == m.outputs[0].dtype()) c.in_place = shapes[0] == out ? x : shapes[1] == out ? y : -1;
  c.tiles = chunks.tiles();
  c.cost = cost_of(m, each * static_cast<double>(out.count()), traffic(m));
  c.run = [=, walk = Broadcast::of(out, shapes)](const KernelArgs& args) -> Status {
    const ir::TensorView &left = args.in[static_cast<size_t>(x)], &right = args.in[static_cast<size_t>(y)];
    walk.each(chunks.first(args.begin), chunks.first(args.end), [&](int64_t first, const auto& from, int64_t n) {
      f(PairRun{left, right, args.out[0], from[0], from[1], first, walk.step(0), walk.step(1), n});
    });
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace moka::devices::cpu

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "ops/common/common.h"

namespace moka::ops {

/// Groups a tensor's elements: elements that differ only along the chosen axes form a group. Groups, and the elements
/// of a group, are visited in row-major order. Adjacent axes are merged if both are chosen or neither is.
class Groups {
 public:
  /// `axes` count from the front. The shape must be concrete.
  Groups(const Shape& shape, const Ints& axes);

  int64_t count() const { return groups_.count; }  ///< number of groups
  int64_t size() const { return members_.count; }  ///< elements per group

  /// The first elements of all groups, or the elements of a group seen from its first: merged axes, in order.
  struct Side {
    int rank = 0;
    int64_t count = 1;
    std::array<int64_t, kMaxRank> size{};
    std::array<int64_t, kMaxRank> stride{};
  };
  const Side& groups() const { return groups_; }
  const Side& members() const { return members_; }

  /// Calls fn(group, offset of its first element).
  template <class F>
  void each_group(F fn) const {
    int64_t g = 0;
    walk(groups_, 0, [&](int64_t offset, int64_t n, int64_t stride) {
      for (int64_t i = 0; i < n; i++) fn(g++, offset + i * stride);
    });
  }

  /// Calls fn(offset, n, stride) for each run of the group that begins at `first`.
  template <class F>
  void each_run(int64_t first, F fn) const {
    walk(members_, first, fn);
  }

  /// Calls fn(offset) for each element of the group that begins at `first`.
  template <class F>
  void each_member(int64_t first, F fn) const {
    walk(members_, first, [&](int64_t offset, int64_t n, int64_t stride) {
      for (int64_t i = 0; i < n; i++) fn(offset + i * stride);
    });
  }

 private:
  template <class F>
  static void walk(const Side& s, int64_t offset, F fn) {
    if (s.count == 0) return;
    if (s.rank == 0) {
      fn(offset, int64_t{1}, int64_t{0});
      return;
    }
    const auto last = static_cast<size_t>(s.rank - 1);
    std::array<int64_t, kMaxRank> at{};
    for (int64_t done = 0; done < s.count; done += s.size[last]) {
      fn(offset, s.size[last], s.stride[last]);
      for (int d = s.rank - 2; d >= 0; d--) {
        const auto k = static_cast<size_t>(d);
        offset += s.stride[k];
        if (++at[k] < s.size[k]) break;
        offset -= s.stride[k] * s.size[k];
        at[k] = 0;
      }
    }
  }

  Side groups_, members_;
};

}  // namespace moka::ops

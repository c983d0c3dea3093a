// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "ir/affine.h"
#include "ir/program.h"

namespace moka::passes {

/// What `op` does to its operand `x`, per entry of dimension `axis`, which has `channels` entries. nullopt: something
/// else, or its constants exceed `max_bytes`.
std::optional<ir::Affine> affine_of(const ir::Op& op, const ir::Value& x, int axis, int64_t channels, size_t max_bytes);

/// The entries of the constant vector given to `param`, or `channels` times `missing`.
std::optional<std::vector<double>> vector_of(const ir::Op& op, std::string_view param, size_t channels, double missing,
                                             size_t max_bytes);

/// An operation that multiplies and adds per channel, whose numbers may be parameters.
struct ChannelStep {
  const ir::Op* op;
  ir::Value* x;                     ///< its operand
  std::optional<ir::Affine> known;  ///< nullopt: parameters are among its numbers
  bool scales, shifts;              ///< may be true although `known` does not
};

/// As affine_of, but parameters may be among the numbers. nullopt also where numbers that are known are not finite.
std::optional<ChannelStep> channel_step(const ir::Op& op, ir::Value& x, int axis, int64_t channels, size_t max_bytes);

/// Adds operations that compose the steps, the first one applied first, to `builder`: the scale and the shift per
/// channel, in float64.
Result<std::pair<ir::Value*, ir::Value*>> compose(ir::Builder& builder, const std::vector<ChannelStep>& steps,
                                                  int64_t channels);

}  // namespace moka::passes

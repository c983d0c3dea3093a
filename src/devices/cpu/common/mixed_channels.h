// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>

#include "devices/cpu/common/common.h"

namespace moka::devices::cpu {

/// Copies channels between blocked fp32 tensors whose blocks do not line up: a block of the result may take its
/// channels from several blocks. Joins and splits use it where parts do not fill their last block.
class MixedChannels {
 public:
  struct Channel {
    size_t tensor;  ///< number among the inputs
    int64_t at;     ///< channel
  };

  /// Channel c of result t is source(t, c). Results are [N, C, ...] in blocks of `block` channels.
  MixedChannels(std::span<const ir::Shape> results, int64_t block, int threads,
                const std::function<Channel(size_t, int64_t)>& source);

  int64_t tiles() const { return images_ * tiles_.groups * tiles_.bands; }
  /// Reads args.in[first + tensor], writes args.out.
  void run(const KernelArgs& args, size_t first) const;

 private:
  struct Block {
    size_t tensor;
    int64_t group;
    bool operator==(const Block&) const = default;
  };
  /// Mixes two blocks by Loops::mix_lanes. The first step of a result reads `first`, later ones the result so far.
  struct Step {
    Block first, second;
    std::array<int32_t, 16> lanes;
  };
  struct Result {
    Block at;
    std::vector<Step> steps;
  };
  Result result_of(Block at, int64_t channels, const std::function<Channel(size_t, int64_t)>& source) const;
  float* begin_of(const ir::TensorView& tensor, int64_t group, int64_t image) const;

  int64_t block_, images_, pixels_, line_;  ///< line: pixels per row
  std::vector<Result> results_;
  BlockedTiles tiles_;
};

}  // namespace moka::devices::cpu

#pragma once

#include <array>
#include <functional>

#include "devices/cpu/kernels/common.h"

namespace moka::devices::cpu {

/// Blocked fp32 tensors whose blocks hold channels of several blocks of other such tensors.
class MixedChannels {
 public:
  struct Channel {
    size_t tensor;  ///< of those that are read
    int64_t at;
  };

  /// Of `results`, [N, C, ...] in blocks of `block` channels, channel c of tensor t is `source(t, c)`.
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
  /// The result, begun with `first` or as it is, and `second`: `lanes` as of Loops::mix_lanes.
  struct Step {
    Block first, second;
    std::array<int32_t, 16> lanes;
  };
  struct Result {
    Block at;
    std::vector<Step> steps;
  };
  Result result_of(Block at, int64_t channels, const std::function<Channel(size_t, int64_t)>& source) const;
  const float* begin_of(const ir::TensorView& tensor, int64_t group, int64_t image) const;

  int64_t block_, images_, pixels_, line_;  ///< line: pixels of a row
  std::vector<Result> results_;
  BlockedTiles tiles_;
};

}  // namespace moka::devices::cpu

// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/mixed_channels.h"

#include <algorithm>

#include "devices/cpu/vector/loops.h"

namespace moka::devices::cpu {

MixedChannels::MixedChannels(std::span<const ir::Shape> results, int64_t block, int threads,
                             const std::function<Channel(size_t, int64_t)>& source)
    : block_(block), images_(results[0][0]), line_(results[0].count(3, results[0].rank())) {
  const int64_t rows = results[0].rank() > 2 ? results[0][2] : 1;
  pixels_ = rows * line_;
  for (size_t t = 0; t < results.size(); t++)
    for (int64_t first = 0; first < results[t][1]; first += block)
      results_.push_back(result_of({t, first / block}, std::min(block, results[t][1] - first), source));
  tiles_ = blocked_tiles(images_, static_cast<int64_t>(results_.size()), rows, threads);
}

MixedChannels::Result MixedChannels::result_of(Block at, int64_t channels,
                                               const std::function<Channel(size_t, int64_t)>& source) const {
  std::vector<Block> blocks;
  std::vector<std::pair<size_t, int32_t>> lanes;  // index in `blocks`, and lane
  for (int64_t i = 0; i < channels; i++) {
    const Channel c = source(at.tensor, at.group * block_ + i);
    const Block from{c.tensor, c.at / block_};
    const auto found = std::find(blocks.begin(), blocks.end(), from);
    lanes.emplace_back(found - blocks.begin(), static_cast<int32_t>(c.at % block_));
    if (found == blocks.end()) blocks.push_back(from);
  }
  Result r{at, {}};
  for (size_t second = std::min<size_t>(1, blocks.size() - 1); second < blocks.size(); second++) {
    Step s{blocks[0], blocks[second], {}};
    s.lanes.fill(-1);
    for (size_t i = 0; i < lanes.size(); i++) {
      const auto [block, lane] = lanes[i];
      if (block == second && second > 0)
        s.lanes[i] = static_cast<int32_t>(block_) + lane;
      else if (block == 0 && second <= 1)
        s.lanes[i] = lane;
      else if (block < second)
        s.lanes[i] = static_cast<int32_t>(i);
    }
    r.steps.push_back(s);
  }
  return r;
}

float* MixedChannels::begin_of(const ir::TensorView& tensor, int64_t group, int64_t image) const {
  const int64_t groups = (tensor.shape[1] + block_ - 1) / block_;
  return tensor.as<float>() + (image * groups + group) * pixels_ * block_;
}

void MixedChannels::run(const KernelArgs& args, size_t first) const {
  for (int64_t t = args.begin; t < args.end; t++) {
    const auto [plane, top, bottom] = tiles_.at(t);
    const int64_t image = plane / tiles_.groups, at = top * line_ * block_, pixels = (bottom - top) * line_;
    const Result& r = results_[static_cast<size_t>(plane % tiles_.groups)];
    float* y = begin_of(args.out[r.at.tensor], r.at.group, image) + at;
    for (const Step& s : r.steps) {
      const auto from = [&](const Block& b) { return begin_of(args.in[first + b.tensor], b.group, image) + at; };
      vector::loops().mix_lanes(&s == &r.steps[0] ? from(s.first) : y, from(s.second), s.lanes.data(), pixels,
                                static_cast<int>(block_), y);
    }
  }
}

}  // namespace moka::devices::cpu

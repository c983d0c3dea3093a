// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/common/conv_block.h"

namespace moka::devices::gpu {

namespace {

constexpr int64_t kChannels = 8, kMostPixels = 8;  // of an invocation
constexpr int64_t kReadCost = 16;                  // of an element of a buffer, in multiply-adds

int64_t divided_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// The cost of a row of results for one channel of x and one row of the kernel, in multiply-adds.
int64_t cost_of_row(const ops::Window& w, int64_t channels, int64_t pixels) {
  const int64_t span =
      std::min((pixels - 1) * w.strides[2] + (w.kernel[2] - 1) * w.dilations[2] + 1, pixels * w.kernel[2]);
  const int64_t reads = channels * w.kernel[2] + span, sums = channels * pixels * w.kernel[2];
  return divided_up(w.out[2], pixels) * (kReadCost * reads + sums);
}

bool is_plain(const ops::Window& w) {
  bool plain = w.taps() == 1;
  for (int i = 0; i < 3; i++) plain &= w.strides[i] == 1 && w.pads_begin[i] == 0 && w.in[i] == w.out[i];
  return plain;
}

/// How often the shader loops over taps along rows. A driver takes long to compile many taps that are unrolled, which
/// saves reads only where neighbors share columns.
int64_t rounds_of(const ops::Window& w) {
  constexpr int64_t kMany = 4;
  const bool shares = w.strides[2] < w.kernel[2] || w.dilations[2] > 1;
  return shares || w.kernel[2] < kMany ? 1 : w.kernel[2];
}

}  // namespace

int64_t block_pixels(const ops::Window& w, int64_t channels) {
  int64_t most = kMostPixels;
  if (channels == 1 && w.strides[2] > 1) most = kMostPixels / 2;
  // Nets halve pictures of 224 pixels again and again; one shader serves all sizes.
  if (w.out[2] % 7 == 0 && most >= 7) return 7;
  int64_t best = most;
  for (int64_t p = most - 1; p >= kMostPixels / 2; p--)
    if (cost_of_row(w, channels, p) < cost_of_row(w, channels, best)) best = p;
  return best;
}

WeightOrder::WeightOrder(const Features& card, int64_t made) {
  const bool tiles = card.shares_tiles();
  name = tiles ? "" : "eights ";
  channels = tiles ? divided_up(made, 4) * 4 : divided_up(made, kChannels) * kChannels;
  together = tiles ? channels : kChannels;
}

ConvBlocks::ConvBlocks(const Features& card, const ops::Window& each, int64_t made, int64_t batch, int64_t parts)
    : window(each), images(batch), size(card.block_size()) {
  if (is_plain(window)) window.in = window.out = {1, 1, window.out_count()};
  pixels = is_plain(window) && window.out[2] % 4 == 0 ? kMostPixels : block_pixels(window, kChannels);
  const int64_t blocks = divided_up(window.out[2], pixels) * window.out[0] * window.out[1] * images;
  groups = card.block_groups(blocks * divided_up(made, kChannels), parts);
}

ConvBlocks::ConvBlocks(const Conv& conv)
    : ConvBlocks(*conv.card, conv.window, conv.made, conv.batch, conv.window.groups) {}

std::vector<uint32_t> ConvBlocks::constants(const After& after, bool fours) const {
  const ops::Window& w = window;
  std::vector<uint32_t> all = after.constants({u32(w.kernel[2] / rounds_of(w))});
  for (uint32_t v : {u32(pixels), u32(w.strides[2]), u32(w.dilations[2]), u32(fours), size}) all.push_back(v);
  return all;
}

BlockParams::BlockParams(const ConvBlocks& blocks, const ConvParams& all)
    : conv(all),
      images(u32(blocks.images)),
      kernel{static_cast<int32_t>(blocks.window.kernel[0]), static_cast<int32_t>(blocks.window.kernel[1])} {
  // The shader has the dilation along rows as a constant.
  conv.window.dilations[2] = static_cast<int32_t>(rounds_of(blocks.window));
}

Status ConvBlocks::record(Recorder& recorder, const Conv& conv, const After& after, Element weights,
                          const std::vector<Use>& uses, bool normed) const {
  const bool fours = is_plain(window) && window.out[2] % 4 == 0 && uses[0].offset % (4 * uses[0].element) == 0;
  const ConvParams params{AfterParams(after),   u32(conv.channels),
                          u32(conv.made),       u32(window.groups),
                          WindowParams(window), has_of(conv.bias >= 0, conv.addend >= 0, after, normed)};
  MOKA_TRY(recorder_of(recorder).dispatch(
      cat(shader_name("conv_block", conv.floats), weights == conv.floats ? "" : cat("_", name_of(weights))),
      constants(after, fours), uses, BlockParams(*this, params), groups_of(groups)));
  recorder_of(recorder).may_share(kFunctions);
  return {};
}

}  // namespace moka::devices::gpu

#include "devices/vulkan/kernels/conv_block.h"

namespace moka::devices::vulkan {

namespace {

constexpr int64_t kChannels = 8;    // of an invocation
constexpr int64_t kMostPixels = 8;  // of an invocation
constexpr int64_t kReadCost = 16;   // of an element of a buffer, in multiply-adds

int64_t divided_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// What the invocations of a row take for a channel of x and a row of the kernel, in multiply-adds.
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

}  // namespace

int64_t block_pixels(const ops::Window& window, int64_t channels) {
  int64_t best = kMostPixels;
  for (int64_t p = kMostPixels - 1; p >= kMostPixels / 2; p--)
    if (cost_of_row(window, channels, p) < cost_of_row(window, channels, best)) best = p;
  return best;
}

ConvBlocks::ConvBlocks(const Conv& conv) : window(conv.window) {
  if (is_plain(window)) window.in = window.out = {1, 1, window.out_count()};
  pixels = is_plain(window) && window.out[2] % 4 == 0 ? kMostPixels : block_pixels(window, kChannels);
  const int64_t segments = divided_up(window.out[2], pixels) * window.out[0] * window.out[1];
  groups = block_groups(segments * divided_up(conv.made, kChannels), conv.batch * window.groups);
}

Status ConvBlocks::record(Recorder& recorder, const Conv& conv, const After& after, Element weights,
                          const std::vector<Use>& uses) const {
  const ops::Window& w = window;
  const bool fours = is_plain(w) && w.out[2] % 4 == 0 && uses[0].offset % (4 * uses[0].element) == 0;
  std::vector<uint32_t> constants =
      after.constants({u32(w.kernel[0]), u32(w.kernel[1]), u32(w.kernel[2]), conv.bias >= 0, conv.addend >= 0});
  for (uint32_t v : {u32(pixels), u32(w.strides[2]), u32(w.dilations[2]), u32(fours), block_size()})
    constants.push_back(v);
  const std::string stem = shader_name("conv_block", conv.floats);
  return recorder_of(recorder).dispatch(
      weights == conv.floats ? stem : cat(stem, "_", name_of(weights)), std::move(constants), uses,
      ConvParams{AfterParams(after), u32(conv.channels), u32(conv.made), u32(w.groups), WindowParams(w)},
      groups_of(groups));
}

}  // namespace moka::devices::vulkan

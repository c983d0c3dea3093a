// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "devices/cpu/common/common.h"
#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/gradients.h"
#include "devices/cpu/vector/loops.h"
#include "ops/common/window.h"

/// Gradients of the weights of depthwise convolutions. A tile is a block of channels of all images.
namespace moka::devices::cpu {

namespace {

using ops::Window;
using vector::gradients;
using vector::Gradients;

constexpr int64_t kDepthwisePixels = 512;  // that are added to a sum before it is added to the total

struct DepthwiseWeights {
  Window w;  ///< of rank 3, with one slice
  int64_t images, channels;
  size_t x, dy;

  int64_t block() const { return gradients().block; }
  int64_t groups() const { return (channels + block() - 1) / block(); }
  int64_t sums() const { return w.taps() * block(); }

  void operator()(const KernelArgs& args, int64_t group) const {
    float *const totals = args.own<float>(), *const sums = totals + this->sums();
    std::fill_n(totals, this->sums(), 0.0f);
    const int64_t most = std::max<int64_t>(1, kDepthwisePixels / w.out[2]);
    for (int64_t image = 0; image < images; image++) {
      const int64_t plane = image * groups() + group;
      for (int64_t row = 0, end; row < w.out[1]; row = end) {
        const Lines lines = lines_of(row);
        for (end = row + 1; end < w.out[1] && end - row < most && lines_of(end) == lines;) end++;
        if (lines.first >= lines.last) continue;
        std::fill_n(sums, this->sums(), 0.0f);
        add(args, plane, row, end, lines, sums + lines.first * w.kernel[2] * block());
        vector::loops().accumulate(vector::Reduce::sum, totals, sums, this->sums());
      }
    }
    const int64_t first = group * block();
    vector::loops().transpose(totals, block(), w.taps(), std::min(block(), channels - first),
                              args.out[0].as<float>() + first * w.taps(), w.taps());
  }

 private:
  /// Lines of the window that read lines of the image.
  struct Lines {
    int64_t first, last;
    bool operator==(const Lines&) const = default;
  };
  Lines lines_of(int64_t row) const {
    const int64_t top = row * w.strides[1] - w.pads_begin[1], d = w.dilations[1];
    const int64_t first = top < 0 ? (-top + d - 1) / d : 0, inside = top < w.in[1] ? (w.in[1] - top + d - 1) / d : 0;
    return {std::min(first, w.kernel[1]), std::min(inside, w.kernel[1])};
  }

  void add(const KernelArgs& args, int64_t plane, int64_t row, int64_t end, const Lines& lines, float* sums) const {
    const int64_t line = w.in[2] * block(), top = row * w.strides[1] - w.pads_begin[1] + lines.first * w.dilations[1];
    gradients().depthwise({.x = args.in[x].as<float>() + plane * w.in_count() * block() + top * line,
                           .dy = args.in[dy].as<float>() + (plane * w.out[1] + row) * w.out[2] * block(),
                           .rows = end - row,
                           .x_row = w.strides[1] * line,
                           .lines = lines.last - lines.first,
                           .line = w.dilations[1] * line,
                           .taps = w.kernel[2],
                           .stride = w.strides[2],
                           .dilation = w.dilations[2],
                           .pad = w.pads_begin[2],
                           .in = w.in[2],
                           .out = w.out[2],
                           .sums = sums});
  }
};

Match match_depthwise_weights(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "dy"}); !why.empty()) return Match::no(why);
  auto window = ops::weights_gradient_window(m.call);
  if (!window.ok()) return Match::no("an unknown window");
  const ir::Shape &x = m.call.shape("x"), &dy = m.call.shape("dy");
  if (window->groups != x[1] || dy[1] != x[1]) return Match::no("channels that depend on each other");
  if (window->rank > 2) return Match::no("3 spatial dimensions");
  if (!m.asked && x[1] < channel_block() / 2) return Match::no("few channels");
  DepthwiseWeights run{window->as_3d(), x[0], x[1], static_cast<size_t>(m.call.arg_index("x")),
                       static_cast<size_t>(m.call.arg_index("dy"))};
  KernelChoice c;
  c.kernel = "cpu.conv.weights.depthwise";
  c.in.resize(m.call.all_args().size());
  c.in[run.x] = c.in[run.dy] = blocked();
  c.tiles = run.groups();
  c.thread_scratch = 2 * static_cast<size_t>(run.sums()) * sizeof(float);
  c.cost = cost_of(m, 2.0 * static_cast<double>(dy.count() * run.w.taps()), traffic(m));
  c.run = [run = std::move(run)](const KernelArgs& args) -> Status {
    for (int64_t t = args.begin; t < args.end; t++) run(args, t);
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_conv_weights_depthwise() {
  static const KernelDef defs[] = {
      {.name = "cpu.conv.weights.depthwise", .ops = {"moka_conv_weights_gradient"}, .match = match_depthwise_weights}};
  return {90, defs};
}

}  // namespace moka::devices::cpu

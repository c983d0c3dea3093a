// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "devices/cpu/common/activations.h"
#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/pointwise.h"
#include "ops/common/window.h"

/// Transposed convolutions whose windows do not overlap (kernel = stride). Each pixel becomes a rectangle of pixels,
/// and each position in the rectangle is a pointwise convolution.
namespace moka::devices::cpu {

namespace {

using vector::pointwise;

constexpr int64_t kPixels = 8 * 14;  // pixels of a panel that stay in the L1 cache

struct PixelBlocking {
  int64_t images, height, width, in, out, in_groups, out_groups;
  int64_t down, across;  ///< pixels of a rectangle

  int64_t columns() const { return out_groups * pointwise().block; }
  int64_t panel() const { return 2 * pointwise().lanes; }
  int64_t taps() const { return down * across; }
};

/// Packs weights as [panel][tap][input channel][output channel].
void pack_weights(const PixelBlocking& p, const float* w, float* to) {
  for (int64_t first = 0; first < p.columns(); first += p.panel()) {
    const int64_t width = std::min(p.panel(), p.columns() - first);
    for (int64_t tap = 0; tap < p.taps(); tap++)
      for (int64_t c = 0; c < p.in; c++, to += width)
        for (int64_t o = 0; o < width; o++) to[o] = first + o < p.out ? w[(c * p.out + first + o) * p.taps() + tap] : 0;
  }
}

Match match_pixels(const MatchCall& given) {
  if (isa() == Isa::base && !given.asked) return Match::no("vectors of four floats");
  if (std::string why = require_fp32(given, {"x", "weight", "bias"}); !why.empty()) return Match::no(why);
  auto window = ops::conv_transpose_window(given.call);
  if (!window.ok()) return Match::no("an invalid window");
  const ops::Window& w = *window;
  if (w.rank != 2) return Match::no(cat(w.rank, " spatial dimensions"));
  for (int i = 0; i < w.rank; i++)
    if (w.kernel[i] != w.strides[i] || w.dilations[i] != 1 || w.pads_begin[i] != 0 || w.pads_end[i] != 0)
      return Match::no("windows that overlap or are cropped");
  if (w.groups != 1) return Match::no("groups");
  if (!given.is_constant("weight")) return Match::no("weights that are not constant");
  const ir::Shape &x = given.call.shape("x"), y = given.outputs[0].shape();
  const int64_t block = channel_block();
  if (x[1] < block || y[1] < block) return Match::no("few channels");
  const double flops = 2.0 * static_cast<double>(y.count() * x[1]);
  const MatchCall m = with_threads_for(given, flops);
  const PixelBlocking p{
      x[0], x[2], x[3], x[1], y[1], (x[1] + block - 1) / block, (y[1] + block - 1) / block, w.kernel[0], w.kernel[1]};
  const auto in = static_cast<size_t>(m.call.arg_index("x"));
  const int weight = m.call.arg_index("weight"), bias = m.call.arg_index("bias");
  std::vector<Activation> after = activations_of(m.epilogue);
  const int64_t scratch = kPixels * p.panel();
  KernelChoice c;
  c.kernel = "cpu.conv_transpose.pixels";
  c.in = in_layouts(m, "x", blocked());
  c.out = {blocked()};
  c.tiles = p.images * p.height;
  c.epilogues = m.epilogue.size();
  c.thread_scratch = static_cast<size_t>(scratch) * sizeof(float);
  c.cost = cost_of(m, flops, traffic(m));
  const auto weights =
      packed_before(c, m, weight, cat("pixels of ", pointwise().lanes, " ", pointwise().block),
                    p.columns() * p.taps() * p.in, [p](const float* value, float* to) { pack_weights(p, value, to); });
  c.run = [=](const KernelArgs& args) -> Status {
    float* made = args.own<float>();
    const int64_t plane = p.height * p.width * block, line = p.width * p.across * block;
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t image = t / p.height, row = t % p.height;
      for (int64_t first = 0; first < p.width; first += kPixels) {
        vector::Pointwise::Call call{};
        call.pixels = std::min(kPixels, p.width - first);
        call.x = args.in[in].as<float>() + image * p.in_groups * plane + (row * p.width + first) * block;
        call.x_step = plane;
        call.in = p.in;
        call.weight = weights->data();
        call.y = made;
        call.y_step = call.pixels * block;
        for (int64_t column = 0; column < p.columns(); column += p.panel()) {
          call.width = std::min(p.panel(), p.columns() - column);
          call.used = std::min(call.width, p.out - column);
          std::array<float, 32> start{};
          if (bias >= 0) std::copy_n(data_of(args, bias) + column, call.used, start.begin());
          call.bias = start.data();
          for (int64_t tap = 0; tap < p.taps(); tap++, call.weight += call.width * p.in) {
            call.ahead = call.weight + call.width * p.in;
            call.ahead_lines = call.width * 4 / vector::Pointwise::kLineBytes + 1;
            pointwise().multiply(call);
            apply_all(after, made, call.width * call.pixels);
            for (int64_t k = 0; k < call.width; k += block) {
              const int64_t group = (column + k) / block, here = std::min(block, p.out - group * block);
              const float* from = made + k / block * call.y_step;
              float* to = args.out[0].as<float>() +
                          ((image * p.out_groups + group) * p.height * p.down + row * p.down + tap / p.across) * line +
                          (first * p.across + tap % p.across) * block;
              for (int64_t i = 0; i < call.pixels; i++, from += block, to += p.across * block) {
                std::copy_n(from, here, to);
                std::fill_n(to + here, block - here, 0.0f);
              }
            }
          }
        }
      }
    }
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_conv_transpose_pixels() {
  static const KernelDef defs[] = {
      {.name = "cpu.conv_transpose.pixels", .ops = {"conv_transpose"}, .match = match_pixels, .measured = true}};
  return {90, defs};
}

}  // namespace moka::devices::cpu

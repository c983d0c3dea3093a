// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/activations.h"
#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/narrow.h"
#include "ops/common/window.h"

/// Pointwise convolutions from blocked channels to a few. A result is a dot product, so no channel is padding.
namespace moka::devices::cpu {

namespace {

using vector::narrow;

constexpr int64_t kPixelsOfTile = 1024;  // per tile
constexpr int64_t kMostOutputs = 16;

Match match_dots(const MatchCall& given) {
  if (std::string why = require_fp32(given, {"x", "weight", "bias"}); !why.empty()) return Match::no(why);
  auto window = ops::conv_window(given.call);
  if (!window.ok()) return Match::no("an invalid window");
  for (int i = 0; i < window->rank; i++)
    if (window->kernel[i] != 1 || window->strides[i] != 1 || window->in[i] != window->out[i])
      return Match::no("a window of more than one pixel");
  if (window->groups != 1) return Match::no("groups");
  if (!given.is_constant("weight")) return Match::no("weights that are not constant");
  const ir::Shape &x = given.call.shape("x"), &y = given.outputs[0].shape();
  const int64_t in = x[1], out = y[1], pixels = window->out_count(), block = channel_block();
  if (out > kMostOutputs) return Match::no("many output channels");
  if (!given.asked) {
    constexpr int64_t kFew = 2;
    if (out > kFew) return Match::no("more than two output channels");
    if (in < block || layout_of(given, "x") != blocked()) return Match::no("a row-major input");
    if (pixels < block) return Match::no("few pixels");
  }
  const double flops = 2.0 * static_cast<double>(y.count() * in);
  const MatchCall m = with_threads_for(given, flops);
  const int64_t groups = (in + block - 1) / block, chunks = (pixels + kPixelsOfTile - 1) / kPixelsOfTile;
  const int source = m.call.arg_index("x"), weight = m.call.arg_index("weight"), bias = m.call.arg_index("bias");
  KernelChoice c;
  c.kernel = "cpu.conv.dots";
  c.in = in_layouts(m, "x", blocked());
  c.tiles = x[0] * chunks;
  c.epilogues = m.epilogue.size();
  c.cost = cost_of(m, flops, traffic(m));
  const auto weights =
      packed_before(c, m, weight, cat("dots of ", block), out * groups * block, [=](const float* value, float* to) {
        for (int64_t o = 0; o < out; o++, value += in) {
          to = std::copy_n(value, in, to);
          to = std::fill_n(to, groups * block - in, 0.0f);
        }
      });
  c.run = [=, after = activations_of(m.epilogue)](const KernelArgs& args) -> Status {
    float start[kMostOutputs] = {};
    if (bias >= 0) std::copy_n(data_of(args, bias), out, start);
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t first = t % chunks * kPixelsOfTile, n = std::min(kPixelsOfTile, pixels - first), image = t / chunks;
      const float* from = data_of(args, source) + (image * groups * pixels + first) * block;
      float* to = args.out[0].as<float>() + image * out * pixels + first;
      narrow().dots(from, pixels * block, groups, weights->data(), out, start, n, to, pixels);
      for (int64_t o = 0; o < out; o++) apply_all(after, to + o * pixels, n);
    }
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_conv_dots() {
  static const KernelDef defs[] = {{.name = "cpu.conv.dots", .ops = {"conv"}, .match = match_dots, .measured = true}};
  return {65, defs};
}

}  // namespace moka::devices::cpu

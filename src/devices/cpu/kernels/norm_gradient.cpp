// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "devices/cpu/common/common.h"
#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/gradients.h"

/// The gradients of a batch norm in one pass over x and dy.
namespace moka::devices::cpu {

namespace {

using vector::gradients;
using vector::Gradients;

constexpr int64_t kMostNormBlock = 16;  // channels
constexpr int64_t kNormPixels = 128;    // pixels whose sum is one float

struct NormGradient {
  int64_t images, channels, pixels;
  double epsilon;
  Layout layout;
  size_t x, dy;
  int mean, variance, gamma;

  int64_t block() const { return layout.is_row_major() ? 1 : layout.block; }
  int64_t groups() const { return (channels + block() - 1) / block(); }

  /// Computes a channel, or a block of channels.
  void operator()(const KernelArgs& args, int64_t group) const {
    float means[kMostNormBlock] = {}, scales[kMostNormBlock] = {};
    double inverse[kMostNormBlock] = {}, totals[2 * kMostNormBlock] = {};
    const int64_t first = group * block(), used = std::min(block(), channels - first), lanes = gradients().block;
    for (int64_t i = 0; i < used; i++) {
      means[i] = data_of(args, mean)[first + i];
      inverse[i] = 1 / std::sqrt(static_cast<double>(data_of(args, variance)[first + i]) + epsilon);
      scales[i] =
          static_cast<float>((gamma < 0 ? 1 : static_cast<double>(data_of(args, gamma)[first + i])) * inverse[i]);
    }
    if (layout.is_row_major()) {
      std::fill_n(means, lanes, means[0]);
      std::fill_n(scales, lanes, scales[0]);
    }
    for (int64_t image = 0; image < images; image++) {
      const int64_t at = (image * groups() + group) * pixels * block();
      add(args, at, pixels * block(), means, scales, totals);
    }
    for (int64_t i = 0; i < used; i++) {
      double sum = totals[i], product = totals[lanes + i];
      for (int64_t k = 1; layout.is_row_major() && k < lanes; k++) {
        sum += totals[k];
        product += totals[lanes + k];
      }
      args.out[1].as<float>()[first + i] = static_cast<float>(product * inverse[i]);
      args.out[2].as<float>()[first + i] = static_cast<float>(sum);
    }
  }

 private:
  /// Adds n numbers, which lie side by side, to the totals of each lane.
  void add(const KernelArgs& args, int64_t at, int64_t n, const float* means, const float* scales,
           double* totals) const {
    const int64_t lanes = gradients().block;
    const float *from = args.in[x].as<float>() + at, *by = args.in[dy].as<float>() + at;
    float* to = args.out[0].as<float>() + at;
    for (int64_t i = 0, some; i < n; i += some) {
      some = std::min(kNormPixels * lanes, n - i);
      float sums[2 * kMostNormBlock] = {}, last[3][kMostNormBlock] = {};
      Gradients::Norm call{from + i, by + i, some / lanes, means, scales, to + i, sums};
      if (some < lanes) {
        std::copy_n(from + i, some, last[0]);
        std::copy_n(by + i, some, last[1]);
        std::fill(last[0] + some, last[0] + lanes, means[0]);
        call = {last[0], last[1], 1, means, scales, last[2], sums};
      } else {
        some = some / lanes * lanes;
      }
      gradients().norm(call);
      if (some < lanes) std::copy_n(last[2], some, to + i);
      for (int64_t k = 0; k < 2 * lanes; k++) totals[k] += static_cast<double>(sums[k]);
    }
  }
};

Match match_norm_gradient(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "dy", "mean", "variance", "gamma"}); !why.empty()) return Match::no(why);
  const auto epsilon = m.call.number("epsilon");
  if (!epsilon.ok()) return Match::no("an epsilon that is not constant");
  const ir::Shape& x = m.call.shape("x");
  const bool is_blocked = layout_of(m, "x") == blocked() || layout_of(m, "dy") == blocked();
  NormGradient run{.images = x[0],
                   .channels = x[1],
                   .pixels = x.count(2, x.rank()),
                   .epsilon = *epsilon,
                   .layout = is_blocked ? blocked() : Layout{},
                   .x = static_cast<size_t>(m.call.arg_index("x")),
                   .dy = static_cast<size_t>(m.call.arg_index("dy")),
                   .mean = m.call.arg_index("mean"),
                   .variance = m.call.arg_index("variance"),
                   .gamma = m.call.arg_index("gamma")};
  KernelChoice c;
  c.kernel = "cpu.batch_norm.gradient";
  c.in = in_layouts(m, "x", run.layout);
  c.in[run.dy] = run.layout;
  c.out = {run.layout, Layout{}, Layout{}};
  c.tiles = run.groups();
  c.cost = cost_of(m, 0, traffic(m));
  c.run = [run](const KernelArgs& args) -> Status {
    for (int64_t t = args.begin; t < args.end; t++) run(args, t);
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_norm_gradient() {
  static const KernelDef defs[] = {
      {.name = "cpu.batch_norm.gradient", .ops = {"moka_batch_norm_gradient"}, .match = match_norm_gradient}};
  return {200, defs};
}

}  // namespace moka::devices::cpu

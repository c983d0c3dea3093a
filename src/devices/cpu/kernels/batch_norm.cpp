// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/vector/batch_norm.h"

#include <cmath>

#include "devices/cpu/kernels/family.h"

namespace moka::devices::cpu {

namespace {

using vector::batch_norm;

constexpr int kNormLanes = vector::BatchNorm::kLanes;

/// Channels that are computed together: a block of them, one plane, or adjacent columns of a matrix. A lane belongs to
/// channel lane % width of them.
struct NormGroups {
  int64_t images = 0, channels = 0, pixels = 0, width = 1, groups = 0, image_step = 0;

  NormGroups(const ir::Shape& x, Layout layout) : images(x[0]), channels(x[1]), pixels(x.count(2, x.rank())) {
    const bool is_blocked = !layout.is_row_major();
    width = is_blocked ? layout.block : pixels == 1 ? kNormLanes : 1;
    groups = (channels + width - 1) / width;
    image_step = is_blocked ? groups * width * pixels : channels * pixels;
  }
  double values() const { return static_cast<double>(images * pixels); }  // of a channel
  int64_t used(int64_t group) const { return std::min(width, channels - group * width); }
  /// Calls f(first, count) for what each image has of the group.
  template <class F>
  void each_image(int64_t group, const F& f) const {
    const bool is_matrix = pixels == 1 && image_step == channels;
    for (int64_t b = 0; b < images; b++)
      f(b * image_step + group * pixels * width, is_matrix ? used(group) : pixels * width);
  }
  /// Adds the lanes of each channel.
  void fold(const double* lanes, double* to) const {
    std::fill_n(to, width, 0.0);
    for (int64_t i = 0; i < kNormLanes; i++) to[i % width] += lanes[i];
  }
  /// lanes[i] = f(the channel, its number in the group); zero for channels of padding.
  template <class F>
  void spread(int64_t group, float* lanes, const F& f) const {
    for (int64_t i = 0; i < kNormLanes; i++)
      lanes[i] = i % width < used(group) ? f(group * width + i % width, i % width) : 0.0f;
  }
};

/// The mean and the variance of each channel of a group. Sums are of differences from the mean of the first image, so
/// that a mean far from zero does not cancel the variance.
void moments_of(const NormGroups& g, int64_t group, const float* x, double* mean, double* variance) {
  alignas(64) float center[kNormLanes] = {};
  double lanes[2][kNormLanes] = {}, sums[kNormLanes], squares[kNormLanes];
  bool is_first = true;
  g.each_image(group, [&](int64_t first, int64_t count) {
    if (is_first) batch_norm().moments(x + first, count, center, lanes[0], lanes[1]);
    is_first = false;
  });
  g.fold(lanes[0], sums);
  g.spread(group, center, [&](int64_t, int64_t i) {
    const auto mean_of_first = static_cast<float>(sums[i] / static_cast<double>(g.pixels));
    return std::isfinite(mean_of_first) ? mean_of_first : 0.0f;
  });
  std::fill_n(&lanes[0][0], 2 * kNormLanes, 0.0);
  g.each_image(
      group, [&](int64_t first, int64_t count) { batch_norm().moments(x + first, count, center, lanes[0], lanes[1]); });
  g.fold(lanes[0], sums);
  g.fold(lanes[1], squares);
  for (int64_t i = 0; i < g.used(group); i++) {
    const double more = sums[i] / g.values();
    mean[i] = static_cast<double>(center[i]) + more;
    const double found = squares[i] / g.values() - more * more;
    variance[i] = found < 0 ? 0 : found;  // NaN stays
  }
}

/// x[i], or `missing` where x is null.
double channel_of(const float* x, int64_t i, double missing) {
  return x != nullptr ? static_cast<double>(x[i]) : missing;
}

Layout norm_layout(const MatchCall& m, std::initializer_list<std::string_view> params) {
  for (std::string_view p : params)
    if (const Layout l = layout_of(m, p); l.kind == Layout::Kind::channel_blocked && kNormLanes % l.block == 0)
      return l;
  return {};
}

Match match_moka_batch_norm_training(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "gamma", "beta"}); !why.empty()) return Match::no(why);
  const auto epsilon = m.call.number("epsilon");
  if (!epsilon.ok() || !m.epilogue.empty()) return Match::no("an epsilon that is not constant, or an epilogue");
  const Layout layout = norm_layout(m, {"x"});
  const NormGroups g(m.call.shape("x"), layout);
  const auto in = static_cast<size_t>(m.call.arg_index("x"));
  const int gamma = m.call.arg_index("gamma"), beta = m.call.arg_index("beta");
  KernelChoice c;
  c.kernel = "cpu.batch_norm.training";
  c.in = in_layouts(m, "x", layout);
  c.out = {layout, {}, {}};
  c.in_place = static_cast<int>(in);
  c.tiles = g.groups;
  c.cost = cost_of(m, 0, 2 * traffic(m));
  c.run = [=, e = *epsilon](const KernelArgs& args) -> Status {
    const float *x = args.in[in].as<float>(), *scales = data_of(args, gamma), *shifts = data_of(args, beta);
    float* y = args.out[0].as<float>();
    for (int64_t t = args.begin; t < args.end; t++) {
      double mean[kNormLanes], variance[kNormLanes];
      moments_of(g, t, x, mean, variance);
      alignas(64) float center[kNormLanes], scale[kNormLanes], shift[kNormLanes];
      g.spread(t, center, [&](int64_t, int64_t i) { return static_cast<float>(mean[i]); });
      g.spread(t, scale, [&](int64_t channel, int64_t i) {
        return static_cast<float>(channel_of(scales, channel, 1) / std::sqrt(variance[i] + e));
      });
      g.spread(t, shift, [&](int64_t channel, int64_t i) {
        const double rest = mean[i] - static_cast<double>(center[i]);
        return static_cast<float>(channel_of(shifts, channel, 0) - rest * static_cast<double>(scale[i]));
      });
      g.each_image(t, [&](int64_t first, int64_t count) {
        batch_norm().apply(x + first, count, center, scale, shift, y + first);
      });
      for (int64_t i = 0; i < g.used(t); i++) {
        args.out[1].as<float>()[t * g.width + i] = static_cast<float>(mean[i]);
        args.out[2].as<float>()[t * g.width + i] = static_cast<float>(variance[i]);
      }
    }
    return {};
  };
  return Match::yes(std::move(c));
}

Match match_moka_batch_norm_training_gradient(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "dy", "mean", "variance", "gamma"}); !why.empty()) return Match::no(why);
  const auto epsilon = m.call.number("epsilon");
  if (!epsilon.ok() || !m.epilogue.empty()) return Match::no("an epsilon that is not constant, or an epilogue");
  const Layout layout = norm_layout(m, {"x", "dy"});
  const NormGroups g(m.call.shape("x"), layout);
  const int in = m.call.arg_index("x"), from = m.call.arg_index("dy"), mean = m.call.arg_index("mean"),
            variance = m.call.arg_index("variance"), gamma = m.call.arg_index("gamma");
  KernelChoice c;
  c.kernel = "cpu.batch_norm.training_gradient";
  c.in = in_layouts(m, "x", layout);
  c.in[static_cast<size_t>(from)] = layout;
  c.out = {layout, {}, {}};
  c.in_place = from;
  c.tiles = g.groups;
  c.cost = cost_of(m, 0, 2 * traffic(m));
  c.run = [=, e = *epsilon](const KernelArgs& args) -> Status {
    const float *x = data_of(args, in), *dy = data_of(args, from), *means = data_of(args, mean),
                *variances = data_of(args, variance), *scales = data_of(args, gamma);
    float* dx = args.out[0].as<float>();
    for (int64_t t = args.begin; t < args.end; t++) {
      alignas(64) float center[kNormLanes], scale[kNormLanes], slope[kNormLanes], shift[kNormLanes];
      double lanes[2][kNormLanes] = {}, sums[kNormLanes], products[kNormLanes];
      g.spread(t, center, [&](int64_t channel, int64_t) { return means[channel]; });
      g.each_image(t, [&](int64_t first, int64_t count) {
        batch_norm().products(x + first, dy + first, count, center, lanes[0], lanes[1]);
      });
      g.fold(lanes[0], sums);
      g.fold(lanes[1], products);
      const auto inverse = [&](int64_t channel) { return 1 / std::sqrt(static_cast<double>(variances[channel]) + e); };
      const auto factor = [&](int64_t channel) { return channel_of(scales, channel, 1) * inverse(channel); };
      g.spread(t, scale, [&](int64_t channel, int64_t) { return static_cast<float>(factor(channel)); });
      g.spread(t, slope, [&](int64_t channel, int64_t i) {
        const double by = inverse(channel);
        return static_cast<float>(-factor(channel) * by * by * products[i] / g.values());
      });
      g.spread(t, shift,
               [&](int64_t channel, int64_t i) { return static_cast<float>(-factor(channel) * sums[i] / g.values()); });
      g.each_image(t, [&](int64_t first, int64_t count) {
        batch_norm().gradient(x + first, dy + first, count, center, scale, slope, shift, dx + first);
      });
      for (int64_t i = 0; i < g.used(t); i++) {
        const int64_t channel = t * g.width + i;
        args.out[1].as<float>()[channel] = static_cast<float>(products[i] * inverse(channel));
        args.out[2].as<float>()[channel] = static_cast<float>(sums[i]);
      }
    }
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_batch_norm() {
  static const KernelDef defs[] = {
      {.name = "cpu.batch_norm.training", .ops = {"moka_batch_norm_training"}, .match = match_moka_batch_norm_training},
      {.name = "cpu.batch_norm.training_gradient",
       .ops = {"moka_batch_norm_training_gradient"},
       .match = match_moka_batch_norm_training_gradient}};
  return {200, defs};
}

}  // namespace moka::devices::cpu

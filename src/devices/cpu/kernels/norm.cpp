// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "devices/cpu/common/activations.h"
#include "devices/cpu/common/blocked_norm.h"
#include "devices/cpu/kernels/family.h"
#include "ops/common/ranks.h"

namespace moka::devices::cpu {

namespace {

using vector::loops;
using vector::Reduce;
using vector::Unary;

/// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta for one row; gamma and beta may be null. The mean comes
/// from the differences to the first element, which are small and nearly exact even if all values are far from zero.
void standardize(const float* x, const float* gamma, const float* beta, float* y, int64_t n, double epsilon) {
  const double mean = static_cast<double>(x[0]) + loops().sum_from(x, n, x[0]) / static_cast<double>(n);
  const double variance = loops().deviation(x, n, mean) / static_cast<double>(n);
  loops().center(x, mean, static_cast<float>(1 / std::sqrt(variance + epsilon)), gamma, beta, y, n);
}

/// The choice of a kernel that normalizes x, in place if possible. The caller sets the function that it runs.
KernelChoice norm_of(const MatchCall& m, std::string_view kernel, int64_t tiles) {
  KernelChoice c;
  c.kernel = kernel;
  c.in_place = m.call.arg_index("x");
  c.tiles = tiles;
  c.epilogues = m.epilogue.size();
  c.cost = cost_of(m, 0, 3 * traffic(m));
  return c;
}

Match match_layer_norm(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "gamma", "beta"}); !why.empty()) return Match::no(why);
  const ir::Shape& x = m.call.shape("x");
  auto epsilon = m.call.number("epsilon");
  if (!epsilon.ok()) return Match::no("an epsilon that is not constant");
  bool normalized[ir::kMaxRank] = {};
  if (m.call.has("axes")) {
    auto axes = m.call.ints("axes");
    if (!axes.ok()) return Match::no("axes that are not constant");
    for (int64_t a : *axes) normalized[a < 0 ? a + x.rank() : a] = true;
  } else {
    std::fill_n(normalized, x.rank(), true);
  }
  int64_t n = 1;
  int i = x.rank() - 1;
  for (; i >= 0 && (normalized[i] || x[i] == 1); i--) n *= x[i];
  for (; i >= 0; i--)
    if (normalized[i] && x[i] != 1) return Match::no("axes that are not the last ones");
  const auto in = static_cast<size_t>(m.call.arg_index("x"));
  const int gamma = m.call.arg_index("gamma"), beta = m.call.arg_index("beta");
  KernelChoice c = norm_of(m, "cpu.layer_norm", x.count() / n);
  c.facts = [n, rows = c.tiles](kernel::Facts& facts) {
    facts.add("rows", rows, " of ", n)
        .add("rows at once", n <= vector::kStandardized ? std::max<int64_t>(1, vector::kStandardized / n) : 1);
  };
  c.run = [=, e = *epsilon, after = activations_of(m.epilogue)](const KernelArgs& args) -> Status {
    const float *g = data_of(args, gamma), *b = data_of(args, beta);
    const int64_t most = n <= vector::kStandardized ? std::max<int64_t>(1, vector::kStandardized / n) : 1;
    for (int64_t t = args.begin, rows; t < args.end; t += rows) {
      rows = std::min(most, args.end - t);
      const float* x = args.in[in].as<float>() + t * n;
      float* y = args.out[0].as<float>() + t * n;
      if (n <= vector::kStandardized)
        loops().standardize_rows(x, g, b, y, n, rows, e);
      else
        standardize(x, g, b, y, n, e);
      apply_all(after, y, rows * n);
    }
    return {};
  };
  return Match::yes(std::move(c));
}

/// Normalizes a blocked x in `groups` groups of channels.
KernelChoice blocked_norm(const MatchCall& m, std::string_view kernel, Layout layout, int64_t groups, double epsilon) {
  const ir::Shape& x = m.call.shape("x");
  const auto in = static_cast<size_t>(m.call.arg_index("x"));
  const int gamma = m.call.arg_index("gamma"), beta = m.call.arg_index("beta");
  const BlockedNorm norm(x, groups, layout.block, epsilon);
  KernelChoice c = norm_of(m, kernel, norm.tiles());
  c.in = in_layouts(m, "x", layout);
  c.out = {layout};
  c.facts = [=](kernel::Facts& facts) {
    facts.add("groups of channels", groups).add("channels at once", static_cast<int>(layout.block));
  };
  c.run = [=, shape = x, after = activations_of(m.epilogue)](const KernelArgs& args) -> Status {
    float* y = args.out[0].as<float>();
    for (int64_t t = args.begin; t < args.end; t++) {
      const auto [first, end] = norm.run(args.in[in].as<float>(), data_of(args, gamma), data_of(args, beta), y, t);
      if (after.empty()) continue;
      apply_all(after, y + first, end - first);
      clear_padding(shape, layout, y, first, end);
    }
    return {};
  };
  return c;
}

/// Normalizes each of `groups` groups of channels of x separately.
Match match_groups(const MatchCall& m, std::string_view kernel, int64_t groups) {
  auto epsilon = m.call.number("epsilon");
  if (!epsilon.ok()) return Match::no("an epsilon that is not constant");
  if (const Layout layout = layout_of(m, "x"); layout.kind == Layout::Kind::channel_blocked)
    return Match::yes(blocked_norm(m, kernel, layout, groups, *epsilon));
  const ir::Shape& x = m.call.shape("x");
  const int64_t channels = x[1] / groups, inner = x.count(2, x.rank()), n = channels * inner;
  const auto in = static_cast<size_t>(m.call.arg_index("x"));
  const int gamma = m.call.arg_index("gamma"), beta = m.call.arg_index("beta");
  KernelChoice c = norm_of(m, kernel, x[0] * groups);
  c.facts = [=](kernel::Facts& facts) { facts.add("groups", groups, " of ", n, " numbers"); };
  c.run = [=, e = *epsilon, after = activations_of(m.epilogue)](const KernelArgs& args) -> Status {
    const float *g = data_of(args, gamma), *b = data_of(args, beta);
    for (int64_t t = args.begin; t < args.end; t++) {
      float* y = args.out[0].as<float>() + t * n;
      standardize(args.in[in].as<float>() + t * n, nullptr, nullptr, y, n, e);
      for (int64_t i = 0; (g != nullptr || b != nullptr) && i < channels; i++) {
        const int64_t channel = t % groups * channels + i;
        const float scale = g != nullptr ? g[channel] : 1.0f, shift = b != nullptr ? b[channel] : 0.0f;
        loops().scale_shift(y + i * inner, &scale, &shift, 0, y + i * inner, inner);
      }
      apply_all(after, y, n);
    }
    return {};
  };
  return Match::yes(std::move(c));
}

Match match_group_norm(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "gamma", "beta"}); !why.empty()) return Match::no(why);
  auto groups = m.call.integer("groups");
  return groups.ok() ? match_groups(m, "cpu.group_norm", *groups) : Match::no("groups that are not constant");
}

Match match_instance_norm(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "gamma", "beta"}); !why.empty()) return Match::no(why);
  return match_groups(m, "cpu.instance_norm", m.call.shape("x")[1]);
}

Match match_l2_norm(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x"}); !why.empty()) return Match::no(why);
  const ir::Shape& x = m.call.shape("x");
  auto epsilon = m.call.number("epsilon");
  if (!epsilon.ok()) return Match::no("an epsilon that is not constant");
  const int64_t n = x.count(x.rank() - 3, x.rank());
  const auto in = static_cast<size_t>(m.call.arg_index("x"));
  KernelChoice c;
  c.kernel = "cpu.l2_norm";
  c.in_place = static_cast<int>(in);
  c.tiles = x.count() / n;
  c.cost = cost_of(m, 0, 2 * traffic(m));
  c.run = [=, e = *epsilon](const KernelArgs& args) -> Status {
    for (int64_t t = args.begin; t < args.end; t++) {
      const float* row = args.in[in].as<float>() + t * n;
      const double norm = std::sqrt(loops().reduce(Reduce::sum_square, row, n) + e);
      loops().unary(Unary::linear, row, args.out[0].as<float>() + t * n, n, static_cast<float>(1 / norm), 0);
    }
    return {};
  };
  return Match::yes(std::move(c));
}

Match match_batch_norm(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "mean", "variance", "gamma", "beta"}); !why.empty())
    return Match::no(why);
  for (std::string_view p : {"mean", "variance", "gamma", "beta"})
    if (m.call.has(p) && !m.is_constant(p)) return Match::no(cat("a ", p, " that is not constant"));
  auto epsilon = m.call.number("epsilon");
  if (!epsilon.ok()) return Match::no("an epsilon that is not constant");
  const ir::Shape x = m.call.shape("x");
  const Layout arrives = layout_of(m, "x");
  const Layout layout = arrives.kind == Layout::Kind::channel_blocked ? arrives : Layout{};
  const int64_t channels = x[1], pixels = x.count(2, x.rank());
  const int64_t block = !layout.is_row_major() ? layout.block : pixels == 1 ? std::max<int64_t>(1, channels) : 1;
  const int64_t groups = (channels + block - 1) / block, padded = groups * block;
  const int mean = m.call.arg_index("mean"), variance = m.call.arg_index("variance"), gamma = m.call.arg_index("gamma"),
            beta = m.call.arg_index("beta");
  const auto in = static_cast<size_t>(m.call.arg_index("x"));
  /// Per channel; `odd` tells for each block of channels whether a scale or shift is not finite.
  struct Prepared {
    std::vector<float> scale, shift;
    std::vector<double> center, beta;
    std::vector<bool> odd;
  };
  auto prepared = std::make_shared<Prepared>();
  KernelChoice c;
  c.kernel = "cpu.batch_norm";
  c.in = in_layouts(m, "x", layout);
  c.out = {layout};
  c.in_prepare_only.resize(m.call.all_args().size());
  for (int i : {mean, variance, gamma, beta})
    if (i >= 0) c.in_prepare_only[static_cast<size_t>(i)] = true;
  c.in_place = static_cast<int>(in);
  c.tiles = x[0] * groups;
  c.epilogues = m.epilogue.size();
  c.cost = cost_of(m, 0, traffic(m));
  c.prepare = [=, e = *epsilon](kernel::PrepareContext& context) -> Status {
    const ir::TensorView mu = MOKA_TRY(context.constant(mean)), var = MOKA_TRY(context.constant(variance));
    ir::TensorView g, b;
    if (gamma >= 0) g = MOKA_TRY(context.constant(gamma));
    if (beta >= 0) b = MOKA_TRY(context.constant(beta));
    Prepared& to = *prepared;
    for (auto* v : {&to.scale, &to.shift}) v->assign(static_cast<size_t>(padded), 0.0f);
    for (auto* v : {&to.center, &to.beta}) v->assign(static_cast<size_t>(padded), 0.0);
    to.odd.assign(static_cast<size_t>(groups), false);
    for (int64_t i = 0; i < channels; i++) {
      const auto at = static_cast<size_t>(i);
      const double scale = (gamma >= 0 ? ir::load_f64(g, i) : 1) / std::sqrt(ir::load_f64(var, i) + e);
      to.center[at] = ir::load_f64(mu, i);
      if (beta >= 0) to.beta[at] = ir::load_f64(b, i);
      to.scale[at] = static_cast<float>(scale);
      to.shift[at] = static_cast<float>(to.beta[at] - to.center[at] * scale);
      if (!std::isfinite(to.scale[at]) || !std::isfinite(to.shift[at])) to.odd[static_cast<size_t>(i / block)] = true;
    }
    return {};
  };
  c.facts = [=](kernel::Facts& facts) { facts.add("channels at once", block).add("blocks of channels", groups); };
  c.run = [=, after = activations_of(m.epilogue)](const KernelArgs& args) -> Status {
    const float *scale = prepared->scale.data(), *shift = prepared->shift.data();
    const int64_t run = pixels * block;
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t first = t % groups * block;
      const float* from = args.in[in].as<float>() + t * run;
      float* y = args.out[0].as<float>() + t * run;
      if (prepared->odd[static_cast<size_t>(t % groups)])
        for (int64_t i = 0; i < run; i++) {
          const auto ch = static_cast<size_t>(first + i % block);
          y[i] = static_cast<float>((from[i] - prepared->center[ch]) * scale[ch] + prepared->beta[ch]);
        }
      else if (block > 1)
        for (int64_t p = 0; p < pixels; p++)
          loops().scale_shift(from + p * block, scale + first, shift + first, 1, y + p * block, block);
      else
        loops().scale_shift(from, scale + first, shift + first, 0, y, pixels);
      apply_all(after, y, run);
    }
    if (!after.empty()) clear_padding(x, layout, args.out[0].as<float>(), args.begin * run, args.end * run);
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_norm() {
  static const KernelDef defs[] = {
      {.name = "cpu.layer_norm", .ops = {"layer_norm"}, .match = match_layer_norm},
      {.name = "cpu.instance_norm", .ops = {"instance_norm"}, .match = match_instance_norm},
      {.name = "cpu.group_norm", .ops = {"moka_group_norm"}, .match = match_group_norm},
      {.name = "cpu.l2_norm", .ops = {"l2_norm"}, .match = match_l2_norm},
      {.name = "cpu.batch_norm", .ops = {"batch_norm"}, .match = match_batch_norm}};
  return {200, defs};
}

}  // namespace moka::devices::cpu

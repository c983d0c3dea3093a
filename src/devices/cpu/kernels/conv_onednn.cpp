// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "devices/cpu/kernels/family.h"
#include "devices/cpu/onednn.h"
#include "devices/cpu/vector/winograd.h"
#include "ops/common/window.h"

namespace moka::devices::cpu {

namespace {

using namespace onednn;
using dnnl::algorithm;
using dnnl::prop_kind;
using ops::Window;

Dims dims_of(const ir::Ints& v) { return {v.begin(), v.end()}; }

struct Geometry {
  Dims strides, dilations, begin, end;
};

// oneDNN computes some sizes and offsets in 32 bits.
constexpr int64_t kMostElements = int64_t{1} << 28, kFar = int64_t{1} << 24;

/// False when oneDNN cannot express the window or when its 32-bit offsets could overflow. oneDNN refuses negative
/// paddings but rounds the number of window positions down. So a tail that no window reaches needs no negative padding.
bool geometry_of(const Window& w, Geometry& g) {
  g.strides = dims_of(w.strides);
  g.begin = dims_of(w.pads_begin);
  for (int i = 0; i < w.rank; i++) {
    if (std::max(w.in[i], w.out[i]) > kMostElements) return false;
    if (std::max({w.strides[i], w.extent(i), w.pads_begin[i], w.pads_end[i]}) > kFar) return false;
    g.dilations.push_back(w.dilations[i] - 1);
    const int64_t end = std::max<int64_t>(w.pads_end[i], 0);
    if (end > w.pads_end[i] + w.strides[i] - 1) return false;
    g.end.push_back(end);
  }
  return true;
}

struct Format {
  Layout in, out;
  bool fused;
};

/// The layouts to ask oneDNN for: whatever is fastest, row-major, or channels last.
enum class Order { best, rows, last };
constexpr std::string_view kConv[] = {"cpu.conv.onednn", "cpu.conv.onednn_rows", "cpu.conv.onednn_last"};
constexpr std::string_view kConvTranspose[] = {"cpu.conv_transpose.onednn", "cpu.conv_transpose.onednn_rows",
                                               "cpu.conv_transpose.onednn_last"};

/// The formats to try, best first. A blocked result pays even if its block is mostly padding. Few input channels are
/// read row-major; oneDNN then sums all taps in one float, so for long windows its matrix product is more accurate.
std::vector<Format> formats(const MatchCall& m, int64_t in, int64_t taps, bool fused, Order order) {
  constexpr int64_t kLongWindow = 128;
  std::vector<Format> f;
  if (order == Order::last) {
    if (fused && (in >= channel_block() || taps <= kLongWindow))
      f.push_back({Layout::channels_last(), Layout::channels_last(), true});
    return f;
  }
  if (fused) {
    if (order == Order::best && in >= channel_block())
      f.push_back({blocked(), blocked(), true});
    else if (order == Order::best && taps <= kLongWindow)
      f.push_back({{}, blocked(), true});
    f.push_back({{}, {}, true});
  }
  if (m.epilogue.empty() && !m.call.has_addend()) return f;
  f.push_back({{}, {}, false});
  return f;
}

/// The weights of a part of a convolution, in MIL's order, described as oneDNN's [groups,] out, in, kernel...
struct PlainWeights {
  Desc desc;
  int64_t first;  ///< the part's first element
};
PlainWeights plain_weights(const ir::Shape& s, int64_t groups, bool transposed, const Part& part) {
  const int64_t taps = s.count(2, s.rank());
  const int64_t a = s[0] / groups, b = s[1], out = part.channels / part.groups;
  Dims dims, strides;
  if (groups > 1) {
    dims.push_back(part.groups);
    strides.push_back(a * b * taps);
  }
  if (transposed) {
    dims.insert(dims.end(), {out, a});
    strides.insert(strides.end(), {taps, b * taps});
  } else {
    dims.insert(dims.end(), {out, b});
    strides.insert(strides.end(), {b * taps, taps});
  }
  int64_t step = taps;
  for (int i = 2; i < s.rank(); i++) {
    step /= s[i];
    dims.push_back(s[i]);
    strides.push_back(step);
  }
  const int64_t first = groups > 1 ? part.group * a * b * taps : part.channel * (transposed ? 1 : b) * taps;
  return {strided(dims, strides), first};
}

/// A weight that is not finite. Its product with padding is NaN, but oneDNN skips padding.
struct OddWeight {
  int64_t channel, tap;
};

/// Calls `fn` for each weight that is infinite or NaN.
template <class F>
void each_odd_weight(const float* weights, int64_t count, int64_t of_channel, int64_t taps, F fn) {
  const int64_t whole = count - count % vector::winograds().block;
  if (vector::winograds().are_finite(weights, whole) &&
      std::all_of(weights + whole, weights + count, [](float v) { return std::isfinite(v); }))
    return;
  for (int64_t i = 0; i < count; i++)
    if (!std::isfinite(weights[i])) fn(OddWeight{i / of_channel, i % taps});
}

bool reads_padding(const Window& w, int64_t pixel, int64_t tap) {
  for (int i = w.rank - 1; i >= 0; i--) {
    const int64_t at = pixel % w.out[i] * w.strides[i] - w.pads_begin[i] + tap % w.kernel[i] * w.dilations[i];
    if (at < 0 || at >= w.in[i]) return true;
    pixel /= w.out[i];
    tap /= w.kernel[i];
  }
  return false;
}

bool is_padded(const Window& w) { return reads_padding(w, 0, 0) || reads_padding(w, w.out_count() - 1, w.taps() - 1); }

void spoil_padding(const Window& w, const Part& part, const OddWeight& odd, const ir::Shape& y, Layout layout,
                   float* to) {
  if (odd.channel < part.channel || odd.channel >= part.channel + part.channels) return;
  const int64_t pixels = w.out_count();
  const bool rows = layout.is_row_major();
  const int64_t block = rows ? 1 : layout.kind == Layout::Kind::channels_last ? y[1] : layout.block;
  const int64_t groups = (y[1] + block - 1) / block;
  for (int64_t image = part.image; image < part.image + part.images; image++)
    for (int64_t i = 0; i < pixels; i++)
      if (reads_padding(w, i, odd.tap))
        to[((image * groups + odd.channel / block) * pixels + i) * block + odd.channel % block] =
            std::numeric_limits<float>::quiet_NaN();
}

/// Makes results NaN where a weight that is not finite meets padding.
class PaddingSpoiler {
 public:
  PaddingSpoiler(const MatchCall& m, const Window& w)
      : window_(w), weight_(m.call.shape("weight")), y_(m.outputs[0].shape()), at_(m.call.arg_index("weight")) {}

  void watch(Launch& launch) const {
    launch.inspect([*this](kernel::PrepareContext& context) -> Status {
      const ir::TensorView v = MOKA_TRY(context.constant(at_));
      odd_->clear();
      each(v.as<float>(), [&](const OddWeight& odd) { odd_->push_back(odd); });
      return {};
    });
  }

  void add_to(KernelChoice& c, const std::vector<Part>& parts, bool constant) const {
    c.run = [*this, run = std::move(c.run), parts, constant, layout = c.out[0]](const KernelArgs& args) -> Status {
      MOKA_TRY(run(args));
      for (int64_t i = args.begin; i < args.end; i++) {
        const auto spoil = [&](const OddWeight& odd) {
          spoil_padding(window_, parts[static_cast<size_t>(i)], odd, y_, layout, args.out[0].as<float>());
        };
        if (constant)
          std::for_each(odd_->begin(), odd_->end(), spoil);
        else
          each(args.in[static_cast<size_t>(at_)].as<float>(), spoil);
      }
      return {};
    };
  }

 private:
  template <class F>
  void each(const float* weights, F fn) const {
    const int64_t taps = window_.taps();
    each_odd_weight(weights, weight_.count(), weight_[1] * taps, taps, fn);
  }

  Window window_;
  ir::Shape weight_, y_;
  int at_;
  std::shared_ptr<std::vector<OddWeight>> odd_ = std::make_shared<std::vector<OddWeight>>();
};

Desc any_like(const Desc& d) { return any(d.dims()); }

/// Whether an implementation multiplies matrices. The order of its sums depends on their sizes, so the division into
/// parts must not depend on the number of threads: images are divided into kProductParts.
constexpr int kProductParts = 16;
bool is_product(const dnnl::primitive_desc_base& pd) {
  return pd.get(true) != nullptr && std::string_view(pd.impl_info_str()).find("gemm") != std::string_view::npos;
}

template <class Make>
Match match_window(const MatchCall& given, const Window& w, std::string_view name, bool transposed, Order order,
                   Make make) {
  const ir::OpCall& call = given.call;
  const ir::Shape &x = call.shape("x"), &weight = call.shape("weight"), &y = given.outputs[0].shape();
  const double flops = 2.0 * static_cast<double>(weight.count()) * static_cast<double>(x[0]) *
                       static_cast<double>(transposed ? w.in_count() : w.out_count());
  MatchCall m = with_threads_for(given, flops);
  if (order == Order::rows) m.threads = 1;  // oneDNN's matrix product would divide sums among threads
  Geometry g;
  if (!geometry_of(w, g)) return Match::no("sizes or paddings that oneDNN has not");
  const bool constant = m.is_constant("weight");
  const bool bias = call.has("bias");
  dnnl::post_ops post;
  const bool fused = append_epilogues(m, post) == m.epilogue.size();
  std::string slow;
  const bool padded = !transposed && is_padded(w);
  const PaddingSpoiler spoiler(m, w);
  OneThread scope;
  for (const Format& f : formats(m, x[1], w.taps(), fused, order)) {
    const bool afterwards = m.call.has_addend() && !f.fused;
    const dnnl::primitive_attr attr = attributes(f.fused ? post : dnnl::post_ops());
    std::vector<Launch> launches;
    try {
      const auto plan = [&](const Part& part) {
        const Desc plain = plain_weights(weight, w.groups, transposed, part).desc;
        return make(describe(input_of(part, x, f.in, w.groups).shape, f.in), constant ? any_like(plain) : plain,
                    bias ? row_major({part.channels}) : Desc(), describe(result_of(part, y, f.out).shape, f.out), g,
                    attr);
      };
      auto parts = divide(x, f.in, y, f.out, w.groups, afterwards ? 1 : m.threads);
      if (!afterwards && is_product(plan(parts[0])))
        parts = divide(x, f.in, y, f.out, w.groups, std::min(static_cast<int>(y[0]), kProductParts));
      for (const Part& part : parts) {
        const Run in = input_of(part, x, f.in, w.groups), out = result_of(part, y, f.out);
        const PlainWeights plain = plain_weights(weight, w.groups, transposed, part);
        auto pd = plan(part);
        if (pd.get(true) == nullptr) break;
        if (is_plain_loops(pd)) {
          slow = pd.impl_info_str();
          break;
        }
        Launch& launch = launches.emplace_back(pd);
        launch.in(DNNL_ARG_SRC, pd.src_desc(), call.arg_index("x"), in.first);
        if (constant)
          launch.packed(DNNL_ARG_WEIGHTS, pd.weights_desc(), call.arg_index("weight"), plain.desc, plain.first);
        else
          launch.in(DNNL_ARG_WEIGHTS, pd.weights_desc(), call.arg_index("weight"), plain.first);
        if (constant && padded) spoiler.watch(launch);
        if (bias) launch.in(DNNL_ARG_BIAS, pd.bias_desc(), call.arg_index("bias"), part.channel);
        launch.out(DNNL_ARG_DST, pd.dst_desc(), out.first);
        if (m.call.has_addend() && f.fused) launch.addend(call.arg_index("addend"));
        if (f.fused && !m.epilogue.empty())
          launch.unfused(
              {[=, plain = attributes(without_epilogues(m)), b = bias ? row_major({part.channels}) : Desc()] {
                 return make(pd.src_desc(), pd.weights_desc(), b, pd.dst_desc(), g, plain);
               },
               activations_of(m.epilogue), out.shape, f.out});
      }
      if (launches.size() < parts.size()) continue;
      m.threads = std::min(m.threads, static_cast<int>(parts.size()));
      KernelChoice c = choose(name, launches, m);
      c.in = in_layouts(m, "x", f.in);
      if (m.call.has_addend() && f.fused) c.in[static_cast<size_t>(call.arg_index("addend"))] = f.out;
      c.out = {f.out};
      c.epilogues = f.fused ? m.epilogue.size() : 0;
      c.cost = cost_of(m, flops, traffic(m));
      if (afterwards) add_afterwards(c, m);
      if (padded) spoiler.add_to(c, parts, constant);
      return Match::yes(std::move(c));
    } catch (const dnnl::error& e) {
      slow = e.what();
    }
  }
  return Match::no(slow.empty() ? "no oneDNN implementation" : cat("only ", slow, " of oneDNN"));
}

template <Order order>
Match match_conv(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "weight", "bias"}); !why.empty()) return Match::no(why);
  auto w = ops::conv_window(m.call);
  if (!w.ok()) return Match::no("an invalid window");
  return match_window(
      m, *w, kConv[static_cast<size_t>(order)], false, order,
      [](const Desc& x, const Desc& k, const Desc& b, const Desc& y, const Geometry& g, const dnnl::primitive_attr& a) {
        dnnl::convolution_forward::desc d =
            b.is_zero() ? dnnl::convolution_forward::desc(prop_kind::forward_inference, algorithm::convolution_direct,
                                                          x, k, y, g.strides, g.dilations, g.begin, g.end)
                        : dnnl::convolution_forward::desc(prop_kind::forward_inference, algorithm::convolution_direct,
                                                          x, k, b, y, g.strides, g.dilations, g.begin, g.end);
        return dnnl::convolution_forward::primitive_desc(d, a, engine(), true);
      });
}

template <Order order>
Match match_conv_transpose(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "weight", "bias"}); !why.empty()) return Match::no(why);
  auto w = ops::conv_transpose_window(m.call);
  if (!w.ok()) return Match::no("an invalid window");
  return match_window(
      m, *w, kConvTranspose[static_cast<size_t>(order)], true, order,
      [](const Desc& x, const Desc& k, const Desc& b, const Desc& y, const Geometry& g, const dnnl::primitive_attr& a) {
        dnnl::deconvolution_forward::desc d =
            b.is_zero()
                ? dnnl::deconvolution_forward::desc(prop_kind::forward_inference, algorithm::deconvolution_direct, x, k,
                                                    y, g.strides, g.dilations, g.begin, g.end)
                : dnnl::deconvolution_forward::desc(prop_kind::forward_inference, algorithm::deconvolution_direct, x, k,
                                                    b, y, g.strides, g.dilations, g.begin, g.end);
        return dnnl::deconvolution_forward::primitive_desc(d, a, engine(), true);
      });
}

Match match_pool(const MatchCall& given, algorithm a) {
  if (std::string why = require_fp32(given, {"x"}); !why.empty()) return Match::no(why);
  auto w = ops::pool_window(given.call);
  if (!w.ok()) return Match::no("an invalid window");
  const double flops = static_cast<double>(given.outputs[0].shape().count()) * static_cast<double>(w->taps());
  MatchCall m = with_threads_for(given, flops);
  Geometry g;
  if (!geometry_of(*w, g)) return Match::no("sizes or paddings that oneDNN has not");
  // oneDNN iterates over the whole window, padding included.
  for (int i = 0; i < w->rank; i++)
    if (w->kernel[i] > 2 * w->in[i] + 64) return Match::no("a window that is mostly padding");
  for (int i = 0; i < w->rank; i++)
    if (w->pads_begin[i] >= w->kernel[i] || g.end[static_cast<size_t>(i)] >= w->kernel[i])
      return Match::no("a window that lies in padding alone");
  const ir::Shape &x = m.call.shape("x"), &y = m.outputs[0].shape();
  const Layout layout = layout_of(m, "x") == blocked() ? blocked() : Layout{};
  dnnl::post_ops post;
  bool fused = append_epilogues(m, post) == m.epilogue.size();
  OneThread scope;
  for (int attempt = 0; attempt < 2; attempt++) {
    const Layout l = attempt == 0 ? layout : Layout{};
    if (attempt > 0) fused = false;
    if (!fused && !l.is_row_major()) continue;
    const dnnl::primitive_attr attr = attributes(fused ? post : dnnl::post_ops());
    std::vector<Launch> launches;
    try {
      const auto parts = divide(x, l, y, l, x[1], m.threads);
      for (const Part& part : parts) {
        const Run in = input_of(part, x, l, x[1]), out = result_of(part, y, l);
        dnnl::pooling_forward::desc d(prop_kind::forward_inference, a, describe(in.shape, l), describe(out.shape, l),
                                      g.strides, dims_of(w->kernel), g.begin, g.end);
        dnnl::pooling_forward::primitive_desc pd(d, attr, engine(), true);
        if (pd.get(true) == nullptr) break;
        Launch& launch = launches.emplace_back(pd);
        launch.in(DNNL_ARG_SRC, pd.src_desc(), m.call.arg_index("x"), in.first);
        launch.out(DNNL_ARG_DST, pd.dst_desc(), out.first);
        if (fused && !m.epilogue.empty())
          launch.unfused(
              {[=] { return dnnl::pooling_forward::primitive_desc(d, attributes(dnnl::post_ops()), engine(), true); },
               activations_of(m.epilogue), out.shape, l});
      }
      if (launches.size() < parts.size()) continue;
      m.threads = static_cast<int>(parts.size());
      KernelChoice c = choose("cpu.avg_pool.onednn", launches, m);
      c.in = in_layouts(m, "x", l);
      c.out = {l};
      c.epilogues = fused ? m.epilogue.size() : 0;
      c.cost = cost_of(m, flops, traffic(m));
      return Match::yes(std::move(c));
    } catch (const dnnl::error&) {
    }
  }
  return Match::no("no oneDNN implementation");
}

Match match_avg_pool(const MatchCall& m) {
  auto exclude = m.call.flag("exclude_padding_from_average");
  const bool e = exclude.ok() && *exclude;
  return match_pool(m, e ? algorithm::pooling_avg_exclude_padding : algorithm::pooling_avg_include_padding);
}

}  // namespace

KernelFamily family_conv_onednn() {
  static const KernelDef defs[] = {
      {.name = kConv[0], .ops = {"conv"}, .match = match_conv<Order::best>, .addend = true, .measured = true},
      {.name = kConv[1], .ops = {"conv"}, .match = match_conv<Order::rows>, .addend = true, .measured = true},
      {.name = kConv[2], .ops = {"conv"}, .match = match_conv<Order::last>, .addend = true, .measured = true},
      {.name = kConvTranspose[0],
       .ops = {"conv_transpose"},
       .match = match_conv_transpose<Order::best>,
       .measured = true},
      {.name = kConvTranspose[1],
       .ops = {"conv_transpose"},
       .match = match_conv_transpose<Order::rows>,
       .measured = true},
      {.name = kConvTranspose[2],
       .ops = {"conv_transpose"},
       .match = match_conv_transpose<Order::last>,
       .measured = true},
      {.name = "cpu.avg_pool.onednn", .ops = {"avg_pool"}, .match = match_avg_pool}};
  return {120, defs};
}

}  // namespace moka::devices::cpu

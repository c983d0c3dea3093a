// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "devices/cpu/common/activations.h"
#include "devices/cpu/common/compressed_weights.h"
#include "devices/cpu/common/conv_work.h"
#include "devices/cpu/common/half_weights.h"
#include "devices/cpu/common/line_window.h"
#include "devices/cpu/isa.h"
#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/lines.h"
#include "ops/common/window.h"

/// One-dimensional convolutions and windows of one pixel from row-major to row-major channels. What a few results read
/// is copied to lines in the cache, padding included. Vectors hold adjacent pixels, so nothing is transposed.
namespace moka::devices::cpu {

namespace {

using ops::Window;
using vector::lines;

struct RowBlocking : LineWindow {
  using LineWindow::LineWindow;
  int64_t runs = 1;  ///< divisions of the input channels
  int64_t line = 0;  ///< floats of a phase of one channel that is copied
  std::vector<int64_t> tap_at;

  int64_t panels() const { return (out + lines().rows - 1) / lines().rows; }
  int64_t first_row(int64_t panel) const { return out * panel / panels(); }
  int64_t rows(int64_t panel) const { return first_row(panel + 1) - first_row(panel); }
  int64_t first_panel(int64_t part) const { return panels() * part / parts; }
  int64_t first_channel(int64_t run) const { return in * run / runs; }
  int64_t channels(int64_t run) const { return first_channel(run + 1) - first_channel(run); }
  int64_t first_pixel(int64_t chunk) const { return LineWindow::first_pixel(chunk, lines().pixels); }
  int64_t most_channels() const { return (in + runs - 1) / runs; }
  /// Whether results of adjacent pixels read adjacent pixels.
  bool whole() const { return taps() == 1 && w.out_count() == w.in_count(); }
  int64_t copied() const { return most_channels() * phases() * line + vector::Lines::kSlack; }
  int64_t group_weights() const { return in * out * taps(); }
};

/// Packs [group][run of input channels][panel][tap][channel][row].
void pack_weights(const RowBlocking& p, const float* w, float* to) {
  const int64_t taps = p.taps();
  for (int64_t group = 0; group < p.w.groups; group++, w += p.group_weights())
    for (int64_t run = 0; run < p.runs; run++)
      for (int64_t panel = 0; panel < p.panels(); panel++) {
        const int64_t rows = p.rows(panel), channels = p.channels(run);
        for (int64_t r = 0; r < rows; r++) {
          const float* from = w + ((p.first_row(panel) + r) * p.in + p.first_channel(run)) * taps;
          for (int64_t c = 0; c < channels; c++)
            for (int64_t t = 0; t < taps; t++) to[(t * channels + c) * rows + r] = *from++;
        }
        to += rows * channels * taps;
      }
  std::fill_n(to, vector::Lines::kSlack, 0.0f);
}

void copy_pixels(const float* from, int64_t stride, int64_t n, float* to) {
  if (stride == 1)
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(float));
  else if (stride == 2)
    lines().copy_every_second(from, n, to);
  else
    for (int64_t i = 0; i < n; i++) to[i] = from[i * stride];
}

/// Copies positions [first, first + n) of a line of `size` pixels, `stride` apart. Those outside are zero.
void copy_line(const float* line, int64_t size, int64_t first, int64_t stride, int64_t n, float* to) {
  const auto [low, high] = positions_inside(size, first, stride, n);
  std::fill_n(to, low, 0.0f);
  if (high > low) copy_pixels(line + first + low * stride, stride, high - low, to + low);
  std::fill_n(to + high, n - high, 0.0f);
}

/// Copies what results [first, first + n) read of `channels` channels that begin at x.
void copy_lines(const RowBlocking& p, const float* x, int64_t channels, int64_t first, int64_t n, float* to) {
  const int64_t stride = p.w.strides[1], across = p.w.out[1], plane = p.w.in_count();
  for (int64_t c = 0; c < channels; c++, x += plane) {
    if (p.taps() > 1) {
      for (int64_t phase = 0; phase < p.phases(); phase++, to += p.line)
        copy_line(x, p.w.in[1], first * stride - p.w.pads_begin[1] + phase, stride, n + p.halo(), to);
      continue;
    }
    for (int64_t i = first, some; i < first + n; i += some) {
      const int64_t row = i / across, column = i % across;
      some = std::min(across - column, first + n - i);
      copy_pixels(x + row * p.w.strides[0] * p.w.in[1] + column * stride, stride, some, to + (i - first));
    }
    to += p.line;
  }
}

/// Copies n adjacent pixels of each channel.
void copy_last(const RowBlocking& p, const float* x, int64_t channels, int64_t n, float* to, int64_t step) {
  const int64_t plane = p.pixels();
  for (int64_t c = 0; c < channels; c++, x += plane, to += step)
    for (int64_t i = 0; i < n; i++) to[i] = x[i];
}

/// Divides the channels so that a panel of weights fits half of the L1 cache, and the pixels so that what a chunk
/// copies fits part of the L2 cache.
void divide_rows(RowBlocking& p, int threads) {
  constexpr int64_t kDepth = 512, kFits = 256 << 10;
  const int64_t unit = lines().pixels, most_channels = std::max<int64_t>(1, kDepth / p.taps());
  p.runs = (p.in + most_channels - 1) / most_channels;
  const int64_t floats = (p.in + p.runs - 1) / p.runs * p.phases(), units = std::max<int64_t>(1, p.pixels() / unit);
  const int64_t most = std::max(4 * unit, kFits / 4 / floats / unit * unit);
  p.parts = 1;
  p.chunks = std::clamp<int64_t>((p.pixels() + most - 1) / most, 1, units);
  const int64_t wanted = 4 * threads, each = p.images * p.w.groups;
  if (threads > 1 && each * p.chunks < wanted) {
    p.chunks = std::clamp<int64_t>((wanted + each - 1) / each, p.chunks, std::max<int64_t>(p.chunks, units / 4));
    p.parts = std::clamp<int64_t>((wanted + each * p.chunks - 1) / (each * p.chunks), 1, p.panels());
  }
  int64_t longest = 0;
  for (int64_t i = 0; i < p.chunks; i++) longest = std::max(longest, p.first_pixel(i + 1) - p.first_pixel(i));
  // The odd number of cache lines keeps channels out of each other's sets.
  p.line = ((longest + p.halo() + 15) / 16 | 1) * 16;
}

/// Whether the pixels that fill no tile cost more than conversions to blocks and back do. Costs are in vectors of
/// pixels, each multiplied by all weights, as measured on Zen 5.
bool has_costly_end(int64_t pixels, int64_t in, int64_t out, int64_t taps) {
  const auto rows = static_cast<double>(lines().rows), lanes = static_cast<double>(lines().lanes);
  const auto all = static_cast<double>(pixels), last = static_cast<double>(pixels % lines().lanes);
  double end = pixels % lines().pixels >= lines().lanes ? 0.3 : 0;
  if (pixels % lines().lanes > lines().few)
    end += 1.15 - last / lanes;
  else if (last == 1 && pixels > lines().lanes)
    end += (1 - rows / lanes) / rows;
  else if (last > 0)
    end += (2 + last * (1 - rows / lanes)) / rows;
  const double channels = 1 / static_cast<double>(in) + 1 / static_cast<double>(out);
  return end > 0.7 * all * channels / static_cast<double>(taps) + 0.01 * all / lanes;
}

std::string not_rows(const MatchCall& m, const Window& w, const ir::Shape& x, const ir::Shape& y) {
  const bool one_pixel = w.taps() == 1;
  if (w.rank > 2) return cat(w.rank, " spatial dimensions");
  if (w.rank == 2 && !one_pixel) return "a window in two dimensions";
  for (int i = 0; i < w.rank; i++)
    if (one_pixel && (w.pads_begin[i] != 0 || w.pads_end[i] > 0)) return "a padded pixel";
  if (!m.is_constant("weight")) return "weights that are not constant";
  if (y[1] / w.groups < lines().least) return "few channels";
  if (m.asked) return {};
  if (layout_of(m, "x") == blocked() || !m.reshaped) return "blocks of channels";
  const int64_t in = x[1] / w.groups, out = y[1] / w.groups;
  if (std::min(in, out) < channel_block()) return "few channels";
  if (!one_pixel && w.groups == 1 && w.dilations[0] > 1 && inside_line(w) <= 0.8) return "products of padding";
  if (w.out_count() < lines().pixels) return "few pixels";
  if (has_costly_end(w.out_count(), in, out, w.taps())) return "pixels that fill no vector";
  const int weight = m.call.arg_index("weight");
  if (stores_halves(m, weight)) return "weights that stay float16";
  if (CompressedWeights::of(m, weight, out, in, CompressedWeights::Precision::wide) != nullptr)
    return "weights that stay compressed";
  return {};
}

/// Runs one tile of work.
struct RowsRun {
  RowBlocking p;
  std::shared_ptr<const PackedFloats> weights;
  std::vector<Activation> after;
  std::optional<Limits> limits;
  size_t in;
  int bias, addend;

  /// The pixels of a chunk and a run of its channels.
  struct Part {
    int64_t plane;  ///< the group, counted over all images
    int64_t run, first, pixels;
    const float* x;  ///< the first of the run's channels
    float *copied, *last;
  };

  void multiply(const KernelArgs& args, const Part& part, const float* weight, int64_t panel, bool copies) const {
    const bool ends = part.run + 1 == p.runs;
    const int64_t channel = p.first_row(panel);
    const int64_t at = (part.plane * p.out + channel) * p.pixels() + part.first;
    vector::Lines::Call call{};
    call.x = part.copied;
    call.x_step = p.phases() * p.line;
    if (copies) call.source = part.x + part.first;
    call.source_step = p.pixels();
    call.last = part.last;
    call.in = p.channels(part.run);
    call.taps = p.taps();
    call.tap_at = p.tap_at.data();
    call.weight = weight;
    call.rows = p.rows(panel);
    static constexpr float kZeros[16] = {};
    if (part.run == 0) call.bias = bias >= 0 ? data_of(args, bias) + part.plane % p.w.groups * p.out + channel : kZeros;
    if (ends && addend >= 0) call.added = data_of(args, addend) + at;
    if (ends && limits) call.limits = limits->data();
    call.pixels = part.pixels;
    call.y = args.out[0].as<float>() + at;
    call.y_step = p.pixels();
    lines().multiply(call);
    if (ends && !after.empty())
      for (int64_t r = 0; r < call.rows; r++) apply_all(after, call.y + r * call.y_step, part.pixels);
  }

  /// Copies what no panel copies.
  void copy(const Part& part) const {
    const int64_t channels = p.channels(part.run);
    if (!p.whole()) return copy_lines(p, part.x, channels, part.first, part.pixels, part.copied);
    const int64_t last = part.pixels % lines().lanes, whole = part.pixels - last;
    const bool few = last > 1 && last <= lines().few;
    if (last > 0)
      copy_last(p, part.x + part.first + whole, channels, last, few ? part.last : part.copied + whole,
                few ? last : p.line);
  }

  Status operator()(const KernelArgs& args) const {
    auto* copied = args.own<float>();
    int64_t held = -1;
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t place = t / p.parts, chunk = place % p.chunks, plane = place / p.chunks;
      const int64_t first = p.first_pixel(chunk), pixels = p.first_pixel(chunk + 1) - first;
      for (int64_t run = 0; run < p.runs; run++) {
        const int64_t channel = p.first_channel(run), depth = p.channels(run) * p.taps();
        const float* weight = weights->data() + plane % p.w.groups * p.group_weights() + p.out * channel * p.taps();
        Part part{plane, run, first, pixels};
        part.x = args.in[in].as<float>() + (plane * p.in + channel) * p.w.in_count();
        part.copied = copied;
        part.last = p.whole() && pixels % lines().lanes > 1 ? copied + p.copied() : nullptr;
        const bool fresh = p.runs > 1 || held != place;
        if (fresh) copy(part);
        const int64_t begin = p.first_panel(t % p.parts), end = p.first_panel(t % p.parts + 1);
        for (int64_t panel = begin; panel < end; panel++)
          multiply(args, part, weight + p.first_row(panel) * depth, panel, fresh && p.whole() && panel == begin);
      }
      held = place;
    }
    return {};
  }
};

void tell(const RowBlocking& p, kernel::Facts& facts) {
  facts.add("vector", lines().lanes, " pixels")
      .add("tile", "up to ", lines().rows, " output channels x ", lines().pixels, " pixels")
      .add("chunks of pixels", p.chunks, " of each image")
      .add("parts of output channels", p.parts)
      .add("runs of input channels", p.runs);
}

Match match_conv_rows(const MatchCall& given) {
  if (isa() == Isa::base && !given.asked) return Match::no("vectors of four floats");
  if (std::string why = require_fp32(given, {"x", "weight", "bias"}); !why.empty()) return Match::no(why);
  auto window = ops::conv_window(given.call);
  if (!window.ok()) return Match::no("an invalid window");
  const ir::Shape &x = given.call.shape("x"), &y = given.outputs[0].shape();
  if (std::string why = not_rows(given, *window, x, y); !why.empty()) return Match::no(why);
  RowBlocking p(*window, x, y);
  const double flops = 2.0 * static_cast<double>(y.count() * p.in * p.taps());
  const MatchCall m = with_threads_for(given, flops);
  divide_rows(p, m.threads);
  p.tap_at = p.taps_at(p.line, 1);
  KernelChoice c;
  c.kernel = "cpu.conv.rows";
  c.in = in_layouts(m, "x", Layout{});
  c.out = {Layout{}};
  RowsRun run{.p = p, .in = static_cast<size_t>(m.call.arg_index("x"))};
  run.bias = m.call.arg_index("bias");
  run.addend = m.call.arg_index("addend");
  run.after = activations_of(m.epilogue);
  run.limits = take_limits(run.after);
  c.thread_scratch = static_cast<size_t>(p.copied() + p.most_channels() * lines().few) * sizeof(float);
  c.tiles = p.images * p.w.groups * p.chunks * p.parts;
  c.epilogues = m.epilogue.size();
  c.cost = cost_of(m, flops, traffic(m));
  run.weights =
      packed_before(c, m, m.call.arg_index("weight"), cat("rows, ", p.w.groups, " groups, ", lines().rows, " ", p.runs),
                    p.w.groups * p.group_weights() + vector::Lines::kSlack,
                    [p](const float* value, float* to) { pack_weights(p, value, to); });
  c.facts = [p](kernel::Facts& facts) { tell(p, facts); };
  c.run = std::move(run);
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_conv_rows() {
  static const KernelDef defs[] = {
      {.name = "cpu.conv.rows", .ops = {"conv"}, .match = match_conv_rows, .addend = true, .measured = true}};
  return {24, defs};
}

}  // namespace moka::devices::cpu

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>

#include "base/transpose.h"
#include "devices/cpu/common/activations.h"
#include "devices/cpu/common/compressed_weights.h"
#include "devices/cpu/common/conv_work.h"
#include "devices/cpu/common/half_weights.h"
#include "devices/cpu/common/line_window.h"
#include "devices/cpu/isa.h"
#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/gemm.h"
#include "devices/cpu/vector/pointwise.h"
#include "ops/common/window.h"

/// One-dimensional convolutions, and windows of one pixel with strides, groups or row-major layouts. The pixels that a
/// few results read are gathered as blocks of channels, padding included, and multiplied like those of a pointwise
/// convolution. Results go back to rows while they are in the cache.
namespace moka::devices::cpu {

namespace {

using ops::Window;
using vector::pointwise;

constexpr int64_t kGatheredPanel = 32;  // of a panel: two vectors
constexpr int64_t kStored = 8 * 14;     // pixels of a panel that stay in the L1 cache until they are stored

struct GatherBlocking : LineWindow {
  using LineWindow::LineWindow;
  bool in_rows = false, out_rows = false;
  int64_t unit = 1;  ///< chunks hold multiples of this number of pixels
  std::vector<int64_t> tap_at;

  int64_t block() const { return pointwise().block; }
  int64_t in_groups() const { return (in + block() - 1) / block(); }
  int64_t out_groups() const { return (out + block() - 1) / block(); }
  int64_t panel() const { return 2 * pointwise().lanes; }
  int64_t padded() const { return out_groups() * block(); }
  int64_t panels() const { return (padded() + panel() - 1) / panel(); }
  int64_t width(int64_t i) const { return std::min(panel(), padded() - i * panel()); }
  int64_t first_panel(int64_t part) const { return panels() * part / parts; }
  int64_t first_pixel(int64_t chunk) const { return LineWindow::first_pixel(chunk, unit); }
  int64_t most_pixels() const { return pixels() - first_pixel(chunks - 1); }
  /// Floats of a phase of one block. The odd number of cache lines keeps blocks out of each other's sets.
  int64_t line() const { return (((most_pixels() + halo()) * block() / 16 + 1) | 1) * 16; }
  int64_t gathered() const { return in_groups() * phases() * line(); }
  int64_t panel_floats() const { return padded() * taps() * in; }  ///< of a group
};

/// Packs [panel][tap][channel][width] for each group.
void pack_weights(const GatherBlocking& p, const float* w, float* to) {
  std::vector<float> lines(static_cast<size_t>(kGatheredPanel * p.taps() * p.in));
  for (int64_t group = 0; group < p.w.groups; group++, w += p.out * p.in * p.taps())
    for (int64_t panel = 0; panel < p.panels(); panel++) {
      const int64_t width = p.width(panel), first = panel * p.panel(), columns = std::min(width, p.out - first);
      const int64_t depth = p.taps() * p.in;
      for (int64_t o = 0; o < columns; o++)
        for (int64_t c = 0; c < p.in; c++)
          for (int64_t t = 0; t < p.taps(); t++)
            lines[static_cast<size_t>(o * depth + t * p.in + c)] = w[((first + o) * p.in + c) * p.taps() + t];
      vector::gemm().pack_panel(lines.data(), depth, depth, columns, width, to, nullptr);
      to += depth * width;
    }
}

/// The tensor that pixels are gathered from: one group of one image.
struct GatheredFrom {
  const float* x;
  int64_t block_step, pixel_step, channel_step;  ///< floats
  int64_t channels;
};

/// Copies n pixels of a block, `stride` apart. `channels` of them are in the source.
void gather_pixels(const GatheredFrom& s, const float* from, int64_t stride, int64_t n, int64_t channels, int64_t block,
                   float* to) {
  if (s.pixel_step == block) {
    if (block == 16)
      for (int64_t i = 0; i < n; i++) std::memcpy(to + i * 16, from + i * stride * 16, 16 * sizeof(float));
    else
      for (int64_t i = 0; i < n; i++) std::memcpy(to + i * 8, from + i * stride * 8, 8 * sizeof(float));
    return;
  }
  for (int64_t c = 0, some; c < block; c += some) {
    some = channels - c >= 4 && stride == 1 ? 4 : 1;
    const float* line = from + c * s.channel_step;
    if (some == 4)
      lines_to_columns(line, s.channel_step, to + c, block, n);
    else if (c < channels)
      for (int64_t i = 0; i < n; i++) to[i * block + c] = line[i * stride];
    else
      for (int64_t i = 0; i < n; i++) to[i * block + c] = 0;
  }
}

/// Gathers positions [first, first + n) of a line of `size` pixels, `stride` apart. Those outside are zero.
void gather_line(const GatheredFrom& s, const float* line, int64_t size, int64_t first, int64_t stride, int64_t n,
                 int64_t channels, int64_t block, float* to) {
  const auto [low, high] = positions_inside(size, first, stride, n);
  std::fill_n(to, low * block, 0.0f);
  if (high > low)
    gather_pixels(s, line + (first + low * stride) * s.pixel_step, stride, high - low, channels, block,
                  to + low * block);
  std::fill_n(to + high * block, (n - high) * block, 0.0f);
}

/// Gathers what results [first, first + n) read.
void gather(const GatherBlocking& p, const GatheredFrom& s, int64_t first, int64_t n, float* to) {
  const int64_t block = p.block(), stride = p.w.strides[1], across = p.w.out[1];
  for (int64_t c = 0; c < s.channels; c += block) {
    const int64_t channels = std::min(block, s.channels - c);
    const float* from = s.x + c / block * s.block_step;
    if (p.taps() > 1) {
      for (int64_t phase = 0; phase < p.phases(); phase++, to += p.line())
        gather_line(s, from, p.w.in[1], first * stride - p.w.pads_begin[1] + phase, stride, n + p.halo(), channels,
                    block, to);
      continue;
    }
    for (int64_t i = first, some; i < first + n; i += some) {
      const int64_t row = i / across, column = i % across;
      const bool whole = stride == 1 && across == p.w.in[1] && p.w.strides[0] == 1;
      some = whole ? first + n - i : std::min(across - column, first + n - i);
      gather_pixels(s, from + (row * p.w.strides[0] * p.w.in[1] + column * stride) * s.pixel_step, stride, some,
                    channels, block, to + (i - first) * block);
    }
    to += p.line();
  }
}

/// Stores n pixels of a panel of blocks as lines of y, which are `pixels` apart.
void store_lines(const float* blocks, int64_t block_step, int64_t block, int64_t channels, int64_t n, float* y,
                 int64_t pixels) {
  for (int64_t c = 0, some; c < channels; c += some, y += some * pixels) {
    some = channels - c >= 4 ? 4 : 1;
    const float* from = blocks + c / block * block_step + c % block;
    if (some == 4)
      columns_to_lines(from, block, y, pixels, n);
    else
      for (int64_t i = 0; i < n; i++) y[i] = from[i * block];
  }
}

/// Divides the pixels so that what a chunk gathers fits part of the L2 cache.
void divide_pixels(GatherBlocking& p, int threads) {
  constexpr int64_t kFits = 256 << 10;
  const int64_t tile = pointwise().pixels, floats = p.in_groups() * p.block() * p.phases(), tiles = p.pixels() / tile;
  const int64_t most = std::max(4 * tile, kFits / 4 / floats / tile * tile);
  p.unit = tile;
  p.parts = 1;
  p.chunks = std::clamp<int64_t>((p.pixels() + most - 1) / most, 1, std::max<int64_t>(1, tiles));
  if (threads == 1) return;
  const int64_t wanted = 4 * threads, each = p.images * p.w.groups;
  if (each * p.chunks < wanted) {
    p.chunks = std::clamp<int64_t>((wanted + each - 1) / each, p.chunks, std::max<int64_t>(p.chunks, tiles / 4));
    p.parts = std::clamp<int64_t>((wanted + each * p.chunks - 1) / (each * p.chunks), 1, p.panels());
  }
}

std::string not_gathered(const MatchCall& m, const Window& w, const ir::Shape& x, const ir::Shape& y) {
  const bool one_pixel = w.taps() == 1;
  if (w.rank > 2) return cat(w.rank, " spatial dimensions");
  if (w.rank == 2 && !one_pixel) return "a window in two dimensions";
  for (int i = 0; i < w.rank; i++)
    if (one_pixel && (w.pads_begin[i] != 0 || w.pads_end[i] > 0)) return "a padded pixel";
  if (!m.is_constant("weight")) return "weights that are not constant";
  const int64_t block = pointwise().block, in = x[1] / w.groups, out = y[1] / w.groups;
  const bool in_rows = layout_of(m, "x") != blocked();
  if (w.groups > 1 && ((!in_rows && in % block != 0) || (!m.reshaped && out % block != 0)))
    return "groups that fill no block";
  if (in < block || out < block) return "few channels";
  if (m.asked) return {};
  if (one_pixel && !in_rows && !m.reshaped && in >= kDeepPixel && out > block) return "blocks are read in place";
  if (!one_pixel && w.groups == 1 && w.dilations[0] > 1 && inside_line(w) <= 0.8) return "products of padding";
  if (one_pixel && w.groups == 1 && w.out_count() == w.in_count()) {
    // Pixels of blocks are read in place.
    if (!in_rows && !m.reshaped) return "blocks are read in place";
    if (const int weight = m.call.arg_index("weight"); stores_halves(m, weight))
      return "weights that stay float16";
    else if (CompressedWeights::of(m, weight, out, in, CompressedWeights::Precision::wide) != nullptr)
      return "weights that stay compressed";
    if (w.out_count() < 2 * pointwise().pixels) return "few pixels";
  }
  return {};
}

/// Runs one tile of work.
struct GatheredRun : FusedSum {
  GatherBlocking p;
  ir::Shape x, y;
  std::shared_ptr<const PackedFloats> weights;

  int64_t in_image() const { return storage_count(x, p.in_rows ? Layout{} : blocked()) / p.images; }
  int64_t out_image() const { return storage_count(y, p.out_rows ? Layout{} : blocked()) / p.images; }

  GatheredFrom source(const KernelArgs& args, int64_t image, int64_t group) const {
    const int64_t plane = p.w.in_count(), block = p.block();
    const float* from = args.in[in].as<float>() + image * in_image() + group * p.in * plane;
    if (p.in_rows) return {from, block * plane, 1, plane, p.in};
    return {from, block * plane, block, 1, p.in};
  }

  void finish(const KernelArgs& args, const vector::Pointwise::Call& call, int64_t image, int64_t channel,
              int64_t pixel) const {
    auto* all = args.out[0].as<float>();
    const float* added = data_of(args, addend);
    const int64_t pixels = p.pixels(), plane = pixels * p.block();
    if (!p.out_rows) {
      if (!is_finished_later()) return;
      for (float* to = call.y; to < call.y + call.width / p.block() * plane; to += plane)
        finish_blocked(y, added, after, all, to - all, to - all + call.pixels * p.block());
      return;
    }
    const int64_t at = image * out_image() + channel * pixels + pixel;
    store_lines(call.y, call.y_step, p.block(), call.used, call.pixels, all + at, pixels);
    if (!is_finished_later()) return;
    for (int64_t c = 0; c < call.used; c++) {
      float* line = all + at + c * pixels;
      if (added != nullptr)
        for (int64_t i = 0; i < call.pixels; i++) line[i] += added[at + c * pixels + i];
      apply_all(after, line, call.pixels);
    }
  }

  void multiply(const KernelArgs& args, const float* lines, float* results, int64_t image, int64_t group, int64_t panel,
                int64_t first, int64_t pixels) const {
    const int64_t block = p.block(), width = p.width(panel), column = panel * p.panel(), depth = p.taps() * p.in;
    const int64_t channel = group * p.out + column;
    std::array<float, kGatheredPanel> start{};
    vector::Pointwise::Call call{};
    call.used = std::min(width, p.out - column);
    if (bias >= 0) std::copy_n(data_of(args, bias) + channel, call.used, start.begin());
    call.x = lines;
    call.x_step = p.phases() * p.line();
    call.in = p.in;
    call.taps = p.taps();
    call.tap_at = p.tap_at.data();
    call.weight = weights->data() + group * p.panel_floats() + column * depth;
    call.width = width;
    call.bias = start.data();
    call.limits = clamp();
    call.ahead = call.weight + width * depth;
    call.ahead_lines = width * static_cast<int64_t>(sizeof(float)) / vector::Pointwise::kLineBytes + 1;
    const bool pieces = p.out_rows || is_finished_later();
    for (int64_t done = 0; done < pixels; done += call.pixels, call.x += call.pixels * block) {
      // A single pixel is summed in another order, so none may be left over, since chunks depend on the threads.
      call.pixels = pieces && pixels - done != kStored + 1 ? std::min(pixels - done, kStored) : pixels - done;
      call.y_step = p.out_rows ? (kStored + 1) * block : p.pixels() * block;
      call.y = p.out_rows
                   ? results
                   : args.out[0].as<float>() + image * out_image() + channel * p.pixels() + (first + done) * block;
      pointwise().multiply(call);
      finish(args, call, image, channel, first + done);
    }
  }

  Status operator()(const KernelArgs& args) const {
    float *lines = args.own<float>(), *results = lines + p.gathered();
    int64_t held = -1;
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t part = t % p.parts, chunk = t / p.parts % p.chunks, group = t / p.parts / p.chunks % p.w.groups,
                    image = t / p.parts / p.chunks / p.w.groups;
      const int64_t first = p.first_pixel(chunk), pixels = p.first_pixel(chunk + 1) - first;
      if (held != t / p.parts) gather(p, source(args, image, group), first, pixels, lines);
      held = t / p.parts;
      for (int64_t panel = p.first_panel(part); panel < p.first_panel(part + 1); panel++)
        multiply(args, lines, results, image, group, panel, first, pixels);
    }
    return {};
  }
};

void tell(const GatherBlocking& p, kernel::Facts& facts) {
  facts.add("panel", p.width(0), " output channels")
      .add("panels", p.panels())
      .add("taps", p.taps())
      .add("chunks of pixels", p.chunks, " of up to ", p.most_pixels())
      .add("parts of panels", p.parts)
      .add("lines", "copied, ", p.line(), " numbers of a block of ", p.block(), " channels");
}

Match match_gathered(const MatchCall& given) {
  if (isa() == Isa::base && !given.asked) return Match::no("vectors of four floats");
  if (std::string why = require_fp32(given, {"x", "weight", "bias"}); !why.empty()) return Match::no(why);
  auto window = ops::conv_window(given.call);
  if (!window.ok()) return Match::no("an invalid window");
  const ir::Shape &x = given.call.shape("x"), &y = given.outputs[0].shape();
  if (std::string why = not_gathered(given, *window, x, y); !why.empty()) return Match::no(why);
  GatherBlocking p(*window, x, y);
  p.in_rows = layout_of(given, "x") != blocked();
  p.out_rows = given.reshaped;
  const double flops = 2.0 * static_cast<double>(y.count() * p.in * p.taps());
  const MatchCall m = with_threads_for(given, flops);
  divide_pixels(p, m.threads);
  p.tap_at = p.taps_at(p.line(), p.block());
  const int weight = m.call.arg_index("weight");
  KernelChoice c;
  c.kernel = "cpu.conv.gathered";
  c.in = in_layouts(m, "x", p.in_rows ? Layout{} : blocked());
  GatheredRun run{FusedSum(m), p, x, y, nullptr};
  c.out = {p.out_rows ? Layout{} : blocked()};
  if (run.addend >= 0) c.in[static_cast<size_t>(run.addend)] = c.out[0];
  c.thread_scratch =
      static_cast<size_t>(p.gathered() + (p.out_rows ? kGatheredPanel * (kStored + 1) : 0)) * sizeof(float);
  c.tiles = p.images * p.w.groups * p.chunks * p.parts;
  c.epilogues = m.epilogue.size();
  c.cost = cost_of(m, flops, traffic(m));
  run.weights =
      packed_before(c, m, weight, cat("lines of taps, ", p.w.groups, " groups, ", pointwise().lanes, " ", p.block()),
                    p.w.groups * p.panel_floats(), [p](const float* value, float* to) { pack_weights(p, value, to); });
  c.facts = [p](kernel::Facts& facts) { tell(p, facts); };
  c.run = std::move(run);
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_conv_gathered() {
  static const KernelDef defs[] = {
      {.name = "cpu.conv.gathered", .ops = {"conv"}, .match = match_gathered, .addend = true, .measured = true}};
  return {25, defs};
}

}  // namespace moka::devices::cpu

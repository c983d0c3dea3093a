#include <algorithm>
#include <array>

#include "devices/cpu/common/activations.h"
#include "devices/cpu/common/conv_work.h"
#include "devices/cpu/kernels/family.h"
#include "devices/cpu/vector/dense.h"
#include "devices/cpu/vector/gemm.h"
#include "ops/common/window.h"

/// Convolutions with any window. A tile is a run of output pixels, which may span rows. A table says for each tap and
/// pixel where to read, so strides, dilation, padding and the number of axes change only the table.
namespace moka::devices::cpu {

namespace {

using ops::Window;
using vector::dense;

constexpr int64_t kMostDensePanel = 48;
constexpr int64_t kDenseFinished =
    8 * 12;  // pixels of a panel that stay in the L1 cache until the epilogues are applied

struct DenseBlocking {
  Window w;                       ///< of rank 3
  int64_t images, in, out;        ///< in, out: channels per group
  int64_t in_groups, out_groups;  ///< blocks of channels per group
  int64_t chunks, parts;          ///< divisions of an image's pixels and of the panels
  int64_t deep;                   ///< blocks of input channels whose weights are read before the next ones

  int64_t pixels() const { return w.out_count(); }
  int64_t taps() const { return w.taps(); }
  int64_t in_plane() const { return w.in_count() * dense().block; }
  int64_t out_plane() const { return pixels() * dense().block; }
  int64_t first_pixel(int64_t chunk) const { return pixels() * chunk / chunks; }
  int64_t most_pixels() const { return (pixels() + chunks - 1) / chunks; }

  /// Vectors of output channels of a group. A panel has two of them, and the first panel three if their number is odd.
  int64_t vectors() const { return out_groups * dense().block / dense().lanes; }
  int64_t panels_of_group() const { return std::max<int64_t>(1, vectors() / 2); }
  int64_t panels() const { return w.groups * panels_of_group(); }
  int64_t first_panel(int64_t part) const { return panels() * part / parts; }
  /// The first channel of a panel of a group.
  int64_t column(int64_t panel) const { return panel == 0 ? 0 : (2 * panel + vectors() % 2) * dense().lanes; }
  int64_t width(int64_t panel) const {
    return (panel + 1 == panels_of_group() ? vectors() * dense().lanes : column(panel + 1)) - column(panel);
  }
  int64_t weights_of_group() const { return vectors() * dense().lanes * in * taps(); }

  /// Whether the weights exceed the cache, so that the next panel's are fetched while one is used.
  bool reads_ahead() const { return w.groups * weights_of_group() * 4 > l2_cache_bytes() / 2; }

  /// Places.
  int64_t table() const { return (most_pixels() + 1) * taps(); }
  int64_t scratch() const { return (table() + most_pixels() + 1) * static_cast<int64_t>(sizeof(int32_t)); }
};

/// Packs weights as [group][panel][block of input channels][tap][channel][width].
void pack_weights(const DenseBlocking& p, const float* w, float* to) {
  const int64_t taps = p.taps(), block = dense().block;
  std::vector<float> rows(static_cast<size_t>(block * taps * kMostDensePanel));  // [channel][tap][width]
  for (int64_t group = 0; group < p.w.groups; group++, w += p.out * p.in * taps)
    for (int64_t panel = 0; panel < p.panels_of_group(); panel++) {
      const int64_t first = p.column(panel), width = p.width(panel), columns = std::min(width, p.out - first);
      for (int64_t begin = 0; begin < p.in; begin += block) {
        const int64_t channels = std::min(block, p.in - begin);
        vector::gemm().pack_panel(w + (first * p.in + begin) * taps, p.in * taps, channels * taps, columns, width,
                                  rows.data(), nullptr);
        for (int64_t tap = 0; tap < taps; tap++)
          for (int64_t c = 0; c < channels; c++, to += width)
            std::copy_n(rows.data() + (c * taps + tap) * width, width, to);
      }
    }
}

/// What the taps of some output pixels read: offsets in a block of input channels, negative in the padding.
struct Places {
  int32_t* at;     ///< [tap][pixel]
  int32_t* steps;  ///< from the first tap to each tap
  int32_t* edges;  ///< for each pixel and the end, how many pixels before it have taps on padding
};

Places places_in(const DenseBlocking& p, std::byte* scratch) {
  auto* at = reinterpret_cast<int32_t*>(scratch);
  return {at, at + p.most_pixels() * p.taps(), at + p.table()};
}

/// Fills the table for `count` pixels of a row of the output, from column `left` on. `pixel` is the first one's number
/// in the table, and `origin` the position of its first tap along the outer axes.
void find_row(const DenseBlocking& p, std::array<int64_t, 2> origin, int64_t left, int64_t pixel, int64_t count,
              const Places& to) {
  const Window& w = p.w;
  const auto block = static_cast<int32_t>(dense().block), stride = static_cast<int32_t>(w.strides[2] * block),
             width = static_cast<int32_t>(w.in[2] * block);
  const auto reaches = [&](int axis, int64_t from, int64_t tap) {
    const int64_t at = from + tap * w.dilations[axis];
    return at >= 0 && at < w.in[axis];
  };
  bool whole = true;
  for (int axis = 0; axis < 2; axis++)
    whole &= reaches(axis, origin[static_cast<size_t>(axis)], 0) &&
             reaches(axis, origin[static_cast<size_t>(axis)], w.kernel[axis] - 1);
  int32_t* at = to.at + pixel;
  for (int64_t d = 0; d < w.kernel[0]; d++)
    for (int64_t h = 0; h < w.kernel[1]; h++) {
      const bool is_row = reaches(0, origin[0], d) && reaches(1, origin[1], h);
      const auto row = static_cast<int32_t>(
          is_row ? ((origin[0] + d * w.dilations[0]) * w.in[1] + origin[1] + h * w.dilations[1]) * width : 0);
      for (int64_t k = 0; k < w.kernel[2]; k++, at += p.most_pixels()) {
        auto x = static_cast<int32_t>((left * w.strides[2] - w.pads_begin[2] + k * w.dilations[2]) * block);
        if (!is_row)
          std::fill_n(at, count, -1);
        else
          for (int64_t i = 0; i < count; i++, x += stride) at[i] = x >= 0 && x < width ? row + x : -1;
      }
    }
  for (int64_t i = 0; i < count; i++) {
    const int64_t x = (left + i) * w.strides[2] - w.pads_begin[2];
    const bool inside = whole && reaches(2, x, 0) && reaches(2, x, w.kernel[2] - 1);
    to.edges[pixel + i + 1] = to.edges[pixel + i] + !inside;
  }
}

/// Fills the table for `count` output pixels.
void find_places(const DenseBlocking& p, int64_t first, int64_t count, const Places& to) {
  const Window& w = p.w;
  to.edges[0] = 0;
  for (int64_t i = 0, n = 0; i < count; i += n) {
    const int64_t left = (first + i) % w.out[2], row = (first + i) / w.out[2];
    n = std::min(w.out[2] - left, count - i);
    find_row(p, {row / w.out[1] * w.strides[0] - w.pads_begin[0], row % w.out[1] * w.strides[1] - w.pads_begin[1]},
             left, i, n, to);
  }
  int32_t* step = to.steps;
  for (int64_t d = 0; d < w.kernel[0]; d++)
    for (int64_t h = 0; h < w.kernel[1]; h++)
      for (int64_t k = 0; k < w.kernel[2]; k++)
        *step++ = static_cast<int32_t>(
            ((d * w.dilations[0] * w.in[1] + h * w.dilations[1]) * w.in[2] + k * w.dilations[2]) * dense().block);
}

/// Divides the pixels so that what they read stays in the L2 cache while panels pass, unless reading the weights again
/// for each division costs more.
void divide_pixels(DenseBlocking& p, int threads) {
  constexpr int64_t kMostTable = 128 << 10;
  const int64_t cache = l2_cache_bytes(), bytes = sizeof(float);
  int64_t touched = 1;  // pixels of the input
  for (int i = 0; i < 3; i++)
    touched *= std::min({p.w.in[i], p.w.out[i] * p.w.kernel[i], (p.w.out[i] - 1) * p.w.strides[i] + p.w.extent(i)});
  const int64_t read = p.w.groups * p.in_groups * dense().block * touched * bytes,
                weights = p.w.groups * p.weights_of_group() * bytes;
  p.chunks = std::max<int64_t>(1, 2 * read / cache);
  if (p.chunks * weights > p.panels() * read) p.chunks = 1;
  p.chunks = std::max(p.chunks, (p.pixels() * p.taps() * 4 + kMostTable - 1) / kMostTable);
  p.parts = 1;
  if (threads > 1) {
    const int64_t shares = 4 * threads, most = (p.pixels() + 2 * dense().pixels - 1) / (2 * dense().pixels);
    if (weights <= read) {
      p.chunks = std::max(p.chunks, std::min(shares, most) / threads * threads);
    } else {
      p.parts = std::clamp<int64_t>((shares + p.chunks - 1) / p.chunks, 1, p.panels());
      p.chunks = std::max(p.chunks, std::min((shares + p.parts - 1) / p.parts, most));
    }
  }
  p.chunks = std::min(p.chunks, p.pixels());
  const int64_t of_block = p.taps() * dense().block * 2 * dense().lanes * bytes;
  p.deep = std::clamp<int64_t>(cache / 4 / of_block, 1, p.in_groups);
}

/// Runs tiles of one convolution.
struct DenseRun {
  DenseBlocking p;
  ir::Shape y;
  size_t in;
  int bias, addend;
  std::vector<Activation> after;
  std::optional<Limits> limits;
  std::shared_ptr<const PackedFloats> weights;

  void operator()(const KernelArgs& args) const {
    const Places places = places_in(p, args.own(args.thread));
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t part = t % p.parts, chunk = t / p.parts % p.chunks, image = t / p.parts / p.chunks;
      const int64_t first = p.first_pixel(chunk), pixels = p.first_pixel(chunk + 1) - first;
      if (t == args.begin || part == 0) find_places(p, first, pixels, places);
      for (int64_t panel = p.first_panel(part); panel < p.first_panel(part + 1); panel++)
        multiply(args, places, image, panel, first, pixels);
    }
  }

 private:
  /// Computes `pixels` pixels of the channels of a panel.
  void multiply(const KernelArgs& args, const Places& places, int64_t image, int64_t panel, int64_t first,
                int64_t pixels) const {
    const int64_t block = dense().block, group = panel / p.panels_of_group(), of_group = panel % p.panels_of_group();
    const int64_t column = p.column(of_group), width = p.width(of_group);
    auto* const all = args.out[0].as<float>();
    const float* from = args.in[in].as<float>() + (image * p.w.groups + group) * p.in_groups * p.in_plane();
    float* to = all + ((image * p.w.groups + group) * p.out_groups + column / block) * p.out_plane() + first * block;
    const float* w = weights->data() + group * p.weights_of_group() + column * p.in * p.taps();
    vector::Dense::Call call;
    call.x_step = p.in_plane();
    call.taps = p.taps();
    call.steps = places.steps;
    call.pitch = p.most_pixels();
    call.y_step = p.out_plane();
    call.ahead = p.reads_ahead();
    call.width = width;
    call.used = std::min(width, p.out - column);
    std::array<float, kMostDensePanel> start{};
    if (bias >= 0) std::copy_n(data_of(args, bias) + group * p.out + column, call.used, start.begin());
    for (int64_t deep = 0; deep < p.in_groups; deep += p.deep) {
      const bool last = deep + p.deep >= p.in_groups, more = last && (addend >= 0 || !after.empty());
      call.x = from + deep * p.in_plane();
      call.in = std::min(p.deep * block, p.in - deep * block);
      call.weight = w + deep * block * p.taps() * width;
      call.bias = deep == 0 ? start.data() : nullptr;
      call.limits = last && limits ? limits->data() : nullptr;
      for (int64_t done = 0; done < pixels; done += call.pixels) {
        call.pixels = more ? std::min(pixels - done, kDenseFinished) : pixels;
        call.places = places.at + done;
        call.edges = places.edges + done;
        call.y = to + done * block;
        dense().multiply(call);
        for (float* line = call.y; more && line < call.y + width / block * p.out_plane(); line += p.out_plane())
          finish_blocked(y, data_of(args, addend), after, all, line - all, line - all + call.pixels * block);
      }
    }
  }
};

/// Why another kernel was measured to be faster; empty: none was.
std::string why_slower(const DenseBlocking& p) {
  if (p.in < channel_block() || p.out < channel_block()) return "few channels";
#if defined(__x86_64__)
  if (isa() == Isa::base) return "vectors of four floats";
#endif
  if (isa() == Isa::avx512 && p.vectors() == 1) return "one vector of output channels";
  if (p.taps() == 1 && p.in < kDeepPixel) return "one tap and few channels";
  return {};
}

Match match_dense(const MatchCall& given) {
  if (std::string why = require_fp32(given, {"x", "weight", "bias"}); !why.empty()) return Match::no(why);
  auto window = ops::conv_window(given.call);
  if (!window.ok()) return Match::no("an invalid window");
  if (!given.is_constant("weight")) return Match::no("weights that are not constant");
  const ir::Shape &x = given.call.shape("x"), y = given.outputs[0].shape();
  const int64_t block = channel_block();
  DenseBlocking p{};
  p.w = window->as_3d();
  p.images = x[0];
  p.in = x[1] / p.w.groups;
  p.out = y[1] / p.w.groups;
  if (p.w.groups > 1 && (p.in % block != 0 || p.out % block != 0)) return Match::no("groups that span blocks");
  p.in_groups = (p.in + block - 1) / block;
  p.out_groups = (p.out + block - 1) / block;
  if (std::string why = why_slower(p); !given.asked && !why.empty()) return Match::no(why);
  constexpr int64_t kMostPlane = 1 << 30, kMostTaps = 1 << 14, kFar = 1 << 24;
  if (p.in_plane() > kMostPlane || p.taps() > kMostTaps) return Match::no("a very large image or window");
  for (int i = 0; i < 3; i++)
    if (std::max({p.w.strides[i], p.w.extent(i), p.w.pads_begin[i], p.w.out[i]}) > kFar)
      return Match::no("a very large image or window");
  const double flops = 2.0 * static_cast<double>(y.count() * p.in * p.taps());
  const MatchCall m = with_threads_for(given, flops);
  divide_pixels(p, m.threads);
  DenseRun run{p,
               y,
               static_cast<size_t>(m.call.arg_index("x")),
               m.call.arg_index("bias"),
               m.call.arg_index("addend"),
               activations_of(m.epilogue),
               {},
               {}};
  if (run.addend < 0) run.limits = take_limits(run.after);
  KernelChoice c;
  c.kernel = "cpu.conv.dense";
  c.in = in_layouts(m, "x", blocked());
  if (run.addend >= 0) c.in[static_cast<size_t>(run.addend)] = blocked();
  c.out = {blocked()};
  c.thread_scratch = static_cast<size_t>(p.scratch());
  c.tiles = p.images * p.chunks * p.parts;
  c.epilogues = m.epilogue.size();
  c.cost = cost_of(m, flops, traffic(m));
  run.weights = packed_before(c, m, m.call.arg_index("weight"),
                              cat("dense of ", dense().lanes, " ", dense().block, ", ", p.w.groups, " groups"),
                              p.w.groups * p.weights_of_group(),
                              [p](const float* value, float* to) { pack_weights(p, value, to); });
  c.run = [run = std::move(run)](const KernelArgs& args) -> Status {
    run(args);
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_conv_dense() {
  static const KernelDef defs[] = {
      {.name = "cpu.conv.dense", .ops = {"conv"}, .match = match_dense, .addend = true, .measured = true}};
  return {110, defs};
}

}  // namespace moka::devices::cpu

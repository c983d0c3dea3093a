#include <array>
#include <cmath>
#include <cstring>

#include "devices/cpu/kernels/activations.h"
#include "devices/cpu/kernels/families.h"
#include "devices/cpu/vector/gemm.h"
#include "devices/cpu/vector/winograd.h"
#include "ops/common/window.h"

namespace moka::devices::cpu {

namespace {

using ops::Window;
using vector::gemm;
using vector::winograd;

constexpr int kTaps = 3;

/// Each tap of an axis is a sum of two transformed filters: from[0] * factor - from[1] * factor.
struct Tap {
  int from[2];
  float factor;
};

std::array<Tap, kTaps> taps_of(int out) {
  const float middle = out == 2 ? 1.0f : -1.06066017178f;  // -3/4 of root 2
  return {{{{0, -1}, 1}, {{1, 2}, middle}, {{out + 1, -1}, 1}}};
}

struct Plan {
  Window w;
  int64_t in, out;                ///< channels
  int64_t in_groups, out_groups;  ///< blocks of channels
  int tile;                       ///< pixels of an output tile along an axis
  int64_t points;                 ///< numbers of a transformed tile
  int64_t down, across, tiles;    ///< of an image, and all
  int64_t chunks, parts;          ///< divisions of the tiles and of the output channels
  int64_t in_step, out_step;      ///< from point to point of a chunk's transformed tiles and of their products

  int64_t panel() const { return gemm().panel; }
  int64_t block() const { return winograd().block; }
  int64_t panels() const { return (out_groups * block() + panel() - 1) / panel(); }
  int64_t width(int64_t p) const { return std::min(panel(), out_groups * block() - p * panel()); }
  int64_t first(int64_t part) const { return panels() * part / parts; }
  int64_t scratch() const { return points * (in_step + out_step); }
  /// Of the transformed weights: the panels of vector/gemm.h, in each the points one after another.
  int64_t weight_at(int64_t p, int64_t point) const { return p * panel() * in * points + point * in * width(p); }
};

/// A filter that holds infinities or NaN, as points from which tap_by_tap finds every tap alone.
void spread_filter(const std::array<Tap, kTaps>& taps, int side, const float* w, float* to, int64_t step) {
  for (size_t k = 0; k < kTaps; k++)
    for (size_t l = 0; l < kTaps; l++)
      for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < 2; j++) {
          const Tap &a = taps[k], &b = taps[l];
          if (a.from[i] < 0 || b.from[j] < 0) continue;
          const float part = (k == 1 ? 0.5f : 1.0f) * (l == 1 ? 0.5f : 1.0f) * (i == j ? 1.0f : -1.0f);
          to[(a.from[i] * side + b.from[j]) * step] = w[k * kTaps + l] * part / (a.factor * b.factor);
        }
}

void transform_weights(const Plan& plan, const float* weight, float* to) {
  const auto taps = taps_of(plan.tile);
  const int64_t filter_step = plan.in * kTaps * kTaps;
  for (int64_t p = 0; p < plan.panels(); p++) {
    const int64_t first = p * plan.panel(), width = plan.width(p), count = std::min(width, plan.out - first),
                  step = plan.in * width;
    for (int64_t c = 0; c < plan.in; c++) {
      const float* w = weight + first * filter_step + c * kTaps * kTaps;
      float* u = to + plan.weight_at(p, 0) + c * width;
      if (winograd().filters(plan.tile, w, filter_step, count, width, u, step)) continue;
      for (int64_t o = 0; o < count; o++, w += filter_step) {
        if (std::all_of(w, w + kTaps * kTaps, [](float v) { return std::isfinite(v); })) continue;
        for (int64_t point = 0; point < plan.points; point++) u[point * step + o] = 0;
        spread_filter(taps, plan.tile + 2, w, u + o, step);
      }
    }
  }
}

/// Neighbouring tiles of a row of an image.
struct Row {
  int64_t image, y, x, count;
  int64_t at;  ///< the first one's number in its chunk
};

template <class F>
void each_row(const Plan& p, int64_t chunk, F f) {
  const int64_t begin = p.tiles * chunk / p.chunks, end = p.tiles * (chunk + 1) / p.chunks;
  for (int64_t t = begin; t < end;) {
    const int64_t x = t % p.across, line = t / p.across;
    const int64_t count = std::min({vector::kMostTiles, p.across - x, end - t});
    f(Row{line / p.down, line % p.down, x, count, t - begin});
    t += count;
  }
}

void transform_inputs(const Plan& p, int64_t chunk, const float* x, float* v) {
  const int64_t height = p.w.in[0], width = p.w.in[1], block = p.block();
  for (int64_t g = 0; g < p.in_groups; g++)
    each_row(p, chunk, [&](const Row& r) {
      const float* plane = x + (r.image * p.in_groups + g) * height * width * block;
      const int64_t top = r.y * p.tile - p.w.pads_begin[0];
      const float* lines[6];
      for (int i = 0; i < p.tile + 2; i++)
        lines[i] = top + i >= 0 && top + i < height ? plane + (top + i) * width * block : nullptr;
      winograd().input(p.tile, lines, width, r.x * p.tile - p.w.pads_begin[1], r.count,
                       v + r.at * p.in_groups * block + g * block, p.in_step, p.in_groups * block);
    });
}

/// One block of channels of one tile, tap by tap: infinities and NaN of the input must not spread over the tile.
void tap_by_tap(const Plan& p, const float* x, const float* weights, const float* bias, const Row& r, int64_t group,
                float* y) {
  constexpr int64_t kMostBlock = 16;
  const int64_t height = p.w.in[0], width = p.w.in[1], block = p.block();
  const int64_t column = group * block, at = column / p.panel();
  const int64_t step = p.width(at);
  const auto taps = taps_of(p.tile);
  double sums[4][4][kMostBlock] = {};
  for (int64_t c = 0; c < p.in; c++) {
    const float* plane = x + (r.image * p.in_groups + c / block) * height * width * block + c % block;
    for (int k = 0; k < kTaps; k++)
      for (int l = 0; l < kTaps; l++) {
        float w[kMostBlock] = {};
        const Tap &a = taps[static_cast<size_t>(k)], &b = taps[static_cast<size_t>(l)];
        for (int i = 0; i < 2; i++)
          for (int j = 0; j < 2; j++) {
            if (a.from[i] < 0 || b.from[j] < 0) continue;
            const float* from =
                weights + p.weight_at(at, a.from[i] * (p.tile + 2) + b.from[j]) + c * step + column % p.panel();
            const float factor = a.factor * b.factor * (i == j ? 1.0f : -1.0f);
            for (int64_t o = 0; o < block; o++) w[o] += from[o] * factor;
          }
        for (int i = 0; i < p.tile; i++)
          for (int j = 0; j < p.tile; j++) {
            const int64_t h = r.y * p.tile + i + k - p.w.pads_begin[0], v = r.x * p.tile + j + l - p.w.pads_begin[1];
            const bool inside = h >= 0 && h < height && v >= 0 && v < width;
            const double value = inside ? static_cast<double>(plane[(h * width + v) * block]) : 0;
            for (int64_t o = 0; o < block; o++) sums[i][j][o] += value * static_cast<double>(w[o]);
          }
      }
  }
  for (int64_t i = 0; i < std::min<int64_t>(p.tile, p.w.out[0] - r.y * p.tile); i++)
    for (int64_t j = 0; j < std::min<int64_t>(p.tile, p.w.out[1] - r.x * p.tile); j++)
      for (int64_t o = 0; o < block; o++)
        y[(i * p.w.out[1] + j) * block + o] = static_cast<float>(sums[i][j][o] + static_cast<double>(bias[o]));
}

/// Tiles of `tile` pixels that cover the output.
int64_t tiles_of(const Window& w, int64_t images, int64_t tile) {
  return images * ((w.out[0] + tile - 1) / tile) * ((w.out[1] + tile - 1) / tile);
}

/// The tile that is fastest as measured on AVX2 and AVX-512; 0: direct convolution is. Weights are read once for all
/// tiles, so small ones, whose weights are fewer, win where tiles are few.
int best_tile(const Window& w, int64_t images, int64_t in) {
  const int64_t large = tiles_of(w, images, 4), small = tiles_of(w, images, 2);
  const auto products = static_cast<double>(images * w.out_count() * 9);
  const double saved = products / static_cast<double>(large * 36),
               saved_small = products / static_cast<double>(small * 16);
  if (large >= 9 && saved > 1.4 * saved_small) return saved >= 2.5 ? 4 : 0;
  const double needed = in >= 384 ? 1.7 : in >= 32 ? 1.9 : 2.0;
  return small >= 16 && saved_small >= needed ? 2 : 0;
}

/// Tiles that are transformed at once: what half of a second-level cache of 512 KiB holds. Weights that no cache keeps
/// are read for every chunk, hence larger ones.
int64_t most_tiles(const Plan& p) {
  constexpr int64_t kFits = 256 << 10, kLargeWeights = 4 << 20, kLargeChunk = 56;
  const int64_t rows = gemm().rows, floats = p.points * (p.in_groups * p.block() + p.panel());
  const int64_t least = p.points * p.in * p.out > kLargeWeights / 4 ? kLargeChunk : rows < 12 ? 2 * rows : rows;
  return std::max(least, kFits / 4 / floats / rows * rows);
}

Plan plan_of(const Window& w, const ir::Shape& x, int64_t out, int tile, int threads) {
  Plan p{};
  const int64_t block = channel_block();
  p.w = w;
  p.in = x[1];
  p.out = out;
  p.in_groups = (p.in + block - 1) / block;
  p.out_groups = (p.out + block - 1) / block;
  p.tile = tile;
  p.points = (tile + 2) * (tile + 2);
  p.down = (w.out[0] + tile - 1) / tile;
  p.across = (w.out[1] + tile - 1) / tile;
  p.tiles = tiles_of(w, x[0], tile);
  const int64_t most = most_tiles(p);
  p.chunks = (p.tiles + most - 1) / most;
  const int64_t chunk = (p.tiles + p.chunks - 1) / p.chunks;
  // A block more, so that the points of a tile do not share a few lines of the cache.
  p.in_step = chunk * p.in_groups * block + block;
  p.out_step = chunk * p.panel() + block;
  p.parts = threads == 1 ? 1 : std::clamp<int64_t>((2 * threads + p.chunks - 1) / p.chunks, 1, p.panels());
  return p;
}

template <int tile>
Match match_winograd(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "weight", "bias"}); !why.empty()) return Match::no(why);
  auto window = ops::conv_window(m.call);
  if (!window.ok()) return Match::no("an invalid window");
  const Window& w = *window;
  if (w.rank != 2) return Match::no(cat(w.rank, " spatial dimensions"));
  for (int i = 0; i < 2; i++)
    if (w.kernel[i] != kTaps || w.strides[i] != 1 || w.dilations[i] != 1)
      return Match::no("a window that is not 3 x 3 at every pixel");
  if (w.groups != 1) return Match::no("groups");
  if (!m.is_constant("weight")) return Match::no("weights that are not constant");
  const ir::Shape &x = m.call.shape("x"), y = m.outputs[0].shape();
  if (x[1] < channel_block() || y[1] < channel_block()) return Match::no("few channels");
  if (const int best = best_tile(w, x[0], x[1]); !m.asked && best != tile)
    return Match::no(best == 0 ? "few pixels" : cat("tiles of ", best, " x ", best, " are faster"));
  const Plan p = plan_of(w, x, y[1], tile, m.threads);
  const auto in = static_cast<size_t>(m.call.arg_index("x"));
  const int weight = m.call.arg_index("weight"), bias = m.call.arg_index("bias");
  const int addend = m.call.arg_index("addend");
  auto weights = std::make_shared<std::shared_ptr<const std::byte>>();
  KernelChoice c;
  c.kernel = tile == 4 ? "cpu.conv.winograd4" : "cpu.conv.winograd2";
  c.in = in_layouts(m, "x", blocked());
  if (addend >= 0) c.in[static_cast<size_t>(addend)] = blocked();
  c.out = {blocked()};
  c.in_prepare_only.resize(m.call.all_args().size());
  c.in_prepare_only[static_cast<size_t>(weight)] = true;
  c.scratch = static_cast<size_t>(p.scratch() * m.threads) * sizeof(float);
  c.tiles = p.chunks * p.parts;
  c.epilogues = m.epilogue.size();
  c.cost = cost_of(m, 2.0 * static_cast<double>(p.tiles * p.points * p.in) * static_cast<double>(p.out), traffic(m));
  c.prepare = [=](kernel::PrepareContext& context) -> Status {
    const auto bytes = static_cast<size_t>(p.weight_at(p.panels() - 1, p.points)) * sizeof(float);
    *weights = MOKA_TRY(context.pack(weight, cat("winograd ", tile, " of ", p.panel(), " ", p.block()), bytes,
                                     [&](const ir::TensorView& value, std::byte* to) {
                                       transform_weights(p, value.as<float>(), reinterpret_cast<float*>(to));
                                       return Status();
                                     }));
    return {};
  };
  c.run = [=, after = activations_of(m.epilogue)](const KernelArgs& args) -> Status {
    const float* u = reinterpret_cast<const float*>(weights->get());
    const float* from = args.in[in].as<float>();
    float* y_all = args.out[0].as<float>();
    float* v = reinterpret_cast<float*>(args.scratch) + args.thread * p.scratch();
    float* made = v + p.points * p.in_step;
    const int64_t block = p.block(), depth = p.in_groups * block, line = p.w.out[1] * block;
    int64_t transformed = -1;
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t chunk = t / p.parts, part = t % p.parts;
      const int64_t tiles = p.tiles * (chunk + 1) / p.chunks - p.tiles * chunk / p.chunks;
      if (transformed != chunk) transform_inputs(p, chunk, from, v);
      transformed = chunk;
      for (int64_t panel = p.first(part); panel < p.first(part + 1); panel++) {
        for (int64_t point = 0; point < p.points; point++)
          gemm().multiply(v + point * p.in_step, depth, u + p.weight_at(panel, point), tiles, p.width(panel), p.in,
                          made + point * p.out_step, p.panel(), false);
        for (int64_t g = 0; g < p.width(panel) / block; g++) {
          const int64_t group = panel * p.panel() / block + g;
          const auto add = bias_of_group(data_of(args, bias), group, p.out);
          each_row(p, chunk, [&](const Row& r) {
            const int64_t top = r.y * p.tile, left = r.x * p.tile;
            const int64_t rows = std::min<int64_t>(p.tile, p.w.out[0] - top),
                          width = std::min(r.count * p.tile, p.w.out[1] - left);
            float* to = y_all + ((r.image * p.out_groups + group) * p.w.out[0] + top) * line + left * block;
            if (!winograd().output(p.tile, made + r.at * p.panel() + g * block, p.out_step, p.panel(), add.data(),
                                   r.count, rows, width, to, line))
              for (int64_t i = 0; i < r.count; i++)
                tap_by_tap(p, from, u, add.data(), {r.image, r.y, r.x + i, 1, 0}, group, to + i * p.tile * block);
            for (int64_t i = 0; i < rows; i++, to += line)
              finish_blocked(y, data_of(args, addend), after, y_all, to - y_all, to - y_all + width * block);
          });
        }
      }
    }
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

std::span<const KernelDef> winograd_kernels() {
  static const KernelDef defs[] = {{"cpu.conv.winograd4", {"conv"}, match_winograd<4>, true, true},
                                   {"cpu.conv.winograd2", {"conv"}, match_winograd<2>, true, true}};
  return defs;
}

}  // namespace moka::devices::cpu

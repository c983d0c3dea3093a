#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "devices/cpu/common/activations.h"
#include "devices/cpu/common/conv_work.h"
#include "devices/cpu/common/winograd_tiles.h"
#include "devices/cpu/kernels/family.h"

/// Winograd convolutions: tiles of the input are transformed, each point of the transform is a matrix product over the
/// channels, and the products are transformed back (vector/winograd.h).
namespace moka::devices::cpu {

namespace {

using ops::Window;
using vector::gemm;
using vector::Winograd;
using vector::winograds;

void transform_weights(const WinogradBlocking& blocking, const float* weight, float* to) {
  const int64_t filter_step = blocking.in * blocking.w.taps(),
                line_taps = blocking.f->down.taps * blocking.f->across.taps;
  for (int64_t p = 0; p < blocking.panels(); p++) {
    const int64_t first = p * blocking.panel(), width = blocking.width(p),
                  count = std::min(width, blocking.out - first);
    for (int64_t line = 0; line < blocking.summed; line++)
      blocking.f->filters(weight + first * filter_step + line * line_taps, filter_step, blocking.w.taps(), blocking.in,
                          count, width, to + blocking.weight_at(p, line, 0), blocking.in * width);
  }
}

/// Tiles [begin, end), which go through all steps before the next chunk.
struct Chunk {
  int64_t begin, end;
};

/// If rows of the window are summed, a chunk is whole lines of tiles of one image.
Chunk chunk_of(const WinogradBlocking& p, int64_t i) {
  if (p.summed == 1) return {p.tiles * i / p.chunks, p.tiles * (i + 1) / p.chunks};
  const int64_t images = p.tiles / (p.down * p.across), parts = p.chunks / images, image = i / parts, part = i % parts;
  return {(image * p.down + p.down * part / parts) * p.across,
          (image * p.down + p.down * (part + 1) / parts) * p.across};
}

/// Calls f for the tiles of a chunk and of `more` lines after it.
template <class F>
void each_row(const WinogradBlocking& p, const Chunk& chunk, int64_t more, F f) {
  const int64_t last = (chunk.end - 1) / (p.down * p.across);
  for (int64_t t = chunk.begin; t < chunk.end + more * p.across;) {
    const int64_t x = t % p.across, line = t / p.across, image = std::min(line / p.down, last);
    const int64_t count = std::min({p.f->most_tiles, p.across - x, chunk.end + more * p.across - t});
    f(Row{image, line - image * p.down, x, count, t - chunk.begin});
    t += count;
  }
}

void transform_inputs(const WinogradBlocking& p, const Chunk& chunk, const float* x, bool again, float* v) {
  const int64_t plane = p.w.in[0] * p.w.in[1] * p.block();
  for (int64_t g = 0; g < p.in_groups; g++)
    each_row(p, chunk, p.summed - 1, [&](const Row& r) {
      transform_row(p, x + (r.image * p.in_groups + g) * plane, r, again, v + (r.at * p.in_groups + g) * p.block());
    });
}

/// Tiles per chunk: as many as fit half of the L2 cache. Weights that exceed the caches are read once per chunk, so
/// chunks are larger for such weights.
int64_t most_tiles(const WinogradBlocking& p) {
  constexpr int64_t kLargeChunk = 56;
  const int64_t rows = gemm().rows, floats = p.f->points() * (p.in_groups * p.block() + p.panel());
  const int64_t least = p.weights() * p.in * p.out > kLargeWeights ? kLargeChunk : rows < 12 ? 2 * rows : rows;
  return std::max(least, l2_cache_bytes() / 8 / floats / rows * rows);
}

WinogradBlocking blocking_of(const Window& w, const ir::Shape& x, int64_t out, const Winograd& f, int threads) {
  WinogradBlocking p{};
  const int64_t block = channel_block();
  p.w = w;
  p.f = &f;
  p.in = x[1];
  p.out = out;
  p.in_groups = (p.in + block - 1) / block;
  p.out_groups = (p.out + block - 1) / block;
  p.summed = w.kernel[0] / f.down.taps;
  p.down = (w.out[0] + f.down.out - 1) / f.down.out;
  p.across = (w.out[1] + f.across.out - 1) / f.across.out;
  p.tiles = x[0] * p.down * p.across;
  const int64_t most = most_tiles(p);
  if (p.summed == 1) {
    p.chunks = (p.tiles + most - 1) / most;
  } else {
    const int64_t lines = std::max<int64_t>(1, most / p.across);
    p.chunks = x[0] * ((p.down + lines - 1) / lines);
  }
  for (int64_t i = 0; i < p.chunks; i++) p.chunk = std::max(p.chunk, chunk_of(p, i).end - chunk_of(p, i).begin);
  // One extra block: with a power of two, all points of a tile would compete for a few cache sets.
  p.in_step = (p.chunk + (p.summed - 1) * p.across) * p.in_groups * block + block;
  p.out_step = p.chunk * p.panel() + block;
  p.parts = threads == 1 ? 1 : std::clamp<int64_t>((2 * threads + p.chunks - 1) / p.chunks, 1, p.panels());
  return p;
}

/// The cost of a blocking: products, transforms of the input and the output, reading weights.
double work(const WinogradBlocking& p) {
  const auto lanes = static_cast<double>(gemm().lanes), numbers = static_cast<double>(p.tiles * p.f->points()),
             in = static_cast<double>(p.in_groups * p.block()), out = static_cast<double>(p.out_groups * p.block());
  return numbers * (static_cast<double>(p.summed) * in * out + lanes * (in + 0.7 * out)) +
         reading_work(p.weights() * p.in * p.out);
}

/// The cheapest blocking. nullopt: direct convolution is cheaper (not considered if `asked`), or no transform fits.
std::optional<WinogradBlocking> best_blocking(const Window& w, const ir::Shape& x, int64_t out, int threads,
                                              bool asked) {
  constexpr int64_t kFewest = 12;
  if (!asked && x[0] * w.out_count() < kFewest) return std::nullopt;
  const std::span all(winograds().begin, static_cast<size_t>(winograds().count));
  auto fits = [&](const vector::WinogradAxis& a, int axis) {
    return a.taps == w.kernel[axis] && a.stride == w.strides[axis];
  };
  const bool whole =
      std::any_of(all.begin(), all.end(), [&](const Winograd& f) { return fits(f.down, 0) && fits(f.across, 1); });
  std::optional<WinogradBlocking> best;
  double least = asked ? HUGE_VAL : direct_work(w, x[0], x[1], out);
  if (const auto narrow = narrow_work(w, x[0], x[1], out); narrow && !asked) least = std::min(least, *narrow);
  for (const Winograd& f : all) {
    const bool summed = !whole && f.down.taps == 1 && w.strides[0] == 1;
    if (!fits(f.across, 1) || !(summed || fits(f.down, 0))) continue;
    const WinogradBlocking p = blocking_of(w, x, out, f, threads);
    if (work(p) >= least) continue;
    best = p;
    least = work(p);
  }
  return best;
}

Match match_winograd(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "weight", "bias"}); !why.empty()) return Match::no(why);
  auto window = ops::conv_window(m.call);
  if (!window.ok()) return Match::no("an invalid window");
  if (window->rank > 2) return Match::no(cat(window->rank, " spatial dimensions"));
  const Window w = window->as(2);
  if (w.dilations[0] != 1 || w.dilations[1] != 1) return Match::no("dilations");
  if (w.groups != 1) return Match::no("groups");
  if (!m.is_constant("weight")) return Match::no("weights that are not constant");
  const ir::Shape &x = m.call.shape("x"), y = m.outputs[0].shape();
  if (x[1] < channel_block()) return Match::no("few channels");
  const auto best = best_blocking(w, x, y[1], m.threads, m.asked);
  if (!best) return Match::no(m.asked ? "a window that has no transform" : "direct sums are faster");
  const WinogradBlocking& p = *best;
  const auto in = static_cast<size_t>(m.call.arg_index("x"));
  const int weight = m.call.arg_index("weight"), bias = m.call.arg_index("bias");
  const int addend = m.call.arg_index("addend");
  auto weights = std::make_shared<std::shared_ptr<const std::byte>>();
  KernelChoice c;
  c.kernel = "cpu.conv.winograd";
  c.note = cat(p.f->down.out, " x ", p.f->across.out);
  c.in = in_layouts(m, "x", blocked());
  if (addend >= 0) c.in[static_cast<size_t>(addend)] = blocked();
  c.out = {blocked()};
  // Direct tiles read the original weights while running, from the file if it can be read as stored.
  const auto stored = m.stored(weight);
  c.in_prepare_only.resize(m.call.all_args().size());
  c.in_prepare_only[static_cast<size_t>(weight)] = stored.has_value();
  c.thread_scratch = static_cast<size_t>(p.scratch());
  c.tiles = p.chunks * p.parts;
  c.epilogues = m.epilogue.size();
  c.cost = cost_of(m, 2 * work(p), traffic(m));
  c.prepare = [=, p = *best](kernel::PrepareContext& context) -> Status {
    const auto bytes = static_cast<size_t>(p.weight_at(p.panels() - 1, p.summed, 0)) * sizeof(float);
    *weights = MOKA_TRY(context.pack(weight,
                                     cat("winograd ", c.note, " by ", p.f->down.taps, " x ", p.f->across.taps,
                                         " at every ", p.f->across.stride, ", of ", p.panel(), " ", p.block()),
                                     bytes, [&](const ir::TensorView& value, std::byte* to) {
                                       transform_weights(p, value.as<float>(), reinterpret_cast<float*>(to));
                                       return Status();
                                     }));
    return {};
  };
  c.run = [=, p = *best, after = activations_of(m.epilogue)](const KernelArgs& args) -> Status {
    const float* u = reinterpret_cast<const float*>(weights->get());
    const float* from = args.in[in].as<float>();
    float* y_all = args.out[0].as<float>();
    float* v = args.own<float>();
    float* made = v + p.f->points() * p.in_step;
    auto* flags = reinterpret_cast<bool*>(v + p.sums());
    const int64_t block = p.block(), depth = p.in_groups * block, line = p.w.out[1] * block;
    const Taps taps{stored, data_of(args, weight)};
    int64_t transformed = -1;
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t part = t % p.parts, first = p.first(part) * p.panel() / block;
      const Chunk chunk = chunk_of(p, t / p.parts);
      // Calls f(row, group, bias, products, place in y, flag) for the rows of tiles of a panel.
      const auto each_output = [&](int64_t panel, auto f) {
        for (int64_t g = 0; g < p.width(panel) / block; g++) {
          const int64_t group = panel * p.panel() / block + g;
          const auto add = bias_of_group(data_of(args, bias), group, p.out);
          each_row(p, chunk, 0, [&](const Row& r) {
            float* to = y_all + ((r.image * p.out_groups + group) * p.w.out[0] + r.y * p.f->down.out) * line +
                        r.x * p.f->across.out * block;
            f(r, group, add.data(), made + r.at * p.panel() + g * block, to, flags[(group - first) * p.chunk + r.at]);
          });
        }
      };
      const auto multiply = [&](int64_t panel) {
        for (int point = 0; point < p.f->points(); point++)
          for (int64_t k = 0; k < p.summed; k++)
            gemm().multiply(v + point * p.in_step + k * p.across * depth, depth,
                            u + p.weight_at(panel, k, p.f->weight_of(point)), chunk.end - chunk.begin, p.width(panel),
                            p.in, made + point * p.out_step, p.panel(), nullptr, k > 0);
      };
      const auto finish = [&](const Row& r, float* to) {
        const auto [rows, width] = p.outputs(r);
        for (int64_t i = 0; i < rows; i++, to += line)
          finish_blocked(y, data_of(args, addend), after, y_all, to - y_all, to - y_all + width * block);
      };
      if (transformed != t / p.parts) transform_inputs(p, chunk, from, false, v);
      transformed = t / p.parts;
      bool any = false;
      for (int64_t panel = p.first(part); panel < p.first(part + 1); panel++) {
        multiply(panel);
        each_output(panel,
                    [&](const Row& r, int64_t group, const float* add, const float* sums, float* to, bool& flag) {
                      const auto [rows, width] = p.outputs(r);
                      flag = !p.f->output(sums, p.out_step, p.panel(), add, r.count, rows, width, to, line) &&
                             correct_tiles(p, from, taps, add, r, group, to);
                      any |= flag;
                      if (!flag) finish(r, to);
                    });
      }
      if (!any) continue;
      transform_inputs(p, chunk, from, true, v);
      transformed = -1;
      for (int64_t panel = p.first(part); panel < p.first(part + 1); panel++) {
        multiply(panel);
        each_output(panel, [&](const Row& r, int64_t group, const float* add, const float* sums, float* to, bool flag) {
          if (!flag) return;
          correct_again(p, from, taps, add, r, group, sums, to);
          finish(r, to);
        });
      }
    }
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_conv_winograd() {
  static const KernelDef defs[] = {
      {.name = "cpu.conv.winograd", .ops = {"conv"}, .match = match_winograd, .addend = true, .measured = true}};
  return {20, defs};
}

}  // namespace moka::devices::cpu

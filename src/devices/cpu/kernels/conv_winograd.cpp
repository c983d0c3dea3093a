#include <algorithm>

#include "devices/cpu/common/activations.h"
#include "devices/cpu/common/winograd_tiles.h"
#include "devices/cpu/kernels/family.h"

/// Winograd convolutions: tiles of the input are transformed, each point of the transform is a matrix product over the
/// channels, and the products are transformed back (vector/winograd.h).
namespace moka::devices::cpu {

namespace {

constexpr int64_t kLine = 64;  // bytes of a cache line

/// Transforms a row of tiles of a block of input channels to place `at`.
void transform_group(const WinogradBlocking& p, const Row& r, int64_t g, const float* x, bool again, int64_t at,
                     float* v) {
  const int64_t plane = p.w.in[1] * p.w.in[2] * p.block(), slice = r.slice * p.w.strides[0] - p.w.pads_begin[0];
  const float* from =
      slice < 0 || slice >= p.w.in[0] ? nullptr : x + (r.image * p.in_groups + g) * p.in_volume() + slice * plane;
  transform_row(p, from, r, again, v + (at * p.in_groups + g) * p.block());
}

/// The work that is left for a block of output channels of a row of tiles.
enum class Left : uint8_t { nothing, finish, again };

/// The rows of a chunk that are transformed again. They lie together, unless input slices serve several of them.
class Again {
 public:
  /// `left`: chunk bytes for each of `groups` blocks of output channels. `chosen`: memory for as many bytes as tiles.
  Again(const WinogradBlocking& p, const Chunk& chunk, const Left* left, int64_t groups, bool* chosen)
      : p_(p), chunk_(chunk), chosen_(chosen), together_(p.summed() == 1) {
    p.each_row(chunk, 0, [&](const Row& r) {
      chosen[r.at] = false;
      for (int64_t g = 0; g < groups; g++) chosen[r.at] |= left[g * p.chunk + r.at] == Left::again;
      tiles_ += chosen[r.at] ? r.count : 0;
    });
    if (!together_) tiles_ = chunk.tiles();
  }
  int64_t tiles() const { return tiles_; }

  /// Calls f(row, place of its first tile).
  template <class F>
  void each(F f) const {
    int64_t next = 0;
    p_.each_row(chunk_, 0, [&](const Row& r) {
      if (!chosen_[r.at]) return;
      f(r, together_ ? next : r.at);
      next += r.count;
    });
  }
  void transform(const float* x, float* v) const {
    for (int64_t g = 0; g < p_.in_groups; g++) {
      if (together_)
        each([&](const Row& r, int64_t at) { transform_group(p_, r, g, x, true, at, v); });
      else
        p_.each_row(chunk_, p_.summed() - 1, [&](const Row& r) { transform_group(p_, r, g, x, true, r.at, v); });
    }
  }

 private:
  const WinogradBlocking& p_;
  const Chunk& chunk_;
  const bool* chosen_;
  bool together_;
  int64_t tiles_ = 0;
};

Match match_winograd(const MatchCall& m) {
  if (std::string why = require_fp32(m, {"x", "weight", "bias"}); !why.empty()) return Match::no(why);
  auto window = ops::conv_window(m.call);
  if (!window.ok()) return Match::no("an invalid window");
  for (int i = 0; i < window->rank; i++)
    if (window->dilations[i] != 1) return Match::no("dilations");
  if (window->groups != 1) return Match::no("groups");
  if (!m.is_constant("weight")) return Match::no("weights that are not constant");
  const ir::Shape &x = m.call.shape("x"), y = m.outputs[0].shape();
  if (x[1] < channel_block()) return Match::no("few channels");
  const int weight = m.call.arg_index("weight"), bias = m.call.arg_index("bias");
  const int addend = m.call.arg_index("addend");
  CompressedFilters compressed = CompressedFilters::of(m, weight, y[1], x[1] * window->taps());
  const auto best = best_blocking(*window, x[0], x[1], y[1], m.threads, m.asked, compressed.any());
  if (!best) return Match::no(m.asked ? "a window that has no transform" : "direct sums are faster");
  const WinogradBlocking& p = *best;
  const auto in = static_cast<size_t>(m.call.arg_index("x"));
  const auto weights = std::make_shared<WinogradWeights>(m, weight, p, std::move(compressed));
  KernelChoice c;
  c.kernel = "cpu.conv.winograd";
  const std::string tile = cat(p.f->down.out, " x ", p.f->across.out);
  c.note = cat(tile, weights->note());
  c.in = in_layouts(m, "x", blocked());
  if (addend >= 0) c.in[static_cast<size_t>(addend)] = blocked();
  c.out = {blocked()};
  // Direct tiles read the original weights while running, from the file if it can be read as stored.
  c.in_prepare_only.resize(m.call.all_args().size());
  c.in_prepare_only[static_cast<size_t>(weight)] = weights->reads_file();
  const int64_t after_tiles = (p.scratch() + kLine - 1) / kLine * kLine;
  c.thread_scratch = static_cast<size_t>(after_tiles) + static_cast<size_t>(weights->room()) * sizeof(float);
  if (weights->unpacked()) c.unpacked = weights->unpacked()->tensor();
  c.tiles = p.chunks * p.parts;
  c.epilogues = m.epilogue.size();
  c.cost = cost_of(m, 2 * work(p), traffic(m));
  c.prepare = [weights, key = cat("winograd ", tile, " by ", p.f->down.taps, " x ", p.f->across.taps, " at every ",
                                  p.f->across.stride, ", of ", p.panel(), " ", p.block())](
                  kernel::PrepareContext& context) -> Status { return weights->prepare(context, key); };
  c.run = [=, p = *best, after = activations_of(m.epilogue)](const KernelArgs& args) -> Status {
    const float* from = args.in[in].as<float>();
    float* y_all = args.out[0].as<float>();
    float* v = args.own<float>();
    float* made = v + p.f->points() * p.in_step;
    auto* left = reinterpret_cast<Left*>(v + p.sums());
    auto* chosen = reinterpret_cast<bool*>(left + p.chunk * p.out_groups);
    NonFiniteWindows non_finite(p, from, reinterpret_cast<uint8_t*>(chosen + p.chunk));
    const int64_t block = p.block(), depth = p.in_groups * block, line = p.w.out[2] * block;
    const Taps taps{weights.get(), data_of(args, weight)};
    int64_t transformed = -1;
    for (int64_t t = args.begin; t < args.end; t++) {
      const int64_t part = t % p.parts, first = p.first(part) * p.panel() / block;
      const Chunk chunk = p.chunk_of(t / p.parts);
      const auto multiply = [&](int64_t panel, int64_t tiles) {
        weights->multiply(panel, v, chunk.width() * depth, tiles, made,
                          reinterpret_cast<float*>(args.own<std::byte>() + after_tiles));
      };
      const auto finish = [&](const Row& r, float* to) {
        const auto [rows, width] = p.outputs(r);
        for (int64_t i = 0; i < rows; i++, to += line)
          finish_blocked(y, data_of(args, addend), after, y_all, to - y_all, to - y_all + width * block);
      };
      // Calls f(group, bias, products of its channels, what is left of each row, sums) for the blocks of a panel. Then
      // finishes the rows that waited for sums.
      const auto each_group = [&](int64_t panel, auto f) {
        for (int64_t g = 0; g < p.width(panel) / block; g++) {
          const int64_t group = panel * p.panel() / block + g;
          const auto add = bias_of_group(data_of(args, bias), group, p.out);
          DirectSums direct(p, from, taps, add.data(), group);
          Left* of = left + (group - first) * p.chunk;
          if (!f(group, add.data(), made + g * block, of, direct)) continue;
          direct.finish();
          p.each_row(chunk, 0, [&](const Row& r) {
            if (of[r.at] != Left::finish) return;
            finish(r, y_all + p.out_at(r, group));
            of[r.at] = Left::nothing;
          });
        }
      };
      if (transformed != t / p.parts) {
        non_finite.begin_chunk();
        for (int64_t g = 0; g < p.in_groups; g++)
          p.each_row(chunk, p.summed() - 1, [&](const Row& r) { transform_group(p, r, g, from, false, r.at, v); });
      }
      transformed = t / p.parts;
      bool any = false;
      for (int64_t panel = p.first(part); panel < p.first(part + 1); panel++) {
        multiply(panel, chunk.tiles());
        each_group(panel, [&](int64_t group, const float* add, const float* sums, Left* of, DirectSums& direct) {
          bool waiting = false;
          p.each_row(chunk, 0, [&](const Row& r) {
            float* to = y_all + p.out_at(r, group);
            const auto [rows, width] = p.outputs(r);
            of[r.at] = Left::nothing;
            if (p.f->output(sums + r.at * p.panel(), p.out_step, p.panel(), add, r.count, rows, width, to, line))
              return finish(r, to);
            of[r.at] = correct_tiles(p, non_finite, direct, r, to) ? Left::again : Left::finish;
            waiting |= of[r.at] == Left::finish;
            any |= of[r.at] == Left::again;
          });
          return waiting;
        });
      }
      if (!any) continue;
      const int64_t groups = (p.first(part + 1) - p.first(part)) * p.panel() / block;
      const Again again(p, chunk, left, std::min(groups, p.out_groups - first), chosen);
      again.transform(from, v);
      transformed = -1;
      for (int64_t panel = p.first(part); panel < p.first(part + 1); panel++) {
        multiply(panel, again.tiles());
        each_group(panel, [&](int64_t group, const float* add, const float* sums, Left* of, DirectSums& direct) {
          again.each([&](const Row& r, int64_t at) {
            if (of[r.at] != Left::again) return;
            correct_again(p, non_finite, direct, r, add, sums + at * p.panel(), y_all + p.out_at(r, group));
            of[r.at] = Left::finish;
          });
          return true;
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

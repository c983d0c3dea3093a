// SPDX-License-Identifier: Apache-2.0
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

/// What a prediction needs to know of the convolution.
struct Winograd {
  WinogradBlocking p;
  ir::Shape y;
  std::shared_ptr<WinogradWeights> weights;
  size_t in;
  int weight, bias, addend;
  int64_t after_tiles;  ///< bytes of a thread's scratch before that of the weights
  std::vector<Activation> after;
};

/// Computes tiles of one prediction on one thread.
class WinogradRun {
 public:
  WinogradRun(const Winograd& c, const KernelArgs& args)
      : c_(c),
        p_(c.p),
        from_(args.in[c.in].as<float>()),
        bias_(data_of(args, c.bias)),
        addend_(data_of(args, c.addend)),
        to_(args.out[0].as<float>()),
        v_(args.own<float>()),
        made_(v_ + p_.f->points() * p_.in_step),
        room_(reinterpret_cast<float*>(args.own<std::byte>() + c.after_tiles)),
        left_(reinterpret_cast<Left*>(v_ + p_.sums())),
        chosen_(reinterpret_cast<bool*>(left_ + p_.chunk * p_.out_groups)),
        non_finite_(p_, from_, reinterpret_cast<uint8_t*>(chosen_ + p_.chunk)),
        taps_{c.weights.get(), data_of(args, c.weight)} {}

  /// Computes part `t % parts` of the output channels of chunk `t / parts`.
  void compute(int64_t t) {
    const Chunk chunk = p_.chunk_of(t / p_.parts);
    const Part part{t % p_.parts, p_.first(t % p_.parts) * p_.panel() / p_.block()};
    if (transformed_ != t / p_.parts) transform(chunk);
    transformed_ = t / p_.parts;
    if (!multiply_all(chunk, part)) return;
    multiply_again(chunk, part);
    transformed_ = -1;
  }

 private:
  struct Part {
    int64_t number, first;  ///< first: block of output channels
  };

  void transform(const Chunk& chunk) {
    non_finite_.begin_chunk();
    for (int64_t g = 0; g < p_.in_groups; g++)
      p_.each_row(chunk, p_.summed() - 1, [&](const Row& r) { transform_group(p_, r, g, from_, false, r.at, v_); });
  }

  void multiply(const Chunk& chunk, int64_t panel, int64_t tiles) {
    c_.weights->multiply(panel, v_, chunk.width() * p_.in_groups * p_.block(), tiles, made_, room_);
  }

  int64_t line() const { return p_.w.out[2] * p_.block(); }

  void finish(const Row& r, float* to) const {
    const auto [rows, width] = p_.outputs(r);
    for (int64_t i = 0; i < rows; i++, to += line())
      finish_blocked(c_.y, addend_, c_.after, to_, to - to_, to - to_ + width * p_.block());
  }

  /// Calls f(group, bias, products of its channels, what is left of each row, sums) for the blocks of a panel. Then
  /// finishes the rows that waited for sums.
  template <class F>
  void each_group(const Chunk& chunk, const Part& part, int64_t panel, F f) {
    for (int64_t g = 0; g < p_.width(panel) / p_.block(); g++) {
      const int64_t group = panel * p_.panel() / p_.block() + g;
      const auto add = bias_of_group(bias_, group, p_.out);
      DirectSums direct(p_, from_, taps_, add.data(), group);
      Left* of = left_ + (group - part.first) * p_.chunk;
      if (!f(group, add.data(), made_ + g * p_.block(), of, direct)) continue;
      direct.finish();
      p_.each_row(chunk, 0, [&](const Row& r) {
        if (of[r.at] != Left::finish) return;
        finish(r, to_ + p_.out_at(r, group));
        of[r.at] = Left::nothing;
      });
    }
  }

  /// Whether there are tiles to transform again.
  bool multiply_all(const Chunk& chunk, const Part& part) {
    bool any = false;
    for (int64_t panel = p_.first(part.number); panel < p_.first(part.number + 1); panel++) {
      multiply(chunk, panel, chunk.tiles());
      each_group(chunk, part, panel,
                 [&](int64_t group, const float* add, const float* sums, Left* of, DirectSums& direct) {
                   bool waiting = false;
                   p_.each_row(chunk, 0, [&](const Row& r) {
                     of[r.at] = write(r, group, add, sums, direct);
                     waiting |= of[r.at] == Left::finish;
                     any |= of[r.at] == Left::again;
                   });
                   return waiting;
                 });
    }
    return any;
  }

  Left write(const Row& r, int64_t group, const float* add, const float* sums, DirectSums& direct) {
    float* to = to_ + p_.out_at(r, group);
    const auto [rows, width] = p_.outputs(r);
    if (p_.f->output(sums + r.at * p_.panel(), p_.out_step, p_.panel(), add, r.count, rows, width, to, line())) {
      finish(r, to);
      return Left::nothing;
    }
    return correct_tiles(p_, non_finite_, direct, r, to) ? Left::again : Left::finish;
  }

  void multiply_again(const Chunk& chunk, const Part& part) {
    const int64_t first = p_.first(part.number), end = p_.first(part.number + 1);
    const int64_t groups = (end - first) * p_.panel() / p_.block();
    const Again again(p_, chunk, left_, std::min(groups, p_.out_groups - part.first), chosen_);
    again.transform(from_, v_);
    for (int64_t panel = first; panel < end; panel++) {
      multiply(chunk, panel, again.tiles());
      each_group(chunk, part, panel,
                 [&](int64_t group, const float* add, const float* sums, Left* of, DirectSums& direct) {
                   again.each([&](const Row& r, int64_t at) {
                     if (of[r.at] != Left::again) return;
                     correct_again(p_, non_finite_, direct, r, add, sums + at * p_.panel(), to_ + p_.out_at(r, group));
                     of[r.at] = Left::finish;
                   });
                   return true;
                 });
    }
  }

  const Winograd& c_;
  const WinogradBlocking& p_;
  const float *from_, *bias_, *addend_;
  float *to_, *v_, *made_, *room_;
  Left* left_;
  bool* chosen_;
  NonFiniteWindows non_finite_;
  Taps taps_;
  int64_t transformed_ = -1;  ///< the chunk whose tiles are in v_; -1: none
};

void tell(const WinogradBlocking& p, kernel::Facts& facts) {
  facts.add("tile of results", p.f->down.out, " x ", p.f->across.out)
      .add("products for a tile", p.f->points(), " for each pair of channels, instead of ",
           p.pixels() * p.f->down.taps * p.f->across.taps)
      .add("tiles", p.tiles, ", ", p.down, " x ", p.across, " of a slice")
      .add("chunks of tiles", p.chunks, " of up to ", p.chunk)
      .add("panel", p.panel(), " output channels")
      .add("parts of panels", p.parts)
      .add("input channels at once", p.at_once);
  if (p.is_compressed) facts.add("weights", "transformed again for each chunk");
}

KernelChoice choice_of(const MatchCall& m, Winograd conv) {
  const WinogradBlocking& p = conv.p;
  const WinogradWeights& weights = *conv.weights;
  KernelChoice c;
  c.kernel = "cpu.conv.winograd";
  const std::string tile = cat(p.f->down.out, " x ", p.f->across.out);
  c.note = cat(tile, weights.note());
  c.in = in_layouts(m, "x", blocked());
  if (conv.addend >= 0) c.in[static_cast<size_t>(conv.addend)] = blocked();
  c.out = {blocked()};
  // Direct tiles read the original weights while running, from the file if it can be read as stored.
  c.in_prepare_only.resize(m.call.all_args().size());
  c.in_prepare_only[static_cast<size_t>(conv.weight)] = weights.reads_file();
  conv.after_tiles = (p.scratch() + kLine - 1) / kLine * kLine;
  c.thread_scratch = static_cast<size_t>(conv.after_tiles) + static_cast<size_t>(weights.room()) * sizeof(float);
  if (weights.unpacked()) c.unpacked = weights.unpacked()->tensor();
  c.tiles = p.chunks * p.parts;
  c.epilogues = m.epilogue.size();
  c.cost = cost_of(m, 2 * work(p), traffic(m));
  c.prepare = [weights = conv.weights, key = cat("winograd ", tile, " by ", p.f->down.taps, " x ", p.f->across.taps,
                                                 " at every ", p.f->across.stride, ", of ", p.panel(), " ", p.block())](
                  kernel::PrepareContext& context) -> Status { return weights->prepare(context, key); };
  c.facts = [p](kernel::Facts& facts) { tell(p, facts); };
  c.run = [conv = std::move(conv)](const KernelArgs& args) -> Status {
    WinogradRun run(conv, args);
    for (int64_t t = args.begin; t < args.end; t++) run.compute(t);
    return {};
  };
  return c;
}

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
  const int weight = m.call.arg_index("weight");
  CompressedFilters compressed = CompressedFilters::of(m, weight, y[1], x[1] * window->taps());
  const auto best = best_blocking(*window, x[0], x[1], y[1], m, compressed.any());
  if (!best) return Match::no(m.asked ? "a window that has no transform" : "direct sums are faster");
  return Match::yes(choice_of(m, {.p = *best,
                                  .y = y,
                                  .weights = std::make_shared<WinogradWeights>(m, weight, *best, std::move(compressed)),
                                  .in = static_cast<size_t>(m.call.arg_index("x")),
                                  .weight = weight,
                                  .bias = m.call.arg_index("bias"),
                                  .addend = m.call.arg_index("addend"),
                                  .after_tiles = 0,
                                  .after = activations_of(m.epilogue)}));
}

}  // namespace

KernelFamily family_conv_winograd() {
  static const KernelDef defs[] = {
      {.name = "cpu.conv.winograd", .ops = {"conv"}, .match = match_winograd, .addend = true, .measured = true}};
  return {20, defs};
}

}  // namespace moka::devices::cpu

// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/common/conv_block.h"
#include "devices/gpu/kernels/family.h"
#include "ops/common/packed.h"

namespace moka::devices::gpu {

namespace {

using Sizes = std::array<int64_t, 3>;

/// A transposed convolution whose constants are known.
struct Transposed {
  ops::Window window;             // of rank 3
  int64_t batch, channels, made;  // channels of a group, in x and y
  int x, weight, bias;            // -1: none
  Element floats;
  const Features* card;

  double multiply_adds() const {
    return static_cast<double>(batch * window.groups * channels * made) *
           static_cast<double>(window.in_count() * window.taps());
  }
  std::vector<Use> uses(const RecordArgs& args, Use weights) const {
    const Use from = Use::read(view(args.in, x));
    return {from, weights, bias < 0 ? from.unused() : Use::read(view(args.in, bias)), Use::write(args.out[0])};
  }
};

std::optional<Transposed> transposed_of(const MatchCall& m, std::string& refusal) {
  refusal = refusal_of_floats(m, {"x", "bias"});
  if (!refusal.empty()) return std::nullopt;
  auto window = ops::conv_transpose_window(m.call);
  if (!window.ok()) {
    refusal = window.error().message();
    return std::nullopt;
  }
  Transposed t{window->as_3d()};
  const ir::Shape &x = m.call.shape("x"), &weight = m.call.shape("weight");
  t.batch = x[0];
  t.channels = x[1] / t.window.groups;
  t.made = weight[1];
  t.x = m.call.arg_index("x");
  t.weight = m.call.arg_index("weight");
  t.bias = m.call.arg_index("bias");
  t.floats = float_element(m);
  t.card = &features_of(m);
  return t;
}

struct TiledParams {
  AfterParams after;
  uint32_t channels, made, groups;
  std::array<int32_t, 3> in_size, out_size, pads;
};

struct ConvTransposeParams {
  AfterParams after;
  uint32_t count, channels, made, groups;
  WindowParams window;
};

int64_t product(const Sizes& s) { return s[0] * s[1] * s[2]; }
Sizes split(int64_t i, const Sizes& s) { return {i / (s[1] * s[2]), i / s[2] % s[1], i % s[2]}; }

/// The most taps that an element of the result has along each dimension.
Sizes most_taps(const ops::Window& w) {
  Sizes s;
  for (int i = 0; i < 3; i++) s[static_cast<size_t>(i)] = (w.kernel[i] + w.strides[i] - 1) / w.strides[i];
  return s;
}

Sizes strides_of(const ops::Window& w) { return {w.strides[0], w.strides[1], w.strides[2]}; }

/// How blocks divide its phases.
ConvBlocks blocks_of(const Transposed& t) {
  ops::Window w = t.window;
  const Sizes taps = most_taps(w);
  for (int i = 0; i < 3; i++) {
    w.out[i] = (w.out[i] + w.strides[i] - 1) / w.strides[i];
    w.kernel[i] = taps[static_cast<size_t>(i)];
    w.strides[i] = 1;
  }
  w.pads_begin[2] = 1;  // each phase has its own
  return ConvBlocks(*t.card, w, t.made, t.batch, w.groups * product(strides_of(t.window)));
}

/// The weights of each phase, with zeros for taps that it lacks. Block shaders read the taps in reverse order.
Status pack_weights(const Transposed& t, const ir::TensorView& value, float* to) {
  const ops::Window& w = t.window;
  const Sizes strides = strides_of(w), taps = most_taps(w);
  const WeightOrder order(*t.card, t.made);
  const int64_t kernel = w.taps(), depth = t.channels * product(taps), padded = order.channels;
  std::vector<float> all(static_cast<size_t>(value.count()));
  ops::load_floats(value, 0, value.count(), all.data());
  std::fill(to, to + product(strides) * w.groups * depth * padded, 0.0f);
  for (int64_t n = 0; n < product(strides); n++) {
    const Sizes phase = split(n, strides);
    for (int64_t e = 0; e < product(taps); e++) {
      const Sizes tap = split(t.card->shares_tiles() ? e : product(taps) - 1 - e, taps);
      int64_t from = 0;
      bool there = true;
      for (int i = 0; i < 3; i++) {
        const auto d = static_cast<size_t>(i);
        const int64_t at = (phase[d] + w.pads_begin[i]) % w.strides[i] + tap[d] * w.strides[i];
        there &= at < w.kernel[i];
        from = from * w.kernel[i] + at;
      }
      if (!there) continue;
      for (int64_t g = 0; g < w.groups; g++)
        for (int64_t c = 0; c < t.channels; c++)
          for (int64_t r = 0; r < t.made; r++)
            to[(n * w.groups + g) * depth * padded + order.at(depth, c * product(taps) + e, r)] =
                all[static_cast<size_t>(((g * t.channels + c) * t.made + r) * kernel + from)];
    }
  }
  return {};
}

Match match_tiled(const MatchCall& m) {
  std::string refusal;
  const auto t = transposed_of(m, refusal);
  if (!t) return Match::no(refusal);
  const ops::Window& w = t->window;
  if (!m.is_constant("weight")) return Match::no("weights that are not constant");
  if (t->made < 8) return Match::no("fewer than 8 channels in a group of the result");
  for (int i = 0; i < 3; i++) {
    if (w.dilations[i] != 1) return Match::no("dilations");
    if (w.pads_begin[i] < 0) return Match::no("a result that begins before its input");
  }
  const Sizes strides = strides_of(w), taps = most_taps(w);
  int64_t pixels = 1;  // of the largest phase
  for (int i = 0; i < 3; i++) pixels *= (w.out[i] + w.strides[i] - 1) / w.strides[i];
  const int64_t phases = product(strides);
  const Tiles tiles = tiles_of(*t->card, t->made, pixels, t->batch * w.groups * phases, t->channels * product(taps));
  const bool shares = t->card->shares_tiles();
  const ConvBlocks blocks = blocks_of(*t);
  if (std::string why = features_of(m).refusal_of_groups(shares ? tiles.groups : blocks.groups); !why.empty())
    return Match::no(why);
  KernelChoice c = choice_of(m, "conv_transpose", {"x", "bias"}, t->floats);
  const Element weights = weights_element(m, t->weight, t->floats);
  const After after = after_of(m.epilogue);
  c.epilogues = after.count;
  const WeightOrder order(*t->card, t->made);
  std::string key = cat("conv_transpose ", order.name, w.groups);
  for (int i = 0; i < 3; i++) key += cat(" ", w.strides[i], "+", w.pads_begin[i] % w.strides[i]);
  const auto held =
      uploaded_before(c, t->weight, key, phases * w.groups * t->channels * product(taps) * order.channels, weights,
                      [t = *t](const ir::TensorView& value, float* to) { return pack_weights(t, value, to); });
  set_cost(c, m, t->multiply_adds());
  std::string shader = tile_shader_name(*t->card, "conv_transpose", t->floats, weights);
  if (!shares)
    shader =
        cat(shader_name("conv_transpose_block", t->floats), weights == t->floats ? "" : cat("_", name_of(weights)));
  c.record = [=, t = *t](Recorder& recorder, const RecordArgs& args) -> Status {
    const ops::Window& w = t.window;
    const WindowParams p(w);
    const Use held_weights = Use::read(held->buffer, 4 * size_of(weights));
    std::vector<Use> uses = t.uses(args, held_weights);
    uses.push_back(uses[0].unused());                              // a norm's scales
    if (!shares) uses.insert(uses.begin() + 3, uses[0].unused());  // an addend
    const auto record = [=](Recorder& to, const std::vector<Use>& bound, bool normed) -> Status {
      if (!shares) {
        const uint32_t has = has_of(t.bias >= 0, false, after, normed);
        const ConvParams params{AfterParams(after), u32(t.channels), u32(t.made), u32(w.groups), p, has};
        MOKA_TRY(recorder_of(to).dispatch(shader, blocks.constants(after, false), bound, BlockParams(blocks, params),
                                          groups_of(blocks.groups)));
        recorder_of(to).may_share(ConvBlocks::kFunctions);
        return {};
      }
      auto constants =
          tiles.constants(after.constants({u32(w.kernel[0]), u32(w.kernel[1]), u32(w.kernel[2]), u32(w.strides[0]),
                                           u32(w.strides[1]), u32(w.strides[2]), t.bias >= 0}));
      if (normed) constants.push_back(true);
      return recorder_of(to).dispatch(
          shader, std::move(constants), bound,
          TiledParams{AfterParams(after), u32(t.channels), u32(t.made), u32(w.groups), p.in_size, p.out_size, p.pads},
          groups_of(tiles.groups));
    };
    MOKA_TRY(record(recorder, uses, false));
    const auto record_normed = [=](Recorder& again, const Norm& norm) mutable {
      uses[uses.size() - 2] = norm.out;
      uses.back() = norm.scales;
      return record(again, uses, true);
    };
    recorder_of(recorder).may_norm({t.made * w.groups, w.out_count(), record_normed});
    return {};
  };
  return Match::yes(std::move(c));
}

Match match_direct(const MatchCall& m) {
  std::string refusal;
  const auto t = transposed_of(m, refusal);
  if (!t) return Match::no(refusal);
  if (refusal = refusal_of_floats(m, {"weight"}); !refusal.empty()) return Match::no(refusal);
  KernelChoice c = choice_of(m, "conv_transpose.direct", {"x", "weight", "bias"}, t->floats);
  const After after = after_of(m.epilogue);
  c.epilogues = after.count;
  set_cost(c, m, t->multiply_adds());
  c.record = [=, t = *t](Recorder& recorder, const RecordArgs& args) -> Status {
    const ops::Window& w = t.window;
    const auto n = static_cast<uint64_t>(args.out[0].shape.count());
    return recorder_of(recorder).dispatch(
        shader_name("conv_transpose_direct", t.floats),
        after.constants({u32(w.kernel[0]), u32(w.kernel[1]), u32(w.kernel[2]), t.bias >= 0}),
        t.uses(args, Use::read(view(args.in, t.weight))),
        ConvTransposeParams{AfterParams(after), static_cast<uint32_t>(n), u32(t.channels), u32(t.made), u32(w.groups),
                            WindowParams(w)},
        CommandRecorder::lines(n));
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_conv_transpose() {
  static const KernelDef defs[] = {{"conv_transpose", {"conv_transpose"}, match_tiled},
                                   {"conv_transpose.direct", {"conv_transpose"}, match_direct}};
  return {defs};
}

}  // namespace moka::devices::gpu

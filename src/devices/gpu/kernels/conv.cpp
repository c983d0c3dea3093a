// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/common/conv.h"

#include "devices/gpu/common/conv_block.h"
#include "devices/gpu/common/depthwise.h"
#include "devices/gpu/common/packed_rows.h"
#include "devices/gpu/kernels/family.h"
#include "ops/common/packed.h"

namespace moka::devices::gpu {

std::optional<Conv> conv_of(const MatchCall& m, std::string& refusal) {
  refusal = refusal_of_floats(m, {"x", "addend"});
  if (!refusal.empty()) return std::nullopt;
  auto window = ops::conv_window(m.call);
  if (!window.ok()) {
    refusal = window.error().message();
    return std::nullopt;
  }
  Conv c{window->as_3d()};
  const ir::Shape& weight = m.call.shape("weight");
  c.batch = m.call.shape("x")[0];
  c.channels = weight[1];
  c.made = weight[0] / c.window.groups;
  c.x = m.call.arg_index("x");
  c.weight = m.call.arg_index("weight");
  c.bias = m.call.arg_index("bias");
  c.addend = m.call.has_addend() ? m.call.arg_index("addend") : -1;
  c.floats = float_element(m);
  c.card = &features_of(m);
  return c;
}

namespace {

struct DirectParams {
  AfterParams after;
  uint32_t count, channels, made, groups;
  WindowParams window;
  uint32_t has;
  std::array<uint32_t, 2> kernel;  ///< its sizes but along rows
};

/// A convolution whose window covers the input whole: the product of a matrix and a vector for each image.
std::optional<Conv> whole_of(const MatchCall& m, std::string& refusal) {
  auto conv = conv_of(m, refusal);
  if (!conv) return conv;
  const ops::Window& w = conv->window;
  bool whole = w.out_count() == 1 && w.groups == 1;
  for (int i = 0; i < 3; i++)
    whole &= w.pads_begin[i] == 0 && w.in[i] == w.kernel[i] && (w.kernel[i] == 1 || w.dilations[i] == 1);
  if (whole) return conv;
  refusal = "a window that does not cover the input";
  return std::nullopt;
}

Match match_conv_whole_packed(const MatchCall& m) {
  std::string refusal;
  const auto conv = whole_of(m, refusal);
  if (!conv) return Match::no(refusal);
  if (!m.is_constant("weight")) return Match::no("weights that are not constant");
  if (refusal = refusal_of_floats(m, {"x", "bias"}); !refusal.empty()) return Match::no(refusal);
  auto packed = PackedRows::of(m, conv->weight, false, refusal);
  if (!packed) return Match::no(refusal);
  if (refusal = packed->refusal(conv->batch); !refusal.empty()) return Match::no(refusal);
  KernelChoice c = choice_of(m, "conv.whole.packed", {"x", "bias", "addend"}, conv->floats);
  const After after = limits_of(m.epilogue);
  c.epilogues = after.count;
  packed->prepare_in(c, packed);
  set_cost(c, m, conv->multiply_adds());
  c.record = [=, conv = *conv](Recorder& recorder, const RecordArgs& args) -> Status {
    return packed->record(recorder, conv.floats, after, conv.batch, conv.use(args.in, conv.x),
                          conv.use(args.in, conv.bias), conv.use(args.in, conv.addend), Use::write(args.out[0]));
  };
  return Match::yes(std::move(c));
}

Match match_conv_whole(const MatchCall& m) {
  std::string refusal;
  const auto conv = whole_of(m, refusal);
  if (!conv) return Match::no(refusal);
  KernelChoice c = choice_of(m, "conv.whole", {"x", "weight", "bias", "addend"}, conv->floats);
  ProductKernel k{&features_of(m)};
  k.product.rows = u32(conv->batch);
  k.product.columns = u32(conv->made);
  k.product.depth = u32(conv->depth());
  k.product.a_row = k.product.b_column = u32(conv->depth());
  k.product.b_k = 1;
  k.product.c_row = u32(conv->made);
  k.product.bias_column = 1;
  k.floats = k.weights = conv->floats;
  k.after = limits_of(m.epilogue);
  k.may_divide = true;
  if (std::string why = k.refusal(); !why.empty()) return Match::no(why);
  if (refusal = refusal_of_floats(m, {"x", "weight", "bias"}); !refusal.empty()) return Match::no(refusal);
  c.epilogues = k.after.count;
  set_cost(c, m, k.multiply_adds());
  c.scratch = k.scratch();
  c.record = [=, conv = *conv, scratch = static_cast<int64_t>(c.scratch / 4)](Recorder& recorder,
                                                                              const RecordArgs& args) -> Status {
    return k.record(recorder, {conv.use(args.in, conv.x), conv.use(args.in, conv.weight), conv.use(args.in, conv.bias),
                               conv.use(args.in, conv.addend), Use::write(args.out[0]), scratch_of(args, scratch)});
  };
  return Match::yes(std::move(c));
}

Status pack_weights(const Conv& conv, const ir::TensorView& value, float* to) {
  const WeightOrder order(*conv.card, conv.made);
  constexpr int64_t kRows = 16;  // at a time: a line of the processor's cache
  const int64_t depth = conv.depth(), rows = std::min(order.together, kRows);
  std::vector<float> lines(static_cast<size_t>(rows * depth));
  for (int64_t g = 0; g < conv.window.groups; g++, to += order.channels * depth)
    for (int64_t first = 0; first < order.channels; first += rows) {
      const int64_t n = std::min(rows, order.channels - first), there = std::min(n, conv.made - first);
      ops::load_floats(value, (g * conv.made + first) * depth, there * depth, lines.data());
      std::fill(lines.begin() + there * depth, lines.end(), 0.0f);
      for (int64_t k = 0; k < depth; k++) {
        float* const line = to + order.at(depth, k, first);
        for (int64_t i = 0; i < n; i++) line[i] = lines[static_cast<size_t>(i * depth + k)];
      }
    }
  return {};
}

/// The weights of a convolution in the device's memory. Immutable once prepared.
struct ConvWeights {
  std::shared_ptr<const Uploaded> floats;
  std::shared_ptr<const kernel::Buffer> bytes, scales;  // instead, where the model holds integers
};

/// Whether the weights are integers with one scale, or one for each channel of the result.
bool are_bytes(const Conv& conv, const kernel::StoredConstant& s) {
  const ir::DType codes = s.elements.dtype();
  if (s.is_half || !s.table.empty_handle() || s.scale.empty_handle() || ir::is_float(codes) || ir::bits(codes) > 8)
    return false;
  const int64_t scales = s.scale.count(), channels = conv.window.groups * conv.made;
  return scales == 1 || (scales == channels && s.scale.shape()[0] == channels);
}

/// pack_weights() of bytes: codes of signed types are moved up by 128.
Status pack_codes(const Conv& conv, const kernel::StoredConstant& s, uint8_t* to) {
  const int64_t count = conv.window.groups * conv.depth() * WeightOrder(*conv.card, conv.made).channels;
  std::vector<float> codes(static_cast<size_t>(count));
  MOKA_TRY(pack_weights(conv, s.elements.view(), codes.data()));
  const bool is_signed = s.elements.dtype() == ir::DType::int8 || s.elements.dtype() == ir::DType::int4;
  for (int64_t i = 0; i < count; i++)
    to[i] = static_cast<uint8_t>(static_cast<int>(codes[static_cast<size_t>(i)]) + (is_signed ? 128 : 0));
  return {};
}

/// Scales and offsets in fours, for each group.
void pack_scales(const Conv& conv, const kernel::StoredConstant& s, float* to) {
  const bool is_signed = s.elements.dtype() == ir::DType::int8 || s.elements.dtype() == ir::DType::int4;
  const int64_t padded = WeightOrder(*conv.card, conv.made).channels;
  for (int64_t g = 0; g < conv.window.groups; g++)
    for (int64_t r = 0; r < padded; r++) {
      const int64_t channel = s.scale.count() == 1 ? 0 : g * conv.made + std::min(r, conv.made - 1);
      float* const four = to + (g * padded + r) / 4 * 8 + r % 4;
      four[0] = s.scale.as<float>()[static_cast<size_t>(channel)];
      four[4] = (s.offset.empty_handle() ? 0 : s.offset.as<float>()[static_cast<size_t>(channel)]) +
                (is_signed ? 128.0f : 0.0f);
    }
}

std::shared_ptr<ConvWeights> upload_codes(KernelChoice& c, const Conv& conv, kernel::StoredConstant s) {
  auto held = std::make_shared<ConvWeights>();
  c.in_prepare_only[static_cast<size_t>(conv.weight)] = true;
  c.note = cat(s.elements.dtype());
  c.prepare = [=, s = std::move(s)](PrepareContext& context) -> Status {
    const WeightOrder order(*conv.card, conv.made);
    const std::string key = cat("conv codes ", order.name, conv.window.groups);
    held->bytes = MOKA_TRY(
        context.upload_stored(conv.weight, key, static_cast<size_t>(conv.window.groups * conv.depth() * order.channels),
                              [&](std::byte* to) { return pack_codes(conv, s, reinterpret_cast<uint8_t*>(to)); }));
    const auto scales = static_cast<size_t>(conv.window.groups * order.channels);
    held->scales =
        MOKA_TRY(context.upload_stored(conv.weight, cat(key, " scales"), scales * 8, [&](std::byte* to) -> Status {
          pack_scales(conv, s, reinterpret_cast<float*>(to));
          return {};
        }));
    return {};
  };
  return held;
}

/// How a convolution is computed in tiles or blocks.
struct TiledConv {
  Conv conv;
  After after;
  Element weights;
  Tiles tiles;
  ConvBlocks blocks;
  std::string shader;
  bool plain;  ///< a kernel of 1, no strides and no padding

  Status record_tiles(Recorder& recorder, const std::vector<Use>& uses, const After& functions, uint32_t has) const {
    const ops::Window& w = conv.window;
    return recorder_of(recorder).dispatch(
        shader, tiles.constants(functions.constants({u32(w.kernel[0]), u32(w.kernel[1]), u32(w.kernel[2]), plain})),
        uses,
        ConvParams{AfterParams(functions), u32(conv.channels), u32(conv.made), u32(w.groups), WindowParams(w), has},
        groups_of(tiles.groups));
  }

  /// `uses`: x, weights, bias, addend, y, and the scales of the weights or, if `normed`, of a norm.
  Status record(Recorder& recorder, std::vector<Use> uses, bool normed) const {
    if (conv.card->shares_tiles()) {
      MOKA_TRY(record_tiles(recorder, uses, after, has_of(conv.bias >= 0, conv.addend >= 0, after, normed)));
      recorder_of(recorder).may_share(4);
    } else {
      MOKA_TRY(blocks.record(recorder, conv, after, weights, uses, normed));
    }
    if (weights == Element::u8) return {};
    if (plain && conv.window.groups == 1)
      recorder_of(recorder).absorb(absorb_depthwise(conv, after, weights, uses, normed));
    if (!normed)
      recorder_of(recorder).may_norm(
          conv.normed([=, *this, uses = std::move(uses)](Recorder& again, const Norm& norm) mutable {
            uses[4] = norm.out;
            uses[5] = norm.scales;
            return record(again, uses, true);
          }));
    return {};
  }
};

/// Tiles or blocks of channels by pixels.
Match match_conv_tiled(const MatchCall& m) {
  std::string refusal;
  const auto conv = conv_of(m, refusal);
  if (!conv) return Match::no(refusal);
  const ops::Window& w = conv->window;
  if (!m.is_constant("weight")) return Match::no("weights that are not constant");
  if (conv->made < 8) return Match::no("fewer than 8 channels in a group of the result");
  if (refusal = refusal_of_floats(m, {"x", "bias"}); !refusal.empty()) return Match::no(refusal);
  const int64_t planes = conv->batch * w.groups;
  const Features& card = *conv->card;
  const Tiles tiles = tiles_of(card, conv->made, w.out_count(), planes, conv->depth()).in_parts(card, conv->depth());
  const ConvBlocks blocks(*conv);
  const bool shares = card.shares_tiles();
  refusal = card.refusal_of_groups(shares ? tiles.groups : blocks.groups);
  if (!refusal.empty()) return Match::no(refusal);
  KernelChoice c = choice_of(m, "conv", {"x", "bias", "addend"}, conv->floats);
  const After after = limits_of(m.epilogue);
  c.epilogues = after.count;
  auto stored = m.stored(conv->weight);
  const WeightOrder order(card, conv->made);
  Element weights = weights_element(m, conv->weight, conv->floats);
  std::shared_ptr<ConvWeights> held;
  if (stored && are_bytes(*conv, *stored) && element_of(card, ir::DType::boolean)) {
    weights = Element::u8;
    held = upload_codes(c, *conv, std::move(*stored));
  } else {
    held = std::make_shared<ConvWeights>();
    held->floats = uploaded_before(
        c, conv->weight, cat("conv ", order.name, w.groups), w.groups * conv->depth() * order.channels, weights,
        [conv = *conv](const ir::TensorView& value, float* to) { return pack_weights(conv, value, to); });
  }
  set_cost(c, m, conv->multiply_adds());
  if (shares) c.scratch = tiles.scratch(planes * conv->made * w.out_count());
  bool plain = w.taps() == 1;
  for (int i = 0; i < 3; i++) plain &= w.strides[i] == 1 && w.pads_begin[i] == 0 && w.in[i] == w.out[i];
  const TiledConv tiled{*conv, after, weights, tiles, blocks, tile_shader_name(card, "conv", conv->floats, weights),
                        plain};
  c.record = [=](Recorder& recorder, const RecordArgs& args) -> Status {
    const Conv& conv = tiled.conv;
    const Use x = conv.use(args.in, conv.x);
    std::vector<Use> uses{x,
                          Use::read(held->bytes ? held->bytes : held->floats->buffer, 4 * size_of(weights)),
                          conv.use_or(args.in, conv.bias, x),
                          conv.use_or(args.in, conv.addend, x),
                          Use::write(args.out[0]),
                          held->scales ? Use::read(held->scales, 16) : x.unused()};
    if (!shares || tiled.tiles.parts == 1) return tiled.record(recorder, std::move(uses), false);
    const int64_t pixels = conv.window.out_count(), results = planes * conv.made * pixels;
    const Use sums = scratch_of(args, results * tiled.tiles.parts), y = uses[4];
    uses[2] = uses[3] = x.unused();
    uses[4] = sums;
    MOKA_TRY(tiled.record_tiles(recorder, uses, After{}, 0));
    const PartSums all{conv.floats, after, results, tiled.tiles.parts, pixels, conv.made * conv.window.groups};
    return all.record(recorder, sums.to_read(), conv.use(args.in, conv.bias), conv.use(args.in, conv.addend), y);
  };
  return Match::yes(std::move(c));
}

/// Each invocation computes one element: depthwise convolutions and small groups.
Match match_conv_direct(const MatchCall& m) {
  std::string refusal;
  const auto conv = conv_of(m, refusal);
  if (!conv) return Match::no(refusal);
  if (refusal = refusal_of_floats(m, {"x", "weight", "bias"}); !refusal.empty()) return Match::no(refusal);
  KernelChoice c = choice_of(m, "conv.direct", {"x", "weight", "bias", "addend"}, conv->floats);
  const After after = limits_of(m.epilogue);
  c.epilogues = after.count;
  set_cost(c, m, conv->multiply_adds());
  c.record = [=, conv = *conv](Recorder& recorder, const RecordArgs& args) -> Status {
    const ops::Window& w = conv.window;
    const Use x = conv.use(args.in, conv.x);
    // Long rows have pixels enough for all invocations: each computes several, with the same weights.
    const bool shares = conv.card->shares_tiles();
    const int64_t pixels = !shares          ? block_pixels(w, 1)
                           : w.out[2] >= 28 ? 4
                                            : 1,
                  rows = args.out[0].shape.count() / w.out[2];
    const auto n = static_cast<uint64_t>(rows * ((w.out[2] + pixels - 1) / pixels));
    // A small loop is worth unrolling, but for drivers that take long to compile it.
    const uint32_t deep = u32(w.kernel[0]), tall = u32(w.kernel[1]);
    auto constants = after.constants({shares ? deep : 0, shares ? tall : 0, u32(w.kernel[2])});
    for (int64_t v : {pixels, w.strides[2], w.dilations[2]}) constants.push_back(u32(v));
    std::vector<Use> uses{x,
                          conv.use(args.in, conv.weight),
                          conv.use_or(args.in, conv.bias, x),
                          conv.use_or(args.in, conv.addend, x),
                          Use::write(args.out[0]),
                          x.unused()};
    DirectParams params{AfterParams(after),
                        static_cast<uint32_t>(n),
                        u32(conv.channels),
                        u32(conv.made),
                        u32(w.groups),
                        WindowParams(w),
                        has_of(conv.bias >= 0, conv.addend >= 0, after),
                        {deep, tall}};
    const std::string shader = shader_name("conv_direct", conv.floats);
    MOKA_TRY(recorder_of(recorder).dispatch(shader, constants, uses, params, CommandRecorder::lines(n)));
    recorder_of(recorder).may_share(3);
    recorder_of(recorder).offer(depthwise_producer(conv, after, args));
    recorder_of(recorder).may_norm(conv.normed([=](Recorder& again, const Norm& norm) mutable -> Status {
      uses[4] = norm.out;
      uses[5] = norm.scales;
      params.has |= HAS_NORM;
      MOKA_TRY(recorder_of(again).dispatch(shader, constants, uses, params, CommandRecorder::lines(n)));
      recorder_of(again).may_share(3);
      return {};
    }));
    return {};
  };
  return Match::yes(std::move(c));
}

}  // namespace

KernelFamily family_conv() {
  static const KernelDef defs[] = {{"conv.whole.packed", {"conv"}, match_conv_whole_packed, true},
                                   {"conv.whole", {"conv"}, match_conv_whole, true},
                                   {"conv.winograd", {"conv"}, match_conv_winograd, true},
                                   {"conv", {"conv"}, match_conv_tiled, true},
                                   {"conv.direct", {"conv"}, match_conv_direct, true}};
  return {defs};
}

}  // namespace moka::devices::gpu

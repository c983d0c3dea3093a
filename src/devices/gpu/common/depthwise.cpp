// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/common/depthwise.h"

#include "devices/gpu/common/conv_block.h"

namespace moka::devices::gpu {

namespace {

/// Workgroups along the channels of the result, each of which computes the depthwise convolution.
constexpr int64_t kMostTimes = 2;
/// Workgroups of a large GPU.
constexpr int64_t kJoinedGroups = 1024;

struct Depthwise final : Producer {
  Conv conv;
  After after;
};

struct DepthwiseParams {
  AfterParams after, inner;
  uint32_t channels, made;
  std::array<int32_t, 2> in_size, out_size, strides, dilations, pads;
  uint32_t has, segments, times, height;
};

std::array<int32_t, 2> last_two(const ir::Ints& v) { return {static_cast<int32_t>(v[1]), static_cast<int32_t>(v[2])}; }

Tiles tiles_for(const Conv& conv) {
  const int64_t pixels = conv.window.out_count(), depth = conv.depth();
  const Tiles tiles = tiles_of(*conv.card, conv.made, pixels, conv.batch, depth);
  return tiles.groups[1] > kMostTimes ? large_tiles_of(*conv.card, conv.made, pixels, conv.batch, depth) : tiles;
}

/// How shaders/conv_depthwise_block.comp divides both. A workgroup computes all channels of the result.
struct Blocks {
  const Features* card;
  int64_t pixels, segments = 16, eights;
  std::array<int64_t, 3> groups;

  Blocks(const ops::Window& w, const Conv& conv)
      : card(conv.card), pixels(block_pixels(w, 8)), eights((conv.made + 7) / 8) {
    const int64_t all = (w.out[2] + pixels - 1) / pixels * w.out[1];
    while (segments > 2 && size() > int64_t{4} * card->block_size()) segments /= 2;
    groups = {(all + segments - 1) / segments, 1, conv.batch};
  }
  int64_t size() const { return eights * segments; }
  /// Rounded up, so that few sizes are compiled.
  int64_t invocations() const {
    const int64_t whole = int64_t{4} * card->block_size();
    return (size() + whole - 1) / whole * whole;
  }
  /// A driver would compile another shader for strides along rows, which pays where much lies between both.
  bool fit(const ops::Window& w, int64_t elements) const {
    constexpr int64_t kMany = 150'000;
    return (w.strides[2] == 1 || elements >= kMany) && size() <= kMostInvocations &&
           card->refusal_of_groups(groups).empty();
  }
  uint32_t times() const {
    constexpr int64_t kAtOnce = 16;  // channels between barriers, at least
    return u32(std::max<int64_t>(1, std::min((kAtOnce + eights - 1) / eights, kMostInvocations / size())));
  }
  static constexpr int64_t kMostInvocations = 256;
};

}  // namespace

std::shared_ptr<const Producer> depthwise_producer(const Conv& conv, const After& after, const RecordArgs& args) {
  const ops::Window& w = conv.window;
  const bool plane = w.in[0] == 1 && w.kernel[0] == 1 && w.out[0] == 1 && w.pads_begin[0] == 0;
  if (!plane || conv.channels != 1 || conv.made != 1 || conv.addend >= 0) return nullptr;
  auto d = std::make_shared<Depthwise>();
  d->conv = conv;
  d->after = after;
  const Use x = conv.use(args.in, conv.x);
  d->reads = {x, conv.use(args.in, conv.weight), conv.use_or(args.in, conv.bias, x)};
  d->out = Use::write(args.out[0]);
  return d;
}

Absorb absorb_depthwise(const Conv& conv, const After& after, Element weights, const std::vector<Use>& uses,
                        bool normed) {
  const bool shares = conv.card->shares_tiles();
  const Tiles tiles = tiles_for(conv);
  if (shares && tiles.groups[1] > kMostTimes) return nullptr;
  // Elsewhere, two short dispatches are faster than a long one.
  if (conv.card->is_large && tiles.groups[0] * tiles.groups[1] * tiles.groups[2] < kJoinedGroups) return nullptr;
  return [=](const Producer& producer) -> std::optional<Dispatch> {
    const auto* d = dynamic_cast<const Depthwise*>(&producer);
    if (d == nullptr || d->conv.floats != conv.floats || d->conv.batch != conv.batch ||
        d->conv.window.groups != conv.channels)
      return std::nullopt;
    const ops::Window& w = d->conv.window;
    const Blocks blocks(w, conv);
    if (!shares && !blocks.fit(w, conv.batch * conv.channels * w.out_count())) return std::nullopt;
    Dispatch out;
    out.shader = cat(shares ? "conv_depthwise_" : "conv_depthwise_block_", name_of(conv.floats),
                     weights != conv.floats ? cat("_", name_of(weights)) : std::string());
    if (shares) out.constants.push_back(u32(w.kernel[1]));
    for (uint32_t v :
         {u32(w.kernel[2]), uint32_t{d->conv.bias >= 0}, d->after.functions[0].number, d->after.functions[1].number})
      out.constants.push_back(v);
    out.functions = out.constants.size();
    for (const Function& f : after.functions) out.constants.push_back(f.number);
    if (shares)
      out.constants = tiles.constants(std::move(out.constants));
    else
      for (int64_t v : {blocks.pixels, w.strides[2], w.dilations[2], blocks.invocations()})
        out.constants.push_back(u32(v));
    out.uses = {d->reads[0], uses[1], uses[2], uses[3], uses[4], d->reads[1], d->reads[2], uses[5]};
    // The unused bindings of what is absent may be of a buffer that this dispatch does not bind.
    for (size_t i : {2, 3, 7})
      if (out.uses[i].is_unused) out.uses[i] = d->reads[0].unused();
    const DepthwiseParams params{AfterParams(after),     AfterParams(d->after),
                                 u32(conv.channels),     u32(conv.made),
                                 last_two(w.in),         last_two(w.out),
                                 last_two(w.strides),    last_two(w.dilations),
                                 last_two(w.pads_begin), has_of(conv.bias >= 0, conv.addend >= 0, after, normed),
                                 u32(blocks.segments),   blocks.times(),
                                 u32(w.kernel[1])};
    const auto* bytes = reinterpret_cast<const std::byte*>(&params);
    out.params.assign(bytes, bytes + sizeof params);
    out.groups = groups_of(shares ? tiles.groups : blocks.groups);
    return out;
  };
}

}  // namespace moka::devices::gpu

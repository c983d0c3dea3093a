#include "devices/vulkan/kernels/depthwise.h"

namespace moka::devices::vulkan {

namespace {

/// Workgroups along the channels of the result, each of which computes the depthwise convolution.
constexpr int64_t kMostTimes = 2;

struct Depthwise final : Producer {
  Conv conv;
  After after;
};

struct DepthwiseParams {
  AfterParams after, inner;
  uint32_t channels, made;
  std::array<int32_t, 2> in_size, out_size, strides, dilations, pads;
};

std::array<int32_t, 2> last_two(const ir::Ints& v) { return {static_cast<int32_t>(v[1]), static_cast<int32_t>(v[2])}; }

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

Absorb absorb_depthwise(const Conv& conv, const After& after, Element weights, const std::vector<Use>& uses) {
  Tiles tiles = tiles_of(conv.made, conv.window.out_count(), conv.batch);
  if (tiles.groups[1] > kMostTimes) tiles = large_tiles_of(conv.made, conv.window.out_count(), conv.batch);
  if (tiles.groups[1] > kMostTimes) return nullptr;
  return [=](const Producer& producer) -> std::optional<Dispatch> {
    const auto* d = dynamic_cast<const Depthwise*>(&producer);
    if (d == nullptr || d->conv.floats != conv.floats || d->conv.batch != conv.batch ||
        d->conv.window.groups != conv.channels)
      return std::nullopt;
    const ops::Window& w = d->conv.window;
    Dispatch out;
    out.shader = cat("conv_depthwise_", name_of(conv.floats),
                     weights != conv.floats ? cat("_", name_of(weights)) : std::string());
    out.constants = {u32(w.kernel[1]),
                     u32(w.kernel[2]),
                     d->conv.bias >= 0,
                     d->after.functions[0].number,
                     d->after.functions[1].number,
                     conv.bias >= 0,
                     conv.addend >= 0,
                     after.functions[0].number,
                     after.functions[1].number};
    out.constants = tiles.constants(std::move(out.constants));
    out.uses = {d->reads[0], uses[1], uses[2], uses[3], uses[4], d->reads[1], d->reads[2]};
    // What stood for a bias may be a part of what is not bound any more.
    for (size_t i : {2, 3})
      if (uses[i].is_unused) out.uses[i] = d->reads[0].unused();
    const DepthwiseParams params{AfterParams(after),  AfterParams(d->after), u32(conv.channels),
                                 u32(conv.made),      last_two(w.in),        last_two(w.out),
                                 last_two(w.strides), last_two(w.dilations), last_two(w.pads_begin)};
    const auto* bytes = reinterpret_cast<const std::byte*>(&params);
    out.params.assign(bytes, bytes + sizeof params);
    out.groups = groups_of(tiles.groups);
    return out;
  };
}

}  // namespace moka::devices::vulkan

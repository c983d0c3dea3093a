// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/common/copies.h"
#include "devices/gpu/kernels/family.h"
#include "ops/common/common.h"
#include "ops/common/pixel_blocks.h"
#include "ops/common/slicing.h"

namespace moka::devices::gpu {

namespace {

/// One copy from x to the result.
Match one_copy(const MatchCall& m, std::string_view kernel, GridCopy copy) {
  if (!can_copy(copy.grid)) return Match::no(kManyDimensions);
  const Element e = moved_element(m, "x");
  const int x = m.call.arg_index("x");
  KernelChoice c = choice_of(m, kernel, {"x"}, e);
  set_cost(c, m);
  c.record = [=](Recorder& recorder, const RecordArgs& args) {
    return record_copy(recorder, copy, size_of(e), Use::read(view(args.in, x)), Use::write(args.out[0]));
  };
  return Match::yes(std::move(c));
}

Match match_slice(const MatchCall& m) {
  if (std::string why = refusal_of(m, {"x"}); !why.empty()) return Match::no(why);
  const ir::Shape& x = m.call.shape("x");
  const auto cut = ops::known_slice(m.call);
  if (!cut) return Match::no("bounds that are known only while running");
  if (!(cut->shape() == m.outputs[0].shape())) return Match::no("another shape than planned");
  const int64_t first = ops::first_of(*cut, x);
  Match match = one_copy(m, "slice", {ops::copy_of(*cut, x), 0, first});
  if (match.choice && ops::is_run(*cut, x))
    match.choice->cuts.push_back(
        {m.call.arg_index("x"), 0, static_cast<size_t>(first) * size_of(moved_element(m, "x"))});
  return match;
}

Match match_transpose(const MatchCall& m) {
  if (std::string why = refusal_of(m, {"x"}); !why.empty()) return Match::no(why);
  const ir::Shape& x = m.call.shape("x");
  auto perm = ops::axes_of(m.call, "perm", x.rank());
  if (!perm.ok()) return Match::no("axes that are known only while running");
  const auto from = x.strides(), to = m.outputs[0].shape().strides();
  GridCopy copy;
  for (int i = 0; i < perm->size(); i++)
    copy.grid.add(m.outputs[0].shape()[i], to[static_cast<size_t>(i)], from[static_cast<size_t>((*perm)[i])]);
  return one_copy(m, "transpose", copy);
}

Match match_pixels(const MatchCall& m) {
  if (std::string why = refusal_of(m, {"x"}); !why.empty()) return Match::no(why);
  const ir::Shape &x = m.call.shape("x"), &y = m.outputs[0].shape();
  const std::string_view op = m.call.version().def->name;
  const bool shuffles = op == "pixel_shuffle" || op == "pixel_unshuffle";
  const auto block = m.call.integer(op == "pixel_shuffle"     ? "upscale_factor"
                                    : op == "pixel_unshuffle" ? "downscale_factor"
                                                              : "block_size");
  if (!block.ok()) return Match::no("a block that is not constant");
  const auto order = shuffles ? ops::BlockOrder::channel_first : ops::BlockOrder::position_first;
  const bool to_pixels = op == "pixel_shuffle" || op == "depth_to_space";
  return one_copy(m, "pixels",
                  {to_pixels ? ops::channels_to_pixels_copy(x, y, *block, order)
                             : ops::pixels_to_channels_copy(x, y, *block, order)});
}

Match match_tile(const MatchCall& m) {
  if (std::string why = refusal_of(m, {"x"}); !why.empty()) return Match::no(why);
  const ir::Shape &x = m.call.shape("x"), &y = m.outputs[0].shape();
  const auto from = x.strides(), to = y.strides();
  GridCopy copy;
  for (int i = 0; i < x.rank(); i++) {
    const auto u = static_cast<size_t>(i);
    if (y[i] % x[i] != 0) return Match::no("another shape than planned");
    copy.grid.add(y[i] / x[i], to[u] * x[i], 0);
    copy.grid.add(x[i], to[u], from[u]);
  }
  return one_copy(m, "tile", copy);
}

Match match_windows(const MatchCall& m) {
  if (std::string why = refusal_of(m, {"x"}); !why.empty()) return Match::no(why);
  const ir::Shape &x = m.call.shape("x"), &y = m.outputs[0].shape();
  const auto axis = ops::axis_of(m.call, "axis", x.rank());
  const auto stride = m.call.integer("stride");
  if (!axis.ok() || !stride.ok()) return Match::no("windows that are not constant");
  const auto from = x.strides(), to = y.strides();
  GridCopy copy;
  for (int i = 0; i < y.rank(); i++) {
    const int64_t step = from[static_cast<size_t>(i <= *axis ? i : i - 1)];
    copy.grid.add(y[i], to[static_cast<size_t>(i)], i == *axis ? step * *stride : step);
  }
  return one_copy(m, "sliding_windows", copy);
}

/// A copy, for a reshape that the plan could not turn into a view.
Match match_view(const MatchCall& m) {
  if (std::string why = refusal_of(m, {"x"}); !why.empty()) return Match::no(why);
  GridCopy copy;
  copy.grid.add(m.outputs[0].shape().count(), 1, 1);
  return one_copy(m, "view", copy);
}

}  // namespace

KernelFamily family_movement() {
  static const KernelDef defs[] = {
      {"slice", {"slice_by_index", "slice_by_size", "reverse", "crop"}, match_slice},
      {"transpose", {"transpose"}, match_transpose},
      {"pixels", {"pixel_shuffle", "pixel_unshuffle", "depth_to_space", "space_to_depth"}, match_pixels},
      {"tile", {"tile"}, match_tile},
      {"sliding_windows", {"sliding_windows"}, match_windows},
      {"view", {"reshape", "reshape_like", "squeeze", "expand_dims", "flatten2d", "identity"}, match_view}};
  return {defs};
}

}  // namespace moka::devices::gpu

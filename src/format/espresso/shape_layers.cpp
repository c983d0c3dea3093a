// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <limits>

#include "format/espresso/layer_reader.h"

namespace moka::format::espresso {
namespace {

/// The file's axis for dimension `position` of `rank`: the last dimension is w, then h, k, n and seq.
int axis_at(int position, int rank) { return rank - 1 - position; }

Status flatten(LayerReader& r) {
  MOKA_TRY(r.arity(1, 1));
  const int64_t axis = MOKA_TRY(r.integer("nd_axis", 0));
  if (axis != 0) {
    r.add().mutable_flattento2d()->set_axis(axis);
    return {};
  }
  const int64_t mode = MOKA_TRY(r.integer("mode", 0));
  if (mode != 0 && mode != 1) return r.unsupported(cat("mode ", mode));
  r.add().mutable_flatten()->set_mode(mode == 1 ? proto::FlattenLayerParams::CHANNEL_LAST
                                                : proto::FlattenLayerParams::CHANNEL_FIRST);
  return {};
}

Status reshape(LayerReader& r) {
  MOKA_TRY(r.arity(1, 1));
  if (MOKA_TRY(r.flag("dynamic_shape"))) return r.unsupported("a shape that is computed");
  static constexpr const char* keys[] = {"dst_w", "dst_h", "dst_k", "dst_n", "dst_seq"};
  int64_t target[axis_count];
  for (int axis = 0; axis < axis_count; ++axis) {
    target[axis] = MOKA_TRY(r.integer(keys[axis], axis == axis_n ? 0 : 1));
    if (target[axis] < -1 || target[axis] > std::numeric_limits<int32_t>::max())
      return r.malformed(cat("'", keys[axis], "' is ", target[axis]));
  }
  const auto rank = static_cast<int>(MOKA_TRY(r.size("dst_nd_rank", 0)));
  if (rank > axis_count) return r.unsupported(cat("dst_nd_rank ", rank));
  if (rank > 0) {
    auto& p = *r.add().mutable_reshapestatic();
    for (int i = 0; i < rank; ++i) p.add_targetshape(target[axis_at(i, rank)]);
    return {};
  }
  const BlobShape& before = r.shape(r.bottoms[0]);
  auto& p = *r.add().mutable_reshape();
  const int64_t mode = MOKA_TRY(r.integer("mode", 0));
  if (mode != 0 && mode != 1) return r.unsupported(cat("mode ", mode));
  p.set_mode(mode == 1 ? proto::ReshapeLayerParams::CHANNEL_LAST : proto::ReshapeLayerParams::CHANNEL_FIRST);
  // 0 keeps a dimension. A specification can keep only the sequence, by omitting it. One dimension may be -1; it takes
  // the remaining elements.
  const bool another = target[axis_k] == -1 || target[axis_h] == -1 || target[axis_w] == -1;
  if (target[axis_seq] == -1 && another) target[axis_seq] = r.shape(r.tops[0]).size[axis_seq];
  if (target[axis_seq] != 0) p.add_targetshape(target[axis_seq]);
  for (int axis : {axis_k, axis_h, axis_w}) p.add_targetshape(target[axis] == 0 ? before.size[axis] : target[axis]);
  return {};
}

Status transpose(LayerReader& r) {
  MOKA_TRY(r.arity(1, 1));
  static constexpr const char* keys[] = {"axis_w", "axis_h", "axis_k", "axis_n", "axis_seq"};
  uint64_t from[axis_count];
  bool seen[axis_count] = {};
  for (int axis = 0; axis < axis_count; ++axis) {
    from[axis] = MOKA_TRY(r.size(keys[axis], static_cast<uint64_t>(axis)));
    if (from[axis] >= axis_count || seen[from[axis]]) return r.malformed("the axes are not a permutation of 0 to 4");
    seen[from[axis]] = true;
  }
  const int rank = r.nd_rank(r.bottoms[0]);
  if (rank == 0 && from[axis_n] == axis_n) {
    auto& p = *r.add().mutable_permute();
    const auto index = [](uint64_t axis) -> uint64_t { return axis == axis_seq ? 0 : 3 - axis; };
    for (int axis : {axis_seq, axis_k, axis_h, axis_w}) p.add_axis(index(from[axis]));
    return {};
  }
  const int dims = rank == 0 ? static_cast<int>(axis_count) : rank;
  auto& p = *r.add().mutable_transpose();
  for (int i = 0; i < dims; ++i) {
    const auto source = static_cast<int>(from[axis_at(i, dims)]);
    if (source >= dims) return r.malformed(cat("axis ", source, " of a blob of rank ", dims));
    p.add_axes(static_cast<uint64_t>(axis_at(source, dims)));
  }
  return {};
}

Status concat(LayerReader& r) {
  MOKA_TRY(r.arity(1, std::numeric_limits<int>::max()));
  if (r.type == "sequence_concat") {
    r.add().mutable_concat()->set_sequenceconcat(true);
    return {};
  }
  const int rank = r.nd_rank(r.bottoms[0]);
  for (const char* key : {"nd_axis", "axis"})
    if (rank != 0 && r.has(key)) {
      const int64_t axis = MOKA_TRY(r.integer(key, 0));
      r.add().mutable_concatnd()->set_axis(axis);
      return {};
    }
  r.add().mutable_concat();
  return {};
}

Status slice(LayerReader& r) {
  MOKA_TRY(r.arity(1, 1));
  auto& p = *r.add().mutable_slice();
  const int64_t axis = MOKA_TRY(r.integer("axis", axis_k));
  switch (axis) {
    case axis_k: p.set_axis(proto::SliceLayerParams::CHANNEL_AXIS); break;
    case axis_h: p.set_axis(proto::SliceLayerParams::HEIGHT_AXIS); break;
    case axis_w: p.set_axis(proto::SliceLayerParams::WIDTH_AXIS); break;
    default: return r.unsupported(cat("axis ", axis));
  }
  const int64_t size = r.shape(r.bottoms[0]).size[axis];
  p.set_startindex(MOKA_TRY(r.integer("start", 0)));
  p.set_endindex(std::min(MOKA_TRY(r.integer("end", size)), size));
  p.set_stride(MOKA_TRY(r.size("stride", 1)));
  return {};
}

using Reduce = proto::ReduceLayerParams;

/// The axes follow from the blob sizes that change. If several possibilities remain, axis_mode decides: 0 means all
/// three axes, and 4 the channel.
Result<Reduce::ReduceAxis> reduced_axes(LayerReader& r) {
  const int64_t mode = MOKA_TRY(r.integer("axis_mode", 0));
  struct Choice {
    Reduce::ReduceAxis axes;
    int64_t mode;
    bool k, h, w;
  };
  static constexpr Choice choices[] = {{Reduce::CHW, 0, true, true, true},
                                       {Reduce::C, 4, true, false, false},
                                       {Reduce::HW, 3, false, true, true},
                                       {Reduce::H, 2, false, true, false},
                                       {Reduce::W, 1, false, false, true}};
  const BlobShape& in = r.shape(r.bottoms[0]);
  const BlobShape& out = r.shape(r.tops[0]);
  const Choice* found = nullptr;
  for (const Choice& c : choices) {
    const bool fits = out.size[axis_k] == (c.k ? 1 : in.size[axis_k]) &&
                      out.size[axis_h] == (c.h ? 1 : in.size[axis_h]) &&
                      out.size[axis_w] == (c.w ? 1 : in.size[axis_w]);
    if (fits && (found == nullptr || c.mode == mode)) found = &c;
  }
  // Only files with 0 and 4 are known. For other numbers the sizes decide.
  if (found == nullptr || ((mode == 0 || mode == 4) && found->mode != mode))
    return r.unsupported(cat("axis_mode ", mode, ", which does not fit the sizes of the blobs"));
  return found->axes;
}

Status reduce(LayerReader& r) {
  MOKA_TRY(r.arity(1, 1));
  static constexpr std::pair<int, Reduce::ReduceOperation> modes[] = {
      {0, Reduce::SUM}, {1, Reduce::AVG}, {2, Reduce::PROD}, {3, Reduce::LOGSUM}, {4, Reduce::SUMSQUARE},
      {5, Reduce::L2},  {8, Reduce::L1},  {9, Reduce::MAX},  {10, Reduce::MIN},   {11, Reduce::ARGMAX}};
  const int64_t mode = MOKA_TRY(r.integer("mode", 0));
  for (const auto& [code, operation] : modes)
    if (code == mode) {
      const Reduce::ReduceAxis axes = MOKA_TRY(reduced_axes(r));
      Reduce& p = *r.add().mutable_reduce();
      p.set_mode(operation);
      p.set_axis(axes);
      p.set_epsilon(MOKA_TRY(r.number("eps", 1e-6f)));
      return {};
    }
  return r.unsupported(cat("mode ", mode));
}

Status load_constant(LayerReader& r) {
  MOKA_TRY(r.arity(0, 0));
  static constexpr const char* keys[] = {"w", "h", "k", "n"};
  uint64_t size[4];
  for (int axis = 0; axis < 4; ++axis) size[axis] = MOKA_TRY(r.size(keys[axis], 1));
  const uint64_t count = MOKA_TRY(r.product({size[0], size[1], size[2], size[3]}));
  const auto rank = static_cast<int>(MOKA_TRY(r.size("nd_rank", static_cast<uint64_t>(r.nd_rank(r.tops[0])))));
  if (rank > 4) return r.unsupported(cat("nd_rank ", rank));
  if (rank == 0 && size[axis_n] != 1) return r.unsupported(cat("a constant for ", size[axis_n], " images"));
  proto::NeuralNetworkLayer& layer = r.add();
  if (rank > 0) {
    auto& p = *layer.mutable_loadconstantnd();
    for (int i = 0; i < rank; ++i) p.add_shape(size[axis_at(i, rank)]);
    return r.biases(p.mutable_data(), "constant_blob", count);
  }
  auto& p = *layer.mutable_loadconstant();
  for (int axis : {axis_k, axis_h, axis_w}) p.add_shape(size[axis]);
  return r.biases(p.mutable_data(), "constant_blob", count);
}

Status squeeze(LayerReader& r) {
  MOKA_TRY(r.arity(1, 1));
  auto& p = *r.add().mutable_squeeze();
  p.set_squeezeall(MOKA_TRY(r.flag("squeeze_all")));
  const uint64_t n = MOKA_TRY(r.size("size_of_axes", 0));
  if (n > axis_count) return r.malformed(cat(n, " axes"));
  for (uint64_t i = 0; i < n; ++i) p.add_axes(MOKA_TRY(r.integer(cat("axes_", i).c_str(), 0)));
  if (n == 0 && !p.squeezeall()) p.add_axes(MOKA_TRY(r.integer("nd_axis", 0)));
  return {};
}

/// The offsets of the parts are `begin_<i>`, which files leave 0; the shapes give their sizes.
Status split_nd(LayerReader& r) {
  MOKA_TRY(r.arity(1, 1, r.tops.size()));
  const int rank = r.nd_rank(r.bottoms[0]);
  const int dims = rank == 0 ? static_cast<int>(axis_count) : rank;
  const int64_t axis = MOKA_TRY(r.integer("nd_axis", 0));
  if (axis < -dims || axis >= dims) return r.malformed(cat("nd_axis ", axis, " of a blob of rank ", dims));
  auto& p = *r.add().mutable_splitnd();
  p.set_axis(axis);
  p.set_numsplits(r.tops.size());
  const int position = static_cast<int>(axis < 0 ? axis + dims : axis);
  for (const std::string& top : r.tops)
    p.add_splitsizes(static_cast<uint64_t>(r.shape(top).size[axis_at(position, dims)]));
  return {};
}

Status copy(LayerReader& r) {
  MOKA_TRY(r.arity(1, 1));
  r.add().mutable_copy();
  return {};
}

/// The layer is known but not the order of its gates, because no known file comes with its source.
Status rnn_arch(LayerReader& r) {
  return r.unsupported(
      "the order of the gates in compiled recurrent layers is not known; the model it was made from runs");
}

}  // namespace

std::span<const LayerType> shape_layers() {
  static constexpr LayerType list[] = {
      {"flatten", flatten},        {"reshape", reshape},   {"transpose", transpose}, {"concat", concat},
      {"sequence_concat", concat}, {"slice", slice},       {"reduce", reduce},       {"load_constant", load_constant},
      {"squeeze", squeeze},        {"split_nd", split_nd}, {"copy", copy},           {"rnn_arch", rnn_arch},
  };
  return list;
}

}  // namespace moka::format::espresso

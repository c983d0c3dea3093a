// SPDX-License-Identifier: Apache-2.0
#include "compiler/espresso/writer.h"

namespace moka::compiler::espresso {
namespace {

using namespace format::espresso;  // axis numbers

constexpr const char* axis_names[] = {"axis_w", "axis_h", "axis_k", "axis_n", "axis_seq"};

/// The file's axis for dimension `position` of `rank`: the last dimension is w, then h, k, n and seq.
int axis_at(int position, int rank) { return rank - 1 - position; }

/// The axes [sequence, channel, height, width] in the order of a specification.
constexpr int legacy_axes[] = {axis_seq, axis_k, axis_h, axis_w};

Status permute(Network& net, const Fused& fused) {
  const auto& p = fused.layer->permute();
  if (p.axis_size() != 4) return fail(ErrorCode::malformed, p.axis_size(), " axes, expected 4");
  if (p.axis(0) != 0)
    return fail(ErrorCode::unsupported, "a permutation of the sequence, whose length files do not say");
  json out = layer_object(net, *fused.layer, "transpose", fused.top);
  out["axis_n"] = static_cast<int>(axis_n);
  for (int i = 0; i < 4; ++i) {
    if (p.axis(i) > 3) return fail(ErrorCode::malformed, "axis ", p.axis(i));
    out[axis_names[legacy_axes[i]]] = legacy_axes[p.axis(i)];
  }
  net.layers.push_back(std::move(out));
  return {};
}

Status transpose(Network& net, const Fused& fused) {
  const auto& p = fused.layer->transpose();
  const int rank = p.axes_size();
  if (rank > axis_count) return fail(ErrorCode::unsupported, "an array of rank ", rank);
  json out = layer_object(net, *fused.layer, "transpose", fused.top);
  for (int axis = rank; axis < axis_count; ++axis) out[axis_names[axis]] = axis;
  for (int i = 0; i < rank; ++i) {
    if (p.axes(i) >= static_cast<uint64_t>(rank)) return fail(ErrorCode::malformed, "axis ", p.axes(i));
    out[axis_names[axis_at(i, rank)]] = axis_at(static_cast<int>(p.axes(i)), rank);
  }
  net.layers.push_back(std::move(out));
  return {};
}

constexpr const char* target_names[] = {"dst_w", "dst_h", "dst_k", "dst_n", "dst_seq"};

Status reshape(Network& net, const Fused& fused) {
  const auto& p = fused.layer->reshape();
  if (p.targetshape_size() != 4) return fail(ErrorCode::unsupported, p.targetshape_size(), " sizes; 4 are known");
  json out = layer_object(net, *fused.layer, "reshape", fused.top);
  for (int i = 0; i < 4; ++i) out[target_names[legacy_axes[i]]] = p.targetshape(i);
  out["dst_n"] = 0;
  out["mode"] = p.mode() == proto::ReshapeLayerParams::CHANNEL_LAST ? 1 : 0;
  out["version"] = 1;
  net.layers.push_back(std::move(out));
  return {};
}

Status reshape_static(Network& net, const Fused& fused) {
  const auto& p = fused.layer->reshapestatic();
  const int rank = p.targetshape_size();
  if (rank == 0 || rank > axis_count) return fail(ErrorCode::unsupported, "an array of rank ", rank);
  json out = layer_object(net, *fused.layer, "reshape", fused.top);
  for (int axis = 0; axis < axis_count; ++axis)
    out[target_names[axis]] = axis < rank ? p.targetshape(axis_at(axis, rank)) : 1;
  out["dst_nd_rank"] = rank;
  out["dynamic_shape"] = false;
  out["mode"] = 0;
  out["version"] = 1;
  net.layers.push_back(std::move(out));
  return {};
}

Status flatten(Network& net, const Fused& fused) {
  json out = layer_object(net, *fused.layer, "flatten", fused.top);
  out["mode"] = fused.layer->flatten().mode() == proto::FlattenLayerParams::CHANNEL_LAST ? 1 : 0;
  out["nd_axis"] = 0;
  net.layers.push_back(std::move(out));
  return {};
}

Status concat(Network& net, const Fused& fused) {
  const bool sequence = fused.layer->concat().sequenceconcat();
  json out = layer_object(net, *fused.layer, sequence ? "sequence_concat" : "concat", fused.top);
  if (sequence) out["simple_concat"] = 1;
  net.layers.push_back(std::move(out));
  return {};
}

Status slice(Network& net, const Fused& fused) {
  using Slice = proto::SliceLayerParams;
  const auto& p = fused.layer->slice();
  json out = layer_object(net, *fused.layer, "slice", fused.top);
  out["axis"] = static_cast<int>(p.axis() == Slice::CHANNEL_AXIS  ? axis_k
                                 : p.axis() == Slice::HEIGHT_AXIS ? axis_h
                                                                  : axis_w);
  out["start"] = p.startindex();
  out["end"] = p.endindex();
  if (p.stride() > 1) out["stride"] = p.stride();
  net.layers.push_back(std::move(out));
  return {};
}

Status reduce(Network& net, const Fused& fused) {
  using Reduce = proto::ReduceLayerParams;
  const auto& p = fused.layer->reduce();
  json out = layer_object(net, *fused.layer, "reduce", fused.top);
  if (p.mode() != Reduce::SUM && p.mode() != Reduce::AVG)
    return fail(ErrorCode::unsupported, "reduction ", static_cast<int>(p.mode()), "; sums and means are known");
  if (p.axis() != Reduce::C && p.axis() != Reduce::CHW)
    return fail(ErrorCode::unsupported, "a reduction of axes ", static_cast<int>(p.axis()));
  out["mode"] = p.mode() == Reduce::AVG ? 1 : 0;
  if (p.axis() == Reduce::C) out["axis_mode"] = 4;
  out["use_version"] = 1;
  net.layers.push_back(std::move(out));
  return {};
}

Status load_constant(Network& net, const Fused& fused) {
  const auto& p = fused.layer->loadconstant();
  if (p.shape_size() != 3) return fail(ErrorCode::malformed, p.shape_size(), " sizes, expected 3");
  uint64_t count = 1;
  for (uint64_t size : p.shape())
    if (__builtin_mul_overflow(count, size, &count)) return fail(ErrorCode::malformed, "a constant that is too large");
  json out = layer_object(net, *fused.layer, "load_constant", fused.top);
  out["k"] = p.shape(0);
  out["h"] = p.shape(1);
  out["w"] = p.shape(2);
  out["n"] = 1;
  out["constant_blob"] = net.add_blob(bytes_of(MOKA_TRY(numbers(net, p.data(), count))));
  net.layers.push_back(std::move(out));
  return {};
}

}  // namespace

std::span<const LayerKind> shape_kinds() {
  static constexpr LayerKind list[] = {{Layer::kPermute, permute},
                                       {Layer::kTranspose, transpose},
                                       {Layer::kReshape, reshape},
                                       {Layer::kReshapeStatic, reshape_static},
                                       {Layer::kFlatten, flatten},
                                       {Layer::kConcat, concat, INT_MAX},
                                       {Layer::kSlice, slice},
                                       {Layer::kReduce, reduce},
                                       {Layer::kLoadConstant, load_constant}};
  return list;
}

}  // namespace moka::compiler::espresso

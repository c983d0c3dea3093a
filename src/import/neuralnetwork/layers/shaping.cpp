// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "import/neuralnetwork/network.h"

namespace moka::import::nn {

namespace {

/// nchw to nhwc and back.
Result<Value*> channels_last(Layer& l, Value* x) { return l.op("transpose", {{"x", x}, {"perm", Ints{0, 2, 3, 1}}}); }
Result<Value*> channels_first(Layer& l, Value* x) { return l.op("transpose", {{"x", x}, {"perm", Ints{0, 3, 1, 2}}}); }

Status flatten(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  Value* x = MOKA_TRY(l.nchw(0));
  if (l.p.flatten().mode() == proto::FlattenLayerParams::CHANNEL_LAST) x = MOKA_TRY(channels_last(l, x));
  std::vector<Dim> dims = dims_of(x);
  Dim features{product(std::span(dims).subspan(1))};
  Value* y = dims[0].known() && !features.known()
                 ? MOKA_TRY(l.net.reshape(x, std::vector<Dim>{dims[0], Dim{}}, l.p.name()))
             : features.known() ? MOKA_TRY(l.net.reshape(x, std::vector<Dim>{dims[0], features}, l.p.name()))
                                : MOKA_TRY(l.op("flatten2d", {{"x", x}, {"axis", 1}}));
  return l.set(0, y, Form::matrix);
}

Status reshape(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  const auto& p = l.p.reshape();
  int n = p.targetshape_size();
  if (n != 3 && n != 4) return l.malformed(cat("expected a target shape of 3 or 4 dimensions, got ", n));
  Shape target;
  for (int64_t d : p.targetshape()) {
    if (d < -1 || d == 0 || d > (int64_t{1} << 31)) return l.malformed(cat("a target dimension of ", d));
    target.push_back(d);
  }
  Value* x = MOKA_TRY(l.nchw(0));
  std::vector<Dim> lead = MOKA_TRY(l.blob(0))->lead();
  Dim first = dims_of(x)[0];
  if (n == 4 && !lead.empty() && lead[0].size == target[0]) {
    target.erase(0);
    n = 3;
  }
  if (n == 4) {
    if (lead.size() > 1 && !std::all_of(lead.begin() + 1, lead.end(), [](const Dim& d) { return d.size == 1; }))
      return l.unsupported("a new sequence length for more than one batch");
    first = Dim{target[0]};
    target.erase(0);
    if (lead.empty() && first.size != 1)
      return l.malformed(cat("a sequence length of ", first.size, " for an input of rank 3"));
    if (!lead.empty()) lead[0] = first;
  }
  bool last = p.mode() == proto::ReshapeLayerParams::CHANNEL_LAST;
  std::vector<Dim> dims{first};
  for (int i = 0; i < 3; i++) dims.push_back(Dim{target[last ? (i + 1) % 3 : i]});
  if (last) x = MOKA_TRY(channels_last(l, x));
  Value* y = MOKA_TRY(l.net.reshape(x, dims, l.p.name()));
  if (last) y = MOKA_TRY(channels_first(l, y));
  if (n == 4 && !lead.empty() && !lead[0].known()) lead[0] = dims_of(y)[0];
  return l.set_folded(0, y, Form::nchw, std::move(lead));
}

/// Axes are [sequence, channel, height, width]; the batch axis does not move.
Status permute(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  const auto& p = l.p.permute();
  Ints axes{0, 1, 2, 3};
  if (p.axis_size() != 0) {
    bool seen[4] = {};
    if (p.axis_size() != 4) return l.malformed(cat("expected 4 axes, got ", p.axis_size()));
    for (int i = 0; i < 4; i++) {
      uint64_t a = p.axis(i);
      if (a > 3 || seen[a]) return l.malformed("the axes are not a permutation of 0, 1, 2, 3");
      seen[a] = true;
      axes[i] = static_cast<int64_t>(a);
    }
  }
  Blob* b = MOKA_TRY(l.blob(0));
  if (axes[0] == 0)
    return l.set(0, MOKA_TRY(l.op("transpose", {{"x", MOKA_TRY(l.nchw(0))}, {"perm", axes}})), Form::nchw);
  if (b->rank() != 5) return l.malformed(cat("expected an input of rank 5 to move its sequence, got rank ", b->rank()));
  Ints perm;
  for (int i = 0; i < 4; i++) {
    perm.push_back(axes[i] == 0 ? 0 : axes[i] + 1);
    if (i == 0) perm.push_back(1);
  }
  return l.set(0, MOKA_TRY(l.op("transpose", {{"x", MOKA_TRY(l.in(0))}, {"perm", perm}})));
}

Status transpose(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  const auto& axes = l.p.transpose().axes();
  if (axes.size() > ir::kMaxRank) return l.unsupported(cat("axes: ", axes.size(), " entries"));
  Value* x = MOKA_TRY(l.with_rank(0, axes.size()));
  int rank = x->type.rank();
  // An image has leading dimensions of 1, which a layer written for an array [C, H, W] does not count.
  Ints extra;
  while (rank - static_cast<int>(extra.size()) > axes.size() && x->type.shape()[static_cast<int>(extra.size())] == 1)
    extra.push_back(static_cast<int64_t>(extra.size()));
  if (axes.size() != rank - static_cast<int>(extra.size()))
    return l.malformed(cat("expected ", rank, " axes, got ", axes.size()));
  if (extra.size() > 0) {
    x = MOKA_TRY(l.op("squeeze", {{"x", x}, {"axes", extra}}));
    rank = x->type.rank();
  }
  Ints perm;
  for (uint64_t a : axes) {
    if (a >= static_cast<uint64_t>(rank)) return l.malformed(cat("axis ", a, " of an input of rank ", rank));
    perm.push_back(static_cast<int64_t>(a));
  }
  return l.set(0, MOKA_TRY(l.op("transpose", {{"x", x}, {"perm", perm}})));
}

Result<Ints> small_ints(Layer& l, const google::protobuf::RepeatedField<int64_t>& f, std::string_view what) {
  if (f.size() > ir::kMaxRank) return l.unsupported(cat(what, ": ", f.size(), " entries"));
  Ints out;
  for (int64_t v : f) {
    if (v < -(int64_t{1} << 31) || v > (int64_t{1} << 31) - 1) return l.malformed(cat(what, ": ", v));
    out.push_back(v);
  }
  return out;
}

Status reshape_static(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  Ints shape = MOKA_TRY(small_ints(l, l.p.reshapestatic().targetshape(), "target shape"));
  return l.set(0, MOKA_TRY(l.op("reshape", {{"x", MOKA_TRY(l.any(0))}, {"shape", shape}})));
}

Status reshape_dynamic(Layer& l) {
  MOKA_TRY(l.arity(2, 2));
  Value* x = MOKA_TRY(l.any(0));
  Value* shape = MOKA_TRY(l.int32_vector(1));
  return l.set(0, MOKA_TRY(l.op("reshape", {{"x", x}, {"shape", shape}})));
}

Status reshape_like(Layer& l) {
  MOKA_TRY(l.arity(2, 2));
  Value* x = MOKA_TRY(l.any(0));
  Value* like = MOKA_TRY(l.any(1));
  if (like->type.is_ranked()) return l.set(0, MOKA_TRY(l.net.reshape(x, dims_of(like), l.p.name())));
  Value* shape = MOKA_TRY(l.op("shape", {{"x", like}}));
  return l.set(0, MOKA_TRY(l.op("reshape", {{"x", x}, {"shape", shape}})));
}

Status rank_preserving_reshape(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  Ints shape = MOKA_TRY(small_ints(l, l.p.rankpreservingreshape().targetshape(), "target shape"));
  Value* x = MOKA_TRY(l.in(0));
  if (shape.size() != x->type.rank())
    return l.malformed(cat("expected ", x->type.rank(), " target dimensions, got ", shape.size()));
  std::vector<Dim> dims = dims_of(x);
  int free = 0;
  for (int i = 0; i < shape.size(); i++) {
    if (shape[i] != 0) dims[static_cast<size_t>(i)] = Dim{shape[i]};
    if (shape[i] < 0) free++;
  }
  if (free > 1) return l.malformed("more than one target dimension of -1");
  if (free == 1 && std::any_of(dims.begin(), dims.end(), [](const Dim& d) { return d.size == 0; }))
    return l.malformed("a target dimension of -1 beside one of size 0, which leaves it undetermined");
  bool dynamic = std::any_of(dims.begin(), dims.end(), [](const Dim& d) { return d.from != nullptr; });
  if (free == 1 && dynamic) {
    for (int i = 0; i < shape.size(); i++)
      if (shape[i] < 0) {
        Value* any = MOKA_TRY(l.constant(Tensor::i32({-1}), "any"));
        std::vector<Value*> parts;
        std::span<const Dim> all(dims);
        if (i > 0) parts.push_back(MOKA_TRY(l.net.shape_value(all.first(static_cast<size_t>(i)), l.p.name())));
        parts.push_back(any);
        if (i + 1 < shape.size())
          parts.push_back(MOKA_TRY(l.net.shape_value(all.subspan(static_cast<size_t>(i) + 1), l.p.name())));
        Value* target = parts.size() == 1 ? any : MOKA_TRY(l.op("concat", {{"values", parts}, {"axis", 0}}));
        return l.set(0, MOKA_TRY(l.op("reshape", {{"x", x}, {"shape", target}})));
      }
  }
  return l.set(0, MOKA_TRY(l.net.reshape(x, dims, l.p.name())));
}

Status expand_dims(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  Ints axes = MOKA_TRY(small_ints(l, l.p.expanddims().axes(), "axes"));
  if (MOKA_TRY(l.any_blob(0))->scalar && axes.size() > 0) {
    Ints others;
    for (int i = 0; i + 1 < axes.size(); i++) others.push_back(i);
    Value* x = MOKA_TRY(l.in(0));
    return l.set(0, others.empty() ? x : MOKA_TRY(l.op("expand_dims", {{"x", x}, {"axes", others}})));
  }
  return l.set(0, MOKA_TRY(l.op("expand_dims", {{"x", MOKA_TRY(l.any(0))}, {"axes", axes}})));
}

/// A tensor of a neural network keeps at least one dimension.
Status squeeze(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  const auto& p = l.p.squeeze();
  Value* x = MOKA_TRY(l.any(0));
  if (!x->type.is_ranked()) {
    std::vector<NamedArg> args{{"x", x}};
    if (!p.squeezeall() && p.axes_size() > 0) args.emplace_back("axes", MOKA_TRY(small_ints(l, p.axes(), "axes")));
    return l.set(0, MOKA_TRY(l.op("squeeze", std::move(args))));
  }
  int rank = x->type.rank();
  bool drop[ir::kMaxRank] = {};
  if (p.squeezeall() || p.axes_size() == 0) {
    int unknown = 0, larger = 0;
    for (int i = 0; i < rank; i++) {
      drop[i] = x->type.shape()[i] == 1;
      unknown += x->type.shape()[i] < 0;
      larger += x->type.shape()[i] >= 0 && !drop[i];
    }
    if (unknown > 0 && larger > 0) return l.set(0, MOKA_TRY(l.op("squeeze", {{"x", x}})));
    if (unknown > 1)
      return l.unsupported(cat("squeezing all axes of an input with ", unknown, " dimensions that are not known"));
  } else {
    for (int64_t a : p.axes()) drop[MOKA_TRY(ir::normalize_axis(a, rank))] = true;
  }
  Ints axes;
  for (int i = 0; i < rank; i++)
    if (drop[i]) axes.push_back(i);
  if (axes.size() == rank) {
    Ints fewer;
    for (int i = 0; i + 1 < rank; i++) fewer.push_back(axes[i]);
    axes = fewer;
  }
  if (axes.empty()) return l.set(0, x);
  return l.set(0, MOKA_TRY(l.net.squeeze(x, axes, l.p.name())));
}

Status flatten_to_2d(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  Value* x = MOKA_TRY(l.any(0));
  int64_t axis = l.p.flattento2d().axis();
  int rank = x->type.is_ranked() ? x->type.rank() : ir::kMaxRank;
  if (axis < -rank || axis > rank) return l.malformed(cat("axis ", axis, " of an input of rank ", rank));
  return l.set(0, MOKA_TRY(l.op("flatten2d", {{"x", x}, {"axis", static_cast<int>(axis)}})));
}

Status get_shape(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  return l.set(0, MOKA_TRY(l.op("shape", {{"x", MOKA_TRY(l.any(0))}})));
}

Status broadcast_to(Layer& l, std::span<const Dim> dims, Value* shape) {
  Value* x = MOKA_TRY(l.any(0));
  std::vector<Dim> from = dims_of(x);
  if (shape == nullptr && x->type.is_ranked() && all_known(dims) && all_known(from) && dims.size() >= from.size() &&
      dims.size() <= ir::kMaxRank) {
    Ints wide, reps;
    size_t extra = dims.size() - from.size();
    for (size_t i = 0; i < dims.size(); i++) {
      int64_t have = i < extra ? 1 : from[i - extra].size;
      if (have != dims[i].size && have != 1)
        return l.malformed(cat("an input of type ", x->type, " does not broadcast to size ", dims[i].size));
      wide.push_back(have);
      reps.push_back(have == dims[i].size ? 1 : dims[i].size);
    }
    if (extra > 0) x = MOKA_TRY(l.op("reshape", {{"x", x}, {"shape", wide}}));
    return l.set(0, MOKA_TRY(l.op("tile", {{"x", x}, {"reps", reps}})));
  }
  if (shape == nullptr) shape = MOKA_TRY(l.net.shape_value(dims, l.p.name()));
  Value* ones = MOKA_TRY(l.op("fill", {{"shape", shape}, {"value", 1.0f}}));
  return l.set(0, MOKA_TRY(l.op("mul", {{"x", x}, {"y", ones}})));
}

Status broadcast_to_like(Layer& l) {
  MOKA_TRY(l.arity(2, 2));
  Value* like = MOKA_TRY(l.any(1));
  if (like->type.is_ranked()) return broadcast_to(l, dims_of(like), nullptr);
  return broadcast_to(l, {}, MOKA_TRY(l.op("shape", {{"x", like}})));
}

Status broadcast_to_static(Layer& l) {
  MOKA_TRY(l.arity(1, 1));
  std::vector<Dim> dims;
  for (uint64_t d : l.p.broadcasttostatic().targetshape()) {
    if (d > (uint64_t{1} << 31)) return l.malformed(cat("a target dimension of ", d));
    dims.push_back(Dim{static_cast<int64_t>(d)});
  }
  if (dims.size() > ir::kMaxRank) return l.unsupported(cat("a target shape of rank ", dims.size()));
  return broadcast_to(l, dims, nullptr);
}

Status broadcast_to_dynamic(Layer& l) {
  MOKA_TRY(l.arity(2, 2));
  return broadcast_to(l, {}, MOKA_TRY(l.int32_vector(1)));
}

}  // namespace

std::span<const LayerImport> layers_shaping() {
  using L = proto::NeuralNetworkLayer;
  static const LayerImport list[] = {
      {L::kFlatten, "flatten", flatten},
      {L::kReshape, "reshape", reshape},
      {L::kPermute, "permute", permute},
      {L::kTranspose, "transpose", transpose},
      {L::kReshapeStatic, "reshapeStatic", reshape_static},
      {L::kReshapeDynamic, "reshapeDynamic", reshape_dynamic},
      {L::kReshapeLike, "reshapeLike", reshape_like},
      {L::kRankPreservingReshape, "rankPreservingReshape", rank_preserving_reshape},
      {L::kExpandDims, "expandDims", expand_dims},
      {L::kSqueeze, "squeeze", squeeze},
      {L::kFlattenTo2D, "flattenTo2D", flatten_to_2d},
      {L::kGetShape, "getShape", get_shape},
      {L::kBroadcastToLike, "broadcastToLike", broadcast_to_like},
      {L::kBroadcastToStatic, "broadcastToStatic", broadcast_to_static},
      {L::kBroadcastToDynamic, "broadcastToDynamic", broadcast_to_dynamic},
  };
  return list;
}

}  // namespace moka::import::nn

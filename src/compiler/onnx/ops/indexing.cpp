// SPDX-License-Identifier: Apache-2.0
#include "ops/common/indexing.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "compiler/onnx/call.h"
#include "ops/common/slicing.h"

namespace moka::compiler::onnx {
namespace {

/// Indices for ONNX: int32 stays, other types become int64.
Name indices(Call& c) {
  const ir::Value* v = c.op.input("indices");
  return v->type.dtype() == DType::int32 && !c.graph.has_int64(v) ? c.x("indices") : c.int64("indices");
}

void gather(Call& c) {
  const int rank = c.rank("x"), axis = c.axis("axis", rank);
  const int batch = c.take(ops::batch_dims_of(c.known()));
  if (c.refused()) return;
  if (batch == 0) {
    // Sizes stay int64.
    if (c.out().dtype() == DType::int32 && c.graph.has_int64(c.op.input("x")))
      return c.set_int64(c.node("Gather", {c.int64("x"), indices(c)}, {attr("axis", axis)}));
    return c.set(c.node("Gather", {c.x(), indices(c)}, {attr("axis", axis)}));
  }
  if (axis < batch) return c.refuse("its axis is one of its batch dimensions");
  // The axis moves behind the batch dimensions, and the gathered dimensions back to where it was.
  std::vector<int64_t> perm;
  for (int i = 0; i < batch; i++) perm.push_back(i);
  perm.push_back(axis);
  for (int i = batch; i < rank; i++)
    if (i != axis) perm.push_back(i);
  const int extra = c.rank("indices") - batch, between = axis - batch;
  const Name index = c.unsqueeze(c.int64("indices"), {-1});
  const Name y = c.node("GatherND", {c.transpose(c.x(), perm), index}, {attr("batch_dims", batch)});
  std::vector<int64_t> back;
  for (int i = 0; i < batch; i++) back.push_back(i);
  for (int i = 0; i < between; i++) back.push_back(batch + extra + i);
  for (int i = 0; i < extra; i++) back.push_back(batch + i);
  for (int i = batch + extra + between; i < rank - 1 + extra; i++) back.push_back(i);
  c.set(c.transpose(y, back));
}

void gather_along_axis(Call& c) {
  const int axis = c.axis("axis", c.rank("x"));
  c.set(c.node("GatherElements", {c.x(), c.int64("indices")}, {attr("axis", axis)}));
}

void gather_nd(Call& c) {
  const int batch = c.take(ops::batch_dims_of(c.known()));
  std::vector<ox::Attribute> attributes;
  if (batch != 0) attributes.push_back(attr("batch_dims", batch));
  c.set(c.node("GatherND", {c.x(), c.int64("indices")}, std::move(attributes)));
}

/// ONNX's reduction for a scatter mode, and the updates to which it applies.
struct Reduction {
  const char* name = nullptr;  ///< nullptr: updates replace elements
  Name updates;
};

Reduction reduction(Call& c, const Name& updates) {
  constexpr int with_extremes = 18;
  const auto rule = c.take(ops::combine_of(c.known()), ops::Combine::update);
  const DType t = c.out().dtype();
  switch (rule) {
    case ops::Combine::update: return {nullptr, updates};
    case ops::Combine::add: return {"add", updates};
    case ops::Combine::mul: return {"mul", updates};
    case ops::Combine::sub: return {"add", c.node("Neg", {updates})};
    case ops::Combine::div:
      if (!ir::is_float(t)) c.refuse("ONNX's scatter does not divide integers");
      return {"mul", c.node("Reciprocal", {updates})};
    case ops::Combine::max: c.needs(with_extremes); return {"max", updates};
    case ops::Combine::min: c.needs(with_extremes); return {"min", updates};
  }
  return {};
}

/// Adds a scatter node. onnxruntime's reductions do not support float16.
Name scattered(Call& c, const char* node, Name data, const Name& indices, const Reduction& r,
               std::vector<ox::Attribute> attributes) {
  const DType t = c.out().dtype();
  const bool wide = t == DType::fp16 && r.name != nullptr;
  Name updates = r.updates;
  if (wide) data = c.cast(data, DType::fp32), updates = c.cast(updates, DType::fp32);
  const Name y = c.node(node, {data, indices, updates}, std::move(attributes));
  return wide ? c.cast(y, t) : y;
}

std::vector<ox::Attribute> with_reduction(const Reduction& r) {
  if (r.name == nullptr) return {};
  return {attr("reduction", r.name)};
}

/// Slices along an axis: the axis moves to the front.
void scatter(Call& c) {
  const int rank = c.rank("data"), axis = c.axis("axis", rank), extra = c.rank("indices");
  if (c.refused()) return;
  std::vector<int64_t> perm{axis}, back(static_cast<size_t>(rank)), updates;
  for (int i = 0; i < rank; i++)
    if (i != axis) perm.push_back(i);
  for (size_t i = 0; i < perm.size(); i++) back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  for (int i = 0; i < extra; i++) updates.push_back(axis + i);
  for (int i = 0; i < rank - 1 + extra; i++)
    if (i < axis || i >= axis + extra) updates.push_back(i);
  const Reduction r = reduction(c, c.transpose(c.x("updates"), updates));
  const Name index = c.unsqueeze(c.int64("indices"), {-1});
  const Name y = scattered(c, "ScatterND", c.transpose(c.x("data"), perm), index, r, with_reduction(r));
  c.set(c.transpose(y, back));
}

void scatter_along_axis(Call& c) {
  const Reduction r = reduction(c, c.x("updates"));
  std::vector<ox::Attribute> attributes = with_reduction(r);
  attributes.push_back(attr("axis", c.axis("axis", c.rank("data"))));
  c.set(scattered(c, "ScatterElements", c.x("data"), c.int64("indices"), r, std::move(attributes)));
}

void scatter_nd(Call& c) {
  const Reduction r = reduction(c, c.x("updates"));
  c.set(scattered(c, "ScatterND", c.x("data"), c.int64("indices"), r, with_reduction(r)));
}

/// slice_update whose bounds depend on values. Slices a tensor with the positions of all elements of x to find those
/// that the update replaces.
void slice_update_computed(Call& c) {
  const auto rank = static_cast<size_t>(c.rank("x"));
  for (const char* param : {"begin_mask", "end_mask", "squeeze_mask"})
    if (c.has(param))
      for (int64_t m : c.ints(param))
        if (m != 0 && param != std::string_view("end_mask") && param != std::string_view("begin_mask"))
          return c.refuse("values decide its bounds, and it drops axes");
  const bool open_first = c.has("begin_mask"), open_last = c.has("end_mask");
  std::vector<int64_t> axes(rank), stride = c.has("stride") ? c.ints("stride") : std::vector<int64_t>(rank, 1);
  std::iota(axes.begin(), axes.end(), 0);
  for (int64_t s : stride)
    if (s < 1) return c.refuse("values decide its bounds, and its stride is negative");
  const auto bound = [&](const char* param, const char* mask, bool has_mask, int64_t open) -> Name {
    if (!has_mask) return c.int64(param);
    std::vector<int64_t> flags = c.ints(mask);
    ir::Tensor t = c.take(ir::Tensor::zeros(DType::boolean, {static_cast<int64_t>(rank)}));
    if (c.refused()) return {};
    for (size_t i = 0; i < rank && i < flags.size(); i++) t.mut<bool>()[i] = flags[i] != 0;
    return c.node("Where", {c.graph.tensor(t), c.i64(std::vector<int64_t>(rank, open)), c.int64(param)});
  };
  const Name begin = bound("begin", "begin_mask", open_first, 0);
  const Name end = bound("end", "end_mask", open_last, std::numeric_limits<int64_t>::max());
  const Name shape = c.node("Shape", {c.x()});
  const Name count = c.node("ReduceProd", {shape}, {attr("keepdims", 0)});
  const Name all = c.node("Range", {c.graph.int64_scalar(0), count, c.graph.int64_scalar(1)});
  const Name grid = c.node("Reshape", {all, shape});
  const Name at = c.reshape(c.node("Slice", {grid, begin, end, c.i64(axes), c.i64(stride)}), {-1, 1});
  const Name flat = c.reshape(c.x(), {-1}), update = c.reshape(c.x("update"), {-1});
  c.set(c.node("Reshape", {c.node("ScatterND", {flat, at, update}), shape}));
}

/// Replaces a slice of x by ScatterND at the positions of the slice.
void slice_update(Call& c) {
  const auto rank = static_cast<size_t>(c.rank("x"));
  const auto slice = c.is_constant("begin") && c.is_constant("end") && c.type("x").shape().is_concrete()
                         ? ops::resolve_slice(c.known(), c.type("x").shape())
                         : Result<ops::Slice>(fail(ErrorCode::unsupported, "its bounds or sizes are not known"));
  if (c.refused()) return;
  const ir::Shape& s = c.type("x").shape();
  if (slice.ok()) {
    // A whole slice of the leading axes needs only their positions.
    size_t lead = rank;
    while (lead > 0) {
      const ops::Slice::Axis& a = slice->axes[lead - 1];
      if (a.squeezed || a.start != 0 || a.step != 1 || a.size != s[static_cast<int>(lead - 1)]) break;
      lead--;
    }
    if (lead == 0) return c.set(c.x("update"));
    int64_t count = 1;
    std::vector<int64_t> dims, update_dims;
    for (size_t i = 0; i < lead; i++) {
      count *= slice->axes[i].size;
      dims.push_back(slice->axes[i].size);
    }
    constexpr int64_t most = 1 << 22;
    if (count * static_cast<int64_t>(lead) > most) return c.refuse(cat("its slice has ", count, " positions"));
    update_dims = dims;
    for (size_t i = lead; i < rank; i++) update_dims.push_back(s[static_cast<int>(i)]);
    std::vector<int64_t> at;
    for (int64_t n = 0; n < count; n++) {
      std::vector<int64_t> position(lead);
      for (int64_t rest = n, i = static_cast<int64_t>(lead) - 1; i >= 0; rest /= dims[static_cast<size_t>(i)], i--)
        position[static_cast<size_t>(i)] =
            slice->axes[i].start + slice->axes[i].step * (rest % dims[static_cast<size_t>(i)]);
      at.insert(at.end(), position.begin(), position.end());
    }
    dims.push_back(static_cast<int64_t>(lead));
    ox::Tensor index;
    index.type = DataType::int64;
    index.dims = dims;
    index.raw = Bytes::copy_of(std::as_bytes(std::span(at)));
    const bool squeezed = slice->shape().rank() != static_cast<int>(rank);
    const Name update = squeezed ? c.reshape(c.x("update"), update_dims) : c.x("update");
    return c.set(c.node("ScatterND", {c.x(), c.graph.initializer(std::move(index)), update}));
  }
  slice_update_computed(c);
}

}  // namespace

std::span<const OpWriter> writers_indexing();
std::span<const OpWriter> writers_indexing() {
  static constexpr OpWriter list[] = {
      {"gather", gather},
      {"gather_along_axis", gather_along_axis},
      {"gather_nd", gather_nd},
      {"scatter", scatter},
      {"scatter_along_axis", scatter_along_axis},
      {"scatter_nd", scatter_nd},
      {"slice_update", slice_update},
  };
  return list;
}

}  // namespace moka::compiler::onnx

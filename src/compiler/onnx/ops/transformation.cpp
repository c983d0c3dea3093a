// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <numeric>

#include "compiler/onnx/call.h"

namespace moka::compiler::onnx {
namespace {

constexpr int64_t kFar = std::numeric_limits<int64_t>::max();
constexpr int64_t kBefore = std::numeric_limits<int64_t>::min();

bool is_ranked_and_known(const ir::Type& t) { return t.is_ranked() && t.shape().is_concrete(); }

void transpose(Call& c) {
  std::vector<int64_t> perm = c.ints("perm");
  for (int64_t& p : perm) p = c.take(ir::normalize_axis(p, static_cast<int>(perm.size())));
  c.set(c.transpose(c.x(), perm));
}

void reshape(Call& c) {
  if (is_ranked_and_known(c.out())) return c.set(c.reshape(c.x(), c.out().shape().to_vector(), true));
  if (!c.is_constant("shape")) return c.set(c.node("Reshape", {c.x(), c.int64("shape")}));
  std::vector<int64_t> dims = c.ints("shape");
  const bool right = c.op.version().since >= ir::Opset::ios17;
  const int rank = c.rank("x"), n = static_cast<int>(dims.size());
  if (c.refused()) return;
  bool hole = std::find(dims.begin(), dims.end(), -1) != dims.end();
  for (int i = 0; i < n; i++) {
    if (dims[static_cast<size_t>(i)] != 0) continue;
    const int at = right ? rank - (n - i) : i;
    if (at == i) continue;
    int64_t size = at >= 0 ? c.type("x").shape()[at] : 1;
    if (size < 0 && hole) return c.refuse("several of its sizes are not known");
    hole |= size < 0;
    dims[static_cast<size_t>(i)] = size < 0 ? -1 : size;
  }
  c.set(c.reshape(c.x(), dims));
}

/// Concatenates ranges of the dimensions of other tensors to the shape.
void reshape_like(Call& c) {
  if (is_ranked_and_known(c.out())) return c.set(c.reshape(c.x(), c.out().shape().to_vector(), true));
  const auto refs = c.op.inputs("ref_tensors"), begins = c.op.inputs("begins"), ends = c.op.inputs("ends");
  const auto masks = c.op.inputs("end_masks");
  std::vector<Name> parts;
  for (size_t i = 0; i < refs.size() && i < begins.size() && i < ends.size(); i++) {
    const bool open = i < masks.size() && masks[i]->constant() != nullptr &&
                      ir::load_i64(masks[i]->constant()->tensor.view(), 0) != 0;
    const Name shape = c.node("Shape", {c.x(refs[i])});
    const auto at = [&](const ir::Value* v) { return c.node("Reshape", {c.graph.int64(v), c.i64({1})}); };
    const Name end = open ? c.i64({kFar}) : at(ends[i]);
    parts.push_back(c.node("Slice", {shape, at(begins[i]), end}));
  }
  c.set(c.node("Reshape", {c.x(), parts.size() == 1 ? parts[0] : c.node("Concat", parts, {attr("axis", 0)})}));
}

void expand_dims(Call& c) {
  std::vector<int64_t> axes = c.ints("axes");
  c.set(c.unsqueeze(c.x(), std::move(axes)));
}

void squeeze(Call& c) {
  if (!c.type("x").is_ranked()) {
    return c.set(c.has("axes") ? c.squeeze(c.x(), c.ints("axes")) : c.node("Squeeze", {c.x()}));
  }
  const int rank = c.rank("x");
  std::vector<int64_t> chosen(static_cast<size_t>(rank)), axes;
  std::iota(chosen.begin(), chosen.end(), 0);
  if (c.has("axes")) chosen = c.ints("axes");
  for (int64_t a : chosen) {
    const int at = c.take(ir::normalize_axis(a, rank));
    const int64_t size = c.refused() ? 1 : c.type("x").shape()[at];
    if (size == 1 || (size < 0 && c.has("axes"))) axes.push_back(at);
    if (size < 0 && !c.has("axes")) return c.refuse("it squeezes axes whose sizes are not known");
  }
  c.set(axes.empty() ? c.x() : c.squeeze(c.x(), axes));
}

void flatten2d(Call& c) { c.set(c.node("Flatten", {c.x()}, {attr("axis", c.integer("axis"))})); }

void reverse(Call& c) {
  std::vector<int64_t> axes(static_cast<size_t>(c.rank("x")));
  std::iota(axes.begin(), axes.end(), 0);
  if (c.has("axes")) axes = c.ints("axes");
  if (axes.empty()) return c.set(c.x());
  const size_t n = axes.size();
  const Name begin = c.i64(std::vector<int64_t>(n, -1)), end = c.i64(std::vector<int64_t>(n, kBefore));
  c.set(c.node("Slice", {c.x(), begin, end, c.i64(axes), c.i64(std::vector<int64_t>(n, -1))}));
}

void reverse_sequence(Call& c) {
  const int rank = c.rank("x"), time = c.axis("seq_axis", rank), batch = c.axis("batch_axis", rank);
  const Name lengths = c.int64("lengths");
  if (c.refused()) return;
  std::vector<int64_t> perm{time, batch}, back(static_cast<size_t>(rank));
  for (int i = 0; i < rank; i++)
    if (i != time && i != batch) perm.push_back(i);
  if (time + batch == 1) {
    return c.set(c.node("ReverseSequence", {c.x(), lengths}, {attr("time_axis", time), attr("batch_axis", batch)}));
  }
  for (size_t i = 0; i < perm.size(); i++) back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  const Name y =
      c.node("ReverseSequence", {c.transpose(c.x(), perm), lengths}, {attr("time_axis", 0), attr("batch_axis", 1)});
  c.set(c.transpose(y, back));
}

std::vector<int64_t> mask_of(Call& c, const char* param, size_t rank) {
  if (!c.has(param)) return std::vector<int64_t>(rank, 0);
  return c.ints(param);
}

/// Computes the bounds of a slice that depend on values, by NumPy's rules, which ONNX's Slice also has.
void slice_computed(Call& c, const std::vector<int64_t>& stride, const std::vector<int64_t>& begin_mask,
                    const std::vector<int64_t>& end_mask, const std::vector<int64_t>& squeezed) {
  const size_t rank = stride.size();
  std::vector<int64_t> first(rank), last(rank), axes(rank), gone;
  bool open_first = false, open_last = false, single = false;
  ir::Tensor masks[3];
  for (ir::Tensor& m : masks) {
    m = c.take(ir::Tensor::zeros(DType::boolean, {static_cast<int64_t>(rank)}));
    if (c.refused()) return;
  }
  for (size_t i = 0; i < rank; i++) {
    axes[i] = static_cast<int64_t>(i);
    first[i] = stride[i] > 0 ? 0 : kFar;
    last[i] = stride[i] > 0 ? kFar : kBefore;
    const bool one = squeezed[i] != 0;
    masks[0].mut<bool>()[i] = begin_mask[i] != 0 && !one;
    masks[1].mut<bool>()[i] = end_mask[i] != 0 && !one;
    masks[2].mut<bool>()[i] = one;
    open_first |= begin_mask[i] != 0 && !one;
    open_last |= end_mask[i] != 0 && !one;
    single |= one;
    if (one) gone.push_back(static_cast<int64_t>(i));
  }
  Name begin = c.int64("begin"), end = c.int64("end");
  if (single) {
    // The element at -1 ends with the axis.
    const Name next = c.node("Add", {begin, c.i64({1})});
    const Name is_last = c.node("Equal", {next, c.i64({0})});
    end = c.node("Where", {c.graph.tensor(masks[2]), c.node("Where", {is_last, c.i64({kFar}), next}), end});
  }
  if (open_first) begin = c.node("Where", {c.graph.tensor(masks[0]), c.i64(first), begin});
  if (open_last) end = c.node("Where", {c.graph.tensor(masks[1]), c.i64(last), end});
  const bool unit = std::all_of(stride.begin(), stride.end(), [](int64_t s) { return s == 1; });
  const Name y = c.node("Slice", {c.x(), begin, end, c.i64(axes), unit ? Name() : c.i64(stride)});
  c.set(gone.empty() ? y : c.squeeze(y, gone));
}

void slice_by_index(Call& c) {
  const auto rank = static_cast<size_t>(c.rank("x"));
  if (c.refused()) return;
  std::vector<int64_t> stride = c.has("stride") ? c.ints("stride") : std::vector<int64_t>(rank, 1);
  const auto begin_mask = mask_of(c, "begin_mask", rank), end_mask = mask_of(c, "end_mask", rank);
  const auto squeezed = mask_of(c, "squeeze_mask", rank);
  for (size_t i = 0; i < rank; i++)
    if (squeezed[i] != 0) stride[i] = 1;
  if (!c.is_constant("begin") || !c.is_constant("end"))
    return slice_computed(c, stride, begin_mask, end_mask, squeezed);
  const std::vector<int64_t> begin = c.ints("begin"), end = c.ints("end");
  std::vector<int64_t> first, last, axes, steps, gone;
  for (size_t i = 0; i < rank; i++) {
    const int64_t s = stride[i];
    int64_t from = begin_mask[i] != 0 ? (s > 0 ? 0 : kFar) : begin[i];
    int64_t to = end_mask[i] != 0 ? (s > 0 ? kFar : kBefore) : end[i];
    if (squeezed[i] != 0) {
      from = begin_mask[i] != 0 ? 0 : begin[i], to = from == -1 ? kFar : from + 1;
      gone.push_back(static_cast<int64_t>(i));
    } else if (s == 1 && from == 0 && (to == kFar || to == c.type("x").shape()[static_cast<int>(i)])) {
      continue;
    }
    first.push_back(from), last.push_back(to), axes.push_back(static_cast<int64_t>(i)), steps.push_back(s);
  }
  if (axes.empty()) return c.set(c.x());
  if (axes.size() == 1 && gone.size() == 1) {
    return c.set(c.node("Gather", {c.x(), c.graph.int64_scalar(first[0])}, {attr("axis", axes[0])}));
  }
  const bool unit = std::all_of(steps.begin(), steps.end(), [](int64_t s) { return s == 1; });
  const Name y = c.node("Slice", {c.x(), c.i64(first), c.i64(last), c.i64(axes), unit ? Name() : c.i64(steps)});
  c.set(gone.empty() ? y : c.squeeze(y, gone));
}

void slice_by_size(Call& c) {
  const auto rank = static_cast<size_t>(c.rank("x"));
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  if (c.is_constant("begin") && c.is_constant("size")) {
    const std::vector<int64_t> begin = c.ints("begin"), size = c.ints("size");
    std::vector<int64_t> end(rank);
    for (size_t i = 0; i < rank; i++) {
      end[i] = size[i] == -1 ? kFar : begin[i] + size[i];
      if (begin[i] < 0 && end[i] >= 0) end[i] = kFar;
    }
    return c.set(c.node("Slice", {c.x(), c.i64(begin), c.i64(end), c.i64(axes)}));
  }
  const Name begin = c.int64("begin"), size = c.int64("size");
  Name end = c.node("Add", {begin, size});
  bool open = !c.is_constant("size");
  if (!open)
    for (int64_t s : c.ints("size")) open |= s == -1;
  if (open) end = c.node("Where", {c.node("Equal", {size, c.i64({-1})}), c.i64({kFar}), end});
  c.set(c.node("Slice", {c.x(), begin, end, c.i64(axes)}));
}

void crop(Call& c) {
  const auto height = c.ints("crop_height"), width = c.ints("crop_width");
  if (c.refused() || height.size() != 2 || width.size() != 2) return c.refuse("its crops are not pairs");
  const Name begin = c.i64({height[0], width[0]});
  const Name end = c.i64({height[1] == 0 ? kFar : -height[1], width[1] == 0 ? kFar : -width[1]});
  c.set(c.node("Slice", {c.x(), begin, end, c.i64({-2, -1})}));
}

}  // namespace

std::span<const OpWriter> writers_transformation();
std::span<const OpWriter> writers_transformation() {
  static constexpr OpWriter list[] = {
      {"transpose", transpose},
      {"reshape", reshape},
      {"reshape_like", reshape_like},
      {"expand_dims", expand_dims},
      {"squeeze", squeeze},
      {"flatten2d", flatten2d},
      {"reverse", reverse},
      {"reverse_sequence", reverse_sequence},
      {"slice_by_index", slice_by_index},
      {"slice_by_size", slice_by_size},
      {"crop", crop},
  };
  return list;
}

}  // namespace moka::compiler::onnx

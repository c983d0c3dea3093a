// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "compiler/onnx/call.h"
#include "ops/common/sampling.h"

namespace moka::compiler::onnx {
namespace {

std::vector<Name> values(Call& c) {
  std::vector<Name> out;
  for (const ir::Value* v : c.op.inputs("values")) out.push_back(c.x(v));
  return out;
}

int result_axis(Call& c) {
  if (!c.out().is_ranked()) return c.refuse("the rank of its result is not known"), 0;
  return c.axis("axis", c.out().rank());
}

void concat(Call& c) {
  const auto of_scalars = [](const ir::Value* v) { return v->type.is_ranked() && v->type.rank() == 0; };
  const auto inputs = c.op.inputs("values");
  if (std::any_of(inputs.begin(), inputs.end(), of_scalars)) {
    std::vector<Name> parts;
    for (const ir::Value* v : inputs) parts.push_back(c.reshape(c.x(v), {-1}));
    return c.set(c.node("Concat", std::move(parts), {attr("axis", 0)}));
  }
  const bool interleave = c.flag("interleave");
  const int axis = c.out().is_ranked() || interleave ? result_axis(c) : static_cast<int>(c.integer("axis"));
  if (!interleave) {
    bool all_int64 = true;
    for (const ir::Value* v : c.op.inputs("values")) all_int64 &= c.graph.has_int64(v);
    if (all_int64) {
      std::vector<Name> inputs;
      for (const ir::Value* v : c.op.inputs("values")) inputs.push_back(c.graph.int64(v));
      return c.set_int64(c.node("Concat", inputs, {attr("axis", axis)}));
    }
    return c.set(c.node("Concat", values(c), {attr("axis", axis)}));
  }
  std::vector<Name> parts;
  for (const Name& v : values(c)) parts.push_back(c.unsqueeze(v, {axis + 1}));
  const Name stacked = c.node("Concat", std::move(parts), {attr("axis", axis + 1)});
  std::vector<int64_t> dims;
  int unknown = 0;
  for (int i = 0; i < c.out().rank(); i++) {
    const int64_t d = c.out().shape()[i];
    unknown += d < 0 && i >= axis;
    dims.push_back(d >= 0 ? d : i < axis ? 0 : -1);
  }
  if (unknown > 1) return c.refuse("several of its sizes are not known");
  c.set(c.reshape(stacked, dims));
}

void stack(Call& c) {
  const int axis = result_axis(c);
  std::vector<Name> parts;
  for (const Name& v : values(c)) parts.push_back(c.unsqueeze(v, {axis}));
  c.set(parts.size() == 1 ? parts[0] : c.node("Concat", std::move(parts), {attr("axis", axis)}));
}

void split(Call& c) {
  constexpr int with_count = 18;
  const int axis = c.axis("axis", c.rank("x"));
  const size_t n = c.op.output_count();
  std::vector<ox::Attribute> attributes{attr("axis", axis)};
  Name sizes;
  if (c.has("split_sizes"))
    sizes = c.i64(c.ints("split_sizes"));
  else if (c.graph.opset() >= with_count)
    attributes.push_back(attr("num_outputs", static_cast<int64_t>(n)));
  const std::vector<Name> y = c.nodes("Split", {c.x(), sizes}, std::move(attributes), n);
  for (size_t i = 0; i < n; i++) c.set(y[i], i);
}

void pad(Call& c) {
  const std::string mode = c.text("mode");
  const DType t = c.dtype("x");
  const char* node_mode = mode == "constant" ? "constant" : mode == "reflect" ? "reflect" : "edge";
  if (!c.is_constant("pad")) {
    // Pairs of the last axes, begin and end alternating.
    const int64_t n = c.type("pad").is_ranked() ? c.type("pad").shape()[0] : -1;
    const int rank = c.rank("x");
    if (n < 0 || c.refused()) return c.refuse("the number of axes that it pads is not known");
    const Name pairs = c.node("Reshape", {c.int64("pad"), c.i64({n / 2, 2})});
    Name pads = c.transpose(pairs, {1, 0});
    if (const int64_t before = rank - n / 2; before > 0) pads = c.node("Pad", {pads, c.i64({0, before, 0, 0})});
    pads = c.node("Reshape", {pads, c.i64({-1})});
    const Name value = mode == "constant" ? c.scalar(t, c.number("constant_val")) : Name();
    return c.set(c.node("Pad", {c.x(), pads, value}, {attr("mode", node_mode)}));
  }
  const std::vector<int64_t> pairs = c.ints("pad");
  const auto rank = static_cast<size_t>(c.rank("x"));
  if (c.refused() || pairs.size() > 2 * rank) return;
  std::vector<int64_t> pads(2 * rank);
  const size_t before = rank - pairs.size() / 2;
  bool any = false, again = false;
  for (size_t i = 0; 2 * i + 1 < pairs.size(); i++) {
    pads[before + i] = pairs[2 * i], pads[rank + before + i] = pairs[2 * i + 1];
    any |= pairs[2 * i] != 0 || pairs[2 * i + 1] != 0;
    const int64_t size = c.type("x").shape()[static_cast<int>(before + i)];
    again |= mode == "reflect" && size >= 0 && std::max(pairs[2 * i], pairs[2 * i + 1]) >= size;
  }
  if (again) {
    // The mirror image of the mirror image: elements by their positions.
    Name x = c.x();
    for (size_t i = before; i < rank; i++) {
      if (pads[i] == 0 && pads[rank + i] == 0) continue;
      const int64_t size = c.type("x").shape()[static_cast<int>(i)];
      if (size < 1) return c.refuse("it reflects more elements than there are");
      std::vector<int64_t> at;
      for (int64_t p = -pads[i]; p < size + pads[rank + i]; p++) at.push_back(ops::mirrored(p, size));
      x = c.node("Gather", {x, c.i64(at)}, {attr("axis", static_cast<int64_t>(i))});
    }
    return c.set(x);
  }
  if (!any) return c.set(c.x());
  if (mode == "constant") {
    const double value = c.number("constant_val");
    return c.set(c.node("Pad", {c.x(), c.i64(pads), value != 0 ? c.scalar(t, value) : Name()}));
  }
  c.set(c.node("Pad", {c.x(), c.i64(pads)}, {attr("mode", node_mode)}));
}

void tile(Call& c) { c.set(c.node("Tile", {c.x(), c.int64("reps")})); }

void shape(Call& c) {
  const Name y = c.node("Shape", {c.x()});
  if (c.out().dtype() == DType::int32) return c.set_int64(y);
  c.set(c.cast(y, c.out().dtype()));
}

ox::Tensor one_element(DType t, double v) {
  ir::Tensor value = ir::is_integer(t) || t == DType::boolean ? ir::Tensor::scalar_i64(t, static_cast<int64_t>(v))
                                                              : ir::Tensor::scalar(t, v);
  ox::Tensor out;
  out.type = data_type(t);
  out.dims = {1};
  out.raw = Bytes::copy_of({static_cast<const std::byte*>(value.data()), value.bytes()});
  return out;
}

void fill(Call& c) {
  const DType t = c.out().dtype();
  c.set(c.node("ConstantOfShape", {c.int64("shape")}, {attr("value", one_element(t, c.number("value")))}));
}

void fill_like(Call& c) {
  const DType t = c.out().dtype();
  const Name shape = c.node("Shape", {c.x("ref_tensor")});
  c.set(c.node("ConstantOfShape", {shape}, {attr("value", one_element(t, c.number("value")))}));
}

void non_zero(Call& c) { c.set_int64(c.transpose(c.node("NonZero", {c.x()}), {1, 0})); }

void range_1d(Call& c) {
  const DType t = c.out().dtype();
  const DType in = t == DType::fp16 ? DType::fp32 : t;
  const auto scalar = [&](const char* param) {
    Name v = c.x_as(param, in);
    return c.rank(param) == 0 ? v : c.node("Reshape", {v, c.i64({})});
  };
  const Name start = scalar("start"), end = scalar("end"), step = scalar("step");
  const Name y = c.node("Range", {start, end, step});
  c.set(in == t ? y : c.cast(y, t));
}

void one_hot(Call& c) {
  const int rank = c.rank("indices") + 1;
  const int axis = c.axis("axis", rank);
  const DType t = c.out().dtype();
  if (c.refused()) return;
  std::vector<int64_t> dims(static_cast<size_t>(rank), 1);
  dims[static_cast<size_t>(axis)] = -1;
  Name steps;
  if (c.is_constant("one_hot_vector_size")) {
    std::vector<int64_t> all(static_cast<size_t>(std::max<int64_t>(0, c.integer("one_hot_vector_size"))));
    for (size_t i = 0; i < all.size(); i++) all[i] = static_cast<int64_t>(i);
    dims[static_cast<size_t>(axis)] = static_cast<int64_t>(all.size());
    constexpr size_t few = 4096;
    if (all.size() > few)
      return c.set(c.node(
          "OneHot",
          {c.int64("indices"), c.i64({static_cast<int64_t>(all.size())}),
           c.node("Concat",
                  {c.node("Reshape", {c.x("off_value"), c.i64({1})}), c.node("Reshape", {c.x("on_value"), c.i64({1})})},
                  {attr("axis", 0)})},
          {attr("axis", axis)}));
    ox::Tensor r;
    r.type = DataType::int64;
    r.dims = dims;
    r.raw = Bytes::copy_of(std::as_bytes(std::span(all)));
    steps = c.graph.initializer(std::move(r));
  } else {
    const Name size = c.node("Reshape", {c.int64("one_hot_vector_size"), c.i64({})});
    steps = c.reshape(c.node("Range", {c.graph.int64_scalar(0), size, c.graph.int64_scalar(1)}), dims);
  }
  const Name hit = c.node("Equal", {c.unsqueeze(c.int64("indices"), {axis}), steps});
  const double on = c.number("on_value"), off = c.number("off_value");
  if (on == 1 && off == 0) return c.set(t == DType::boolean ? hit : c.cast(hit, t));
  if (t == DType::boolean && on == 0 && off == 1) return c.set(c.node("Not", {hit}));
  c.set(c.node("Where", {hit, c.scalar(t, on), c.scalar(t, off)}));
}

void band_part(Call& c) {
  const int64_t lower = c.integer("lower"), upper = c.integer("upper");
  Name y = c.x();
  if (upper >= 0) y = c.node("Trilu", {y, c.graph.int64_scalar(upper)}, {attr("upper", 0)});
  if (lower >= 0) y = c.node("Trilu", {y, c.graph.int64_scalar(-lower)}, {attr("upper", 1)});
  c.set(y);
}

}  // namespace

std::span<const OpWriter> writers_tensor();
std::span<const OpWriter> writers_tensor() {
  static constexpr OpWriter list[] = {
      {"concat", concat},     {"stack", stack},       {"split", split},     {"pad", pad},
      {"tile", tile},         {"shape", shape},       {"fill", fill},       {"fill_like", fill_like},
      {"non_zero", non_zero}, {"range_1d", range_1d}, {"one_hot", one_hot}, {"band_part", band_part},
  };
  return list;
}

}  // namespace moka::compiler::onnx

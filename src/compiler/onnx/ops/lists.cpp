// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "compiler/onnx/call.h"

namespace moka::compiler::onnx {
namespace {

/// A list is a tensor [length, element...], whose elements are zeros until they are written. It grows when an element
/// behind its end is written. Sizes of elements that are not known are 1 until one is written.
ir::Type type_of(Call& c, const char* param) {
  const auto it = c.graph.represented.find(c.op.input(param));
  if (it != c.graph.represented.end()) return it->second;
  c.refuse("its list has elements of unknown shape");
  return ir::Type::tensor(DType::fp32, {1});
}

void set_list(Call& c, const Name& y, const ir::Type& type) {
  c.graph.represented[c.op.output()] = type;
  c.set(y);
}

void make_list(Call& c) {
  const ir::Type& element = c.out().element();
  ir::Shape shape{ir::kAnyDim};
  std::vector<Name> sizes{
      c.node("Reshape", {c.op.input("init_length") != nullptr ? c.int64("init_length") : c.i64({1}), c.i64({1})})};
  for (int64_t d : element.shape().dims()) {
    shape.push_back(d < 0 ? ir::kAnyDim : d);
    sizes.push_back(c.i64({d < 0 ? 1 : d}));
  }
  ox::Tensor zero;
  const ir::Tensor value = c.take(ir::Tensor::zeros(element.dtype(), {1}));
  if (c.refused()) return;
  zero.type = data_type(element.dtype());
  zero.dims = {1};
  zero.raw = Bytes::copy_of({static_cast<const std::byte*>(value.data()), value.bytes()});
  const Name dims = sizes.size() == 1 ? sizes[0] : c.node("Concat", std::move(sizes), {attr("axis", 0)});
  set_list(c, c.node("ConstantOfShape", {dims}, {attr("value", std::move(zero))}),
           ir::Type::tensor(element.dtype(), shape));
}

Name length(Call& c, const Name& list) { return c.node("Shape", {list}, {attr("start", 0), attr("end", 1)}); }

/// The list with at least `n` elements; `n` is a vector of one number.
Name with_length(Call& c, const Name& list, const Name& n, int rank) {
  const Name more = c.node("Max", {c.node("Sub", {n, length(c, list)}), c.i64({0})});
  const auto zeros = [&](int count) { return c.i64(std::vector<int64_t>(static_cast<size_t>(count), 0)); };
  std::vector<Name> pads{zeros(rank), more};
  if (rank > 1) pads.push_back(zeros(rank - 1));
  return c.node("Pad", {list, c.node("Concat", std::move(pads), {attr("axis", 0)})});
}

/// The list with elements of the shape of `element`.
Name like(Call& c, const Name& list, const ir::Type& type, const Name& element) {
  bool known = true;
  for (int i = 1; i < type.rank(); i++) known &= type.shape()[i] >= 0;
  if (known) return list;
  return c.node("Expand", {list, c.node("Concat", {c.i64({1}), c.node("Shape", {element})}, {attr("axis", 0)})});
}

void list_write(Call& c) {
  const ir::Type list = type_of(c, "ls");
  if (c.refused()) return;
  const Name at = c.node("Reshape", {c.int64("index"), c.i64({1})});
  const Name shaped = like(c, c.x("ls"), list, c.x("value"));
  const Name grown = with_length(c, shaped, c.node("Add", {at, c.i64({1})}), list.rank());
  set_list(c, c.node("ScatterND", {grown, c.reshape(at, {1, 1}), c.unsqueeze(c.x("value"), {0})}), list);
}

void list_scatter(Call& c) {
  const ir::Type list = type_of(c, "ls");
  if (c.refused()) return;
  const Name at = c.int64("indices");
  const Name last =
      c.node("ReduceMax", {c.node("Concat", {at, c.i64({-1})}, {attr("axis", 0)})}, {attr("keepdims", 1)});
  Name shaped = c.x("ls");
  for (int i = 1; i < list.rank(); i++) {
    if (list.shape()[i] >= 0) continue;
    const Name element = c.node("Shape", {c.x("value")}, {attr("start", 1)});
    shaped = c.node("Expand", {shaped, c.node("Concat", {c.i64({1}), element}, {attr("axis", 0)})});
    break;
  }
  const Name grown = with_length(c, shaped, c.node("Add", {last, c.i64({1})}), list.rank());
  set_list(c, c.node("ScatterND", {grown, c.unsqueeze(at, {-1}), c.x("value")}), list);
}

void list_read(Call& c) {
  type_of(c, "ls");
  Name at = c.int64("index");
  if (c.rank("index") != 0) at = c.reshape(at, {});
  c.set(c.node("Gather", {c.x("ls"), at}, {attr("axis", 0)}));
}

void list_gather(Call& c) {
  type_of(c, "ls");
  c.set(c.node("Gather", {c.x("ls"), c.int64("indices")}, {attr("axis", 0)}));
}

void list_length(Call& c) {
  type_of(c, "ls");
  c.set_int64(c.squeeze(length(c, c.x("ls")), {0}));
}

}  // namespace

std::span<const OpWriter> writers_lists();
std::span<const OpWriter> writers_lists() {
  static constexpr OpWriter list[] = {
      {"make_list", make_list}, {"list_write", list_write},   {"list_scatter", list_scatter},
      {"list_read", list_read}, {"list_gather", list_gather}, {"list_length", list_length},
  };
  return list;
}

}  // namespace moka::compiler::onnx

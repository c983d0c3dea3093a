// SPDX-License-Identifier: Apache-2.0
#include "compiler/onnx/call.h"

namespace moka::compiler::onnx {
namespace {

/// Draws are those of the runtime, also with a seed: only their distribution is the model's.
std::vector<ox::Attribute> seeded(Call& c, std::vector<ox::Attribute> attributes) {
  if (const int64_t seed = c.integer("seed"); seed >= 0) attributes.push_back(attr("seed", static_cast<double>(seed)));
  return attributes;
}

/// A draw of the shape that the operation asks for, of float32.
Name drawn(Call& c, const std::string& type, std::vector<ox::Attribute> attributes) {
  attributes.push_back(attr("dtype", static_cast<int64_t>(DataType::float32)));
  if (c.is_constant("shape")) {
    attributes.push_back(attr("shape", c.ints("shape")));
    return c.node(type.c_str(), {}, seeded(c, std::move(attributes)));
  }
  const Name like = c.node("ConstantOfShape", {c.int64("shape")});
  return c.node((type + "Like").c_str(), {like}, seeded(c, std::move(attributes)));
}

void set_as(Call& c, const Name& y, DType from) { c.set(c.out().dtype() == from ? y : c.cast(y, c.out().dtype())); }

void normal(Call& c) {
  if (c.number("stddev") == 0 && !c.refused()) {
    const Name shape = c.is_constant("shape") ? c.i64(c.ints("shape")) : c.int64("shape");
    const Name mean = c.scalar(c.out().dtype(), c.number("mean"));
    return c.set(c.node("Expand", {mean, shape}));
  }
  set_as(c, drawn(c, "RandomNormal", {attr("mean", c.number("mean")), attr("scale", c.number("stddev"))}), DType::fp32);
}

void uniform(Call& c) {
  set_as(c, drawn(c, "RandomUniform", {attr("low", c.number("low")), attr("high", c.number("high"))}), DType::fp32);
}

void bernoulli(Call& c) {
  const Name y = drawn(c, "RandomUniform", {attr("low", 0.0), attr("high", 1.0)});
  c.set(c.cast(c.node("Less", {y, c.scalar(DType::fp32, c.number("prob"))}), c.out().dtype()));
}

void categorical(Call& c) {
  const int rank = c.rank("x");
  if (rank != 1 && rank != 2) return c.refuse("rows of classes are expected");
  Name x = c.x_as("x", DType::fp32);
  if (c.text("mode") == "probs") x = c.node("Log", {x});
  if (rank == 1) x = c.unsqueeze(x, {0});
  Name y =
      c.node("Multinomial", {x},
             seeded(c, {attr("sample_size", c.integer("size")), attr("dtype", static_cast<int64_t>(DataType::int32))}));
  if (rank == 1) y = c.squeeze(y, {0});
  set_as(c, y, DType::int32);
}

}  // namespace

std::span<const OpWriter> writers_random();
std::span<const OpWriter> writers_random() {
  static constexpr OpWriter list[] = {
      {"random_normal", normal},
      {"random_uniform", uniform},
      {"random_bernoulli", bernoulli},
      {"random_categorical", categorical},
  };
  return list;
}

}  // namespace moka::compiler::onnx

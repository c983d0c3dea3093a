// SPDX-License-Identifier: Apache-2.0
#include "devices/gpu/common/common.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/half.h"
#include "ir/program.h"

namespace moka::devices::gpu {

namespace {

struct Entry {
  std::string_view op;
  uint32_t number;
  std::string_view a, b;  // names of parameters
};

constexpr Entry kEntries[] = {{"abs", F_ABS, "", ""},
                              {"acos", F_ACOS, "", ""},
                              {"asin", F_ASIN, "", ""},
                              {"atan", F_ATAN, "", ""},
                              {"atanh", F_ATANH, "", ""},
                              {"ceil", F_CEIL, "", ""},
                              {"clamped_relu", F_CLAMPED_RELU, "alpha", "beta"},
                              {"clip", F_CLIP, "alpha", "beta"},
                              {"cos", F_COS, "", ""},
                              {"cosh", F_COSH, "", ""},
                              {"elu", F_ELU, "alpha", ""},
                              {"erf", F_ERF, "", ""},
                              {"exp", F_EXP, "", ""},
                              {"exp2", F_EXP2, "", ""},
                              {"floor", F_FLOOR, "", ""},
                              {"gelu", F_GELU, "", ""},
                              {"inverse", F_INVERSE, "epsilon", ""},
                              {"leaky_relu", F_LEAKY_RELU, "alpha", ""},
                              {"linear_activation", F_LINEAR, "alpha", "beta"},
                              {"log", F_LOG, "epsilon", ""},
                              {"moka_hard_swish", F_HARD_SWISH, "", ""},
                              {"relu", F_RELU, "", ""},
                              {"relu6", F_RELU6, "", ""},
                              {"round", F_ROUND, "", ""},
                              {"rsqrt", F_RSQRT, "epsilon", ""},
                              {"scaled_tanh", F_SCALED_TANH, "alpha", "beta"},
                              {"sigmoid", F_SIGMOID, "", ""},
                              {"sigmoid_hard", F_SIGMOID_HARD, "alpha", "beta"},
                              {"sign", F_SIGN, "", ""},
                              {"silu", F_SILU, "", ""},
                              {"sin", F_SIN, "", ""},
                              {"sinh", F_SINH, "", ""},
                              {"softplus", F_SOFTPLUS, "", ""},
                              {"softsign", F_SOFTSIGN, "", ""},
                              {"sqrt", F_SQRT, "", ""},
                              {"square", F_SQUARE, "", ""},
                              {"tan", F_TAN, "", ""},
                              {"tanh", F_TANH, "", ""},
                              {"threshold", F_THRESHOLD, "alpha", ""},
                              {"thresholded_relu", F_THRESHOLDED_RELU, "alpha", ""}};

const Entry* find(std::string_view op) {
  for (const Entry& e : kEntries)
    if (e.op == op) return &e;
  return nullptr;
}

/// With the parameters that the host computes for the shader.
Function completed(Function f) {
  // The logarithm of 0 + epsilon; devices may read an epsilon below the normal numbers as 0.
  if (f.number == F_LOG) f.b = std::log(f.a);
  return f;
}

}  // namespace

std::string_view name_of(Element e) {
  constexpr std::string_view names[] = {"f32", "f16", "i32", "u8"};
  return names[static_cast<size_t>(e)];
}

std::optional<Element> element_of(const Features& card, ir::DType t, Layout layout) {
  if (t == ir::DType::fp32) return layout.half ? Element::f16 : Element::f32;
  if (t == ir::DType::fp16 && card.half_storage) return Element::f16;
  if (t == ir::DType::int32) return Element::i32;
  if (t == ir::DType::boolean && card.byte_storage) return Element::u8;
  return std::nullopt;
}

std::string_view name_of_index(const Features& card, ir::DType t) {
  if (t == ir::DType::int32) return "i32";
  if (!card.half_storage) return {};
  return t == ir::DType::uint16 ? "u16" : t == ir::DType::int16 ? "i16" : "";
}

Element float_element(const MatchCall& m, size_t output) {
  if (m.outputs[output].dtype() == ir::DType::fp16) return Element::f16;
  return m.may_be_half(output) && features_of(m).half_storage ? Element::f16 : Element::f32;
}

namespace {

std::string refusal_of_type(const Features& card, const ir::Type& t, bool floats) {
  if (!t.is_tensor()) return "not a tensor";
  if (!element_of(card, t.dtype()) || (floats && !ir::is_float(t.dtype()))) return cat("element type ", t.dtype());
  const int64_t n = t.shape().count();
  if (n == 0) return "an empty tensor";
  if (static_cast<uint64_t>(n) * 4 > card.max_range)
    return cat("a tensor of ", n * 4, " bytes, more than a kernel can bind");
  if (n > INT32_MAX) return "a tensor of more than 2^31 elements";
  return {};
}

std::string refusal(const MatchCall& m, std::initializer_list<std::string_view> params, bool floats) {
  for (std::string_view p : params)
    for (const ir::Arg& a : m.call.args(p))
      if (std::string why = refusal_of_type(features_of(m), *a.type, floats); !why.empty()) return why;
  for (const ir::Type& t : m.outputs)
    if (std::string why = refusal_of_type(features_of(m), t, floats); !why.empty()) return why;
  return {};
}

}  // namespace

std::string refusal_of(const MatchCall& m, std::initializer_list<std::string_view> params) {
  return refusal(m, params, false);
}

std::string refusal_of_floats(const MatchCall& m, std::initializer_list<std::string_view> params) {
  if (std::string why = refusal(m, params, true); !why.empty()) return why;
  for (std::string_view p : params)
    if (m.call.has(p) && m.call.dtype(p) != m.outputs[0].dtype()) return "float16 and float32 mixed";
  return {};
}

KernelChoice choice_of(const MatchCall& m, std::string_view kernel, std::initializer_list<std::string_view> params,
                       Element floats) {
  KernelChoice c;
  c.kernel = device_of(m).kernel_name(kernel);
  const size_t n = m.call.all_args().size();
  c.in.resize(n);
  c.in_prepare_only.assign(n, true);
  const bool half = floats == Element::f16;
  for (std::string_view p : params) {
    const int first = m.call.arg_index(p);
    for (size_t i = 0; i < m.call.args(p).size(); i++) {
      const size_t at = static_cast<size_t>(first) + i;
      c.in_prepare_only[at] = false;
      if (half && m.call.all_args()[at].type->dtype() == ir::DType::fp32) c.in[at] = Layout{}.as_half();
    }
  }
  // `prepare` sees constants only.
  for (size_t i = 0; i < n; i++)
    if (!m.constant_args[i]) c.in_prepare_only[i] = false;
  for (const ir::Type& t : m.outputs)
    c.out.push_back(half && t.is_tensor() && t.dtype() == ir::DType::fp32 ? Layout{}.as_half() : Layout{});
  return c;
}

void set_cost(KernelChoice& c, const MatchCall& m, double multiply_adds) {
  double bytes = 0;
  auto count = [&](const ir::Type& t, Layout l) {
    auto n = t.is_tensor() ? kernel::storage_bytes(t.dtype(), t.shape(), l) : Result<size_t>(size_t{0});
    if (n.ok()) bytes += static_cast<double>(*n);
  };
  for (size_t i = 0; i < c.in.size(); i++)
    if (!c.in_prepare_only[i]) count(*m.call.all_args()[i].type, c.in[i]);
  for (size_t i = 0; i < m.outputs.size(); i++) count(m.outputs[i], c.out[i]);
  // Careful rates of what the driver says it is: software, a small integrated GPU or a small card. They hold until
  // `moka rates` measures others.
  struct Rates {
    double bytes, multiply_adds;
  };
  const Rates rates = features_of(m).is_processor ? Rates{2e9, 2e9}
                      : features_of(m).is_large   ? Rates{1e11, 1e12}
                                                  : Rates{4e10, 4e11};
  c.cost = 4e-6 + bytes / rates.bytes + multiply_adds / rates.multiply_adds;
}

std::optional<Function> function_of(const ir::OpCall& call) {
  const Entry* e = find(call.version().def->name);
  if (e == nullptr) return std::nullopt;
  Function f{e->number};
  auto read = [&](std::string_view param, float& to) {
    if (param.empty()) return true;
    auto v = call.number(param);
    if (v.ok()) to = static_cast<float>(*v);
    // A default may be a number that float16 does not have.
    if (v.ok() && call.dtype("x") == ir::DType::fp16) to = static_cast<float>(half(*v));
    return v.ok() && !std::isnan(to);
  };
  if (!read(e->a, f.a) || !read(e->b, f.b)) return std::nullopt;
  if (f.number == F_GELU) {
    auto mode = call.text("mode");
    if (!mode.ok()) return std::nullopt;
    if (*mode == "TANH_APPROXIMATION") f.number = F_GELU_TANH;
    if (*mode == "SIGMOID_APPROXIMATION") f.number = F_GELU_SIGMOID;
  }
  return completed(f);
}

std::optional<Function> function_of(const ir::Epilogue& e) {
  if (e.op == "gelu_tanh") return Function{F_GELU_TANH};
  const Entry* entry = find(e.op);
  if (entry == nullptr) return std::nullopt;
  return completed({entry->number, e.alpha, e.beta});
}

std::vector<std::string_view> function_operations() {
  std::vector<std::string_view> all;
  for (const Entry& e : kEntries) all.push_back(e.op);
  return all;
}

std::vector<uint32_t> After::constants(std::initializer_list<uint32_t> first) const {
  std::vector<uint32_t> all(first);
  for (const Function& f : functions) all.push_back(f.number);
  return all;
}

After after_of(std::span<const ir::Epilogue> epilogues) {
  After after;
  for (const ir::Epilogue& e : epilogues) {
    const auto f = function_of(e);
    if (!f || after.count == after.functions.size()) break;
    after.functions[after.count++] = *f;
  }
  return after;
}

After limits_of(std::span<const ir::Epilogue> epilogues) {
  After after = after_of(epilogues);
  Function& first = after.functions[0];
  if (first.number == F_RELU) first = {F_LIMITS, 0, std::numeric_limits<float>::infinity()};
  if (first.number == F_RELU6) first = {F_LIMITS, 0, 6};
  if (first.number == F_CLIP && first.a <= first.b) first.number = F_LIMITS;
  if (first.number == F_HARD_SWISH) first = {F_LIMITS, 1, 0};
  return after;
}

uint32_t has_of(bool bias, bool addend, const After& after, bool norm) {
  return (bias ? HAS_BIAS : 0) | (addend ? HAS_ADDEND : 0) | (after.count > 0 ? HAS_FUNCTIONS : 0) |
         (norm ? HAS_NORM : 0);
}

std::string shader_name(std::string_view stem, Element e) { return cat(stem, "_", name_of(e)); }

std::string_view tile_name_of(const Features& card, Element e) {
  return e == Element::f16 && card.half ? "h16" : name_of(e);
}

std::string tile_shader_name(const Features& card, std::string_view stem, Element e, Element weights) {
  if (e != weights) return cat(shader_name(stem, e), "_", name_of(weights));
  return cat(stem, "_", tile_name_of(card, e));
}

Use scratch_of(const RecordArgs& args, int64_t floats) {
  return {args.scratch.buffer, args.scratch.offset, static_cast<size_t>(floats) * 4, 4, true};
}

std::shared_ptr<const Uploaded> uploaded_before(KernelChoice& c, int arg, std::string key, int64_t count, Element e,
                                                std::function<Status(const ir::TensorView&, float*)> fill) {
  auto held = std::make_shared<Uploaded>();
  c.in_prepare_only[static_cast<size_t>(arg)] = true;
  key = cat("gpu ", key, " ", name_of(e));
  c.prepare = [=, before = std::move(c.prepare)](PrepareContext& context) -> Status {
    if (before) MOKA_TRY(before(context));
    const auto n = static_cast<size_t>(count);
    // Whole words, as shaders may read past an odd end.
    const size_t bytes = (n * size_of(e) + 3) / 4 * 4;
    held->buffer = MOKA_TRY(context.upload(arg, key, bytes, [&](const ir::TensorView& value, std::byte* to) -> Status {
      if (e == Element::f32) return fill(value, reinterpret_cast<float*>(to));
      std::vector<float> wide(n);
      MOKA_TRY(fill(value, wide.data()));
      float_to_half(wide.data(), reinterpret_cast<uint16_t*>(to), n);
      return {};
    }));
    return {};
  };
  return held;
}

Element weights_element(const MatchCall& m, int arg, Element e) {
  if (e == Element::f16 || !features_of(m).half_storage) return e;
  const auto stored = m.stored(arg);
  if (!stored) return e;
  const bool half = stored->is_half || (stored->elements.dtype() == ir::DType::fp16 && stored->table.empty_handle() &&
                                        stored->scale.empty_handle());
  return half ? Element::f16 : e;
}

uint32_t u32(int64_t v) { return static_cast<uint32_t>(v); }

Groups groups_of(const std::array<int64_t, 3>& n) { return {u32(n[0]), u32(n[1]), u32(n[2])}; }

std::string lanes_name(const Features& card, std::string_view stem) { return cat(stem, card.lanes ? "_lanes" : ""); }

}  // namespace moka::devices::gpu

// SPDX-License-Identifier: Apache-2.0
#include "devices/cpu/common/activations.h"

#include <cmath>
#include <limits>

namespace moka::devices::cpu {

using vector::Unary;

namespace {

struct Entry {
  std::string_view op;
  Unary f;
  std::string_view a, b;  ///< the operation's parameters with these values, if it has them
};

constexpr Entry kEntries[] = {
#define MOKA_EPILOGUE(name, exact, limits, vector, ...) {#name, Unary::vector, "alpha", "beta"},
#include "kernel/epilogues.inc"
#undef MOKA_EPILOGUE
    // These functions cannot be epilogues.
    {"acos", Unary::acos, "", ""},
    {"asin", Unary::asin, "", ""},
    {"atan", Unary::atan, "", ""},
    {"ceil", Unary::ceil, "", ""},
    {"cos", Unary::cos, "", ""},
    {"erf", Unary::erf, "", ""},
    {"exp2", Unary::exp2, "", ""},
    {"floor", Unary::floor, "", ""},
    {"inverse", Unary::inverse, "epsilon", ""},
    {"log", Unary::log, "epsilon", ""},
    {"moka_fake_quantize", Unary::fake_quantize_int8, "scale", "zero_point"},
    {"round", Unary::round, "", ""},
    {"rsqrt", Unary::rsqrt, "epsilon", ""},
    {"scaled_tanh", Unary::scaled_tanh, "alpha", "beta"},
    {"sign", Unary::sign, "", ""},
    {"sin", Unary::sin, "", ""},
    {"softsign", Unary::softsign, "", ""},
    {"tan", Unary::tan, "", ""},
    {"threshold", Unary::threshold, "alpha", ""},
    {"thresholded_relu", Unary::thresholded_relu, "alpha", ""},
};

const Entry* find(std::string_view op) {
  for (const Entry& e : kEntries)
    if (e.op == op) return &e;
  return nullptr;
}

}  // namespace

std::optional<Activation> activation_of(const ir::OpCall& call) {
  const Entry* e = find(call.version().def->name);
  if (e == nullptr) return std::nullopt;
  Activation act{e->f};
  auto read = [&](std::string_view param, float& to) {
    if (call.version().param_index(param) < 0) return true;
    auto v = call.number(param);
    if (v.ok()) to = static_cast<float>(*v);
    return v.ok() && !std::isnan(to);
  };
  if (!read(e->a, act.a) || !read(e->b, act.b)) return std::nullopt;
  if (e->f == Unary::gelu) {
    auto mode = call.text("mode");
    if (!mode.ok()) return std::nullopt;
    if (*mode == "TANH_APPROXIMATION") act.f = Unary::gelu_tanh;
    if (*mode == "SIGMOID_APPROXIMATION") act.f = Unary::gelu_sigmoid;
  }
  if (e->f == Unary::fake_quantize_int8) {
    auto dtype = call.text("dtype");
    if (!dtype.ok()) return std::nullopt;
    if (*dtype == "uint8") act.f = Unary::fake_quantize_uint8;
  }
  return act;
}

std::vector<std::string_view> activation_operations() {
  std::vector<std::string_view> all;
  for (const Entry& e : kEntries) all.push_back(e.op);
  return all;
}

std::vector<Activation> activations_of(std::span<const ir::Epilogue> epilogues) {
  std::vector<Activation> all;
  for (const ir::Epilogue& e : epilogues)
    if (const Entry* entry = find(e.op)) all.push_back({entry->f, e.alpha, e.beta});
  return all;
}

std::optional<Limits> take_limits(std::vector<Activation>& all) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr std::optional<Limits> kNoLimits;
  if (all.empty()) return std::nullopt;
  const auto [f, a, b] = all[0];
  std::optional<Limits> limits;
  switch (f) {
#define MOKA_EPILOGUE(name, exact, limit, vector, ...) \
  case Unary::vector:                                  \
    limits = limit;                                    \
    break;
#include "kernel/epilogues.inc"
#undef MOKA_EPILOGUE
    default: break;
  }
  if (limits) all.erase(all.begin());
  return limits;
}

void finish_blocked(const ir::Shape& shape, const float* addend, std::span<const Activation> after, float* y,
                    int64_t begin, int64_t end) {
  float* to = y + begin;
  if (addend != nullptr) vector::loops().binary(vector::Binary::add, to, 1, addend + begin, 1, to, end - begin);
  apply_all(after, to, end - begin);
  clear_padding(shape, blocked(), y, begin, end);
}

FusedSum::FusedSum(const MatchCall& m)
    : in(static_cast<size_t>(m.call.arg_index("x"))),
      bias(m.call.arg_index("bias")),
      addend(m.call.arg_index("addend")),
      after(activations_of(m.epilogue)) {
  if (addend < 0) limits = take_limits(after);
}

std::array<float, 16> bias_of_group(const float* bias, int64_t group, int64_t channels) {
  std::array<float, 16> values{};
  const int64_t block = channel_block();
  if (bias != nullptr) std::copy_n(bias + group * block, std::min(block, channels - group * block), values.begin());
  return values;
}

}  // namespace moka::devices::cpu

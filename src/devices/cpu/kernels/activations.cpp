#include "devices/cpu/kernels/activations.h"

#include <limits>

namespace moka::devices::cpu {

using vector::Unary;

namespace {

struct Entry {
  std::string_view op;
  Unary f;
  std::string_view a, b;  // names of parameters
};

constexpr Entry kEntries[] = {
    {"abs", Unary::abs, "", ""},
    {"ceil", Unary::ceil, "", ""},
    {"clamped_relu", Unary::clamped_relu, "alpha", "beta"},
    {"clip", Unary::clip, "alpha", "beta"},
    {"elu", Unary::elu, "alpha", ""},
    {"erf", Unary::erf, "", ""},
    {"exp", Unary::exp, "", ""},
    {"exp2", Unary::exp2, "", ""},
    {"floor", Unary::floor, "", ""},
    {"gelu", Unary::gelu, "", ""},
    {"inverse", Unary::inverse, "epsilon", ""},
    {"leaky_relu", Unary::leaky_relu, "alpha", ""},
    {"linear_activation", Unary::linear, "alpha", "beta"},
    {"log", Unary::log, "epsilon", ""},
    {"moka_hard_swish", Unary::hard_swish, "", ""},
    {"moka_round_to_codes", Unary::int8_codes, "scale", "zero_point"},
    {"relu", Unary::relu, "", ""},
    {"relu6", Unary::relu6, "", ""},
    {"round", Unary::round, "", ""},
    {"rsqrt", Unary::rsqrt, "epsilon", ""},
    {"scaled_tanh", Unary::scaled_tanh, "alpha", "beta"},
    {"sigmoid", Unary::sigmoid, "", ""},
    {"sigmoid_hard", Unary::sigmoid_hard, "alpha", "beta"},
    {"sign", Unary::sign, "", ""},
    {"silu", Unary::silu, "", ""},
    {"softplus", Unary::softplus, "", ""},
    {"softsign", Unary::softsign, "", ""},
    {"sqrt", Unary::sqrt, "", ""},
    {"square", Unary::square, "", ""},
    {"tanh", Unary::tanh, "", ""},
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
    if (param.empty()) return true;
    auto v = call.number(param);
    if (v.ok()) to = static_cast<float>(*v);
    return v.ok();
  };
  if (!read(e->a, act.a) || !read(e->b, act.b)) return std::nullopt;
  if (e->f == Unary::gelu) {
    auto mode = call.text("mode");
    if (!mode.ok()) return std::nullopt;
    if (*mode == "TANH_APPROXIMATION") act.f = Unary::gelu_tanh;
    if (*mode == "SIGMOID_APPROXIMATION") act.f = Unary::gelu_sigmoid;
  }
  if (e->f == Unary::int8_codes) {
    auto dtype = call.text("dtype");
    if (!dtype.ok()) return std::nullopt;
    if (*dtype == "uint8") act.f = Unary::uint8_codes;
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
  for (const ir::Epilogue& e : epilogues) {
    if (e.op == "gelu_tanh")
      all.push_back({Unary::gelu_tanh});
    else if (const Entry* entry = find(e.op))
      all.push_back({entry->f, e.alpha, e.beta});
  }
  return all;
}

std::optional<Limits> take_limits(std::vector<Activation>& all) {
  if (all.empty()) return std::nullopt;
  const Activation first = all[0];
  Limits limits{0, std::numeric_limits<float>::infinity()};
  if (first.f == Unary::relu6)
    limits[1] = 6;
  else if (first.f == Unary::clip)
    limits = {first.a, first.b};
  else if (first.f != Unary::relu)
    return std::nullopt;
  all.erase(all.begin());
  return limits;
}

void finish_blocked(const ir::Shape& shape, const float* addend, std::span<const Activation> after, float* y,
                    int64_t begin, int64_t end) {
  float* to = y + begin;
  if (addend != nullptr) vector::loops().binary(vector::Binary::add, to, 1, addend + begin, 1, to, end - begin);
  apply_all(after, to, end - begin);
  clear_padding(shape, blocked(), y, begin, end);
}

std::array<float, 16> bias_of_group(const float* bias, int64_t group, int64_t channels) {
  std::array<float, 16> values{};
  const int64_t block = channel_block();
  if (bias != nullptr) std::copy_n(bias + group * block, std::min(block, channels - group * block), values.begin());
  return values;
}

}  // namespace moka::devices::cpu

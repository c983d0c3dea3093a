#include "kernel/epilogue.h"

#include <algorithm>
#include <cmath>

#include "base/half.h"
#include "base/scalar_math.h"

namespace moka::kernel {

namespace {

template <class T>
using Apply = void (*)(T* data, int64_t n, T alpha, T beta);

template <class T, auto F>
void each(T* data, int64_t n, T alpha, T beta) {
  for (int64_t i = 0; i < n; i++) data[i] = F(data[i], alpha, beta);
}

template <class T>
struct Entry {
  std::string_view op;
  Apply<T> apply;
};

template <class T>
constexpr Entry<T> kTable[] = {
    {"relu", each<T, [](T x, T, T) { return scalar::relu(x); }>},
    {"relu6", each<T, [](T x, T, T) { return scalar::clamp(x, T(0), T(6)); }>},
    {"clip", each<T, [](T x, T a, T b) { return scalar::clamp(x, a, b); }>},
    {"sigmoid", each<T, [](T x, T, T) { return scalar::sigmoid(x); }>},
    {"tanh", each<T, [](T x, T, T) { return std::tanh(x); }>},
    {"silu", each<T, [](T x, T, T) { return scalar::silu(x); }>},
    {"leaky_relu", each<T, [](T x, T a, T) { return scalar::leaky_relu(x, a); }>},
    {"elu", each<T, [](T x, T a, T) { return scalar::elu(x, a); }>},
    {"gelu", each<T, [](T x, T, T) { return scalar::gelu(x); }>},
    {"gelu_tanh", each<T, [](T x, T, T) { return scalar::gelu_tanh(x); }>},
    {"softplus", each<T, [](T x, T, T) { return scalar::softplus(x); }>},
    {"linear_activation", each<T, [](T x, T a, T b) { return a * x + b; }>},
    {"abs", each<T, [](T x, T, T) { return std::fabs(x); }>},
    {"sqrt", each<T, [](T x, T, T) { return std::sqrt(x); }>},
    {"square", each<T, [](T x, T, T) { return x * x; }>},
    {"exp", each<T, [](T x, T, T) { return std::exp(x); }>},
    {"moka_hard_swish", each<T, [](T x, T, T) { return scalar::hard_swish(x); }>},
    {"sigmoid_hard", each<T, [](T x, T a, T b) { return scalar::sigmoid_hard(x, a, b); }>},
};

template <class T>
Apply<T> find(std::string_view op) {
  for (const Entry<T>& e : kTable<T>) {
    if (e.op == op) return e.apply;
  }
  return nullptr;
}

template <class T>
void apply(const ir::Epilogue& e, T* data, int64_t n) {
  if (Apply<T> f = find<T>(e.op)) f(data, n, static_cast<T>(e.alpha), static_cast<T>(e.beta));
}

}  // namespace

bool is_epilogue(std::string_view op) { return find<float>(op) != nullptr; }

void apply_epilogue(const ir::Epilogue& e, float* data, int64_t n) { apply(e, data, n); }

void apply_epilogues(std::span<const ir::Epilogue> epilogues, const ir::TensorView& in_place) {
  if (epilogues.empty() || !ir::is_float(in_place.dtype)) return;
  const int64_t n = in_place.count();
  if (in_place.dtype == ir::DType::fp64) {
    for (const ir::Epilogue& e : epilogues) apply(e, in_place.as<double>(), n);
    return;
  }
  constexpr int64_t kBlock = 1024;
  float block[kBlock];
  for (int64_t at = 0; at < n; at += kBlock) {
    const int64_t m = std::min(kBlock, n - at);
    float* data = block;
    if (in_place.dtype == ir::DType::fp32) {
      data = in_place.as<float>() + at;
    } else if (in_place.dtype == ir::DType::fp16) {
      half_to_float(in_place.as<uint16_t>() + at, block, static_cast<size_t>(m));
    } else {
      for (int64_t i = 0; i < m; i++) block[i] = static_cast<float>(ir::load_f64(in_place, at + i));
    }
    for (const ir::Epilogue& e : epilogues) apply(e, data, m);
    if (in_place.dtype == ir::DType::fp16) {
      float_to_half(block, in_place.as<uint16_t>() + at, static_cast<size_t>(m));
    } else if (in_place.dtype != ir::DType::fp32) {
      for (int64_t i = 0; i < m; i++) ir::store_f64(in_place, at + i, static_cast<double>(block[i]));
    }
  }
}

}  // namespace moka::kernel

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <type_traits>

/// Elementwise functions of a float or double. NaN in gives NaN out unless said otherwise.
namespace moka::scalar {

template <class T>
T relu(T x) {
  return x < 0 ? T(0) : x;
}

/// The larger of the two; NaN if either is.
template <class T>
T at_least(T x, T low) {
  return x >= low || x != x ? x : low;
}

/// The smaller of the two; NaN if either is.
template <class T>
T at_most(T x, T high) {
  return x <= high || x != x ? x : high;
}

template <class T>
T clamp(T x, T low, T high) {
  return at_most(at_least(x, low), high);
}

template <class T>
T sigmoid(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

template <class T>
T silu(T x) {
  return x / (T(1) + std::exp(-x));
}

/// x * sigmoid_hard(x, 1/6, 1/2); 0 for minus infinity.
template <class T>
T hard_swish(T x) {
  return x < T(-3) ? T(0) : x * clamp(x / T(6) + T(0.5), T(0), T(1));
}

template <class T>
T leaky_relu(T x, T alpha) {
  return x < 0 ? alpha * x : x;
}

template <class T>
T clamped_relu(T x, T alpha, T beta) {
  return at_most(leaky_relu(x, alpha), beta);
}

template <class T>
T elu(T x, T alpha) {
  return x < 0 ? alpha * std::expm1(x) : x;
}

template <class T>
T gelu(T x) {
  return T(0.5) * x * std::erfc(-x * T(0.70710678118654752440));
}

template <class T>
T gelu_tanh(T x) {
  return T(0.5) * x * (T(1) + std::tanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x)));
}

template <class T>
T gelu_sigmoid(T x) {
  return x / (T(1) + std::exp(T(-1.702) * x));
}

/// log(1 + e^x) without overflow.
template <class T>
T softplus(T x) {
  return std::log1p(std::exp(-std::fabs(x))) + (x < 0 ? T(0) : x);
}

template <class T>
T sigmoid_hard(T x, T alpha, T beta) {
  return clamp(alpha * x + beta, T(0), T(1));
}

}  // namespace moka::scalar

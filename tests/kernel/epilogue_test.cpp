// SPDX-License-Identifier: Apache-2.0
#include "kernel/epilogue.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

namespace moka::kernel {
namespace {

using ir::DType;
using ir::Epilogue;
using ir::Tensor;

struct Known {
  const char* op;
  std::function<double(double)> fn;
};

constexpr double kAlpha = 0.25, kBeta = 0.75;

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

const Known kKnown[] = {
    {"relu", [](double x) { return std::fmax(x, 0); }},
    {"relu6", [](double x) { return std::fmin(std::fmax(x, 0), 6); }},
    {"clip", [](double x) { return std::fmin(std::fmax(x, kAlpha), kBeta); }},
    {"sigmoid", logistic},
    {"tanh", [](double x) { return std::tanh(x); }},
    {"silu", [](double x) { return x * logistic(x); }},
    {"clamped_relu", [](double x) { return std::fmin(x < 0 ? kAlpha * x : x, kBeta); }},
    {"leaky_relu", [](double x) { return x < 0 ? kAlpha * x : x; }},
    {"elu", [](double x) { return x < 0 ? kAlpha * (std::exp(x) - 1) : x; }},
    {"gelu", [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }},
    {"gelu_tanh", [](double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }},
    {"softplus", [](double x) { return std::log(1 + std::exp(x)); }},
    {"linear_activation", [](double x) { return kAlpha * x + kBeta; }},
    {"abs", [](double x) { return x < 0 ? -x : x; }},
    {"sqrt", [](double x) { return std::sqrt(x); }},
    {"square", [](double x) { return x * x; }},
    {"exp", [](double x) { return std::exp(x); }},
    {"moka_hard_swish", [](double x) { return x * std::fmin(std::fmax(x / 6 + 0.5, 0), 1); }},
    {"sigmoid_hard", [](double x) { return std::fmin(std::fmax(kAlpha * x + kBeta, 0), 1); }},
};

Tensor ramp(DType t, int64_t n) {
  Tensor x = Tensor::zeros(t, {n}).value();
  for (int64_t i = 0; i < n; i++)
    ir::store_f64(x.view(), i, -7 + 14.0 * static_cast<double>(i) / static_cast<double>(n));
  return x;
}

TEST(Epilogue, EveryFunctionInEveryFloatType) {
  for (const Known& k : kKnown) {
    ASSERT_TRUE(is_epilogue(k.op));
    for (auto [t, tolerance] :
         {std::pair{DType::fp32, 1e-6}, {DType::fp16, 1e-3}, {DType::bf16, 8e-3}, {DType::fp64, 1e-12}}) {
      const Tensor before = ramp(t, 2051), after = ramp(t, 2051);
      const Epilogue e{k.op, static_cast<float>(kAlpha), static_cast<float>(kBeta), ""};
      apply_epilogues({&e, 1}, after.view());
      for (int64_t i = 0; i < after.count(); i++) {
        const double expected = k.fn(ir::load_f64(before.view(), i)), got = ir::load_f64(after.view(), i);
        if (std::isnan(expected)) {
          EXPECT_TRUE(std::isnan(got)) << k.op;
        } else {
          ASSERT_NEAR(got, expected, tolerance * std::fmax(1, std::fabs(expected)))
              << k.op << " of " << ir::load_f64(before.view(), i);
        }
      }
    }
  }
}

TEST(Epilogue, AppliesInOrder) {
  Tensor x = ramp(DType::fp32, 5);
  const Epilogue chain[] = {{"linear_activation", 2, 1, ""}, {"relu", 0, 0, ""}, {"square", 0, 0, ""}};
  apply_epilogues(chain, x.view());
  const Tensor before = ramp(DType::fp32, 5);
  for (int64_t i = 0; i < 5; i++) {
    const double v = std::fmax(2 * ir::load_f64(before.view(), i) + 1, 0);
    EXPECT_NEAR(ir::load_f64(x.view(), i), v * v, 1e-4);
  }
}

TEST(Epilogue, KnowsWhatItDoesNotKnow) {
  for (const char* op : {"", "softmax", "add", "Relu", "prelu"}) EXPECT_FALSE(is_epilogue(op)) << op;
}

TEST(Epilogue, KnowsWhatOnlyClamps) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(limits_of({"relu", 0, 0, ""}), (Limits{0, kInfinity}));
  EXPECT_EQ(limits_of({"relu6", 0, 0, ""}), (Limits{0, 6}));
  EXPECT_EQ(limits_of({"clip", -1, 2, ""}), (Limits{-1, 2}));
  for (const char* op : {"abs", "clamped_relu", "leaky_relu", "sigmoid_hard", "softmax"})
    EXPECT_FALSE(limits_of({op, 0, 1, ""})) << op;
}

TEST(Epilogue, KnowsWhatRoundsNothing) {
  for (const char* op : {"relu", "relu6", "clip", "abs"}) EXPECT_TRUE(is_exact({op, 0, 1, ""})) << op;
  for (const char* op : {"tanh", "clamped_relu", "linear_activation", "sqrt", "softmax"})
    EXPECT_FALSE(is_exact({op, 0, 1, ""})) << op;
}

TEST(Epilogue, EmptyTensor) {
  Tensor x = Tensor::zeros(DType::fp16, {0, 3}).value();
  const Epilogue e{"exp", 0, 0, ""};
  apply_epilogues({&e, 1}, x.view());
}

}  // namespace
}  // namespace moka::kernel

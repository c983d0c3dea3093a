// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "api/api_util.h"

namespace moka::test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// The output `y` of a program of one float16 input `x`.
std::vector<double> run(Precision precision, const std::string& type, const std::string& body,
                        const std::vector<float>& x) {
  ModelConfiguration c;
  c.precision = precision;
  const Model m = Model::from_mil(program("tensor<" + type + ", [" + std::to_string(x.size()) + "]> x", body, "y"), c);
  return values(m.predict({{"x", MultiArray::of(x, {static_cast<int64_t>(x.size())})}}).array("y"));
}

std::vector<double> exact(const std::string& body, const std::vector<float>& x) {
  return run(Precision::exact, "fp16", body, x);
}
std::vector<double> at_least(const std::string& body, const std::vector<float>& x) {
  return run(Precision::at_least, "fp16", body, x);
}

/// Between 2048 and 4096, float16 has only even numbers.
TEST(Precision, IntermediateResultsAreRoundedWhenExact) {
  const std::string body = "tensor<fp16, [2]> a = add(x = x, y = fp16(1));\ntensor<fp16, [2]> y = sub(x = a, y = x);";
  EXPECT_EQ(exact(body, {2048, 2050}), (std::vector<double>{0, 2}));
  EXPECT_EQ(at_least(body, {2048, 2050}), (std::vector<double>{1, 1}));
}

TEST(Precision, IntermediateResultsOverflowWhenExactOnly) {
  const std::string body =
      "tensor<fp16, [3]> a = mul(x = x, y = x);\ntensor<fp16, [3]> y = mul(x = a, y = fp16(0.125));";
  EXPECT_EQ(exact(body, {300, -300, 100}), (std::vector<double>{kInf, kInf, 1250}));
  EXPECT_EQ(at_least(body, {300, -300, 100}), (std::vector<double>{11248, 11248, 1250}));
}

TEST(Precision, CastsRoundWhenExact) {
  const std::string body =
      "tensor<fp16, [2]> a = cast(x = x, dtype = string(\"fp16\"));\n"
      "tensor<fp32, [2]> y = cast(x = a, dtype = string(\"fp32\"));";
  const std::vector<float> x{1.0f + 1.0f / 4096, 100000};
  EXPECT_EQ(run(Precision::exact, "fp32", body, x), (std::vector<double>{1, kInf}));
  EXPECT_EQ(run(Precision::at_least, "fp32", body, x), (std::vector<double>{1.0 + 1.0 / 4096, 100000}));
}

/// A factor that became infinite when it was stored must not make NaN of a mask that hides nothing. Whoever predicts is
/// told once.
TEST(Precision, InfiniteFactorsAreFiniteUnlessExact) {
  std::vector<std::string> warnings;
  set_warning_handler([&](const std::string& text) { warnings.push_back(text); });
  const std::string body =
      "tensor<fp16, [3]> y = mul(x = x, y = fp16(-inf))[name = string(\"hide\")];\n"
      "tensor<fp16, [3]> z = mul(x = fp16(inf), y = x)[name = string(\"show\")];";
  const auto load = [&](Precision precision) {
    ModelConfiguration c;
    c.precision = precision;
    return Model::from_mil(program("tensor<fp16, [3]> x", body, "y, z"), c);
  };
  const Features x{{"x", MultiArray::of(std::vector<float>{0, 1, -1}, {3})}};
  const Model exact = load(Precision::exact), usual = load(Precision::at_least);
  const std::vector<double> nan = values(exact.predict(x).array("y"));
  EXPECT_TRUE(std::isnan(nan[0]));
  EXPECT_EQ(nan[1], -kInf);
  EXPECT_TRUE(warnings.empty());
  for (int i = 0; i < 2; i++) EXPECT_EQ(values(usual.predict(x).array("y")), (std::vector<double>{0, -kInf, kInf}));
  set_warning_handler(nullptr);
  EXPECT_EQ(
      warnings,
      std::vector<std::string>{
          "operation 'hide' (mul) computes with 3.4e38, the largest float32, where its y is infinite, so "
          "that 0 times it is 0 and not NaN; 1 other operation does the same; precision 'exact' keeps infinities"});
  int explained = 0;
  for (const PassRemark& remark : usual.compute_plan().remarks)
    explained += remark.text.find("largest float32") != std::string::npos;
  EXPECT_EQ(explained, 2);
  EXPECT_TRUE(exact.compute_plan().remarks.empty() ||
              exact.compute_plan().remarks[0].text.find("largest float32") == std::string::npos);
}

/// A sum has many products but is a single value, so it is rounded once.
TEST(Precision, SumsAreRoundedOnceWhenExact) {
  std::vector<float> x(3000, 1);
  x[0] = 0.5f;
  const std::string body =
      "tensor<fp16, [1]> a = reduce_sum(x = x, axes = tensor<int32, [1]>([0]), keep_dims = bool(true));\n"
      "tensor<fp16, [1]> y = sub(x = a, y = fp16(2998));";
  EXPECT_EQ(exact(body, x), std::vector<double>{2});  // 2999.5 rounds to 3000
  EXPECT_EQ(at_least(body, x), std::vector<double>{1.5});
}

TEST(Precision, HoldsInLoopsAndBranches) {
  const std::string body =
      "int32 i, tensor<fp16, [1]> s = while_loop(loop_vars = (int32(0), x)) {\n"
      "block test(int32 k, tensor<fp16, [1]> v) { bool more = less(x = k, y = int32(100)); } -> (more);\n"
      "block step(int32 k, tensor<fp16, [1]> v) { int32 after = add(x = k, y = int32(1));\n"
      "tensor<fp16, [1]> next = add(x = v, y = fp16(1)); } -> (after, next);\n};\n"
      "bool late = greater(x = i, y = int32(50));\n"
      "tensor<fp16, [1]> y = cond(pred = late) {\n"
      "block yes() { tensor<fp16, [1]> a = sub(x = s, y = fp16(2048)); } -> (a);\n"
      "block no() { tensor<fp16, [1]> b = relu(x = s); } -> (b);\n};\n";
  EXPECT_EQ(exact(body, {2048}), std::vector<double>{0});
  EXPECT_EQ(at_least(body, {2048}), std::vector<double>{100});
}

/// A state's content has the state's type in both precisions.
TEST(Precision, StatesAreRoundedAlways) {
  for (const Precision p : {Precision::exact, Precision::at_least}) {
    ModelConfiguration c;
    c.precision = p;
    const std::string t = "tensor<fp16, [1]>";
    const Model m =
        Model::from_mil(program("state<" + t + "> total, " + t + " x",
                                t + " before = read_state(input = total);\n" + t + " sum = add(x = before, y = x);\n" +
                                    t + " y = coreml_update_state(state = total, value = sum);",
                                "y"),
                        c);
    State s = m.new_state();
    PredictionOptions with_state{&s};
    for (float v : {2048.0f, 1.0f, 1.0f}) m.predict({{"x", MultiArray::of(std::vector<float>{v}, {1})}}, with_state);
    EXPECT_EQ(values(s.read("total")), std::vector<double>{2048}) << static_cast<int>(p);
  }
}

/// Without float16 both precisions give the same.
TEST(Precision, OfFloat32IsTheSame) {
  std::vector<float> x;
  for (int i = 0; i < 64; i++) x.push_back(std::sin(static_cast<float>(i)) * 50);
  const std::string body =
      "tensor<fp32, [64]> a = softplus(x = x);\ntensor<fp32, [64]> b = exp(x = a);\n"
      "tensor<fp32, [64]> c = log(x = b, epsilon = fp32(0.25));\ntensor<fp32, [64]> y = mul(x = c, y = a);";
  EXPECT_EQ(run(Precision::exact, "fp32", body, x), run(Precision::at_least, "fp32", body, x));
}

/// Each operation alone gives its rounded float32 result.
TEST(Precision, OfOneOperationIsOneRounding) {
  std::vector<float> x;
  for (int i = 0; i < 200; i++) x.push_back(static_cast<float>(i - 100) / 16);
  for (const char* operation :
       {"tanh(x = x)", "sigmoid(x = x)", "gelu(x = x)", "softplus(x = x)", "square(x = x)", "exp(x = x)", "sin(x = x)",
        "mul(x = x, y = fp16(0.333))", "softmax(x = x, axis = int32(0))", "cumsum(x = x)",
        "layer_norm(x = x, axes = tensor<int32, [1]>([0]))"}) {
    const std::string t = "tensor<fp16, [200]> ";
    const auto once = exact(t + "y = " + operation + ";", x), wide = at_least(t + "y = " + operation + ";", x);
    for (size_t i = 0; i < x.size(); i++)
      ASSERT_LE(std::fabs(once[i] - wide[i]), std::ldexp(std::max(std::fabs(wide[i]), 1.0 / 16384), -10))
          << operation << " of " << x[i];
  }
}

}  // namespace
}  // namespace moka::test

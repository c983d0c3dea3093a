// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "ir/evaluate.h"
#include "ir/text_printer.h"
#include "ir/text_reader.h"
#include "ir/verifier.h"
#include "passes/pass.h"

/// A case is two programs, tests/passes/<pass>/<case>.in.mil and .out.mil: before the pass, and after it and the
/// removal of dead code. With MOKA_WRITE_CASES set in the environment, the second one is written instead of compared.
namespace moka::test {
namespace {

namespace fs = std::filesystem;
using namespace ir;

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// Multiples of 1/64 from -2 to 2, which every floating-point type holds; integers from 0 to 3.
RuntimeValue random_value(const Type& type, RandomSource& random) {
  const Type& t = type.is_state() ? type.element() : type;
  Shape shape = t.shape();
  for (int i = 0; i < shape.rank(); i++)
    if (shape[i] < 0) shape[i] = 3;
  auto tensor = Tensor::zeros(t.dtype(), shape);
  EXPECT_TRUE(tensor.ok());
  for (int64_t i = 0; i < tensor->count(); i++) {
    const auto r = random.next();
    if (is_float(t.dtype()))
      store_f64(tensor->view(), i, (static_cast<double>(r % 257) - 128) / 64);
    else
      store_i64(tensor->view(), i, static_cast<int64_t>(t.dtype() == DType::boolean ? r % 2 : r % 4));
  }
  return RuntimeValue(*tensor);
}

struct Outcome {
  std::vector<RuntimeValue> outputs, states;
};

Outcome evaluate(const Function& f, uint64_t seed) {
  RandomSource random{seed};
  std::vector<RuntimeValue> inputs;
  Outcome out;
  for (const auto& v : f.body().inputs()) {
    inputs.push_back(random_value(v->type, random));
    if (v->type.is_state()) out.states.push_back(inputs.back());
  }
  EvaluateOptions options;
  options.table = &ops::table();
  auto outputs = ir::evaluate(f, inputs, options);
  EXPECT_TRUE(outputs.ok()) << (outputs.ok() ? "" : outputs.error().to_string());
  if (outputs) out.outputs = std::move(*outputs);
  return out;
}

void expect_close(const std::vector<RuntimeValue>& a, const std::vector<RuntimeValue>& b, double tolerance,
                  std::string_view what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t k = 0; k < a.size(); k++) {
    const TensorView x = a[k].tensor.view(), y = b[k].tensor.view();
    ASSERT_TRUE(x.shape == y.shape) << what << " " << k;
    for (int64_t i = 0; i < x.count(); i++) {
      const double p = load_f64(x, i), q = load_f64(y, i);
      if (p == q || (std::isnan(p) && std::isnan(q))) continue;
      ASSERT_LE(std::fabs(p - q), tolerance * std::max(1.0, std::fabs(p)))
          << what << " " << k << ", element " << i << ": " << p << " became " << q;
    }
  }
}

Status run_pass(Program& program, std::string_view name, std::vector<passes::Remark>& remarks) {
  for (std::string_view n : {name, std::string_view("remove_dead_code")}) {
    for (const auto& f : program.functions) MOKA_TRY(passes::run_pass(*f, n, ops::table(), remarks));
  }
  return verify(program);
}

struct Case {
  std::string pass, name;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.pass << "/" << c.name; }

std::vector<Case> all_cases() {
  std::vector<Case> out;
  for (const auto& e : fs::recursive_directory_iterator(MOKA_PASS_CASES)) {
    std::string name = e.path().filename().string();
    if (!name.ends_with(".in.mil")) continue;
    out.push_back({e.path().parent_path().filename().string(), name.substr(0, name.size() - 7)});
  }
  std::sort(out.begin(), out.end(),
            [](const Case& a, const Case& b) { return std::tie(a.pass, a.name) < std::tie(b.pass, b.name); });
  return out;
}

class PassCase : public testing::TestWithParam<Case> {};

TEST_P(PassCase, RewritesAndComputesTheSame) {
  const Case& c = GetParam();
  const fs::path folder = fs::path(MOKA_PASS_CASES) / c.pass;
  const std::string source = read(folder / (c.name + ".in.mil"));
  auto before = read_text(source, ops::table());
  ASSERT_TRUE(before.ok()) << before.error().to_string();
  auto after = read_text(source, ops::table());
  ASSERT_TRUE(after.ok());
  std::vector<passes::Remark> remarks;
  const Status status = run_pass(*after, c.pass, remarks);
  ASSERT_TRUE(status.ok()) << status.error().to_string();
  const std::string text = print_text(*after);

  const fs::path expected = folder / (c.name + ".out.mil");
  if (std::getenv("MOKA_WRITE_CASES") != nullptr) std::ofstream(expected, std::ios::binary) << text;
  EXPECT_EQ(text, read(expected));
  auto again = read_text(text, ops::table());
  ASSERT_TRUE(again.ok()) << again.error().to_string();
  EXPECT_EQ(print_text(*again), text);

  const double tolerance = c.pass == "widen_float16" ? 2e-3 : 1e-5;
  for (uint64_t seed = 1; seed <= 3; seed++) {
    const Outcome a = evaluate(*before->functions[0], seed), b = evaluate(*after->functions[0], seed);
    expect_close(a.outputs, b.outputs, tolerance, "output");
    expect_close(a.states, b.states, tolerance, "state");
  }
}

INSTANTIATE_TEST_SUITE_P(Passes, PassCase, testing::ValuesIn(all_cases()),
                         [](const auto& info) { return info.param.pass + "_" + info.param.name; });

/// A random constant.
Value* weight(Builder& b, const Shape& shape, uint64_t seed) {
  RandomSource random{seed};
  return *b.constant("w", random_value(Type::tensor(DType::fp32, shape), random).tensor);
}

/// Scaling large weights takes longer than the rest of loading, and keeping the result doubles their memory. They
/// become an operation that runs when a kernel packs them.
TEST(FoldScale, ScalesLargeWeightsWhenPacked) {
  auto make = [](Program& program) {
    program.functions.push_back(std::make_unique<Function>("main", Opset::ios17));
    Function& f = *program.functions.back();
    Builder b(ops::table(), f.body());
    Value* x = f.body().add_input("x", Type::tensor(DType::fp32, {1, 32, 4, 4}));
    Value* m = *b.op("mul", {{"x", x}, {"y", weight(b, {32, 1, 1}, 1)}});
    Value* c = *b.op("conv", {{"x", m}, {"weight", weight(b, {64, 32, 3, 3}, 2)}, {"bias", weight(b, {64}, 3)}});
    f.body().set_outputs({*b.op("mul", {{"x", c}, {"y", weight(b, {64, 1, 1}, 4)}})});
  };
  Program before, after;
  make(before);
  make(after);
  std::vector<passes::Remark> remarks;
  const Status status = run_pass(after, "fold_scale", remarks);
  ASSERT_TRUE(status.ok()) << status.error().to_string();
  const Op* conv = after.functions[0]->body().outputs()[0]->producer();
  ASSERT_EQ(conv->type_name(), "conv");
  const Op* scaled = conv->input("weight")->producer();
  ASSERT_NE(scaled, nullptr);
  EXPECT_EQ(scaled->type_name(), "moka_scale_weights");
  EXPECT_EQ(scaled->input("weight")->producer()->type_name(), "const");
  const Outcome a = evaluate(*before.functions[0], 5), b = evaluate(*after.functions[0], 5);
  expect_close(a.outputs, b.outputs, 1e-5, "output");
}

/// Weights that are scaled when a kernel packs them, one of them large.
TEST(FoldScale, LeavesWeightsThatWouldOverflow) {
  for (const bool halves : {false, true})
    for (const float scale : {0x1p20f, 0x1p40f}) {
      Program program;
      program.functions.push_back(std::make_unique<Function>("main", Opset::ios17));
      Function& f = *program.functions.back();
      Builder b(ops::table(), f.body());
      Value* x = f.body().add_input("x", Type::tensor(DType::fp32, {5, 160}));
      Tensor large = *Tensor::zeros(halves ? DType::fp16 : DType::fp32, {160, 160});
      store_f64(large.view(), 7, halves ? 65504 : 0x1p100);
      store_f64(large.view(), 8, INFINITY);
      Value* w =
          halves ? *b.op("constexpr_cast", {{"source_val", large}, {"output_dtype", "fp32"}}) : *b.constant("w", large);
      Value* y = *b.op("linear", {{"x", x}, {"weight", w}});
      f.body().set_outputs({*b.op("mul", {{"x", y}, {"y", scale}})});
      std::vector<passes::Remark> remarks;
      ASSERT_TRUE(run_pass(program, "fold_scale", remarks).ok());
      EXPECT_EQ(remarks.empty(), !halves && scale == 0x1p40f) << halves << " " << scale;
    }
}

/// A product of few rows reads its weights from the file, which is faster than any copy.
TEST(FoldScale, LeavesLargeWeightsOfFewRows) {
  for (int64_t rows : {1, 4, 5}) {
    Program program;
    program.functions.push_back(std::make_unique<Function>("main", Opset::ios17));
    Function& f = *program.functions.back();
    Builder b(ops::table(), f.body());
    Value* x = f.body().add_input("x", Type::tensor(DType::fp32, {rows, 512}));
    Value* m = *b.op("mul", {{"x", x}, {"y", weight(b, {512}, 1)}});
    f.body().set_outputs({*b.op("linear", {{"x", m}, {"weight", weight(b, {512, 512}, 2)}})});
    std::vector<passes::Remark> remarks;
    ASSERT_TRUE(run_pass(program, "fold_scale", remarks).ok());
    EXPECT_EQ(remarks.empty(), rows <= 4) << rows;
  }
}

TEST(Pipeline, RunsEveryPass) {
  std::set<std::string_view> ran = {"remove_dead_code"}, all;
  ran.insert(passes::order().begin(), passes::order().end());
  for (const passes::Pass& p : passes::all()) all.insert(p.name);
  EXPECT_EQ(ran, all);
}

TEST(Pipeline, RefusesPassesThatAreNone) {
  auto program = read_text("program(1.3) { func main<ios17>(tensor<fp32, [1]> x) { } -> (x); }", ops::table());
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  std::vector<passes::Remark> remarks;
  const Status status = passes::run_pass(*program->functions[0], "fuse_everything", ops::table(), remarks);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().to_string().find("there is no pass 'fuse_everything'"), std::string::npos);
}

TEST(Pipeline, ReportsWhatItDid) {
  auto program = read_text(R"(program(1.3) { func main<ios17>(tensor<fp32, [1, 2]> x) {
    tensor<fp32, [1, 2]> a = linear(x = x, weight = tensor<fp32, [2, 2]>([[1.0, 2.0], [3.0, 4.0]]))[name = string("dense")];
    tensor<fp32, [1, 2]> b = mul(x = a, y = fp32(2.0))[name = string("twice")];
    tensor<fp32, [1, 2]> c = relu(x = b)[name = string("relu_1")];
    } -> (c); })",
                           ops::table());
  ASSERT_TRUE(program.ok()) << program.error().to_string();
  std::vector<passes::Remark> remarks;
  ASSERT_TRUE(passes::run_pipeline(*program, ops::table(), {}, remarks).ok());
  std::vector<std::string> texts;
  for (const auto& r : remarks) texts.push_back(std::string(r.pass) + ": " + r.text);
  EXPECT_EQ(texts, (std::vector<std::string>{"fold_scale: twice into the weights of dense",
                                             "fuse_activations: relu_1 into dense"}));
}

}  // namespace
}  // namespace moka::test

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "devices/cpu/device.h"
#include "devices/graph_util.h"
#include "runtime/measure.h"

/// Kernels that compete. Each must be correct for every shape that it accepts when asked. Pins and measured times
/// decide between them.
namespace moka::devices_test {
namespace {

using namespace ir;
using plan::ChosenBy;
using plan::KernelChoices;
using plan::Measurement;

plan::PlanOptions with(std::shared_ptr<KernelChoices> choices, int threads = 1) {
  plan::PlanOptions o = options(true, threads);
  o.choices = std::move(choices);
  return o;
}

std::shared_ptr<KernelChoices> pinned(const std::string& name, std::string_view kernel) {
  auto choices = std::make_shared<KernelChoices>();
  choices->pins[name] = std::string(kernel);
  return choices;
}

std::vector<std::string_view> competitors(std::string_view op) {
  std::vector<std::string_view> names;
  for (const kernel::KernelDef& k : devices::cpu::device().kernels())
    if (k.measured && k.runs(op)) names.push_back(k.name);
  return names;
}

/// Runs `y`, the graph's only output, with each kernel and compares it with the reference. Counts the kernels that ran.
void ask_all(Graph& g, Value* y, std::map<std::string_view, int>& ran, double tolerance = 2e-5) {
  ASSERT_NE(y, nullptr);
  g.function().body().set_outputs({y});
  const auto expected = run(g.function(), g.inputs(), false, 1);
  ASSERT_TRUE(expected.ok()) << expected.error().to_string();
  for (std::string_view kernel : competitors(y->producer()->type_name()))
    for (int threads : {1, 2}) {
      const auto got = run(g.function(), g.inputs(), with(pinned(y->producer()->name, kernel), threads), 2);
      if (!got.ok()) {
        EXPECT_NE(got.error().to_string().find("refuses it: "), std::string::npos) << got.error().to_string();
        continue;
      }
      ran[kernel]++;
      const plan::KernelCall& s = step_of(*got, y->producer()->type_name());
      EXPECT_EQ(s.choice->kernel, kernel);
      EXPECT_EQ(s.by, ChosenBy::pin);
      expect_near(got->outputs[0], expected->outputs[0], tolerance, cat(kernel, " with ", threads, " threads"));
    }
}

void expect_all_ran(const std::map<std::string_view, int>& ran, std::string_view op) {
  for (std::string_view kernel : competitors(op)) EXPECT_TRUE(ran.contains(kernel)) << kernel << " never ran";
}

TEST(Choice, EveryConvolutionIsRightWhenAsked) {
  struct Case {
    int64_t images = 1, in, out, groups = 1;
    std::vector<int64_t> size, kernel;
    std::vector<int64_t> strides{1, 1}, pad, dilations{1, 1};
  };
  const std::vector<Case> cases{
      {.in = 16, .out = 16, .size = {1, 1}, .kernel = {3, 3}, .pad = {1, 1, 1, 1}},
      {.in = 17, .out = 19, .size = {2, 5}, .kernel = {3, 3}, .pad = {1, 1, 1, 1}},
      {.images = 2, .in = 33, .out = 16, .size = {9, 7}, .kernel = {3, 3}, .pad = {0, 2, 1, 0}},
      {.in = 64, .out = 70, .size = {14, 15}, .kernel = {3, 3}, .pad = {1, 1, 1, 1}},
      {.in = 16, .out = 33, .size = {13, 12}, .kernel = {3, 3}, .strides = {2, 2}, .pad = {1, 1, 1, 1}},
      {.in = 20, .out = 24, .size = {9, 17}, .kernel = {7, 1}, .pad = {3, 3, 0, 0}},
      {.in = 40, .out = 16, .size = {17, 17}, .kernel = {3, 3}, .pad = {6, 6, 6, 6}, .dilations = {6, 6}},
      {.images = 2, .in = 16, .out = 48, .size = {5, 6}, .kernel = {1, 1}, .pad = {0, 0, 0, 0}},
      {.in = 16, .out = 48, .size = {8, 5}, .kernel = {1, 1}, .strides = {2, 2}, .pad = {0, 0, 0, 0}},
      {.in = 40, .out = 2, .size = {9, 11}, .kernel = {1, 1}, .pad = {0, 0, 0, 0}},
      {.in = 3, .out = 16, .size = {19, 21}, .kernel = {7, 7}, .strides = {2, 2}, .pad = {3, 3, 3, 3}},
      {.in = 5, .out = 4, .size = {12, 9}, .kernel = {5, 5}, .pad = {2, 2, 2, 2}},
      {.in = 1, .out = 17, .size = {8, 9}, .kernel = {15, 13}, .pad = {7, 7, 6, 6}},
      {.in = 32, .out = 32, .groups = 32, .size = {9, 10}, .kernel = {3, 3}, .pad = {1, 1, 1, 1}},
      {.in = 17, .out = 17, .groups = 17, .size = {7, 7}, .kernel = {5, 5}, .strides = {2, 2}, .pad = {2, 2, 2, 2}},
      {.in = 32, .out = 64, .groups = 4, .size = {10, 11}, .kernel = {3, 3}, .pad = {1, 1, 1, 1}},
      {.in = 18,
       .out = 12,
       .groups = 3,
       .size = {6, 7},
       .kernel = {3, 3},
       .strides = {2, 1},
       .pad = {1, 0, 0, 1},
       .dilations = {1, 2}},
      {.images = 2, .in = 24, .out = 20, .size = {31}, .kernel = {5}, .strides = {2}, .pad = {2, 2}, .dilations = {1}},
      {.in = 16,
       .out = 18,
       .size = {4, 5, 6},
       .kernel = {3, 2, 3},
       .strides = {1, 1, 2},
       .pad = {1, 1, 0, 1, 1, 1},
       .dilations = {1, 1, 1}},
  };
  std::map<std::string_view, int> ran;
  for (const Case& c : cases)
    for (const std::vector<Epilogue>& epilogue : std::vector<std::vector<Epilogue>>{{}, {{"relu"}}, {{"softplus"}}}) {
      SCOPED_TRACE(cat(c.in, " to ", c.out, ", window of ", c.kernel[0], ", epilogues ", epilogue.size()));
      Graph g;
      Shape x{c.images, c.in}, w{c.out, c.in / c.groups};
      for (int64_t n : c.size) x.push_back(n);
      for (int64_t n : c.kernel) w.push_back(n);
      Value* y = g.op("conv", {{"x", g.input(x)},
                               {"weight", g.random(w)},
                               {"bias", g.random({c.out})},
                               {"strides", Tensor::i32(c.strides)},
                               {"pad_type", "custom"},
                               {"pad", Tensor::i32(c.pad)},
                               {"dilations", Tensor::i32(c.dilations)},
                               {"groups", static_cast<int>(c.groups)}});
      if (y != nullptr) y->producer()->epilogue = epilogue;
      ask_all(g, y, ran);
    }
  expect_all_ran(ran, "conv");
}

TEST(Choice, EveryTransposedConvolutionIsRightWhenAsked) {
  std::map<std::string_view, int> ran;
  for (auto [in, out, groups] : {std::array<int64_t, 3>{16, 32, 1}, {17, 9, 1}, {3, 5, 1}, {16, 16, 16}, {12, 8, 2}})
    for (int64_t stride : {1, 2})
      for (auto [window, pad] : {std::array<int64_t, 2>{2, 0}, {2, 1}, {3, 1}, {4, 1}}) {
        SCOPED_TRACE(cat(in, " to ", out, ", stride ", stride, ", window of ", window, ", pad ", pad));
        Graph g;
        ask_all(g,
                g.op("conv_transpose", {{"x", g.input({1, in, 7, 9})},
                                        {"weight", g.random({in, out / groups, window, window})},
                                        {"bias", g.random({out})},
                                        {"strides", Tensor::i32({stride, stride})},
                                        {"pad_type", "custom"},
                                        {"pad", Tensor::i32({pad, 0, 0, pad})},
                                        {"groups", static_cast<int>(groups)}}),
                ran);
      }
  expect_all_ran(ran, "conv_transpose");
}

TEST(Choice, ThreadsGiveTheSameBits) {
  auto check = [](Graph& g, Value* y, const std::vector<std::string_view>& kernels) {
    ASSERT_NE(y, nullptr);
    g.function().body().set_outputs({y});
    for (std::string_view kernel : kernels) {
      const auto one = run(g.function(), g.inputs(), with(pinned(y->producer()->name, kernel), 1));
      if (!one.ok()) continue;
      for (int threads : {2, 3}) {
        const auto more = run(g.function(), g.inputs(), with(pinned(y->producer()->name, kernel), threads));
        ASSERT_TRUE(more.ok()) << more.error().to_string();
        const auto a = one->outputs[0].as<float>(), b = more->outputs[0].as<float>();
        EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end())) << more->kernels << " with " << threads;
      }
    }
  };
  struct Layer {
    int64_t in, out, size, window, stride = 1, groups = 1;
  };
  const Layer layers[] = {
      {.in = 256, .out = 64, .size = 7, .window = 3, .stride = 2},
      {.in = 64, .out = 96, .size = 28, .window = 3},
      {.in = 64, .out = 256, .size = 28, .window = 1},
      {.in = 512, .out = 40, .size = 4, .window = 1},
      {.in = 96, .out = 96, .size = 28, .window = 3, .groups = 96},
      {.in = 64, .out = 128, .size = 28, .window = 3, .groups = 8},
      {.in = 3, .out = 32, .size = 64, .window = 7, .stride = 2},
  };
  for (const auto& [in, out, size, window, stride, groups] : layers) {
    SCOPED_TRACE(cat(in, " to ", out, ", ", size, ", window ", window));
    Graph g;
    check(g,
          g.op("conv", {{"x", g.input({1, in, size, size})},
                        {"weight", g.random({out, in / groups, window, window})},
                        {"strides", Tensor::i32({stride, stride})},
                        {"pad_type", "same"},
                        {"groups", static_cast<int>(groups)}}),
          competitors("conv"));
  }
  for (int64_t window : {2, 4}) {
    Graph g;
    check(g,
          g.op("conv_transpose", {{"x", g.input({1, 64, 16, 16})},
                                  {"weight", g.random({64, 32, window, window})},
                                  {"strides", Tensor::i32({2, 2})}}),
          competitors("conv_transpose"));
  }
}

/// Pretends that each candidate is a second faster than the one before.
class Counter final : public plan::KernelTimer {
 public:
  Result<std::optional<std::vector<plan::Timed>>> time(const kernel::MatchCall&, std::span<plan::Candidate> candidates,
                                                       std::span<const kernel::Layout>,
                                                       const plan::PlanOptions&) override {
    std::vector<plan::Timed> out;
    for (size_t i = candidates.size(); i > 0; i--) out.push_back({static_cast<double>(i), static_cast<double>(i)});
    return std::optional(std::move(out));
  }
};

/// Pretends that every measurement was disturbed.
class Disturbed final : public plan::KernelTimer {
 public:
  Result<std::optional<std::vector<plan::Timed>>> time(const kernel::MatchCall&, std::span<plan::Candidate>,
                                                       std::span<const kernel::Layout>,
                                                       const plan::PlanOptions&) override {
    return std::optional<std::vector<plan::Timed>>();
  }
};

/// A convolution that the kernels for Winograd, oneDNN and per-tap products can all run.
struct Conv {
  Graph g;
  Value* y = nullptr;
  Conv() {
    Value* x = g.input({1, 32, 12, 12});
    y = g.op("conv", {{"x", x},
                      {"weight", g.random({32, 32, 3, 3})},
                      {"bias", g.random({32})},
                      {"pad_type", "custom"},
                      {"pad", Tensor::i32({1, 1, 1, 1})}});
    g.function().body().set_outputs({y});
  }
  devices_test::Run run(std::shared_ptr<KernelChoices> choices, int threads = 1) {
    auto r = devices_test::run(g.function(), g.inputs(), with(std::move(choices), threads));
    EXPECT_TRUE(r.ok()) << r.error().to_string();
    return r.ok() ? std::move(*r) : devices_test::Run{};
  }
  /// The measurements for this convolution.
  Measurement measured(int threads = 1) {
    auto choices = std::make_shared<KernelChoices>();
    choices->measure = KernelChoices::Measure::missing;
    choices->timer = std::make_shared<Counter>();
    run(choices, threads);
    auto all = choices->take_measured();
    EXPECT_EQ(all.size(), 1u);
    return all.empty() ? Measurement{} : all[0];
  }
};

std::shared_ptr<KernelChoices> planted(Measurement m, std::string kernel) {
  auto choices = std::make_shared<KernelChoices>();
  m.chosen = std::move(kernel);
  choices->add(std::move(m));
  return choices;
}

TEST(Choice, MeasuringTimesEveryCandidate) {
  Conv c;
  std::string told;
  auto choices = std::make_shared<KernelChoices>();
  choices->measure = KernelChoices::Measure::missing;
  choices->timer = runtime::kernel_timer();
  choices->measuring = [&](std::string_view name) { told += name; };
  auto r = c.run(choices);
  for (int again = 0; again < 20 && step_of(r, "conv").by != ChosenBy::measured; again++) {  // disturbed
    told.clear();
    r = c.run(choices);
  }
  const plan::KernelCall& s = step_of(r, "conv");
  EXPECT_EQ(s.by, ChosenBy::measured);
  EXPECT_EQ(told, c.y->producer()->name);
  ASSERT_NE(s.measurement, nullptr);
  const Measurement& m = *s.measurement;
  EXPECT_EQ(m.threads, 1);
  EXPECT_EQ(m.chosen, s.choice->kernel);
  EXPECT_EQ(m.by_rule, step_of(c.run(nullptr), "conv").choice->kernel);
  EXPECT_TRUE(m.shape.starts_with("conv x=fp32[1,32,12,12] weight=const fp32[32,32,3,3] ")) << m.shape;
  std::vector<std::string> names;
  double chosen = 0, least = HUGE_VAL;
  for (const plan::KernelTime& t : m.times) {
    names.push_back(t.kernel);
    EXPECT_GT(t.seconds, 0) << t.kernel;
    least = std::min(least, t.seconds);
    if (t.kernel == m.chosen) chosen = t.seconds;
  }
  for (const char* kernel : {"cpu.conv.winograd", "cpu.conv.per_tap", "cpu.conv.onednn"})
    EXPECT_NE(std::find(names.begin(), names.end(), kernel), names.end()) << kernel;
  EXPECT_LE(0.97 * chosen, least);
  // The times are known now, so the next plan does not measure and is the same.
  told.clear();
  const auto again = c.run(choices);
  EXPECT_EQ(told, "");
  EXPECT_EQ(step_of(again, "conv").by, ChosenBy::cache);
  EXPECT_EQ(again.kernels, r.kernels);
  expect_near(r.outputs[0], run(c.g.function(), c.g.inputs(), false, 1)->outputs[0], 1e-5, r.kernels);
}

TEST(Choice, NothingOfWhatWasMeasuredStaysPacked) {
  Conv c;
  auto choices = std::make_shared<KernelChoices>();
  choices->measure = KernelChoices::Measure::all;
  choices->timer = runtime::kernel_timer();
  auto measured = c.run(choices);
  for (int again = 0; again < 20 && !choices->has_measured(); again++) measured = c.run(choices);
  const auto planted_same =
      c.run(planted(choices->take_measured().at(0), step_of(measured, "conv").measurement->chosen));
  EXPECT_EQ(measured.constants->packed_bytes(), planted_same.constants->packed_bytes());
}

TEST(Choice, WhatCouldNotBeTimedIsLeftToTheRules) {
  Conv c;
  auto choices = std::make_shared<KernelChoices>();
  choices->measure = KernelChoices::Measure::all;
  choices->timer = std::make_shared<Disturbed>();
  EXPECT_EQ(step_of(c.run(choices), "conv").by, ChosenBy::disturbed);
  EXPECT_TRUE(choices->take_measured().empty());
  choices->timer = std::make_shared<Counter>();
  const auto r = c.run(choices);
  EXPECT_EQ(step_of(r, "conv").by, ChosenBy::measured);
  EXPECT_EQ(step_of(r, "conv").choice->kernel, step_of(r, "conv").measurement->times.back().kernel);
}

/// Pretends that the rules' choice takes one second, and each other candidate what it is told.
class Told final : public plan::KernelTimer {
 public:
  Told(std::string rule, std::vector<plan::Timed> others) : rule_(std::move(rule)), others_(std::move(others)) {}
  Result<std::optional<std::vector<plan::Timed>>> time(const kernel::MatchCall&, std::span<plan::Candidate> candidates,
                                                       std::span<const kernel::Layout>,
                                                       const plan::PlanOptions&) override {
    std::vector<plan::Timed> out;
    size_t next = 0;
    names.clear();
    for (const plan::Candidate& c : candidates) {
      const bool is_rule = c.choice->kernel == rule_;
      if (!is_rule) names.emplace_back(c.choice->kernel);
      out.push_back(is_rule ? plan::Timed{1, 1} : others_.at(std::min(next++, others_.size() - 1)));
    }
    return std::optional(std::move(out));
  }

  std::vector<std::string> names;  ///< of the other candidates

 private:
  std::string rule_;
  std::vector<plan::Timed> others_;
};

TEST(Choice, RepeatedTimesDecide) {
  Conv c;
  const std::string rule = c.measured().by_rule;
  const auto chosen = [&](std::vector<plan::Timed> others) {
    auto choices = std::make_shared<KernelChoices>();
    choices->measure = KernelChoices::Measure::all;
    auto timer = std::make_shared<Told>(rule, std::move(others));
    choices->timer = timer;
    const std::string kernel(step_of(c.run(choices), "conv").choice->kernel);
    EXPECT_GE(timer->names.size(), 2u);
    return kernel == rule
               ? -1
               : static_cast<int>(std::find(timer->names.begin(), timer->names.end(), kernel) - timer->names.begin());
  };
  EXPECT_EQ(chosen({{0.98, 0.98}}), -1);
  EXPECT_EQ(chosen({{0.5, 0.98}}), -1);  // one short run
  EXPECT_EQ(chosen({{0.9, 0.95}}), 0);
  EXPECT_EQ(chosen({{0.51, 0.51}, {0.5, 0.5}}), 0);  // as fast as the second one
  EXPECT_EQ(chosen({{0.6, 0.6}, {0.5, 0.5}}), 1);
  EXPECT_EQ(chosen({{}, {0.5, 0.5}}), 1);  // the first one failed
}

TEST(Choice, APlantedTimeDecides) {
  Conv c;
  const Measurement m = c.measured();
  for (const plan::KernelTime& t : m.times) {
    const auto r = c.run(planted(m, t.kernel));
    EXPECT_EQ(step_of(r, "conv").choice->kernel, t.kernel);
    EXPECT_EQ(step_of(r, "conv").by, ChosenBy::cache);
    const auto again = c.run(planted(m, t.kernel));
    EXPECT_EQ(r.kernels, again.kernels);
    const auto a = r.outputs[0].as<float>(), b = again.outputs[0].as<float>();
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end()));
  }
}

TEST(Choice, TimesOfOtherShapesOrThreadsOrKernelsDoNot) {
  Conv c;
  const Measurement m = c.measured();
  const std::string rule = m.by_rule, other = rule == "cpu.conv.onednn" ? "cpu.conv.per_tap" : "cpu.conv.onednn";
  Measurement threads = m, shape = m;
  threads.threads = 2;
  shape.shape += " +relu";
  for (auto choices : {planted(threads, other), planted(shape, other), planted(m, "cpu.conv.no_such"),
                       planted(m, "cpu.linear.gemm"), planted(m, "reference"), planted(m, "")}) {
    const auto r = c.run(choices);
    EXPECT_EQ(step_of(r, "conv").choice->kernel, rule);
    EXPECT_EQ(step_of(r, "conv").by, ChosenBy::rule);
  }
  EXPECT_EQ(step_of(c.run(planted(threads, other), 2), "conv").choice->kernel, other);
}

TEST(Choice, PinsByShapeAndTheirErrors) {
  Conv c;
  const Measurement m = c.measured();
  EXPECT_EQ(step_of(c.run(pinned(m.shape, "cpu.conv.per_tap")), "conv").choice->kernel, "cpu.conv.per_tap");
  EXPECT_EQ(step_of(c.run(pinned(c.y->producer()->name, "reference")), "conv").device->name(), "reference");
  auto error = [&](std::string_view kernel) {
    auto r = run(c.g.function(), c.g.inputs(), with(pinned(c.y->producer()->name, kernel)));
    EXPECT_FALSE(r.ok());
    return r.ok() ? std::string() : r.error().to_string();
  };
  const std::string where = cat("operation '", c.y->producer()->name, "' (conv): kernel '");
  const std::string unknown = error("cpu.conv.fast");
  EXPECT_TRUE(unknown.starts_with(
      where + "cpu.conv.fast', to which it is pinned, does not exist; those for conv are cpu.conv."))
      << unknown;
  EXPECT_NE(unknown.find(", cpu.conv.winograd, "), std::string::npos) << unknown;
  EXPECT_EQ(error("cpu.linear.gemm"), where + "cpu.linear.gemm', to which it is pinned, does not run conv");
  Graph few;
  Value* y = few.op("conv", {{"x", few.input({1, 4, 9, 9})}, {"weight", few.random({4, 4, 3, 3})}});
  few.function().body().set_outputs({y});
  auto refused = run(few.function(), few.inputs(), with(pinned(y->producer()->name, "cpu.conv.winograd")));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), ErrorCode::unsupported);
  EXPECT_EQ(refused.error().to_string(),
            cat("operation '", y->producer()->name,
                "' (conv): kernel 'cpu.conv.winograd', to which it is pinned, refuses it: few channels"));
}

}  // namespace
}  // namespace moka::devices_test

// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <limits>
#include <random>

#include "devices/cpu/isa.h"
#include "devices/graph_util.h"

/// Transposed convolutions as one convolution per remainder by the stride.
namespace moka::devices_test {
namespace {

using namespace ir;

constexpr std::string_view kPhasesKernel = "cpu.conv_transpose.phases";

struct PhasesCase {
  int64_t images, in, out;
  std::vector<int64_t> size, kernel, strides, pad{};
  std::vector<int64_t> output{};
  std::vector<Epilogue> epilogue{};
  std::vector<int64_t> dilations{};
  int64_t groups = 1;
};

void set(Tensor& t, std::initializer_list<size_t> at, float v) {
  for (size_t i : at) t.mut<float>()[i % static_cast<size_t>(t.shape().count())] = v;
}

/// Runs on one to three threads, which must give the same bits, and compares with the reference. With `odd` some
/// weights are not finite.
void check_phases(const PhasesCase& c, bool odd = false) {
  SCOPED_TRACE(cat(c.images, " x ", c.in, " to ", c.out, " of ", c.size.back(), ", window ", c.kernel[0], " ",
                   c.kernel.back(), " every ", c.strides[0], " ", c.strides.back(), ", ", c.size.size(), " axes, ",
                   c.groups, " groups"));
  Graph g;
  Shape x{c.images, c.in}, w{c.in, c.out / c.groups};
  for (int64_t n : c.size) x.push_back(n);
  for (int64_t n : c.kernel) w.push_back(n);
  Tensor weight = g.random(w, odd ? 0.5f : -0.3f, odd ? 1.0f : 0.3f);
  if (odd) {
    set(weight, {0, 29}, std::numeric_limits<float>::infinity());
    set(weight, {100}, std::numeric_limits<float>::quiet_NaN());
  }
  std::vector<NamedArg> args{
      {"x", g.input(x, odd ? 0.5f : -1)}, {"weight", weight}, {"strides", Tensor::i32(c.strides)}};
  if (!c.dilations.empty()) args.emplace_back("dilations", Tensor::i32(c.dilations));
  if (c.groups > 1) args.emplace_back("groups", static_cast<int>(c.groups));
  if (c.out % 2 == 0) args.emplace_back("bias", g.random({c.out}));
  if (!c.pad.empty()) {
    args.emplace_back("pad_type", "custom");
    args.emplace_back("pad", Tensor::i32(c.pad));
  }
  if (!c.output.empty()) {
    std::vector<int64_t> whole{c.images, c.out};
    whole.insert(whole.end(), c.output.begin(), c.output.end());
    args.emplace_back("output_shape", Tensor::i32(whole));
  }
  Value* y = g.op("conv_transpose", args);
  ASSERT_NE(y, nullptr);
  y->producer()->epilogue = c.epilogue;
  // The next convolution reads the padding channels of the result, which must be zeros.
  Shape one(std::vector<int64_t>(c.size.size() + 2, 1));
  one[0] = 4;
  one[1] = c.out;
  Value* z = odd ? y : g.op("conv", {{"x", y}, {"weight", g.random(one, -0.2f, 0.2f)}});
  g.function().body().set_outputs({z, y});
  const auto expected = run(g.function(), g.inputs(), false, 1);
  ASSERT_TRUE(expected.ok()) << expected.error().to_string();
  std::vector<Tensor> first;
  for (int threads : {1, 2, 3}) {
    plan::PlanOptions o = options(true, threads);
    o.choices = std::make_shared<plan::KernelChoices>();
    o.choices->pins[y->producer()->name] = std::string(kPhasesKernel);
    const auto got = run(g.function(), g.inputs(), o, 2);
    ASSERT_TRUE(got.ok()) << got.error().to_string();
    EXPECT_NE(got->kernels.find(kPhasesKernel), std::string::npos) << got->kernels;
    for (size_t i = 0; i < 2; i++) {
      expect_near(got->outputs[i], expected->outputs[i], 1e-5, cat("output ", i, ", threads ", threads));
      if (threads == 1) continue;
      EXPECT_EQ(0, std::memcmp(got->outputs[i].data(), first[i].data(), first[i].bytes()));
    }
    if (threads == 1) first = got->outputs;
  }
}

TEST(Phases, Channels) {
  for (int64_t in : {1, 3, 16, 17, 40})
    for (int64_t out : {1, 2, 15, 16, 17, 50, 80}) {
      check_phases({2, in, out, {5, 6}, {4, 4}, {2, 2}, {1, 1, 1, 1}});
      check_phases({1, in, out, {3, 7}, {3, 5}, {2, 3}, {1, 0, 2, 1}});
    }
}

TEST(Phases, Windows) {
  for (const std::vector<int64_t>& size : std::vector<std::vector<int64_t>>{{1, 1}, {1, 9}, {4, 3}, {6, 13}})
    for (int64_t window : {1, 2, 3, 4, 5, 8})
      for (int64_t stride : {1, 2, 3, 4})
        for (int64_t pad : {0, 1, 2}) {
          if ((std::min(size[0], size[1]) - 1) * stride + window <= 2 * pad) continue;
          check_phases({1, 17, 18, size, {window, window}, {stride, stride}, {pad, pad, pad, pad}});
          check_phases({1, 8, 33, size, {window, 3}, {stride, 2}, {pad, 0, 0, 1}});
        }
}

TEST(Phases, OneDimensionAndOutputShapes) {
  check_phases({2, 32, 16, {50}, {16}, {8}, {4, 4}});
  check_phases({1, 24, 40, {301}, {4}, {2}, {1, 1}, {}, {{"leaky_relu", 0.1f}}});
  check_phases({1, 16, 16, {6, 7}, {3, 3}, {2, 2}, {1, 1, 1, 1}, {12, 14}});
  check_phases({1, 16, 20, {6, 7}, {3, 3}, {2, 2}, {1, 1, 1, 1}, {11, 13}});
}

TEST(Phases, LargeMapsAreMadeInBands) {
  check_phases({1, 64, 48, {70, 90}, {4, 4}, {2, 2}, {1, 1, 1, 1}, {}, {{"relu"}}});
  check_phases({2, 200, 33, {12, 300}, {3, 3}, {2, 2}, {1, 1, 1, 1}, {}, {{"sigmoid"}}});
}

/// Any case that the kernel supports.
PhasesCase random_phases(std::mt19937& bits) {
  const auto draw = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(bits); };
  PhasesCase c{draw(1, 2), draw(1, 40), draw(1, 50), {}, {}, {}};
  if (draw(0, 3) == 0) {
    c.groups = draw(2, 3);
    c.in = c.groups * devices::cpu::channel_block() * draw(1, 2);
    c.out = c.groups * devices::cpu::channel_block() * draw(1, 3);
  }
  const int64_t axes = draw(1, 3), most = axes == 1 ? 40 : axes == 2 ? 9 : 4;
  for (int64_t i = 0; i < axes; i++) {
    c.size.push_back(draw(1, most));
    c.kernel.push_back(draw(1, axes == 1 ? 9 : 4));
    c.strides.push_back(draw(1, axes == 1 ? 9 : 3));
    c.dilations.push_back(draw(1, 3));
    const int64_t whole = (c.size.back() - 1) * c.strides.back() + (c.kernel.back() - 1) * c.dilations.back() + 1;
    const int64_t before = draw(0, std::min<int64_t>(4, whole - 1));
    c.pad.insert(c.pad.end(), {before, draw(0, std::min<int64_t>(3, whole - 1 - before))});
    c.output.push_back(whole - before - c.pad.back() + (axes > 1 ? 0 : draw(0, c.strides.back() - 1)));
  }
  return c;
}

TEST(Phases, RandomCases) {
  std::mt19937 bits(11);
  for (int i = 0; i < 120; i++) {
    PhasesCase c = random_phases(bits);
    if (i % 3 == 0) c.epilogue = {{"relu6"}};
    if (i % 5 == 0) c.epilogue = {{"sigmoid"}};
    check_phases(c, i % 7 == 0);
  }
}

TEST(Phases, ManyChannelsAreReadInParts) {
  check_phases({1, 700, 70, {6, 5}, {4, 4}, {2, 2}, {1, 1, 1, 1}, {}, {{"relu"}}});
  check_phases({1, 530, 40, {3, 4, 3}, {3, 4, 3}, {2, 2, 1}, {}, {}, {{"leaky_relu", 0.1f}}});
}

TEST(Phases, OddWeightsStayUnderTheInput) {
  check_phases({1, 16, 16, {5, 6}, {4, 4}, {2, 2}, {1, 1, 1, 1}}, true);
  check_phases({2, 17, 18, {4, 3}, {3, 5}, {1, 2}, {0, 1, 2, 2}}, true);
}

}  // namespace
}  // namespace moka::devices_test

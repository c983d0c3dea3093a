// SPDX-License-Identifier: Apache-2.0
// One model, many threads: plans, packed constants and sessions are shared, results are not. Run under ThreadSanitizer
// by `make test-tsan`.
#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "moka/moka.hpp"

namespace moka {
namespace {

constexpr int kThreads = 4, kRounds = 6;
/// Height and width of the pictures: large enough that the planner spreads steps over threads.
constexpr int64_t kSide = 64;

/// Convolution, pooling, a matrix product and a softmax over a batch of any size.
Model network(const ModelConfiguration& configuration) {
  auto weights = [](std::vector<int64_t> shape, int step) {
    MultiArray a(DataType::float32, std::move(shape));
    for (int64_t i = 0; i < a.count(); i++)
      a.as<float>()[static_cast<size_t>(i)] = static_cast<float>((i * step) % 17 - 8) / 16;
    return a;
  };
  ProgramBuilder b;
  auto x = b.input("x", DataType::float32, {-1, 3, kSide, kSide});
  auto c = b.op("conv", {{"x", x}, {"weight", weights({16, 3, 3, 3}, 5)}, {"pad_type", "same"}});
  auto s = b.op("sigmoid", {{"x", b.op("exp", {{"x", b.op("tanh", {{"x", c}})}})}});
  auto p = b.op(
      "max_pool",
      {{"x", s}, {"kernel_sizes", std::vector<int>{2, 2}}, {"pad_type", "valid"}, {"strides", std::vector<int>{2, 2}}});
  auto m = b.op("reduce_mean", {{"x", p}, {"axes", std::vector<int>{2, 3}}, {"keep_dims", false}});
  auto l = b.op("linear", {{"x", m}, {"weight", weights({10, 16}, 3)}, {"bias", weights({10}, 7)}});
  b.output(b.op("softmax", {{"x", l}, {"axis", -1}}, "y"));
  return b.build(configuration);
}

/// A loop, and a shape that depends on values. Both cause planning at run time.
const std::string kLearnedShapes = R"(program(1.3)
{
    func main<ios17>(tensor<int32, [1]> n, tensor<fp32, [8]> x) {
            tensor<int32, [1]> doubled = while_loop(loop_vars = (n))[name = string("double_until_100")] {
                block test(tensor<int32, [1]> i) {
                        int32 limit = const()[name = string("limit"), val = int32(100)];
                        tensor<bool, [1]> below = less(x = i, y = limit)[name = string("below")];
                        bool go = squeeze(x = below)[name = string("go")];
                    } -> (go);
                block body(tensor<int32, [1]> j) {
                        tensor<int32, [1]> twice = add(x = j, y = j)[name = string("twice")];
                    } -> (twice);
            };
            tensor<int32, [?, 1]> where = non_zero(x = x)[name = string("where")];
            tensor<int32, [?, 1]> sum = add(x = where, y = doubled)[name = string("sum")];
        } -> (sum);
})";

/// Runs `body(thread)` on every thread at once.
template <class Body>
void on_threads(const Body& body) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; t++) threads.emplace_back([&body, t] { body(t); });
  for (std::thread& t : threads) t.join();
}

MultiArray batch(int64_t n) {
  MultiArray x(DataType::float32, {n, 3, kSide, kSide});
  for (int64_t i = 0; i < x.count(); i++)
    x.as<float>()[static_cast<size_t>(i)] = static_cast<float>((i * 7 + n) % 23) / 23;
  return x;
}

void expect_equal(const MultiArray& got, const MultiArray& expected) {
  ASSERT_EQ(got.shape(), expected.shape());
  for (int64_t i = 0; i < got.count(); i++) ASSERT_EQ(got.at(i), expected.at(i)) << "element " << i;
}

size_t threads_of_this_process() {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
}

// Without this test the others could pass with every step on one thread. OpenMP keeps the workers of a parallel region
// for the thread that started it.
TEST(ThreadsOfOnePrediction, AreStarted) {
  size_t begun[2];
  for (int threads = 1; threads <= 2; threads++) {
    ModelConfiguration configuration;
    configuration.threads = threads;
    ProgramBuilder b;
    auto x = b.input("x", DataType::float32, {1 << 20});
    b.output(b.op("tanh", {{"x", x}}, "y"));
    const Model model = b.build(configuration);
    std::thread([&] {
      const MultiArray x(DataType::float32, {1 << 20});
      const size_t before = threads_of_this_process();
      model.predict({{"x", x}});
      begun[threads - 1] = threads_of_this_process() - before;
    }).join();
  }
  EXPECT_EQ(begun[0], 0u);
  EXPECT_EQ(begun[1], 1u);
}

/// The processors on which each thread of this process may run.
std::vector<cpu_set_t> allowed_processors() {
  std::vector<cpu_set_t> all;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    cpu_set_t set;
    if (sched_getaffinity(std::stoi(task.path().filename()), sizeof set, &set) == 0) all.push_back(set);
  }
  return all;
}

TEST(ThreadsOfOnePrediction, MayRunAnywhereButOnTheirLeadersProcessor) {
  cpu_set_t own;
  ASSERT_EQ(sched_getaffinity(0, sizeof own, &own), 0);
  std::thread([&] {
    ModelConfiguration configuration;
    configuration.threads = 3;
    network(configuration).predict({{"x", batch(8)}});
    const std::vector<cpu_set_t> all = allowed_processors();
    EXPECT_GE(all.size(), 4u);
    for (const cpu_set_t& one : all) {
      cpu_set_t shared;
      CPU_AND(&shared, &one, &own);
      EXPECT_TRUE(CPU_EQUAL(&shared, &one));
      EXPECT_GE(CPU_COUNT(&one), std::max(1, CPU_COUNT(&own) - 1));
    }
    EXPECT_EQ(sched_getaffinity(0, sizeof own, &own), 0);
    EXPECT_TRUE(CPU_EQUAL(&all.at(0), &own)) << "the first thread of the process takes no part";
  }).join();
}

class Threads : public testing::TestWithParam<int> {};

TEST_P(Threads, ShareOneModel) {
  ModelConfiguration configuration;
  configuration.threads = GetParam();
  const Model model = network(configuration);
  const MultiArray expected = model.predict({{"x", batch(2)}}).array("y");
  on_threads([&](int) {
    for (int i = 0; i < kRounds; i++) expect_equal(model.predict({{"x", batch(2)}}).array("y"), expected);
  });
}

TEST_P(Threads, ReplaceEachOthersPlans) {
  ModelConfiguration configuration;
  configuration.threads = GetParam();
  configuration.cached_shapes = 1;
  const Model model = network(configuration);
  std::vector<MultiArray> expected;
  for (int n = 1; n <= 3; n++) expected.push_back(model.predict({{"x", batch(n)}}).array("y"));
  on_threads([&](int t) {
    for (int i = 0; i < kRounds; i++) {
      const int n = (t + i) % 3;
      expect_equal(model.predict({{"x", batch(n + 1)}}).array("y"), expected[static_cast<size_t>(n)]);
    }
  });
}

TEST_P(Threads, LearnShapesWhileRunning) {
  ModelConfiguration configuration;
  configuration.threads = GetParam();
  configuration.cached_shapes = 1;
  const Model model = Model::from_mil(kLearnedShapes, configuration);
  on_threads([&](int t) {
    for (int i = 0; i < kRounds; i++) {
      const int count = (t + i) % 8 + 1;
      MultiArray n(DataType::int32, {1}), x(DataType::float32, {8});
      n.as<int32_t>()[0] = t + 1;
      for (int k = 0; k < count; k++) x.as<float>()[static_cast<size_t>(k)] = 1;
      int32_t doubled = t + 1;
      while (doubled < 100) doubled *= 2;
      const Features y = model.predict({{"n", n}, {"x", x}});
      const MultiArray& sum = y.array("sum");
      ASSERT_EQ(sum.shape(), (std::vector<int64_t>{count, 1}));
      for (int k = 0; k < count; k++) ASSERT_EQ(sum.at(k), doubled + k);
    }
  });
}

TEST_P(Threads, AskForPlansAndFutures) {
  ModelConfiguration configuration;
  configuration.threads = GetParam();
  const Model model = network(configuration);
  const MultiArray expected = model.predict({{"x", batch(1)}}).array("y");
  on_threads([&](int t) {
    if (t % 2 == 0) {
      EXPECT_FALSE(model.compute_plan({{"x", batch(1)}}, true).operations.empty());
      EXPECT_FALSE(model.mil(true).empty());
    } else {
      auto later = model.predict_async({{"x", batch(1)}});
      expect_equal(later.get().array("y"), expected);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(PerPrediction, Threads, testing::Values(1, 2));

}  // namespace
}  // namespace moka

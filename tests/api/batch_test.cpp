// SPDX-License-Identifier: Apache-2.0
#include <time.h>

#include <cstring>

#include "api/api_util.h"
#include "base/processors.h"
#include "models_folder.h"

namespace moka::test {
namespace {

Model load(const std::string& path, int threads, size_t budget = 0) {
  ModelConfiguration c;
  c.threads = threads;
  c.memory_budget = budget;
  return Model::load(path, c);
}

void expect_same(const Features& a, const Features& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, value] : a) {
    const MultiArray &x = std::get<MultiArray>(value), &y = b.array(name);
    ASSERT_EQ(x.shape(), y.shape());
    EXPECT_EQ(std::memcmp(x.data(), y.data(), static_cast<size_t>(x.count()) * size_of(x.type())), 0) << name;
  }
}

/// Each item of a batch gives the same bits as alone, for any ratio of items to threads.
TEST(Batch, EqualsSinglePredictions) {
  MOKA_NEEDS_MODELS(folder);
  for (int threads : {1, 2, 4}) {
    const Model m = load((*folder / "basic_pitch/nmp.mlpackage").string(), threads);
    std::vector<Features> in;
    for (uint64_t seed = 1; seed <= 7; seed++) {
      in.push_back(random_inputs(m.function(), seed));
      const auto out = m.predict_batch(in);
      ASSERT_EQ(out.size(), in.size());
      if (seed == 1 || seed == 5 || seed == 7)
        for (size_t i = 0; i < in.size(); i++) expect_same(out[i], m.predict(in[i]));
    }
  }
}

TEST(Batch, OfDifferentShapes) {
  const Model m = load(MOKA_GOLDEN "/flexible/range.mlmodel", 2);
  std::vector<Features> in;
  for (int64_t n : {2, 30, 500, 30, 2, 7, 9}) {
    MultiArray x(DataType::float32, {3, n});
    for (int64_t i = 0; i < x.count(); i++) x.as<float>()[static_cast<size_t>(i)] = static_cast<float>(i % 7);
    in.push_back({{m.function().inputs[0].name, x}});
  }
  const auto out = m.predict_batch(in);
  for (size_t i = 0; i < in.size(); i++) expect_same(out[i], m.predict(in[i]));
}

double processor_time(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Each step of the loop is too small to share, so other threads can only work on other items.
TEST(Batch, ItemsRunAtTheSameTime) {
  ModelConfiguration c;
  c.threads = 2;
  const Model m = Model::from_mil(program("tensor<fp32, [4096]> x",
                                          R"(int32 n, tensor<fp32, [4096]> y = while_loop(loop_vars = (int32(0), x)) {
      block test(int32 k, tensor<fp32, [4096]> v) { bool more = less(x = k, y = int32(20000)); } -> (more);
      block step(int32 k, tensor<fp32, [4096]> v) {
        int32 after = add(x = k, y = int32(1));
        tensor<fp32, [4096]> next = tanh(x = v);
      } -> (after, next);
    };)",
                                          "y"),
                                  c);
  const std::vector<Features> in(8, random_inputs(m.function()));
  m.predict_batch(in);
  const double all = processor_time(CLOCK_PROCESS_CPUTIME_ID), own = processor_time(CLOCK_THREAD_CPUTIME_ID);
  const auto out = m.predict_batch(in);
  const double used = processor_time(CLOCK_PROCESS_CPUTIME_ID) - all;
  if (processors() > 1) {
    EXPECT_LT(processor_time(CLOCK_THREAD_CPUTIME_ID) - own, 0.9 * used);
  }
  for (const Features& f : out) expect_same(f, m.predict(in[0]));
}

TEST(Batch, TheFirstItemThatFailsIsNamed) {
  const Model m = Model::from_mil(program("tensor<fp32, [2]> x", "tensor<fp32, [2]> y = exp(x = x);", "y"));
  const Features good{{"x", MultiArray(DataType::float32, {2})}}, bad{{"x", MultiArray(DataType::float32, {3})}};
  std::vector<Features> in(16, good);
  in[5] = in[11] = bad;
  expect_error(ErrorKind::invalid_argument, {"batch item 5", "'x'"}, [&] { m.predict_batch(in); });
}

/// Predictions that share a state see each other's updates, in order.
TEST(Batch, WithAStateInOrder) {
  ModelConfiguration c;
  c.threads = 4;
  const Model m = Model::from_mil(program("state<tensor<fp32, [1]>> kept, tensor<fp32, [1]> x",
                                          R"(tensor<fp32, [1]> old = read_state(input = kept);
    tensor<fp32, [1]> twice = mul(x = old, y = fp32(2));
    tensor<fp32, [1]> sum = add(x = twice, y = x);
    tensor<fp32, [1]> y = coreml_update_state(state = kept, value = sum);)",
                                          "y"),
                                  c);
  State s = m.new_state();
  std::vector<Features> in;
  for (float v : {1.f, 2.f, 3.f, 4.f, 5.f}) in.push_back({{"x", MultiArray::of(std::vector<float>{v}, {1})}});
  const auto out = m.predict_batch(in, {&s, {}});
  double want = 0;
  for (size_t i = 0; i < in.size(); i++)
    EXPECT_EQ(out[i].array("y").at(0), want = 2 * want + static_cast<double>(i + 1));
}

/// A budget for one prediction at a time is enough for a batch.
TEST(Batch, WithinTheBudgetOfOne) {
  const std::string text = program("tensor<fp32, [1024, 256]> x",
                                   R"(tensor<fp32, [1024, 256]> a = exp(x = x);
    tensor<fp32, [256, 1024]> b = transpose(x = a, perm = tensor<int32, [2]>([1, 0]));
    tensor<fp32, [256, 1024]> y = reverse(x = b, axes = tensor<int32, [1]>([0]));)",
                                   "y");
  ModelConfiguration c;
  c.threads = 4;
  const size_t arena = Model::from_mil(text, c).compute_plan().arena_bytes;
  c.memory_budget = arena + arena / 2;
  const Model m = Model::from_mil(text, c);
  const std::vector<Features> in(8, random_inputs(m.function()));
  const auto out = m.predict_batch(in);
  for (const Features& f : out) expect_same(f, out[0]);
}

}  // namespace
}  // namespace moka::test

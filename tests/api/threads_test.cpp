// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstring>
#include <thread>

#include "api/api_util.h"
#include "models_folder.h"

namespace moka::test {
namespace {

bool same_bytes(const Features& a, const Features& b) {
  for (const auto& [name, value] : b) {
    const MultiArray &x = a.array(name), &y = std::get<MultiArray>(value);
    if (x.shape() != y.shape() ||
        std::memcmp(x.data(), y.data(), static_cast<size_t>(y.count()) * size_of(y.type())) != 0)
      return false;
  }
  return a.size() == b.size();
}

struct Task {
  Model model;
  std::vector<Features> inputs, expected;
};

Task task(const std::string& path, int threads, std::vector<std::vector<int64_t>> shapes = {}) {
  ModelConfiguration c;
  c.threads = threads;
  c.cached_shapes = 2;
  Task t{Model::load(path, c), {}, {}};
  for (uint64_t seed = 1; seed <= 4; seed++) {
    Features in = random_inputs(t.model.function(), seed);
    if (!shapes.empty()) {
      MultiArray a(DataType::float32, shapes[seed % shapes.size()]);
      for (int64_t i = 0; i < a.count(); i++)
        a.as<float>()[static_cast<size_t>(i)] = static_cast<float>((i * 37 + static_cast<int64_t>(seed)) % 11) - 5;
      in.begin()->second = a;
    }
    t.expected.push_back(t.model.predict(in));
    t.inputs.push_back(std::move(in));
  }
  return t;
}

/// Many threads on several models give the same bytes as a single thread.
void run(const std::vector<Task>& tasks, int count, int rounds) {
  std::atomic<int> wrong{0}, failed{0};
  std::vector<std::thread> threads;
  for (int k = 0; k < count; k++)
    threads.emplace_back([&, k] {
      for (int n = 0; n < rounds; n++) {
        const Task& t = tasks[static_cast<size_t>(k + n) % tasks.size()];
        size_t i = static_cast<size_t>(k * 3 + n) % t.inputs.size();
        try {
          wrong += !same_bytes(t.model.predict(t.inputs[i]), t.expected[i]);
        } catch (const std::exception& e) {
          failed++;
          ADD_FAILURE() << e.what();
        }
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(failed, 0);
}

TEST(Threads, ProcessorsOfThoseThatHelp) {
  ModelConfiguration c;
  c.processors = {0};
  const std::string path = MOKA_GOLDEN "/flexible/range.mlmodel";
  const Model one = Model::load(path, c);
  c.threads = 2;
  const Model two = Model::load(path, c);
  const Features inputs = random_inputs(one.function());
  EXPECT_TRUE(same_bytes(one.predict(inputs), two.predict(inputs)));
  for (const int wrong : {-1, 1 << 20}) {
    c.processors = {0, wrong};
    const std::string number = std::to_string(wrong);
    expect_error(ErrorKind::invalid_argument, {"processors", "from 0 to", number.c_str()},
                 [&] { Model::load(path, c); });
  }
}

TEST(Threads, ImpossibleNumbers) {
  ModelConfiguration c;
  for (const int wrong : {-1, 1025}) {
    c.threads = wrong;
    const std::string number = std::to_string(wrong);
    expect_error(ErrorKind::invalid_argument, {"threads: expected a number from 0 to 1024, got ", number.c_str()},
                 [&] { Model::load(MOKA_GOLDEN "/flexible/range.mlmodel", c); });
  }
}

TEST(Threads, OneModelManyThreads) {
  MOKA_NEEDS_MODELS(folder);
  for (int threads : {1, 2}) {
    std::vector<Task> one;
    one.push_back(task((*folder / "basic_pitch/nmp.mlpackage").string(), threads));
    run(one, 6, 4);
  }
}

TEST(Threads, SeveralModelsAtOnce) {
  MOKA_NEEDS_MODELS(folder);
  std::vector<Task> tasks;
  for (const char* name : {"silero_vad/silero-vad-unified-v6.0.0.mlpackage", "image_nn/MNIST.mlmodel",
                           "dtln_aec/DTLN_AEC_128_Part1.mlpackage", "image_nn/TinyDrawingEmbedding.mlmodel"})
    tasks.push_back(task((*folder / name).string(), 2));
  run(tasks, 8, 20);
}

/// More shapes than plans are kept, so that threads drop each other's plans.
TEST(Threads, FlexibleShapes) {
  std::vector<Task> tasks;
  tasks.push_back(task(MOKA_GOLDEN "/flexible/range.mlmodel", 2, {{3, 2}, {4, 50}, {5, 3000}, {3, 7}}));
  run(tasks, 8, 200);
}

TEST(Threads, PlansWhileOthersPredict) {
  std::vector<Task> tasks;
  tasks.push_back(task(MOKA_GOLDEN "/flexible/range.mlmodel", 1, {{3, 2}, {4, 50}, {5, 3000}, {3, 7}}));
  std::thread other([&] {
    for (int n = 0; n < 100; n++)
      EXPECT_FALSE(
          tasks[0].model.compute_plan(tasks[0].inputs[static_cast<size_t>(n) % 4], n % 2 == 0).operations.empty());
  });
  run(tasks, 3, 100);
  other.join();
}

/// A state belongs to one prediction at a time. Other predictions get an error, and no update is lost.
TEST(Threads, OneStateAtATime) {
  std::string t = "tensor<fp32, [1]>";
  Model m =
      Model::from_mil(program("state<" + t + "> total, " + t + " x",
                              t + " before = read_state(input = total)[name = string(\"before\")];\n" + t +
                                  " sum = add(x = before, y = x)[name = string(\"sum\")];\n" + t +
                                  " y = coreml_update_state(state = total, value = sum)[name = string(\"update\")];",
                              "y"));
  State s = m.new_state();
  std::atomic<int> done{0};
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; k++)
    threads.emplace_back([&] {
      PredictionOptions options{&s};
      for (int n = 0; n < 200; n++) {
        try {
          m.predict({{"x", MultiArray::of(std::vector<float>{1}, {1})}}, options);
          done++;
        } catch (const Exception& e) {
          EXPECT_EQ(e.kind(), ErrorKind::invalid_argument);
        }
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(s.read("total").at(0), done);
}

}  // namespace
}  // namespace moka::test

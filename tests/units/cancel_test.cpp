// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <filesystem>
#include <random>
#include <thread>

#include "api/api_util.h"
#include "base/error.h"
#include "units/vulkan_driver.h"

/// Predictions and loading that are cancelled, or that have a deadline.
namespace moka::test {
namespace {

using namespace std::chrono_literals;

class Cancel : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "vulkan" && !has_vulkan_driver()) GTEST_SKIP() << "this machine has no driver for vulkan";
    set_warning_handler([](const std::string&) {});
  }
  void TearDown() override { set_warning_handler(nullptr); }

  /// count += x, twice: before a loop of `turns` and behind it. y = tanh(...tanh(count)) + count.
  Model counter(int turns) const {
    ModelConfiguration c;
    c.device = GetParam();
    c.rates = "off";
    c.threads = 1;
    return Model::from_mil(program("state<tensor<fp32, [256]>> count, tensor<fp32, [256]> x",
                                   R"(tensor<fp32, [256]> old = read_state(input = count);
      tensor<fp32, [256]> one = add(x = old, y = x);
      write_state(data = one, input = count);
      int32 n, tensor<fp32, [256]> waved = while_loop(loop_vars = (int32(0), one)) {
        block test(int32 k, tensor<fp32, [256]> v) { bool more = less(x = k, y = int32()" +
                                       std::to_string(turns) + R"()); } -> (more);
        block step(int32 k, tensor<fp32, [256]> v) {
          int32 after = add(x = k, y = int32(1));
          tensor<fp32, [256]> next = tanh(x = v);
        } -> (after, next);
      };
      tensor<fp32, [256]> again = read_state(input = count);
      tensor<fp32, [256]> two = add(x = again, y = x);
      write_state(data = two, input = count);
      tensor<fp32, [256]> y = add(x = waved, y = two);)",
                                   "y"),
                           c);
  }
  static Features ones() {
    MultiArray x(DataType::float32, {256});
    for (float& v : x.as<float>()) v = 1;
    return {{"x", x}};
  }
  static double count(const State& state) { return state.read("count").at(200); }
};

INSTANTIATE_TEST_SUITE_P(Devices, Cancel, ::testing::Values("cpu", "simulator", "vulkan"),
                         [](const auto& p) { return p.param; });

TEST_P(Cancel, LeavesTheStateAsItWas) {
  const Model m = counter(1'000'000), few = counter(2);
  State state = few.new_state();
  few.predict(ones(), PredictionOptions{&state});
  few.predict(ones(), PredictionOptions{&state});
  EXPECT_EQ(few.function().states.size(), 1u);

  State other = m.new_state();
  other.write("count", state.read("count"));
  PredictionOptions options{&other};
  options.deadline = std::chrono::steady_clock::now() + 20ms;
  expect_error(ErrorKind::deadline_exceeded, {"deadline"}, [&] { m.predict(ones(), options); });
  EXPECT_EQ(count(other), 4);

  std::stop_source source;
  options.deadline.reset();
  options.stop = source.get_token();
  std::thread stopping([&] {
    std::this_thread::sleep_for(20ms);
    source.request_stop();
  });
  expect_error(ErrorKind::cancelled, {"cancelled"}, [&] { m.predict(ones(), options); });
  stopping.join();
  EXPECT_EQ(count(other), 4);
  expect_error(ErrorKind::cancelled, {"cancelled"}, [&] { m.predict(ones(), options); });

  // What was not stopped goes on from there, with a stop that nobody asks for, too.
  options.stop = std::stop_source().get_token();
  options.state = &state;
  EXPECT_EQ(few.predict(ones(), options).array("y").at(0) > 6, true);
  EXPECT_EQ(count(state), 6);
}

TEST_P(Cancel, QueuedPredictionsThatShareAState) {
  const Model m = counter(50);
  State state = m.new_state();
  std::vector<std::future<Features>> all;
  for (int i = 0; i < 20; i++) all.push_back(m.predict_async(ones(), PredictionOptions{&state}));
  for (int i = 0; i < 20; i++) EXPECT_NEAR(all[static_cast<size_t>(i)].get().array("y").at(3), 2 * i + 2.2, 0.3);
  EXPECT_EQ(count(state), 40);
}

/// Whatever a stop hits, each state counts the predictions that succeeded.
TEST_P(Cancel, AtRandomMoments) {
  const Model m = counter(GetParam() == "cpu" ? 4000 : 40);  // milliseconds
  State warm = m.new_state();
  m.predict(ones(), PredictionOptions{&warm});
  constexpr int kThreads = 8, kEach = 42;
  std::atomic<int> wrong{0}, cancelled{0}, late{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; t++)
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<uint32_t>(t));
      State state = m.new_state();
      int succeeded = 0;
      for (int i = 0; i < kEach; i++) {
        const std::chrono::microseconds pause(random() % 2000);
        std::stop_source source;
        PredictionOptions options{&state};
        options.stop = source.get_token();
        const bool by_deadline = i % 3 == 0;
        if (by_deadline) options.deadline = std::chrono::steady_clock::now() + pause;
        std::future<Features> result = m.predict_async(ones(), options);
        if (!by_deadline && i % 3 == 1) {
          std::this_thread::sleep_for(pause);
          source.request_stop();
        }
        try {
          result.get();
          succeeded++;
        } catch (const Exception& e) {
          cancelled += e.kind() == ErrorKind::cancelled;
          late += e.kind() == ErrorKind::deadline_exceeded;
          wrong += e.kind() != ErrorKind::cancelled && e.kind() != ErrorKind::deadline_exceeded;
        }
        if (count(state) != 2 * succeeded) wrong++;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(cancelled, 0);
  EXPECT_GT(late, 0);
}

/// A stop behind any operation puts back what the ones before it wrote: slices of a cache, also with strides and
/// reversed, and a whole state.
TEST(Undo, PutsBackSlicesOfStates) {
  const std::string cache = "tensor<fp32, [1, 3, 16, 8]>", line = "tensor<fp32, [1, 3, 2, 8]>";
  ModelConfiguration c;
  c.device = "cpu";
  const Model m = Model::from_mil(
      program("state<" + cache + "> k, state<" + cache + "> v, " + line +
                  " x, tensor<int32, [4]> begin, tensor<int32, [4]> end",
              cache + " k0 = read_state(input = k)[name = string(\"k0\")];\n" + cache +
                  " k1 = slice_update(x = k0, update = x, begin = begin, end = end)[name = string(\"k1\")];\n"
                  "write_state(data = k1, input = k)[name = string(\"wk\")];\n" +
                  cache +
                  " k2 = slice_update(x = k1, update = x, begin = tensor<int32, [4]>([0, 0, 15, 0]), "
                  "end = tensor<int32, [4]>([1, 3, 3, 8]), stride = tensor<int32, [4]>([1, 1, -6, 1]))[name = "
                  "string(\"k2\")];\n"
                  "write_state(data = k2, input = k)[name = string(\"wk2\")];\n" +
                  cache + " v0 = read_state(input = v)[name = string(\"v0\")];\n" + cache +
                  " v1 = add(x = v0, y = fp32(1.0))[name = string(\"v1\")];\n"
                  "write_state(data = v1, input = v)[name = string(\"wv\")];\n" +
                  cache + " y = add(x = k2, y = v1)[name = string(\"y\")];\n" + cache +
                  " z = exp(x = y)[name = string(\"z\")];",
              "z"),
      c);
  const auto ints = [](std::initializer_list<int32_t> numbers) {
    MultiArray a(DataType::int32, {4});
    std::copy(numbers.begin(), numbers.end(), a.as<int32_t>().begin());
    return a;
  };
  const Features in{{"x", counted({1, 3, 2, 8}, 1)}, {"begin", ints({0, 0, 5, 0})}, {"end", ints({1, 3, 7, 8})}};
  State state = m.new_state();
  state.write("k", counted({1, 3, 16, 8}, 0.5f));
  state.write("v", counted({1, 3, 16, 8}, 0.25f));
  const std::vector<double> k = values(state.read("k")), v = values(state.read("v"));
  std::vector<std::string> seen;
  State other = state.copy();
  PredictionOptions all{&other};
  m.intermediates(
      in, [&](std::string_view operation, auto, const MultiArray&) { seen.emplace_back(operation); }, all);
  EXPECT_NE(values(other.read("k")), k);
  EXPECT_NE(values(other.read("v")), v);
  ASSERT_GE(seen.size(), 4u);
  for (size_t n = 0; n + 1 < seen.size(); n++) {
    std::stop_source source;
    PredictionOptions options{&state};
    options.stop = source.get_token();
    size_t count = 0;
    const auto stop = [&](std::string_view, std::string_view, const MultiArray&) {
      if (count++ == n) source.request_stop();
    };
    expect_error(ErrorKind::cancelled, {}, [&] { m.intermediates(in, stop, options); });
    EXPECT_EQ(values(state.read("k")), k) << "behind " << seen[n];
    EXPECT_EQ(values(state.read("v")), v) << "behind " << seen[n];
  }
  PredictionOptions calm{&state};
  calm.stop = std::stop_source().get_token();
  m.predict(in, calm);
  EXPECT_EQ(values(state.read("k")), values(other.read("k")));
  calm.deadline = std::chrono::steady_clock::now();
  expect_error(ErrorKind::deadline_exceeded, {}, [&] { m.predict(in, calm); });
  EXPECT_EQ(values(state.read("k")), values(other.read("k")));
}

size_t count_threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

TEST(Queue, EndsItsThreads) {
  ModelConfiguration c;
  c.threads = 1;
  const Model m = Model::from_mil(program("tensor<fp32, [4]> x", "tensor<fp32, [4]> y = exp(x = x);", "y"), c);
  const Features in{{"x", MultiArray(DataType::float32, {4})}};
  std::this_thread::sleep_for(400ms);  // queues of other tests end theirs
  const size_t before = count_threads();
  std::vector<std::future<Features>> all;
  for (int i = 0; i < 1000; i++) all.push_back(m.predict_async(in));
  for (auto& f : all) EXPECT_EQ(f.get().array("y").at(0), 1);
  for (int i = 0; i < 100 && count_threads() > before; i++) std::this_thread::sleep_for(50ms);
  EXPECT_EQ(count_threads(), before);
}

TEST(Queue, CallsBackOnce) {
  const Model m = Model::from_mil(program("tensor<fp32, [4]> x", "tensor<fp32, [4]> y = exp(x = x);", "y"));
  std::promise<std::string> good, bad;
  m.predict_async({{"x", MultiArray(DataType::float32, {4})}}, {}, [&](Features out, std::exception_ptr failure) {
    good.set_value(failure == nullptr ? cat(out.array("y").at(0)) : "failed");
  });
  m.predict_async({}, {}, [&](Features out, std::exception_ptr failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const Exception& e) {
      bad.set_value(out.empty() ? e.what() : "outputs");
    }
  });
  EXPECT_EQ(good.get_future().get(), "1");
  EXPECT_NE(bad.get_future().get().find("'x'"), std::string::npos);
}

/// Work that waits for a thread ends without one.
TEST(Queue, StopsWhatWaits) {
  ModelConfiguration c;
  c.threads = 1;
  const Model m = Model::from_mil(program("state<tensor<fp32, [1]>> s, tensor<fp32, [1]> x",
                                          R"(tensor<fp32, [1]> old = read_state(input = s);
      int32 n, tensor<fp32, [1]> y = while_loop(loop_vars = (int32(0), x)) {
        block test(int32 k, tensor<fp32, [1]> v) { bool more = less(x = k, y = int32(900000)); } -> (more);
        block step(int32 k, tensor<fp32, [1]> v) {
          int32 after = add(x = k, y = int32(1));
          tensor<fp32, [1]> next = tanh(x = v);
        } -> (after, next);
      };
      write_state(data = old, input = s);)",
                                          "y"),
                                  c);
  State state = m.new_state();
  std::stop_source first, second;
  PredictionOptions one{&state}, two{&state}, three{&state};
  one.stop = first.get_token();
  two.stop = second.get_token();
  three.deadline = std::chrono::steady_clock::now() + 1ms;
  const Features in{{"x", MultiArray(DataType::float32, {1})}};
  std::future<Features> running = m.predict_async(in, one), waiting = m.predict_async(in, two),
                        late = m.predict_async(in, three);
  second.request_stop();
  expect_error(ErrorKind::cancelled, {}, [&] { waiting.get(); });
  expect_error(ErrorKind::deadline_exceeded, {}, [&] { late.get(); });
  EXPECT_EQ(running.wait_for(0s), std::future_status::timeout);
  first.request_stop();
  expect_error(ErrorKind::cancelled, {}, [&] { running.get(); });
}

TEST(Queue, RunsWorkThatMakesItsInputs) {
  const Model m = Model::from_mil(program("tensor<fp32, [4]> x", "tensor<fp32, [4]> y = relu(x = x);", "y"));
  std::promise<float> result;
  std::promise<std::thread::id> thread;
  queue_prediction({}, [&](const PredictionOptions& options, std::exception_ptr refusal) {
    EXPECT_EQ(refusal, nullptr);
    thread.set_value(std::this_thread::get_id());
    const std::vector<float> made{-1, 2, 3, 4};
    const Features out = m.predict({{"x", MultiArray::of(made, {4})}}, options);
    result.set_value(std::get<MultiArray>(out.at("y")).as<float>()[1]);
  });
  EXPECT_EQ(result.get_future().get(), 2);
  EXPECT_NE(thread.get_future().get(), std::this_thread::get_id());

  PredictionOptions late;
  late.deadline = std::chrono::steady_clock::now() - 1ms;
  std::promise<std::exception_ptr> refused;
  queue_prediction(late, [&](const PredictionOptions&, std::exception_ptr refusal) { refused.set_value(refusal); });
  expect_error(ErrorKind::deadline_exceeded, {}, [&] { std::rethrow_exception(refused.get_future().get()); });
}

TEST(Loading, IsCancelledAndReportsProgress) {
  std::string body;
  for (int i = 0; i < 200; i++)
    body += "tensor<fp32, [8, 8]> x" + std::to_string(i + 1) + " = matmul(x = x" + std::to_string(i) + ", y = x" +
            std::to_string(i) + ");\n";
  const std::string text = program("tensor<fp32, [8, 8]> x0", body, "x200");
  std::map<std::string, size_t> last;
  ModelConfiguration c;
  c.progress = [&](const LoadProgress& p) {
    EXPECT_LE(p.done, p.total);
    last[std::string(p.stage)] = p.total;
  };
  const Model m = Model::from_mil(text, c);
  EXPECT_GT(last["passes"], 10u);
  EXPECT_GE(last["plan"], 200u);
  EXPECT_FALSE(m.configuration().progress);

  std::stop_source source;
  c.stop = source.get_token();
  c.progress = [&](const LoadProgress& p) {
    if (p.stage == "plan") source.request_stop();
  };
  expect_error(ErrorKind::cancelled, {}, [&] { Model::from_mil(text, c); });
  c.progress = nullptr;
  expect_error(ErrorKind::cancelled, {}, [&] { Model::from_mil(text, c); });
  c.stop = {};
  c.deadline = std::chrono::steady_clock::now();
  expect_error(ErrorKind::deadline_exceeded, {}, [&] { Model::from_mil(text, c); });
  c.deadline.reset();
  EXPECT_EQ(Model::from_mil(text, c).function().outputs.size(), 1u);
}

}  // namespace
}  // namespace moka::test

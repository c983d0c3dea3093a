// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "moka/moka.h"

/// Options of predictions, batches, cancellations and queued predictions in C.
namespace {

struct FreeAsync {
  void operator()(moka_model* m) const { moka_model_free(m); }
  void operator()(moka_features* f) const { moka_features_free(f); }
  void operator()(moka_state* s) const { moka_state_free(s); }
  void operator()(moka_cancellation* c) const { moka_cancellation_free(c); }
};
template <class T>
using Held = std::unique_ptr<T, FreeAsync>;

/// count += x; y = count and z = 2 count behind a loop of `turns`.
Held<moka_model> counter(int turns) {
  const std::string text = R"(program(1.3)
{
  func main<ios18>(state<tensor<fp32, [1]>> count, tensor<fp32, [1]> x) {
    tensor<fp32, [1]> old = read_state(input = count)[name = string("old")];
    tensor<fp32, [1]> sum = add(x = old, y = x)[name = string("sum")];
    write_state(data = sum, input = count)[name = string("write")];
    int32 n, tensor<fp32, [1]> y = while_loop(loop_vars = (int32(0), sum)) {
      block test(int32 k, tensor<fp32, [1]> v) { bool more = less(x = k, y = int32()" +
                           std::to_string(turns) + R"()); } -> (more);
      block step(int32 k, tensor<fp32, [1]> v) {
        int32 after = add(x = k, y = int32(1));
        tensor<fp32, [1]> next = relu(x = v);
      } -> (after, next);
    };
    tensor<fp32, [1]> z = add(x = y, y = y)[name = string("z")];
  } -> (y, z);
}
)";
  moka_model* m = nullptr;
  EXPECT_EQ(moka_model_load_mil(text.c_str(), nullptr, &m), MOKA_OK) << moka_last_error();
  return Held<moka_model>(m);
}

Held<moka_features> empty_features() {
  moka_features* f = nullptr;
  EXPECT_EQ(moka_features_new(&f), MOKA_OK);
  return Held<moka_features>(f);
}

Held<moka_features> one() {
  static float value = 1;
  static const int64_t shape = 1;
  auto f = empty_features();
  const moka_array a{&value, MOKA_FLOAT32, 1, &shape, nullptr};
  EXPECT_EQ(moka_features_set_array(f.get(), "x", &a), MOKA_OK);
  return f;
}

Held<moka_state> state_of(const moka_model* m) {
  moka_state* s = nullptr;
  EXPECT_EQ(moka_state_new(m, &s), MOKA_OK);
  return Held<moka_state>(s);
}

float number(const moka_features* f, const char* name) {
  moka_array a{};
  EXPECT_EQ(moka_features_get_array(f, name, &a), MOKA_OK) << moka_last_error();
  return a.data == nullptr ? -1 : *static_cast<const float*>(a.data);
}

float count_of(moka_state* s) {
  moka_array a{};
  EXPECT_EQ(moka_state_read(s, "count", &a), MOKA_OK);
  return *static_cast<const float*>(a.data);
}

/// What a queued prediction reports.
struct Done {
  std::mutex mutex;
  std::condition_variable changed;
  int calls = 0;
  moka_status status = MOKA_OK;
  std::string message;

  static void report(void* context, moka_status status, const char* message) {
    auto& done = *static_cast<Done*>(context);
    const std::lock_guard lock(done.mutex);
    done.calls++;
    done.status = status;
    if (message != nullptr) done.message = message;
    done.changed.notify_all();
  }
  moka_status wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return calls > 0; });
    return status;
  }
};

TEST(CAsync, OptionsChooseOutputsAndEndPredictions) {
  const auto m = counter(2);
  const auto state = state_of(m.get());
  const auto in = one(), out = empty_features();
  moka_prediction_options options = MOKA_PREDICTION_OPTIONS_INIT;
  const char* const names[] = {"z"};
  options.state = state.get();
  options.outputs = names;
  options.output_count = 1;
  options.timeout = 60;
  ASSERT_EQ(moka_model_predict_with(m.get(), in.get(), out.get(), &options), MOKA_OK) << moka_last_error();
  EXPECT_EQ(moka_features_count(out.get()), 1u);
  EXPECT_EQ(number(out.get(), "z"), 2);

  const auto endless = counter(900'000);
  const auto other = state_of(endless.get());
  options = MOKA_PREDICTION_OPTIONS_INIT;
  options.state = other.get();
  options.timeout = 0.01;
  EXPECT_EQ(moka_model_predict_with(endless.get(), in.get(), out.get(), &options), MOKA_DEADLINE_EXCEEDED);
  EXPECT_EQ(count_of(other.get()), 0);
  options.timeout = -1;
  EXPECT_EQ(moka_model_predict_with(endless.get(), in.get(), out.get(), &options), MOKA_INVALID_ARGUMENT);
  options.timeout = 0;
  options.struct_size = 1;
  EXPECT_EQ(moka_model_predict_with(endless.get(), in.get(), out.get(), &options), MOKA_INVALID_ARGUMENT);
}

TEST(CAsync, BatchesInOrder) {
  const auto m = counter(2);
  const auto state = state_of(m.get());
  moka_prediction_options options = MOKA_PREDICTION_OPTIONS_INIT;
  options.state = state.get();
  const auto in = one();
  const auto a = empty_features(), b = empty_features(), c = empty_features();
  const moka_features* inputs[] = {in.get(), in.get(), in.get()};
  moka_features* const outputs[] = {a.get(), b.get(), c.get()};
  ASSERT_EQ(moka_model_predict_batch(m.get(), inputs, outputs, 3, &options), MOKA_OK) << moka_last_error();
  EXPECT_EQ(number(a.get(), "y"), 1);
  EXPECT_EQ(number(c.get(), "y"), 3);
  const auto empty = empty_features();
  inputs[1] = empty.get();
  EXPECT_EQ(moka_model_predict_batch(m.get(), inputs, outputs, 3, &options), MOKA_INVALID_ARGUMENT);
  EXPECT_NE(std::string(moka_last_error()).find("batch item 1"), std::string::npos);
  EXPECT_EQ(number(b.get(), "y"), 2);
  inputs[1] = nullptr;
  EXPECT_EQ(moka_model_predict_batch(m.get(), inputs, outputs, 3, &options), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_model_predict_batch(m.get(), nullptr, nullptr, 0, nullptr), MOKA_OK);
}

TEST(CAsync, QueuesPredictions) {
  auto m = counter(2);
  auto state = state_of(m.get());
  moka_prediction_options options = MOKA_PREDICTION_OPTIONS_INIT;
  options.state = state.get();
  std::vector<Held<moka_features>> outputs;
  std::vector<Done> done(10);
  for (int i = 0; i < 10; i++) {
    outputs.push_back(empty_features());
    const auto in = one();
    ASSERT_EQ(moka_model_predict_async(m.get(), in.get(), outputs.back().get(), &options, &Done::report,
                                       &done[static_cast<size_t>(i)]),
              MOKA_OK);
  }
  m.reset();
  state.reset();
  for (size_t i = 0; i < 10; i++) {
    EXPECT_EQ(done[i].wait(), MOKA_OK) << done[i].message;
    EXPECT_EQ(number(outputs[i].get(), "y"), static_cast<float>(i + 1));
  }
  EXPECT_EQ(moka_model_predict_async(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr), MOKA_INVALID_ARGUMENT);
}

TEST(CAsync, CancelsWhatRunsAndWhatWaits) {
  const auto m = counter(900'000);
  const auto state = state_of(m.get());
  moka_cancellation* made = nullptr;
  ASSERT_EQ(moka_cancellation_new(&made), MOKA_OK);
  Held<moka_cancellation> cancellation(made);
  moka_prediction_options options = MOKA_PREDICTION_OPTIONS_INIT;
  options.state = state.get();
  options.cancellation = cancellation.get();
  const auto in = one(), a = empty_features(), b = empty_features();
  Done first, second;
  ASSERT_EQ(moka_model_predict_async(m.get(), in.get(), a.get(), &options, &Done::report, &first), MOKA_OK);
  ASSERT_EQ(moka_model_predict_async(m.get(), in.get(), b.get(), &options, &Done::report, &second), MOKA_OK);
  EXPECT_EQ(moka_cancellation_is_cancelled(cancellation.get()), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(moka_cancellation_cancel(cancellation.get()), MOKA_OK);
  EXPECT_EQ(moka_cancellation_is_cancelled(cancellation.get()), 1);
  cancellation.reset();
  EXPECT_EQ(first.wait(), MOKA_CANCELLED);
  EXPECT_EQ(second.wait(), MOKA_CANCELLED);
  EXPECT_EQ(first.message.empty(), false);
  EXPECT_EQ(count_of(state.get()), 0);
  EXPECT_STREQ(moka_status_name(MOKA_CANCELLED), "cancelled");
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
#include "moka/stream.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "api/api_util.h"
#include "devices/simulator/device.h"

namespace moka::test {
namespace {

using devices::simulator::count_running;
using devices::simulator::set_faults;

const std::string kStreamModel = program("tensor<fp32, [64]> x",
                                         "tensor<fp32, [64]> a = exp(x = x)[name = string(\"a\")];\n"
                                         "tensor<fp32, [64]> y = tanh(x = a)[name = string(\"y\")];\n",
                                         "y");

class Streams : public ::testing::Test {
 protected:
  void TearDown() override {
    set_faults({});
    set_warning_handler(nullptr);
  }
  static Model load(const std::string& device = "simulator") {
    ModelConfiguration c;
    c.device = device;
    c.rates = "off";
    return Model::from_mil(kStreamModel, c);
  }
  static Features inputs(int i) {
    MultiArray x(DataType::float32, {64});
    for (size_t k = 0; k < 64; k++) x.as<float>()[k] = static_cast<float>(i) / 8 - static_cast<float>(k) / 64;
    return {{"x", x}};
  }
  static void hold(bool holds) { set_faults({.holds = holds}); }
};

TEST_F(Streams, ResultsComeInTheOrderOfTheInputs) {
  for (const char* device : {"simulator", "cpu"})
    for (int at_once : {1, 2, 3}) {
      const Model m = load(device);
      Stream stream(m, {.ahead = 3, .at_once = at_once});
      std::vector<std::vector<double>> got;
      for (int i = 0; i < 20; i++) {
        stream.push(inputs(i));
        if (stream.size() > 3) got.push_back(values(stream.pop().array("y")));
      }
      while (stream.size() > 0) got.push_back(values(stream.pop().array("y")));
      ASSERT_EQ(got.size(), 20u);
      for (int i = 0; i < 20; i++)
        EXPECT_EQ(got[static_cast<size_t>(i)], values(m.predict(inputs(i)).array("y"))) << device << ' ' << i;
    }
}

/// The device finishes nothing while it is held. Inputs that are prepared meanwhile overlap with its work.
TEST_F(Streams, InputsAreMadeWhileTheDeviceComputes) {
  const Model m = load();
  Stream stream(m);
  hold(true);
  std::vector<int> made;
  stream.push(inputs(0));
  stream.push(inputs(1));
  // Two predictions are on the device at the same time: the second copies its values while the first computes.
  while (count_running() < 2) std::this_thread::yield();
  for (int i = 2; i < 4; i++) {
    made.push_back(i);
    stream.push(inputs(i));
  }
  EXPECT_EQ(made, (std::vector<int>{2, 3}));
  EXPECT_EQ(count_running(), 2);
  EXPECT_EQ(stream.size(), 4u);
  hold(false);
  for (int i = 0; i < 4; i++) EXPECT_EQ(values(stream.pop().array("y")), values(m.predict(inputs(i)).array("y")));
}

/// Two stages of 20 ms, neither of which uses a processor, take little more than one of them.
TEST_F(Streams, StagesOverlap) {
  const Model m = load();
  m.predict(inputs(0));
  devices::simulator::set_least_seconds(0.02);
  const auto start = std::chrono::steady_clock::now();
  Stream stream(m);
  for (int i = 0; i < 25; i++) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stream.push(inputs(i));
    if (stream.size() > 3) stream.pop();
  }
  while (stream.size() > 0) stream.pop();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  devices::simulator::set_least_seconds(0);
  EXPECT_GE(took.count(), 25 * 0.02);
  EXPECT_LT(took.count(), 25 * 0.03);
}

TEST_F(Streams, PushWaitsForPredictionsThatAreNotDone) {
  const Model m = load();
  Stream stream(m, {.ahead = 2});
  hold(true);
  std::atomic<int> pushed{0};
  std::thread pusher([&] {
    for (int i = 0; i < 6; i++) {
      stream.push(inputs(i));
      pushed++;
    }
  });
  while (count_running() < 2) std::this_thread::yield();
  EXPECT_LE(pushed, 2);
  hold(false);
  pusher.join();
  EXPECT_EQ(stream.size(), 6u);
  for (int i = 0; i < 6; i++) EXPECT_EQ(values(stream.pop().array("y")), values(m.predict(inputs(i)).array("y")));
}

TEST_F(Streams, ErrorsNameTheItemAndTheStreamGoesOn) {
  const Model m = load();
  Stream stream(m);
  stream.push(inputs(0));
  stream.push({});
  stream.push(inputs(2));
  stream.pop();
  expect_error(ErrorKind::invalid_argument, {"stream item 1", "input 'x'", "got nothing"}, [&] { stream.pop(); });
  EXPECT_EQ(values(stream.pop().array("y")), values(m.predict(inputs(2)).array("y")));
  expect_error(ErrorKind::invalid_argument, {"stream: pop"}, [&] { stream.pop(); });
}

TEST_F(Streams, RefuseOptionsThatMakeNoSense) {
  expect_error(ErrorKind::invalid_argument, {"ahead: expected at least 1"}, [] { Stream(load("cpu"), {.ahead = 0}); });
  for (const int at_once : {0, 100'000})
    expect_error(ErrorKind::invalid_argument,
                 {"at_once: expected a number from 1 to 1024", std::to_string(at_once).c_str()},
                 [&] { Stream(load("cpu"), {.at_once = at_once}); });
}

TEST_F(Streams, GoOnWithoutADeviceThatIsLost) {
  set_warning_handler([](const std::string&) {});
  const Model m = load();
  std::vector<std::string> remarks;
  Stream stream(m, {.prediction = {.remarks = &remarks}});
  set_faults({.lost_after = 2});
  for (int i = 0; i < 8; i++) stream.push(inputs(i));
  const Model cpu = load("cpu");
  for (int i = 0; i < 8; i++) {
    const auto got = values(stream.pop().array("y")), right = values(cpu.predict(inputs(i)).array("y"));
    for (size_t k = 0; k < right.size(); k++) EXPECT_NEAR(got[k], right[k], 1e-5);
  }
  EXPECT_FALSE(remarks.empty());
}

TEST_F(Streams, WithAStateGoOneByOne) {
  const std::string text =
      "program(1.0)\n{\n func main<ios18>(state<tensor<fp32, [1]>> sum, tensor<fp32, [1]> x) {\n"
      "tensor<fp32, [1]> old = read_state(input = sum)[name = string(\"old\")];\n"
      "tensor<fp32, [1]> now = add(x = old, y = x)[name = string(\"now\")];\n"
      "write_state(data = now, input = sum)[name = string(\"write\")];\n"
      "tensor<fp32, [1]> y = mul(x = now, y = now)[name = string(\"y\")];\n } -> (y);\n}\n";
  const Model m = Model::from_mil(text);
  State state = m.new_state();
  Stream stream(m, {.at_once = 3, .prediction = {&state}});
  for (int i = 1; i <= 10; i++) {
    MultiArray x(DataType::float32, {1});
    x.as<float>()[0] = static_cast<float>(i);
    stream.push({{"x", x}});
  }
  for (int i = 1, sum = 0; i <= 10; i++) {
    sum += i;
    EXPECT_EQ(stream.pop().array("y").at(0), sum * sum);
  }
}

TEST_F(Streams, EndWithInputsThatWait) {
  const Model m = load();
  Stream stream(m, {.ahead = 8, .at_once = 1});
  for (int i = 0; i < 8; i++) stream.push(inputs(i));
  stream = Stream(m);
  EXPECT_EQ(stream.size(), 0u);
}

}  // namespace
}  // namespace moka::test

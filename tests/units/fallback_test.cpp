#include <algorithm>
#include <cmath>
#include <thread>

#include "api/api_util.h"
#include "devices/simulator/device.h"

namespace moka::test {
namespace {

using devices::simulator::Faults;
using devices::simulator::set_faults;

std::string op(const std::string& name, const std::string& type, const std::string& args) {
  return "tensor<fp32, [64]> " + name + " = " + type + "(" + args + ")[name = string(\"" + name + "\")];\n";
}

/// A region of the device beside an operation of the host.
const std::string kModel =
    program("tensor<fp32, [64]> x",
            op("d1", "exp", "x = x") + op("d2", "sin", "x = d1") + op("h", "cos", "x = x") +
                op("d3", "add", "x = h, y = h") + op("d4", "mul", "x = d3, y = d3") + op("y", "add", "x = d2, y = d4"),
            "y");

class Fallback : public ::testing::Test {
 protected:
  void TearDown() override {
    set_faults({});
    devices::simulator::set_unified(false);
    set_warning_handler(nullptr);
  }
  static Model load(bool strict = false) {
    ModelConfiguration c;
    c.pins = {{"d*", "simulator"}};
    c.strict = strict;
    return Model::from_mil(kModel, c);
  }
  static Features inputs() {
    MultiArray x(DataType::float32, {64});
    for (size_t i = 0; i < 64; i++) x.as<float>()[i] = static_cast<float>(i) / 64;
    return {{"x", x}};
  }
  static std::vector<double> expected() { return values(Model::from_mil(kModel).predict(inputs()).array("y")); }
  static void expect_near(const std::vector<double>& a, const std::vector<double>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); i++) EXPECT_NEAR(a[i], b[i], 1e-5) << i;
  }
};

TEST_F(Fallback, ALostDeviceIsReplacedByTheCpu) {
  std::vector<std::string> warnings;
  set_warning_handler([&](const std::string& text) { warnings.push_back(text); });
  const Model m = load();
  set_faults({0});
  PredictionOptions options;
  std::vector<std::string> remarks;
  options.remarks = &remarks;
  expect_near(values(m.predict(inputs(), options).array("y")), expected());
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_EQ(remarks[0], "the CPU computed this prediction: device 'simulator': the simulated device was lost");
  EXPECT_NE(std::find(warnings.begin(), warnings.end(), remarks[0]), warnings.end());
  // The model does not try again, and says so.
  set_faults({});
  remarks.clear();
  expect_near(values(m.predict(inputs(), options).array("y")), expected());
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_NE(remarks[0].find("since a device failed before"), std::string::npos);
  bool told = false;
  for (const PassRemark& r : m.compute_plan().remarks) told |= r.text.find("a device failed") != std::string::npos;
  EXPECT_TRUE(told);
}

TEST_F(Fallback, StrictGivesTheError) {
  const Model m = load(true);
  set_faults({0});
  expect_error(ErrorKind::device_lost, {"device 'simulator'", "was lost"}, [&] { m.predict(inputs()); });
  set_faults({});
  expect_near(values(m.predict(inputs()).array("y")), expected());
}

TEST_F(Fallback, FullMemoryIsTriedAgain) {
  const Model m = load();
  set_faults({-1, 16});
  PredictionOptions options;
  std::vector<std::string> remarks;
  options.remarks = &remarks;
  expect_near(values(m.predict(inputs(), options).array("y")), expected());
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_NE(remarks[0].find("no memory for a buffer of"), std::string::npos) << remarks[0];
  set_faults({});
  remarks.clear();
  expect_near(values(m.predict(inputs(), options).array("y")), expected());
  EXPECT_TRUE(remarks.empty());
}

TEST_F(Fallback, StrictGivesTheErrorOfFullMemory) {
  const Model m = load(true);
  set_faults({-1, 16});
  expect_error(ErrorKind::out_of_budget, {"the arena of device 'simulator'"}, [&] { m.predict(inputs()); });
}

/// A replayed prediction must not find the state that the failed one has left.
TEST_F(Fallback, StatesAreAsTheyWereBefore) {
  const std::string text =
      "program(1.0)\n{\n func main<ios18>(state<tensor<fp32, [64]>> sum, tensor<fp32, [64]> x) {\n"
      "tensor<fp32, [64]> old = read_state(input = sum)[name = string(\"old\")];\n"
      "tensor<fp32, [64]> now = add(x = old, y = x)[name = string(\"now\")];\n"
      "write_state(data = now, input = sum)[name = string(\"write\")];\n"
      "tensor<fp32, [64]> d1 = exp(x = now)[name = string(\"d1\")];\n"
      "tensor<fp32, [64]> y = sin(x = d1)[name = string(\"y\")];\n } -> (y);\n}\n";
  ModelConfiguration c;
  c.pins = {{"d*", "simulator"}};
  const Model m = Model::from_mil(text, c);
  State state = m.new_state();
  PredictionOptions options{&state};
  m.predict(inputs(), options);
  set_faults({0});
  m.predict(inputs(), options);
  const auto sum = values(state.read("sum"));
  for (size_t i = 0; i < sum.size(); i++) EXPECT_NEAR(sum[i], 2 * static_cast<double>(i) / 64, 1e-6);
}

TEST_F(Fallback, BatchesAndThreadsAreReplayedToo) {
  const Model m = load();
  const std::vector<double> right = expected();
  set_faults({5});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; t++)
    threads.emplace_back([&] {
      for (int n = 0; n < 5; n++) expect_near(values(m.predict(inputs()).array("y")), right);
    });
  for (std::thread& t : threads) t.join();
}

TEST_F(Fallback, ModelsShareTheMemoryOfADevice) {
  // Room for one arena: the idle session of each model gives way to the other's.
  const Model a = load(true), b = load(true);
  a.predict(inputs());
  set_faults({-1, 4096});
  const std::vector<double> right = expected();
  std::vector<std::thread> threads;
  for (const Model* m : {&a, &b, &a, &b})
    threads.emplace_back([&, m] {
      for (int n = 0; n < 10; n++) expect_near(values(m->predict(inputs()).array("y")), right);
    });
  for (std::thread& t : threads) t.join();
}

TEST_F(Fallback, WhatDevicesComputeIsObserved) {
  std::vector<std::string> seen;
  std::vector<double> d2;
  load().intermediates(inputs(), [&](std::string_view operation, std::string_view, const MultiArray& array) {
    seen.emplace_back(operation);
    if (operation == "d2") d2 = values(array);
  });
  EXPECT_EQ(seen, (std::vector<std::string>{"d1", "d2", "h", "d3", "d4", "y"}));
  ASSERT_EQ(d2.size(), 64u);
  for (size_t i = 0; i < 64; i++) EXPECT_NEAR(d2[i], std::sin(std::exp(static_cast<double>(i) / 64)), 1e-5);
}

/// Where host and device share memory, an upload is written while an earlier region may still run.
TEST_F(Fallback, UploadsIntoUnifiedMemoryDoNotDisturbRunningRegions) {
  devices::simulator::set_unified(true);
  const Model m = load();
  const std::vector<double> right = expected();
  for (int n = 0; n < 200; n++) expect_near(values(m.predict(inputs()).array("y")), right);
}

}  // namespace
}  // namespace moka::test

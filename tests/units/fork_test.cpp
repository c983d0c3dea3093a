// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <thread>

#include "api/api_util.h"
#include "devices/simulator/device.h"
#include "temporary_folder.h"

namespace moka::test {
namespace {

using devices::simulator::set_faults;

const std::string kForkModel = program("tensor<fp32, [64]> x",
                                       "tensor<fp32, [64]> a = exp(x = x)[name = string(\"a\")];\n"
                                       "tensor<fp32, [64]> y = tanh(x = a)[name = string(\"y\")];\n",
                                       "y");

Model load() {
  ModelConfiguration c;
  c.device = "simulator";
  c.rates = "off";
  return Model::from_mil(kForkModel, c);
}

/// Forks and returns whether `work` was true in the child, which may take a minute before it counts as hanging.
template <class F>
bool in_child(F&& work) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(60);
    _exit(work() ? 0 : 1);
  }
  int status = 0;
  return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

class DeviceProcesses : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer ends a forked child that starts threads";
#endif
    set_warning_handler([](const std::string&) {});
  }
  void TearDown() override {
    set_faults({});
    set_warning_handler(nullptr);
  }
  /// The result of the device, and whether the device computed it.
  static std::vector<double> predict(const Model& m, const Features& inputs, bool& on_device) {
    PredictionOptions options;
    std::vector<std::string> remarks;
    options.remarks = &remarks;
    std::vector<double> out = values(m.predict(inputs, options).array("y"));
    on_device = remarks.empty();
    return out;
  }
  static bool is_near(const std::vector<double>& a, const std::vector<double>& b) {
    for (size_t i = 0; i < b.size(); i++)
      if (a.size() != b.size() || !(std::abs(a[i] - b[i]) < 1e-5)) return false;
    return true;
  }
};

TEST_F(DeviceProcesses, AChildThatForksBeforeTheFirstUseHasTheDevice) {
  const Model parents = load();
  const Features inputs = random_inputs(parents.function());
  const std::vector<double> right = values(Model::from_mil(kForkModel).predict(inputs).array("y"));
  const auto works = [&](const Model& m) {
    bool on_device = false;
    return is_near(predict(m, inputs, on_device), right) && on_device;
  };
  EXPECT_TRUE(in_child([&] { return works(parents) && works(parents); })) << "a model of the parent";
  EXPECT_TRUE(in_child([&] { return works(load()); })) << "a model that the child loads";
  EXPECT_TRUE(works(parents)) << "the parent afterwards";
}

TEST_F(DeviceProcesses, WhatTheParentHasStartedIsLostInTheChild) {
  const Model m = load();
  const Features inputs = random_inputs(m.function());
  const std::vector<double> right = values(m.predict(inputs).array("y"));
  EXPECT_TRUE(in_child([&] {
    bool first = true, own = false;
    const bool is_right = is_near(predict(m, inputs, first), right) && is_near(predict(load(), inputs, own), right);
    return is_right && !first && own;
  }));
  bool on_device = false;
  EXPECT_EQ(predict(m, inputs, on_device), right);
  EXPECT_TRUE(on_device);
}

/// A process that is killed while its device works leaves a cache that the next process can read.
TEST_F(DeviceProcesses, AKillLeavesNothingBroken) {
  const TemporaryFolder folder;
  const std::string path = std::string(MOKA_GOLDEN) + "/../../examples/models/shapes.mlmodel";
  const auto load_with_cache = [&] {
    ModelConfiguration c;
    c.pins = {{"*", "simulator"}, {"type:conv", "cpu"}, {"type:linear", "cpu"}};
    c.rates = "off";
    c.cache = folder / "packed";
    return Model::load(path, c);
  };
  const Features inputs = random_inputs(Model::load(path).function());
  const auto answer = [&](const Model& m) {
    const FeatureValue* probabilities = nullptr;
    Features out = m.predict(inputs);
    for (const auto& [name, value] : out)
      if (std::holds_alternative<Dictionary>(value)) probabilities = &value;
    std::vector<double> numbers;
    if (probabilities != nullptr)
      for (const auto& [name, p] : std::get<Dictionary>(*probabilities).strings) numbers.push_back(p);
    return numbers;
  };
  const std::vector<double> right = answer(Model::load(path));
  ASSERT_FALSE(right.empty());
  for (useconds_t after : {0, 1000, 5000, 20000, 50000}) {
    const pid_t pid = fork();
    if (pid == 0)
      for (;;) {
        std::filesystem::remove_all(folder / "packed");
        load_with_cache().predict(inputs);
      }
    ASSERT_GT(pid, 0);
    usleep(after);
    kill(pid, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_TRUE(is_near(answer(load_with_cache()), right)) << after;
  }
}

TEST_F(DeviceProcesses, EightThreadsPredictWithOneModel) {
  const Model m = load();
  std::vector<Features> inputs;
  std::vector<std::vector<double>> right;
  for (uint64_t i = 0; i < 8; i++) {
    inputs.push_back(random_inputs(m.function(), i + 1));
    right.push_back(values(m.predict(inputs.back()).array("y")));
  }
  // If all fit; if two fit, the others wait for them.
  for (size_t bytes : {SIZE_MAX, size_t{2048}}) {
    set_faults({.most_bytes = bytes});
    std::vector<std::thread> threads;
    for (size_t t = 0; t < 8; t++)
      threads.emplace_back([&, t] {
        bool on_device = false;
        for (int n = 0; n < 30; n++) {
          EXPECT_EQ(predict(m, inputs[t], on_device), right[t]);
          EXPECT_TRUE(on_device);
        }
      });
    for (std::thread& t : threads) t.join();
  }
}

}  // namespace
}  // namespace moka::test

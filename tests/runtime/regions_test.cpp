// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <random>
#include <thread>

#include "devices/reference/device.h"
#include "devices/simulator/device.h"
#include "ir/text_reader.h"
#include "runtime/model.h"

/// Predictions of many threads on models in random cuts between the simulator and the host, while the device is lost,
/// full or both. The expected values are the same functions of the standard library. ThreadSanitizer runs them too.
namespace moka::runtime {
namespace {

using devices::simulator::set_faults;

constexpr int64_t kCount = 96;
constexpr int kOperations = 12;

/// Operations that alternate between the two inputs, named o0, o1, ..., and their result in plain C++.
struct Net {
  std::string text;
  std::vector<float> x, y, expected;

  explicit Net(unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> draw(-1, 1);
    for (int64_t i = 0; i < kCount; i++) x.push_back(draw(random)), y.push_back(draw(random));
    std::vector<std::string> names{"x", "y"};
    std::vector<std::vector<float>> values{x, y};
    std::string body;
    for (int n = 0; n < kOperations; n++) {
      const auto one = [&](size_t back) { return names.size() - 1 - random() % std::min(back, names.size()); };
      const size_t a = one(3), b = one(4);
      const std::string name = cat("o", n);
      std::vector<float> made;
      std::string call;
      switch (random() % 4) {
        case 0:
          call = cat("sin(x = ", names[a], ")");
          for (float v : values[a]) made.push_back(std::sin(v));
          break;
        case 1:
          call = cat("add(x = ", names[a], ", y = ", names[b], ")");
          for (size_t i = 0; i < x.size(); i++) made.push_back(values[a][i] + values[b][i]);
          break;
        case 2:
          call = cat("mul(x = ", names[a], ", y = ", names[b], ")");
          for (size_t i = 0; i < x.size(); i++) made.push_back(values[a][i] * values[b][i]);
          break;
        default:
          call = cat("tanh(x = ", names[a], ")");
          for (float v : values[a]) made.push_back(std::tanh(v));
      }
      body += cat("tensor<fp32, [", kCount, "]> ", name, " = ", call, "[name = string(\"", name, "\")];\n");
      names.push_back(name);
      values.push_back(std::move(made));
    }
    const std::string tensor = cat("tensor<fp32, [", kCount, "]> ");
    text = cat("program(1.0)\n{\n func main<ios18>(", tensor, "x, ", tensor, "y) {\n", body, "\n } -> (", names.back(),
               ");\n}\n");
    expected = values.back();
  }

  /// The model with each operation on one of the first `count` devices or on the host, by chance.
  std::unique_ptr<Model> model(unsigned cut, size_t count) const {
    import::ImportedModel imported;
    imported.program = ir::read_text(text, ops::table(), {}).value();
    import::FunctionDescription f;
    f.name = "main";
    f.inputs.resize(2);
    f.inputs[0].name = "x";
    f.inputs[1].name = "y";
    f.outputs.resize(1);
    imported.description.functions = {f};
    imported.description.default_function = "main";
    imported.description.typed = true;
    CompileOptions options;
    std::vector<const kernel::Device*> devices = devices::simulator::devices();
    devices.resize(count);
    devices.push_back(&devices::reference::device());
    options.plan.devices = devices;
    options.plan.pinned_device = [devices, cut](const ir::Op& op) {
      return devices[std::hash<std::string>{}(cat(op.name, cut)) % devices.size()];
    };
    return Model::compile(std::move(imported), options).value();
  }
};

const std::vector<ir::Type>& types() {
  static const std::vector<ir::Type> all(2, ir::Type::tensor(ir::DType::fp32, {kCount}));
  return all;
}

/// One prediction as the interface makes it; the largest difference.
Result<float> predict(const Model& model, const Net& net) {
  const int64_t shape[] = {kCount};
  const InputValue inputs[] = {ir::ArrayView{ir::DType::fp32, shape, {}, net.x.data()},
                               ir::ArrayView{ir::DType::fp32, shape, {}, net.y.data()}};
  Prediction done = model.predict({.types = types(), .inputs = inputs});
  MOKA_TRY(done.take_status());
  const ir::TensorView out = done.output(0);
  float most = 0;
  for (size_t i = 0; i < net.expected.size(); i++)
    most = std::max(most, std::fabs(out.as<float>()[i] - net.expected[i]));
  return most;
}

class RegionsOfThreads : public ::testing::Test {
 protected:
  void TearDown() override {
    set_faults({});
    devices::simulator::set_unified(false);
  }
  /// Every thread predicts with all models in turn; `disturb` is called beside them.
  static void predict_all(const std::vector<Net>& nets, const std::vector<std::unique_ptr<Model>>& models, int rounds,
                          const std::function<void()>& disturb) {
    std::atomic<int> wrong = 0, failed = 0, left = 8;
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; t++)
      threads.emplace_back([&, t] {
        for (int n = 0; n < rounds; n++) {
          const auto i = static_cast<size_t>(t + n) % models.size();
          auto difference = predict(*models[i], nets[i]);
          failed += !difference.ok();
          wrong += difference.ok() && !(*difference < 1e-4f);
        }
        left--;
      });
    while (disturb && left > 0) disturb();
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(failed, 0);
    EXPECT_EQ(devices::simulator::count_running(), 0);
  }
  /// How many of the models have given up the device.
  static int in_random_cuts(const std::function<void()>& disturb, size_t devices = 1) {
    std::vector<Net> nets;
    std::vector<std::unique_ptr<Model>> models;
    size_t regions = 0;
    for (unsigned i = 0; i < 4; i++) {
      nets.emplace_back(i);
      models.push_back(nets.back().model(i, devices));
      auto plan = models.back()->plan(types());
      EXPECT_TRUE(plan.ok()) << plan.error().to_string();
      if (plan.ok()) regions += (*plan)->sequence.regions.size();
    }
    EXPECT_GT(regions, models.size()) << "the cuts have several regions";
    predict_all(nets, models, 12, disturb);
    return static_cast<int>(
        std::count_if(models.begin(), models.end(), [](const auto& m) { return !m->failure().empty(); }));
  }
};

TEST_F(RegionsOfThreads, AreComputedInAnyOrder) { EXPECT_EQ(in_random_cuts(nullptr), 0); }

TEST_F(RegionsOfThreads, AreComputedInMemoryThatTheHostSees) {
  devices::simulator::set_unified(true);
  EXPECT_EQ(in_random_cuts(nullptr), 0);
}

TEST_F(RegionsOfThreads, GiveValuesToAnotherDevice) {
  EXPECT_EQ(in_random_cuts(nullptr, 2), 0);
  devices::simulator::set_unified(true);
  EXPECT_EQ(in_random_cuts(nullptr, 2), 0);
}

TEST_F(RegionsOfThreads, AreReplayedOnTheHostWhereTheDeviceIsLost) {
  set_faults({20});
  EXPECT_EQ(in_random_cuts(nullptr), 4);
}

TEST_F(RegionsOfThreads, WaitForOthersOrAreReplayedWhereTheDeviceIsFull) {
  std::mt19937 random(1);
  const auto disturb = [&] {
    devices::simulator::Faults faults;
    faults.most_bytes = 1000 + random() % 20000;
    set_faults(faults);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  EXPECT_EQ(in_random_cuts(disturb), 0) << "a full device is not lost";
}

}  // namespace
}  // namespace moka::runtime

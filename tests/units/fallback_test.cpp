// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <thread>

#include "api/api_util.h"
#include "api/internal.h"
#include "devices/simulator/device.h"
#include "kernel/memory.h"
#include "units/vulkan_driver.h"

namespace moka::api {
std::vector<const kernel::Device*> all_devices();
}

namespace moka::test {
namespace {

using devices::simulator::Faults;
using devices::simulator::set_faults;

std::string op(const std::string& name, const std::string& type, const std::string& args) {
  return "tensor<fp32, [64]> " + name + " = " + type + "(" + args + ")[name = string(\"" + name + "\")];\n";
}

/// A region on the device and an operation on the host.
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
  /// Expects the correct result.
  static std::vector<std::string> remarks_of_prediction(const Model& m) {
    std::vector<std::string> remarks;
    PredictionOptions options;
    options.remarks = &remarks;
    expect_near(values(m.predict(inputs(), options).array("y")), expected());
    return remarks;
  }
};

TEST_F(Fallback, ALostDeviceIsReplacedByTheCpu) {
  std::vector<std::string> warnings;
  set_warning_handler([&](const std::string& text) { warnings.push_back(text); });
  const Model m = load();
  set_faults({0});
  std::vector<std::string> remarks = remarks_of_prediction(m);
  ASSERT_EQ(remarks.size(), 1u);
  // Where the machine has a GPU, both compute.
  EXPECT_TRUE(remarks[0].ends_with("computed this prediction: device 'simulator': the simulated device was lost"))
      << remarks[0];
  EXPECT_NE(remarks[0].find("the CPU computed"), std::string::npos) << remarks[0];
  EXPECT_NE(std::find(warnings.begin(), warnings.end(), remarks[0]), warnings.end());
  // The model does not try again, and says so.
  set_faults({});
  remarks = remarks_of_prediction(m);
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
  const std::vector<std::string> remarks = remarks_of_prediction(m);
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_NE(remarks[0].find("no memory for a buffer of"), std::string::npos) << remarks[0];
  set_faults({});
  EXPECT_TRUE(remarks_of_prediction(m).empty());
}

TEST_F(Fallback, StrictGivesTheErrorOfFullMemory) {
  const Model m = load(true);
  set_faults({-1, 16});
  expect_error(ErrorKind::out_of_budget, {"the arena of device 'simulator'"}, [&] { m.predict(inputs()); });
}

/// A replayed prediction must not see the state that the failed one left.
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
  // The host has a copy of the state, which does not get lost with the device.
  state.read("sum");
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
  // Memory for one arena: the idle session of each model makes room for the other's.
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

/// When host and device share memory, an upload is written while an earlier region may still be running.
TEST_F(Fallback, UploadsIntoUnifiedMemoryDoNotDisturbRunningRegions) {
  devices::simulator::set_unified(true);
  const Model m = load();
  const std::vector<double> right = expected();
  for (int n = 0; n < 200; n++) expect_near(values(m.predict(inputs()).array("y")), right);
}

/// A second simulator, which can be lost or full while the first one is not.
class Twin final : public kernel::Device {
 public:
  bool is_lost = false, is_full = false;

  std::string_view name() const override { return "twin"; }
  std::string description() const override { return "the simulator under another name"; }
  kernel::ComputeUnit unit() const override { return kernel::ComputeUnit::gpu; }
  int rank() const override { return -2; }
  std::span<const kernel::KernelDef> kernels() const override { return inner().kernels(); }
  const kernel::Memory* memory() const override { return &memory_; }
  Result<std::unique_ptr<kernel::Queue>> open_queue() const override {
    return std::unique_ptr<kernel::Queue>(std::make_unique<TwinQueue>(*this, MOKA_TRY(inner().open_queue())));
  }
  kernel::Match convert(ir::DType t, const ir::Shape& s, kernel::Layout a, kernel::Layout b) const override {
    return inner().convert(t, s, a, b);
  }
  bool applies(const ir::Epilogue& e) const override { return inner().applies(e); }

 private:
  static const kernel::Device& inner() { return devices::simulator::device(); }

  class TwinMemory final : public kernel::Memory {
   public:
    explicit TwinMemory(const Twin& twin) : twin_(twin) {}
    size_t alignment() const override { return inner().memory()->alignment(); }
    Result<std::shared_ptr<kernel::Buffer>> allocate(size_t bytes) const override {
      if (twin_.is_full) return fail(ErrorCode::out_of_budget, "no room on the twin");
      return inner().memory()->allocate(bytes);
    }
    Status write(kernel::Buffer& to, size_t offset, const void* from, size_t bytes) const override {
      return inner().memory()->write(to, offset, from, bytes);
    }
    Status read(const kernel::Buffer& from, size_t offset, void* to, size_t bytes) const override {
      return inner().memory()->read(from, offset, to, bytes);
    }

   private:
    const Twin& twin_;
  };
  class TwinSubmission final : public kernel::Submission {
   public:
    TwinSubmission(const Twin& twin, std::unique_ptr<Submission> s) : twin_(twin), s_(std::move(s)) {}
    std::byte* upload(size_t i) override { return s_->upload(i); }
    const std::byte* download(size_t i) const override { return s_->download(i); }
    Status submit() override {
      return twin_.is_lost ? Status(fail(ErrorCode::device_lost, "the twin was lost")) : s_->submit();
    }
    Status wait() override { return s_->wait(); }

   private:
    const Twin& twin_;
    std::unique_ptr<Submission> s_;
  };
  class TwinQueue final : public kernel::Queue {
   public:
    TwinQueue(const Twin& twin, std::unique_ptr<Queue> q) : twin_(twin), q_(std::move(q)) {}
    Result<std::unique_ptr<kernel::Submission>> compile(const kernel::Region& region) override {
      return std::unique_ptr<kernel::Submission>(
          std::make_unique<TwinSubmission>(twin_, MOKA_TRY(q_->compile(region))));
    }

   private:
    const Twin& twin_;
    std::unique_ptr<Queue> q_;
  };
  TwinMemory memory_{*this};
};

/// kModel with d1 and d2 on the twin and d3 and d4 on the simulator.
class NextDevice : public Fallback {
 protected:
  void SetUp() override {
    std::vector<const kernel::Device*> hosts;
    for (const kernel::Device* d : api::all_devices())
      if (d->name() == "cpu" || d->name() == "reference") hosts.push_back(d);
    std::sort(hosts.begin(), hosts.end(), [](const auto* a, const auto* b) { return a->rank() < b->rank(); });
    runtime::CompileOptions options;
    options.plan.devices = {&twin, &devices::simulator::device()};
    options.plan.devices.insert(options.plan.devices.end(), hosts.begin(), hosts.end());
    options.plan.pinned_device = [this, cpu = hosts[0]](const ir::Op& op) -> const kernel::Device* {
      if (op.name == "d1" || op.name == "d2") return &twin;
      return op.name == "d3" || op.name == "d4" ? &devices::simulator::device() : cpu;
    };
    auto imported = api::import_text(kModel, {}, nullptr);
    ASSERT_TRUE(imported.ok()) << imported.error().to_string();
    auto made = runtime::Model::compile(std::move(*imported), options);
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    model = std::move(*made);
    right = expected();
  }
  /// The remarks of a prediction, followed by the devices of its regions: "remark | twin simulator".
  std::string predict() {
    std::vector<float> x(64);
    for (size_t i = 0; i < 64; i++) x[i] = static_cast<float>(i) / 64;
    auto done = predicted(x);
    if (const Status status = done.take_status(); !status.ok()) return status.error().to_string();
    const ir::TensorView y = done.output(0);
    for (size_t i = 0; i < right.size(); i++) EXPECT_NEAR(y.as<float>()[i], right[i], 1e-5) << i;
    std::string out;
    for (const std::string& remark : done.remarks()) out += remark + " ";
    out += "|";
    for (const plan::Region& r : done.plan()->sequence.regions) out += cat(" ", r.device->name());
    return out;
  }
  runtime::Prediction predicted(const std::vector<float>& x, bool is_observed = false) const {
    const int64_t shape[] = {64};
    const runtime::InputValue input = ir::ArrayView{ir::DType::fp32, shape, {}, x.data()};
    return model->predict({.types = types, .inputs = {&input, 1}, .is_observed = is_observed});
  }

  Twin twin;
  std::unique_ptr<runtime::Model> model;
  std::vector<double> right;
  const std::vector<ir::Type> types{ir::Type::tensor(ir::DType::fp32, {64})};
};

TEST_F(NextDevice, TakesOverFromOneThatIsLost) {
  EXPECT_EQ(predict(), "| twin simulator");
  twin.is_lost = true;
  EXPECT_EQ(predict(),
            "device 'simulator' and the CPU computed this prediction: device 'twin': the twin was lost | simulator");
  EXPECT_EQ(predict(),
            "device 'simulator' and the CPU computed this prediction, since a device failed before: device 'twin': "
            "the twin was lost | simulator");
  EXPECT_EQ(model->failure(),
            "device 'simulator' and the CPU compute everything, since a device failed: device 'twin': the twin was "
            "lost");
  set_faults({0});
  EXPECT_EQ(predict(), "the CPU computed this prediction: device 'simulator': the simulated device was lost |");
  EXPECT_EQ(model->failure(),
            "the CPU computes everything, since a device failed: device 'twin': the twin was lost; device "
            "'simulator': the simulated device was lost");
}

TEST_F(NextDevice, OnePredictionMayLoseBoth) {
  twin.is_lost = true;
  set_faults({0});
  EXPECT_EQ(predict(),
            "the CPU computed this prediction: device 'twin': the twin was lost; device 'simulator': the simulated "
            "device was lost |");
}

TEST_F(NextDevice, AFullOneIsTriedAgain) {
  twin.is_full = true;
  EXPECT_EQ(predict(),
            "device 'simulator' and the CPU computed this prediction: the arena of device 'twin': no room on the "
            "twin | simulator");
  twin.is_full = false;
  EXPECT_EQ(predict(), "| twin simulator");
}

TEST_F(NextDevice, WhatDevicesComputeIsObservedAfterALossToo) {
  twin.is_lost = true;
  ASSERT_NE(predict(), "");
  const auto done = predicted(std::vector<float>(64), true);
  ASSERT_TRUE(done.is_planned());
  std::vector<std::string> downloaded;
  const plan::Plan& plan = *done.plan();
  for (const plan::Region& r : plan.sequence.regions)
    for (int i : r.downloads) downloaded.push_back(plan.sequence.place(i).value->name);
  EXPECT_NE(std::find(downloaded.begin(), downloaded.end(), "d3"), downloaded.end());
}

/// The same with a real driver, if there is one: work that the simulator loses continues there.
TEST_F(Fallback, AnotherDeviceTakesOver) {
  MOKA_NEEDS_VULKAN_DRIVER();
  ModelConfiguration c;
  c.pins = {{"d1", "simulator"}, {"d2", "simulator"}, {"d3", "vulkan"}, {"d4", "vulkan"}};
  c.rates = "off";
  const Model m = Model::from_mil(kModel, c);
  set_faults({0});
  const std::vector<std::string> remarks = remarks_of_prediction(m);
  ASSERT_EQ(remarks.size(), 1u);
  EXPECT_EQ(remarks[0],
            "device 'vulkan' and the CPU computed this prediction: device 'simulator': the simulated device was lost");
  const ComputePlan after = m.compute_plan();
  ASSERT_EQ(after.regions.size(), 1u);
  EXPECT_EQ(after.regions[0].device, "vulkan");
}

}  // namespace
}  // namespace moka::test

// SPDX-License-Identifier: Apache-2.0
// What a capture shows: the commands of a device, their buffers and what these hold.
#include "moka/capture.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "moka/program.h"
#include "moka/trace.h"
#include "units/units_util.h"
#include "units/vulkan_driver.h"

namespace moka::test {
namespace {

ModelConfiguration settings_of(const std::string& device) {
  ModelConfiguration c;
  c.rates = "off";
  if (device == "cpu")
    c.compute_units = ComputeUnits::cpu_only;
  else
    c.device = device;
  return c;
}

/// A convolution with a relu, a chain that works in place, a mean, a product and softmax.
Model net_on(const std::string& device) {
  ProgramBuilder b;
  const auto x = b.input("x", DataType::float32, {1, 4, 6, 6});
  const auto weights = b.constant(random_array({8, 4, 3, 3}, 1, 0.2f), "fp32", "w");
  const auto c = b.op("conv", {{"x", x}, {"weight", weights}, {"pad_type", "same"}}, "c");
  const auto s = b.op("sigmoid", {{"x", b.op("relu", {{"x", c}}, "r")}}, "s");
  const auto t = b.op("mul", {{"x", s}, {"y", s}}, "t");
  const auto m = b.op("reduce_mean", {{"x", t}, {"axes", std::vector<int32_t>{2, 3}}, {"keep_dims", false}}, "m");
  const auto l = b.op("linear", {{"x", m}, {"weight", b.constant(random_array({3, 8}, 2), "fp32", "v")}}, "l");
  b.output(b.op("softmax", {{"x", l}, {"axis", 1}}, "p"));
  return b.build(settings_of(device));
}

bool is_of_device(const CapturedCommand& c) { return c.kind == "dispatch" || c.kind == "copy" || c.kind == "function"; }

class Captures : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "vulkan" && !has_vulkan_driver()) GTEST_SKIP() << "this machine has no driver for vulkan";
  }
  const Features inputs{{"x", random_array({1, 4, 6, 6}, 5)}};
};

TEST_P(Captures, HaveTheCommandsThatRun) {
  const Model m = net_on(GetParam());
  CaptureOptions settings;
  settings.predictions = 3;
  const Capture capture = m.capture(inputs, settings);
  EXPECT_EQ(capture.predictions, 3);
  std::set<std::string> computed;
  int device_commands = 0;
  for (const CapturedCommand& c : capture.commands) {
    SCOPED_TRACE(c.kind + " " + c.code);
    device_commands += is_of_device(c);
    for (const CapturedOperation& o : c.operations) computed.insert(o.name);
    computed.insert(c.fused.begin(), c.fused.end());
    ASSERT_TRUE(c.time);
    EXPECT_EQ(c.time->count, 3);
    EXPECT_LE(c.time->minimum, c.time->median);
    EXPECT_LE(c.time->median, c.time->maximum);
    EXPECT_LE(c.start, c.end);
    EXPECT_EQ(c.runs, 1);
    if (c.kind == "dispatch") {
      EXPECT_GT(c.groups[0] * c.groups[1] * c.groups[2], 0u);
      EXPECT_GT(c.group_size[0] * c.group_size[1] * c.group_size[2], 0u);
      EXPECT_FALSE(c.parameters.empty());
    }
  }
  for (const char* name : {"c", "r", "s", "t", "m", "l", "p"}) EXPECT_TRUE(computed.contains(name)) << name;
  EXPECT_EQ(device_commands > 0, GetParam() != "cpu");
  ASSERT_FALSE(capture.devices.empty());
  EXPECT_EQ(capture.devices[0].name, GetParam());
  EXPECT_TRUE(capture.devices[0].has_timestamps);
  EXPECT_GT(capture.devices[0].resolution, 0);
}

TEST_P(Captures, HaveBuffersOfTheirValuesSizes) {
  std::map<std::string, uint64_t> bytes, weights;
  for (const CapturedCommand& c : net_on(GetParam()).capture(inputs, {1}).commands)
    for (const CapturedBuffer& b : c.buffers) {
      if (b.role == "weights") weights[b.name] = b.bytes;
      if (!b.value.empty() && b.role != "weights" && b.layout == "row_major") bytes[b.value] = b.bytes;
    }
  EXPECT_EQ(bytes["m"], 4u * 8);
  EXPECT_EQ(bytes["p"], 4u * 3);
  if (GetParam() == "simulator") return;  // it packs nothing
  ASSERT_FALSE(weights.empty());
  EXPECT_TRUE(std::any_of(weights.begin(), weights.end(), [](const auto& w) { return w.second >= 4u * 8 * 4 * 9; }));
}

TEST_P(Captures, ReadWhatTheReferenceComputes) {
  std::map<std::string, MultiArray> right;
  net_on("reference").intermediates(inputs, [&](std::string_view, std::string_view value, const MultiArray& array) {
    right.emplace(value, array);
  });
  std::map<std::string, MultiArray> seen;  // what was written last: some kernels take several commands
  CaptureOptions settings;
  settings.predictions = 1;
  settings.values = true;
  const auto expect_right = [&](const std::string& name, const MultiArray& got) {
    const auto it = right.find(name);
    if (it == right.end() || it->second.shape() != got.shape()) return;
    for (int64_t i = 0; i < got.count(); i++) EXPECT_NEAR(got.at(i), it->second.at(i), 1e-4) << name << " at " << i;
  };
  settings.on_value = [&](const CapturedCommand&, size_t, const CapturedBuffer& b, size_t, const MultiArray& got) {
    if (b.is_written)
      seen.insert_or_assign(b.value, got);
    else if (b.role != "weights")
      expect_right(b.value, got);  // as it was before the command, which may work in place
    return "of " + b.value;
  };
  const Capture capture = net_on(GetParam()).capture(inputs, settings);
  // What is fused is not stored.
  for (const char* name : {"m", "l", "p"}) EXPECT_TRUE(seen.contains(name)) << name;
  for (const auto& [name, array] : seen) expect_right(name, array);
  for (const CapturedCommand& c : capture.commands)
    for (const CapturedBuffer& b : c.buffers) {
      if (b.value == "p") {
        ASSERT_TRUE(b.summary);
        EXPECT_EQ(b.summary->count, 3);
        EXPECT_EQ(b.summary->nan_count, 0);
        EXPECT_NEAR(b.summary->mean, 1.0 / 3, 1e-5);
        EXPECT_EQ(b.file, "of p");
      }
    }
}

TEST_P(Captures, LeaveLaterPredictionsAsTheyWere) {
  const Model m = net_on(GetParam());
  const MultiArray before = m.predict(inputs).array("p");
  CaptureOptions settings;
  settings.predictions = 1;
  settings.values = true;
  (void)m.capture(inputs, settings);
  const MultiArray after = m.predict(inputs).array("p");
  EXPECT_EQ(values(before), values(after));
}

TEST_P(Captures, WhatAValueThrowsLeavesThem) {
  CaptureOptions settings;
  settings.predictions = 1;
  settings.values = true;
  settings.on_value = [](const CapturedCommand&, size_t, const CapturedBuffer&, size_t,
                         const MultiArray&) -> std::string { throw Exception(ErrorKind::io, "the disk is full"); };
  const Model m = net_on(GetParam());
  expect_error(ErrorKind::io, {"the disk is full"}, [&] { (void)m.capture(inputs, settings); });
  EXPECT_EQ(m.predict(inputs).array("p").count(), 3);
}

TEST_P(Captures, CountTheRunsOfALoop) {
  const Model m = Model::from_mil(program("tensor<fp32, [4]> x", R"(
      int32 n, tensor<fp32, [4]> y = while_loop(loop_vars = (int32(0), x)) {
        block test(int32 k, tensor<fp32, [4]> v) { bool more = less(x = k, y = int32(3)); } -> (more);
        block step(int32 k, tensor<fp32, [4]> v) {
          int32 after = add(x = k, y = int32(1));
          tensor<fp32, [4]> b = sigmoid(x = v)[name = string("b")];
        } -> (after, b);
      };)",
                                          "y"),
                                  settings_of(GetParam()));
  const Features start{{"x", counted({4})}};
  int64_t runs = 0;
  for (const CapturedCommand& c : m.capture(start, {2}).commands)
    for (const CapturedOperation& o : c.operations)
      if (o.name == "b") runs = c.runs;
  EXPECT_EQ(runs, 3);
}

TEST_P(Captures, EqualTheLaneOfATrace) {
  if (GetParam() == "cpu") GTEST_SKIP() << "the lane is of devices";
  const Model m = net_on(GetParam());
  const auto all = m.capture(inputs, {1}).commands;
  const auto commands = std::count_if(all.begin(), all.end(), is_of_device);
  const auto path = std::filesystem::temp_directory_path() / ("moka-capture-" + std::to_string(getpid()) + ".pftrace");
  {
    Trace trace(path);
    for (int i = 0; i < 3; i++) m.predict(inputs);
    trace.stop();
  }
  const TraceSummary summary = summarize_trace(path);
  std::filesystem::remove(path);
  int64_t slices = 0;
  double seconds = 0, computing = 0;
  for (const TraceGroup& g : summary.groups) {
    if (g.lane == "GPU") {
      slices += g.count;
      seconds += g.total;
    }
    if (g.lane == "Compute" && g.kind == "region") computing += g.total;
  }
  EXPECT_EQ(slices, 3 * commands);
  EXPECT_GT(seconds, 0);
  EXPECT_GT(computing, 0);
}

TEST_P(Captures, RefuseNoPredictions) {
  expect_error(ErrorKind::invalid_argument, {"expected at least 1, got 0"},
               [&] { (void)net_on(GetParam()).capture(inputs, {0}); });
}

TEST_P(Captures, TellReportsTheDispatchesOfAnOperation) {
  const ComputePlan plan = net_on(GetParam()).compute_plan(inputs, 2);
  size_t dispatches = 0;
  for (const PlannedOperation& o : plan.operations)
    for (const OperationDispatch& d : o.dispatches) {
      dispatches++;
      EXPECT_GE(d.seconds, 0) << o.name;
      EXPECT_FALSE(d.code.empty()) << o.name;
    }
  if (GetParam() == "cpu")
    EXPECT_EQ(dispatches, 0u);
  else
    EXPECT_GE(dispatches, 4u);
}

INSTANTIATE_TEST_SUITE_P(Devices, Captures, ::testing::Values("cpu", "simulator", "vulkan"),
                         [](const auto& p) { return p.param; });

/// The facts of the kernel that computes `operation` on the CPU, by name.
std::map<std::string, std::string> facts_of(const Capture& capture, const std::string& operation,
                                            const std::string& kernel) {
  for (const CapturedCommand& c : capture.commands)
    for (const CapturedOperation& o : c.operations)
      if (o.name == operation) {
        EXPECT_EQ(c.kernels, std::vector<std::string>{kernel});
        return {c.facts.begin(), c.facts.end()};
      }
  ADD_FAILURE() << "no command computes " << operation;
  return {};
}

TEST(CaptureFacts, SayHowKernelsOfTheCpuCompute) {
  ProgramBuilder b;
  const auto x = b.input("x", DataType::float32, {1, 32, 16, 16});
  const auto weights = [&](const std::vector<int64_t>& shape, const char* name) {
    return b.constant(random_array(shape, 1, 0.1f), "fp32", name);
  };
  const auto depthwise =
      b.op("conv", {{"x", x}, {"weight", weights({32, 1, 3, 3}, "d")}, {"pad_type", "same"}, {"groups", 32}}, "depth");
  const auto pointwise = b.op("conv", {{"x", depthwise}, {"weight", weights({48, 32, 1, 1}, "w")}}, "point");
  const auto pooled = b.op("max_pool",
                           {{"x", pointwise},
                            {"kernel_sizes", std::vector<int32_t>{2, 2}},
                            {"strides", std::vector<int32_t>{2, 2}},
                            {"pad_type", "valid"}},
                           "pool");
  const auto rows = b.op("reshape", {{"x", pooled}, {"shape", std::vector<int32_t>{48, 64}}}, "rows");
  const auto product = b.op("linear", {{"x", rows}, {"weight", weights({80, 64}, "v")}}, "product");
  b.output(b.op("softmax", {{"x", product}, {"axis", -1}}, "p"));
  ModelConfiguration settings = settings_of("cpu");
  settings.threads = 1;
  settings.pinned_kernels = {{"depth", "cpu.conv.depthwise"}, {"product", "cpu.linear.gemm"}};
  const Model m = b.build(settings);
  const Capture capture = m.capture({{"x", random_array({1, 32, 16, 16}, 3)}}, {1});
  auto depth = facts_of(capture, "depth", "cpu.conv.depthwise");
  EXPECT_EQ(depth["taps"], "3 x 3");
  EXPECT_EQ(depth["bands of rows"], "1");
  EXPECT_TRUE(depth.contains("pieces for threads"));
  auto pool = facts_of(capture, "pool", "cpu.max_pool");
  EXPECT_EQ(pool["taps"], "4");
  auto gemm = facts_of(capture, "product", "cpu.linear.gemm");
  EXPECT_EQ(gemm["rows x depth x columns"], "48 x 64 x 80");
  auto softmax = facts_of(capture, "p", "cpu.softmax");
  EXPECT_EQ(softmax["rows"], "48 of 80");
  int packed = 0;
  for (const CapturedCommand& c : capture.commands) {
    EXPECT_TRUE(c.kind != "kernel" || c.threads == 1) << c.kind;
    for (const CapturedBuffer& buffer : c.buffers)
      if (buffer.role == "weights") {
        packed++;
        EXPECT_FALSE(buffer.form.empty());
        EXPECT_GT(buffer.bytes, 0u);
      }
  }
  EXPECT_EQ(packed, 3);
}

TEST(CaptureValues, AreSummed) {
  MultiArray a(DataType::float32, {5});
  const float numbers[] = {1, -3, NAN, INFINITY, 5};
  std::copy(std::begin(numbers), std::end(numbers), a.as<float>().begin());
  const ValueSummary s = summary_of(a);
  EXPECT_EQ(s.count, 5);
  EXPECT_EQ(s.nan_count, 1);
  EXPECT_EQ(s.infinite_count, 1);
  EXPECT_EQ(s.minimum, -3);
  EXPECT_EQ(s.maximum, 5);
  EXPECT_EQ(s.mean, 1);
  EXPECT_EQ(summary_of(MultiArray(DataType::int32, {0})).count, 0);
}

}  // namespace
}  // namespace moka::test

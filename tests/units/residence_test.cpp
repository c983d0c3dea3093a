// SPDX-License-Identifier: Apache-2.0
#include "api/api_util.h"
#include "api/internal.h"
#include "base/half.h"
#include "devices/simulator/device.h"
#include "units/vulkan_driver.h"

/// States that stay in the memory of a device between predictions, and pictures that a device unpacks.
namespace moka::test {
namespace {

using devices::simulator::set_faults;

constexpr const char* kState = "state<tensor<fp32, [64]>> ";
const std::string kX = "tensor<fp32, [64]> x";

std::string line(const std::string& name, const std::string& op) {
  return "tensor<fp32, [64]> " + name + " = " + op + "[name = string(\"" + name + "\")];\n";
}
std::string write(const std::string& state, const std::string& value) {
  return "write_state(data = " + value + ", input = " + state + ")[name = string(\"write_" + state + "\")];\n";
}

class Residence : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "vulkan" && !has_vulkan_driver()) GTEST_SKIP() << "this machine has no driver for vulkan";
    set_warning_handler([](const std::string&) {});
  }
  void TearDown() override {
    set_faults({});
    set_warning_handler(nullptr);
  }
  ModelConfiguration configuration() const {
    ModelConfiguration c;
    c.device = GetParam();
    c.rates = "off";
    return c;
  }
  Model load(const std::string& states, const std::string& body, const std::string& outputs) const {
    return Model::from_mil(
        "program(1.0)\n{\n func main<ios18>(" + states + ", " + kX + ") {\n" + body + "} -> (" + outputs + ");\n}\n",
        configuration());
  }
  /// sum += x; y = sum
  Model adder() const {
    return load(std::string(kState) + "sum",
                line("old", "read_state(input = sum)") + line("now", "add(x = old, y = x)") + write("sum", "now") +
                    line("y", "read_state(input = sum)"),
                "y");
  }
  static Features x(float value) {
    MultiArray a(DataType::float32, {64});
    for (size_t i = 0; i < 64; i++) a.as<float>()[i] = value;
    return {{"x", a}};
  }
  static double predict(const Model& m, State& state, float value, const std::string& output = "y") {
    PredictionOptions options{&state};
    return values(m.predict(x(value), options).array(output))[5];
  }
  static double content(const State& state, const std::string& name = "sum") { return values(state.read(name))[5]; }
  static std::string place(const State& state, const std::string& name = "sum") {
    const kernel::Device* d = state.impl().at(name).device();
    return d == nullptr ? "host" : std::string(d->name());
  }
};

INSTANTIATE_TEST_SUITE_P(Devices, Residence, ::testing::Values("simulator", "vulkan"),
                         [](const auto& p) { return p.param; });

TEST_P(Residence, AStateStaysOnItsDeviceUntilItIsRead) {
  const Model m = adder();
  State state = m.new_state();
  EXPECT_EQ(place(state), "host");
  EXPECT_EQ(predict(m, state, 1), 1);
  EXPECT_EQ(predict(m, state, 2), 3);
  EXPECT_EQ(place(state), GetParam());
  EXPECT_EQ(content(state), 3);
  EXPECT_EQ(predict(m, state, 3), 6);
  const State copied = state.copy();
  state.write("sum", x(10).array("x"));
  EXPECT_EQ(place(state), "host");
  EXPECT_EQ(predict(m, state, 1), 11);
  EXPECT_EQ(content(copied), 6);
  // The state does not cross, and is computed where it lies.
  const ComputePlan plan = m.compute_plan();
  ASSERT_EQ(plan.regions.size(), 1u);
  EXPECT_EQ(plan.regions[0].upload_bytes, 256u);
  EXPECT_EQ(plan.regions[0].download_bytes, 256u);
}

TEST_P(Residence, StatesTakeTurns) {
  const Model m = adder();
  State a = m.new_state(), b = m.new_state();
  for (int i = 1; i <= 3; i++) {
    EXPECT_EQ(predict(m, a, 1), i);
    EXPECT_EQ(predict(m, b, 10), 10 * i);
  }
}

TEST_P(Residence, TheCpuTakesAStateOver) {
  const Model m = adder();
  ModelConfiguration c;
  c.compute_units = ComputeUnits::cpu_only;
  const Model cpu = m.configured(c);
  State state = m.new_state();
  EXPECT_EQ(predict(m, state, 1), 1);
  EXPECT_EQ(predict(cpu, state, 1), 2);
  EXPECT_EQ(place(state), "host");
  EXPECT_EQ(predict(m, state, 1), 3);
}

/// The old content is returned after the state has changed.
TEST_P(Residence, WhatAStateHeldIsReadBeforeItIsWritten) {
  const Model m = load(std::string(kState) + "sum",
                       line("old", "read_state(input = sum)") + line("now", "add(x = old, y = x)") +
                           write("sum", "now") + line("y", "mul(x = old, y = x)"),
                       "old, y");
  State state = m.new_state();
  EXPECT_EQ(predict(m, state, 2, "old"), 0);
  EXPECT_EQ(predict(m, state, 3, "old"), 2);
  EXPECT_EQ(predict(m, state, 4, "y"), 20);
  EXPECT_EQ(place(state), GetParam());
  EXPECT_EQ(content(state), 9);
}

/// Later operations of a plan that ends early read the state from the host.
TEST_P(Residence, AStateIsOnTheHostWhereValuesDecideAShape) {
  const Model m = load(std::string(kState) + "sum",
                       line("old", "read_state(input = sum)") + line("now", "add(x = old, y = x)") +
                           write("sum", "now") + line("y", "mul(x = old, y = x)") +
                           "tensor<int32, [?, 1]> found = non_zero(x = x)[name = string(\"found\")];\n",
                       "y, found");
  State state = m.new_state();
  EXPECT_EQ(predict(m, state, 2), 0);
  EXPECT_EQ(predict(m, state, 3), 6);
  EXPECT_EQ(place(state), "host");
  EXPECT_EQ(content(state), 5);
}

/// The state stays on the host because its first reader does. The former value is also read on the device.
TEST_P(Residence, AStateOfTheHostIsReadByADevice) {
  ModelConfiguration c = configuration();
  c.pins = {{"first", "reference"}, {"a", "reference"}, {"second", GetParam()}, {"y", GetParam()}};
  const Model m =
      load(std::string(kState) + "sum",
           line("first", "read_state(input = sum)") + line("a", "add(x = first, y = x)") +
               line("second", "read_state(input = sum)") + write("sum", "a") + line("y", "add(x = second, y = x)"),
           "y, second")
          .configured(c);
  State state = m.new_state();
  EXPECT_EQ(predict(m, state, 2), 2);
  EXPECT_EQ(predict(m, state, 3), 5);
  EXPECT_EQ(place(state), "host");
  EXPECT_EQ(content(state), 5);
}

TEST_P(Residence, StatesOfValuesThatShareNoMemory) {
  ModelConfiguration c = configuration();
  c.reuse_buffers = false;
  const Model m = adder().configured(c);
  State state = m.new_state();
  EXPECT_EQ(predict(m, state, 1), 1);
  EXPECT_EQ(predict(m, state, 2), 3);
  EXPECT_EQ(content(state), 3);
}

TEST_P(Residence, StatesAreExchanged) {
  const Model m =
      load(std::string(kState) + "a, " + kState + "b",
           line("u", "read_state(input = a)") + line("v", "read_state(input = b)") + line("w", "add(x = v, y = x)") +
               write("a", "w") + write("b", "u") + line("y", "add(x = u, y = v)"),
           "y");
  State state = m.new_state();
  // (a, b) becomes (b + x, a).
  EXPECT_EQ(predict(m, state, 1), 0);
  EXPECT_EQ(predict(m, state, 2), 1);
  EXPECT_EQ(predict(m, state, 4), 3);
  EXPECT_EQ(place(state, "a"), GetParam());
  EXPECT_EQ(place(state, "b"), GetParam());
  EXPECT_EQ(content(state, "a"), 5);
  EXPECT_EQ(content(state, "b"), 2);
}

TEST_P(Residence, AStateIsNotReadButWritten) {
  const Model m = load(
      std::string(kState) + "a, " + kState + "b",
      line("u", "read_state(input = a)") + write("b", "u") + write("a", "x") + line("y", "add(x = u, y = x)"), "y");
  State state = m.new_state();
  EXPECT_EQ(predict(m, state, 1), 1);
  EXPECT_EQ(predict(m, state, 2), 3);
  EXPECT_EQ(place(state, "a"), GetParam());
  EXPECT_EQ(content(state, "a"), 2);
  EXPECT_EQ(content(state, "b"), 1);
}

/// Every pixel format and plane order gives exactly what the CPU gives.
TEST_P(Residence, PicturesAreUnpackedOnTheDevice) {
  for (const char* order : {"rgb", "bgr", "grayscale"})
    for (const PixelFormat format : {PixelFormat::gray8, PixelFormat::rgb8, PixelFormat::rgba8, PixelFormat::bgra8,
                                     PixelFormat::gray_float32, PixelFormat::gray_float16}) {
      SCOPED_TRACE(testing::Message() << order << " given as " << static_cast<int>(format));
      const std::string path = MOKA_GOLDEN "/boundary/image_" + std::string(order) + ".mlmodel";
      const Model cpu = Model::load(path), m = Model::load(path, configuration());
      const ComputePlan plan = m.compute_plan();
      ASSERT_EQ(plan.regions.size(), 1u);
      EXPECT_EQ(plan.regions[0].upload_bytes, 16u + 4 * 6);
      Image picture(3, 2, format);
      for (int64_t y = 0; y < 2; y++)
        for (int64_t x = 0; x < 3; x++) {
          uint8_t* p = picture.pixels.get() + y * picture.row_bytes + x * static_cast<int64_t>(bytes_per_pixel(format));
          if (format == PixelFormat::gray_float32)
            *reinterpret_cast<float*>(p) = static_cast<float>(y * 3 + x) * 16;
          else if (format == PixelFormat::gray_float16)
            *reinterpret_cast<uint16_t*>(p) = half(static_cast<float>(y * 3 + x) * 16).bits;
          else
            for (size_t b = 0; b < bytes_per_pixel(format); b++) p[b] = static_cast<uint8_t>(y * 97 + x * 31 + b * 58);
        }
      const auto computed = [&](const Model& model) {
        const Image out = std::get<Image>(model.predict({{"x", picture}}).at("y"));
        return std::vector<uint8_t>(out.pixels.get(), out.pixels.get() + out.row_bytes * out.height);
      };
      const std::vector<uint8_t> expected = computed(cpu);
      EXPECT_EQ(computed(m), expected);
      EXPECT_EQ(computed(m), expected);
    }
}

/// The steps of a plan in which something crosses or is converted.
std::vector<std::string> moves(const ComputePlan& plan) {
  std::vector<std::string> out;
  for (const PlannedOperation& o : plan.operations)
    if (o.type == "transfer" || o.type == "convert_layout")
      out.push_back(o.type + " '" + o.name + "', " + o.note + (o.reason.empty() ? "" : ": " + o.reason));
  return out;
}

TEST_P(Residence, ExplainNamesPicturesThatCross) {
  const ComputePlan plan = Model::load(MOKA_GOLDEN "/boundary/image_rgb.mlmodel", configuration()).compute_plan();
  const std::vector<std::string> found = moves(plan);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].find("transfer 'x', 40 bytes to " + GetParam() + ": "), 0u) << found[0];
  EXPECT_EQ(found[1], "convert_layout 'x', pixels to planes");
}

TEST_P(Residence, ExplainSaysThatAStateDoesNotCross) {
  for (const std::string& move : moves(adder().compute_plan()))
    EXPECT_EQ(move.find("'sum'"), std::string::npos) << move;
}

TEST_P(Residence, ExplainSaysWhereAPlanEnds) {
  const Model m = Model::from_mil(
      "program(1.0)\n{\n func main<ios18>(" + kX + ") {\n" + line("a", "exp(x = x)") +
          "tensor<int32, [?, 1]> n = non_zero(x = a)[name = string(\"n\")];\n"
          "tensor<int32, [?]> f = squeeze(x = n, axes = tensor<int32, [1]>([1]))[name = string(\"f\")];\n"
          "tensor<fp32, [?]> y = gather(x = a, indices = f)[name = string(\"y\")];\n} -> (y);\n}\n",
      configuration());
  EXPECT_EQ(moves(m.compute_plan()),
            (std::vector<std::string>{"transfer 'x', 256 bytes to " + GetParam() + ": an input",
                                      "transfer 'a', 256 bytes from " + GetParam() +
                                          ": the plan ends at 'n' (non_zero), whose shapes depend on values"}));
  EXPECT_EQ(m.predict(x(0)).array("y").shape()[0], 64);
}

class LostState : public Residence {};
INSTANTIATE_TEST_SUITE_P(Devices, LostState, ::testing::Values("simulator"));

TEST_P(LostState, SaysSoUntilItIsWritten) {
  const Model m = adder();
  State state = m.new_state();
  EXPECT_EQ(predict(m, state, 1), 1);
  set_faults({0});
  const auto lost = [](const auto& act) {
    expect_error(ErrorKind::device_lost,
                 {"state 'sum': its content was in the memory of device 'simulator', which failed: write it again or "
                  "make a new state"},
                 act);
  };
  lost([&] { predict(m, state, 1); });
  lost([&] { content(state); });
  lost([&] { predict(m, state, 1); });
  state.write("sum", x(5).array("x"));
  EXPECT_EQ(predict(m, state, 1), 6);
  EXPECT_EQ(place(state), "host");
}

TEST_P(LostState, IsReplayedWhileTheHostHasIt) {
  const Model m = adder();
  State state = m.new_state();
  state.write("sum", x(5).array("x"));
  set_faults({0});
  EXPECT_EQ(predict(m, state, 1), 6);
  EXPECT_EQ(content(state), 6);
}

}  // namespace
}  // namespace moka::test

// SPDX-License-Identifier: Apache-2.0
// Memory that processes and devices share: values that cross without a copy.
#include "moka/shared_buffer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "api/api_util.h"
#include "devices/simulator/faults.h"
#include "moka/program.h"
#include "moka/trace.h"
#include "units/vulkan_driver.h"

namespace moka::test {
namespace {

constexpr int64_t kCount = 1024;
constexpr size_t kBytes = 4 * kCount;

/// What each device computes: y = softmax(x) * 2, z = exp(x). With `sorts` the CPU sorts y in between: w =
/// sqrt(sorted).
Model model_of(const std::string& device, bool sorts = false) {
  ProgramBuilder b;
  auto x = b.input("x", DataType::float32, {4, kCount / 4});
  auto y = b.op("mul", {{"x", b.op("softmax", {{"x", x}, {"axis", 1}})}, {"y", 2.f}});
  if (sorts) {
    auto turned = b.op("cumsum", {{"x", y}, {"axis", 1}, {"exclusive", false}, {"reverse", false}});
    b.output(b.op("sqrt", {{"x", turned}}), "w");
  }
  b.output(y, "y");
  b.output(b.op("exp", {{"x", x}}), "z");
  ModelConfiguration c;
  c.rates = "off";
  if (device != "cpu") c.device = device;
  if (sorts && device != "cpu") c.pins = {{"cumsum", "cpu"}};
  c.compute_units = device == "cpu" ? ComputeUnits::cpu_only : ComputeUnits::all;
  return b.build(c);
}

std::vector<float> numbers(float first) {
  std::vector<float> v(kCount);
  for (size_t i = 0; i < v.size(); i++) v[i] = first + 0.001f * static_cast<float>(i % 97);
  return v;
}

}  // namespace

class SharedBuffers : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "vulkan" && !has_vulkan_driver()) GTEST_SKIP() << "this machine has no driver for vulkan";
    if (GetParam() == "simulator") devices::simulator::set_unified(true);
  }
  void TearDown() override { devices::simulator::set_unified(false); }

  /// The kinds of slices in the Data lane of a prediction.
  static std::vector<std::string> moved(const Model& m, const Features& inputs, Features& outputs) {
    const auto path = std::filesystem::temp_directory_path() / ("moka-shared-" + std::to_string(getpid()) + ".pftrace");
    {
      Trace trace(path);
      m.predict(inputs, outputs);
      trace.stop();
    }
    const TraceSummary summary = summarize_trace(path);
    std::filesystem::remove(path);
    std::vector<std::string> found;
    for (const TraceGroup& g : summary.groups)
      if (g.lane == "Data") found.push_back(g.kind + " " + g.name);
    return found;
  }
  static void expect_right(const Features& outputs, const std::vector<float>& x) {
    const Model reference = model_of("cpu");
    std::vector<float> copy = x;
    const Features expected = reference.predict({{"x", MultiArray(copy.data(), DataType::float32, {4, kCount / 4})}});
    for (const char* name : {"y", "z"}) {
      const MultiArray &got = std::get<MultiArray>(outputs.at(name)), &want = std::get<MultiArray>(expected.at(name));
      for (int64_t i = 0; i < kCount; i++)
        ASSERT_NEAR(got.at(i), want.at(i), 1e-5 * std::abs(want.at(i))) << name << " " << i;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, SharedBuffers, ::testing::Values("cpu", "simulator", "vulkan"),
                         [](const auto& info) { return info.param; });

TEST_P(SharedBuffers, AreUsedWhereTheyLie) {
  const Model m = model_of(GetParam());
  const SharedBuffer x(kBytes), y(2 * kBytes);
  const std::vector<int64_t> shape{4, kCount / 4};
  const Features inputs{{"x", x.array(DataType::float32, shape)}};
  // Several values, and one buffer for two outputs.
  for (float first : {-1.f, 0.5f, 2.f}) {
    const std::vector<float> v = numbers(first);
    std::memcpy(x.data(), v.data(), kBytes);
    Features outputs{{"y", y.array(DataType::float32, shape)}, {"z", y.array(DataType::float32, shape, kBytes)}};
    EXPECT_EQ(moved(m, inputs, outputs), std::vector<std::string>{});
    EXPECT_EQ(std::get<MultiArray>(outputs.at("y")).data(), y.data());
    expect_right(outputs, v);
    EXPECT_EQ(std::memcmp(x.data(), v.data(), kBytes), 0) << "the input has changed";
  }
}

TEST_P(SharedBuffers, TakeTurnsWithOtherMemory) {
  const Model m = model_of(GetParam());
  const std::vector<int64_t> shape{4, kCount / 4};
  std::vector<SharedBuffer> buffers;
  for (int i = 0; i < 7; i++) buffers.emplace_back(kBytes);
  for (int round = 0; round < 3; round++)
    for (size_t i = 0; i < buffers.size(); i++) {
      const std::vector<float> v = numbers(0.1f * static_cast<float>(i) + static_cast<float>(round));
      std::memcpy(buffers[i].data(), v.data(), kBytes);
      std::vector<float> own = v;
      MultiArray x =
          i % 3 == 2 ? MultiArray(own.data(), DataType::float32, shape) : buffers[i].array(DataType::float32, shape);
      expect_right(m.predict({{"x", x}}), v);
      if (round == 1 && i == 3) buffers[i] = SharedBuffer(kBytes);  // frees what was used
    }
}

TEST_P(SharedBuffers, AnOffsetThatADeviceDoesNotTakeIsCopied) {
  const Model m = model_of(GetParam());
  const SharedBuffer x(kBytes + 64);
  const std::vector<float> v = numbers(0);
  std::memcpy(x.data() + 4, v.data(), kBytes);
  expect_right(m.predict({{"x", x.array(DataType::float32, {4, kCount / 4}, 4)}}), v);
}

TEST_P(SharedBuffers, ValuesBetweenCpuAndDeviceAreNotCopied) {
  const Model m = model_of(GetParam(), true);
  const SharedBuffer x(kBytes);
  const std::vector<float> v = numbers(0);
  std::memcpy(x.data(), v.data(), kBytes);
  const Features inputs{{"x", x.array(DataType::float32, {4, kCount / 4})}};
  const Features expected = model_of("cpu", true).predict(inputs);
  const SharedBuffer all(3 * kBytes);
  for (int i = 0; i < 3; i++) {
    Features outputs;
    for (const char* name : {"w", "y", "z"})
      outputs[name] = all.array(DataType::float32, {4, kCount / 4}, outputs.size() * kBytes);
    EXPECT_EQ(moved(m, inputs, outputs), std::vector<std::string>{});
    for (const char* name : {"w", "y", "z"})
      for (int64_t k = 0; k < kCount; k++)
        ASSERT_NEAR(std::get<MultiArray>(outputs.at(name)).at(k), std::get<MultiArray>(expected.at(name)).at(k),
                    1e-5 * std::abs(std::get<MultiArray>(expected.at(name)).at(k)))
            << name << " " << k;
  }
}

TEST_P(SharedBuffers, AnotherProcessWritesTheInput) {
  const SharedBuffer x(kBytes);
  const std::vector<float> v = numbers(1);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    // Only what may be called after fork: the descriptor is what another process would have received.
    void* at = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, x.file_descriptor(), 0);
    if (at == MAP_FAILED) _exit(1);
    std::memcpy(at, v.data(), kBytes);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  const SharedBuffer other = SharedBuffer::open(x.file_descriptor());
  EXPECT_NE(other.data(), x.data());
  const Model m = model_of(GetParam());
  Features outputs;
  const Features inputs{{"x", other.array(DataType::float32, {4, kCount / 4})}};
  m.predict(inputs, outputs);
  expect_right(outputs, v);
}

TEST(SharedMemory, BadDescriptorsAreErrors) {
  const auto refused = [](auto&& f) {
    try {
      f();
    } catch (const Exception& e) {
      return std::string(e.what());
    }
    return std::string("no error");
  };
  EXPECT_NE(refused([] { SharedBuffer::open(-1); }).find("Bad file descriptor"), std::string::npos);
  const int null = ::open("/dev/null", O_RDWR);
  EXPECT_NE(refused([&] { SharedBuffer::open(null); }).find("not of memfd_create"), std::string::npos);
  ::close(null);
  // What cannot be sealed could shrink.
  const int loose = memfd_create("loose", 0);
  ASSERT_EQ(ftruncate(loose, 100), 0);
  EXPECT_NE(refused([&] { SharedBuffer::open(loose); }).find("could shorten its file"), std::string::npos);
  ::close(loose);
  const int file = memfd_create("file", MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(file, 100), 0);
  EXPECT_NE(refused([&] { SharedBuffer::open(file, 0, 101); }).find("101 bytes at 0 of a file of 100"),
            std::string::npos);
  EXPECT_NE(refused([&] { SharedBuffer::open(file, 100); }).find("at 100 of a file of 100"), std::string::npos);
  const SharedBuffer part = SharedBuffer::open(file, 40, 20);
  EXPECT_EQ(part.bytes(), 20u);
  EXPECT_NE(ftruncate(file, 10), 0) << "the file shrinks under its memory";
  EXPECT_NE(refused([&] { part.array(DataType::float32, {6}); }).find("6 elements"), std::string::npos);
  EXPECT_NE(refused([&] { part.array(DataType::float32, {1}, 21); }).find("at 21 of 20"), std::string::npos);
  EXPECT_NE(refused([&] { part.array(DataType::float32, {1}, 2); }).find("aligned"), std::string::npos);
  ::close(file);
  EXPECT_NE(refused([] { SharedBuffer(0); }).find("0 bytes"), std::string::npos);
  EXPECT_NE(refused([] { SharedBuffer(SIZE_MAX); }), "no error");
  // More than a machine has, and few enough for a file.
  EXPECT_NE(refused([] { SharedBuffer(size_t{1} << 50); }).find("are available"), std::string::npos);
  alignas(64) static char own[256];
  const SharedBuffer over = SharedBuffer::over(own, 256);
  EXPECT_NE(refused([] { SharedBuffer::over(own + 64, 64); }).find("shared already"), std::string::npos);
  EXPECT_EQ(over.file_descriptor(), -1);
}

}  // namespace moka::test

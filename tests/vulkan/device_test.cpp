// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <thread>

#include "devices/vulkan/pipelines.h"
#include "vulkan/region_util.h"

namespace moka::vulkan_test {
namespace {

using namespace ir;

/// A prediction of one operation; the exit status of a child.
int predict() {
  Region g;
  Value* x = g.input({64});
  auto r = g.run({g.op("sigmoid", {{"x", x}})}, 1);
  if (r.got.size() != 1) return 1;
  for (int64_t i = 0; i < 64; i++)
    if (std::abs(load_f64(r.got[0].view(), i) - load_f64(r.expected[0].view(), i)) > 1e-5) return 2;
  return 0;
}

int status_of_child(int (*run)()) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) _exit(run());
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Device, SaysWhatItIsOrWhyThereIsNone) {
  const kernel::Device& d = devices::vulkan::device();
  EXPECT_EQ(d.name(), "vulkan");
  EXPECT_FALSE(d.description().empty());
  EXPECT_EQ(d.unit(), kernel::ComputeUnit::gpu);
  EXPECT_EQ(d.kernels().empty(), !devices::vulkan::Context::probe().ok());
}

TEST(Device, WithoutADriverItHasNoKernels) {
  // In a new process, because drivers are searched for only once. The loader finds none if this variable names no file.
  const std::string command = cat("VK_ICD_FILENAMES=/nonexistent VK_DRIVER_FILES=/nonexistent ",
                                  std::filesystem::read_symlink("/proc/self/exe").string(),
                                  " --gtest_filter=Device.SaysWhatItIs* >/dev/null 2>&1");
  EXPECT_EQ(std::system(command.c_str()), 0);
}

bool is_hardware() { return !(*devices::vulkan::Context::get())->features().is_processor; }

TEST(Device, AChildMadeByForkHasItsOwn) {
  MOKA_NEEDS_VULKAN();
  if (is_hardware()) GTEST_SKIP() << "drivers of hardware do not work in a child";
  // Children first: this process' driver has no threads yet that they would miss.
  EXPECT_EQ(status_of_child(predict), 0);
  EXPECT_EQ(predict(), 0);
  EXPECT_EQ(status_of_child(predict), 0);
}

TEST(Device, AChildOfAProcessThatUsesHardwareHasNone) {
  MOKA_NEEDS_VULKAN();
  if (!is_hardware()) GTEST_SKIP() << "a driver that computes on the CPU works in a child";
  EXPECT_EQ(predict(), 0);
  const auto finds_none = [] {
    auto context = devices::vulkan::Context::get();
    return !context.ok() && context.error().code() == ErrorCode::device_lost ? 0 : 1;
  };
  EXPECT_EQ(status_of_child(finds_none), 0);
  EXPECT_EQ(status_of_child([] {
              return status_of_child([] {
                auto context = devices::vulkan::Context::get();
                return context.ok() ? 1 : 0;
              });
            }),
            0)
      << "a child of the child";
  EXPECT_EQ(predict(), 0) << "the parent keeps its device";
}

TEST(Device, BuffersAndQueuesOfTheParentAreLostInAChild) {
  MOKA_NEEDS_VULKAN();
  static auto queue = devices::vulkan::device().open_queue();
  ASSERT_TRUE(queue.ok());
  const int status = status_of_child([] {
    auto submission = (*queue)->compile({});
    return !submission.ok() && submission.error().code() == ErrorCode::device_lost ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
}

TEST(Device, RefusesMoreMemoryThanThereIs) {
  MOKA_NEEDS_VULKAN();
  auto buffer = devices::vulkan::device().memory()->allocate(size_t{1} << 50);
  ASSERT_FALSE(buffer.ok());
  EXPECT_EQ(buffer.error().code(), ErrorCode::out_of_budget) << buffer.error().to_string();
}

TEST(Device, ThreadsShareItsQueue) {
  MOKA_NEEDS_VULKAN();
  int status[4] = {-1, -1, -1, -1};
  std::vector<std::thread> threads;
  for (int& s : status) threads.emplace_back([&s] { s = predict(); });
  for (std::thread& t : threads) t.join();
  for (int s : status) EXPECT_EQ(s, 0);
}

TEST(Device, WritesMemoryInPieces) {
  MOKA_NEEDS_VULKAN();
  // More than one piece of staging memory, read back through a cast.
  Region g;
  std::vector<float> v(5 << 20);
  for (size_t i = 0; i < v.size(); i++) v[i] = static_cast<float>(i % 1000);
  Value* w = g.constant(Tensor::f32({static_cast<int64_t>(v.size())}, v));
  Value* x = g.input({1});
  g.expect_same({g.op("add", {{"x", x}, {"y", w}})});
}

/// More than all pieces of staging memory, so that each is used again.
TEST(Device, ReadsWhatItWrites) {
  MOKA_NEEDS_VULKAN();
  const kernel::Memory& memory = *devices::vulkan::device().memory();
  std::vector<uint32_t> v(6 << 20), got(v.size() - 3);
  for (size_t i = 0; i < v.size(); i++) v[i] = static_cast<uint32_t>(i * 2654435761u);
  auto buffer = memory.allocate(v.size() * 4 + 64);
  ASSERT_TRUE(buffer.ok()) << buffer.error().to_string();
  for (int round = 0; round < 2; round++) {
    for (uint32_t& x : v) x++;
    ASSERT_TRUE(memory.write(**buffer, 64, v.data(), v.size() * 4).ok());
    ASSERT_TRUE(memory.read(**buffer, 64 + 3 * 4, got.data(), got.size() * 4).ok());
    EXPECT_TRUE(std::equal(got.begin(), got.end(), v.begin() + 3));
  }
  // Freed while copies may still run.
  ASSERT_TRUE(memory.write(**buffer, 0, v.data(), v.size() * 4).ok());
}

TEST(Device, ShowsUnifiedMemoryToTheHost) {
  MOKA_NEEDS_VULKAN();
  const kernel::Memory& memory = *devices::vulkan::device().memory();
  auto buffer = memory.allocate(1000);
  ASSERT_TRUE(buffer.ok()) << buffer.error().to_string();
  std::byte* const there = memory.host_address(**buffer);
  EXPECT_EQ(there != nullptr, devices::vulkan::Context::probe()->unified);
  if (there == nullptr) return;
  std::vector<uint8_t> v(1000), got(1000);
  for (size_t i = 0; i < v.size(); i++) v[i] = static_cast<uint8_t>(i * 7);
  std::memcpy(there, v.data(), v.size());
  ASSERT_TRUE(memory.read(**buffer, 0, got.data(), got.size()).ok());
  EXPECT_EQ(v, got);
}

TEST(Device, KeepsCompiledShadersInAFile) {
  MOKA_NEEDS_VULKAN();
  auto context = devices::vulkan::Context::get();
  ASSERT_TRUE(context.ok());
  auto& pipelines = (*context)->pipelines();
  const size_t before = pipelines.count();
  ASSERT_EQ(predict(), 0);
  const size_t first = pipelines.count();
  EXPECT_GE(first, before);
  ASSERT_EQ(predict(), 0);
  EXPECT_EQ(pipelines.count(), first) << "made again";

  const std::string path = cat(testing::TempDir(), "moka_pipelines_", getpid());
  ASSERT_TRUE(pipelines.write_cache(path).ok());
  EXPECT_GT(std::filesystem::file_size(path), 16u);
  EXPECT_TRUE(pipelines.read_cache(path).ok());
  // Truncated files, files of another driver and missing files count as empty.
  std::filesystem::resize_file(path, 20);
  EXPECT_TRUE(pipelines.read_cache(path).ok());
  std::FILE* f = std::fopen(path.c_str(), "wb");
  std::fputs("something else that is no cache of compiled shaders", f);
  std::fclose(f);
  EXPECT_TRUE(pipelines.read_cache(path).ok());
  std::filesystem::remove(path);
  EXPECT_TRUE(pipelines.read_cache(path).ok());
  EXPECT_EQ(pipelines.write_cache("/proc/nonexistent/file").error().code(), ErrorCode::io);
  EXPECT_EQ(predict(), 0);
}

TEST(Device, KeepsCompiledShadersInAFolder) {
  MOKA_NEEDS_VULKAN();
  auto context = devices::vulkan::Context::get();
  ASSERT_TRUE(context.ok());
  auto& pipelines = (*context)->pipelines();
  ASSERT_EQ(predict(), 0);
  const auto folder = std::filesystem::temp_directory_path() / cat("moka_pipelines_folder_", getpid());
  ASSERT_TRUE(pipelines.write_folder(folder).ok());
  size_t files = 0;
  std::filesystem::file_time_type written;
  for (const auto& f : std::filesystem::directory_iterator(folder)) {
    files++;
    written = f.last_write_time();
    EXPECT_EQ(f.path().extension(), ".pipelines");
  }
  EXPECT_EQ(files, 1u);
  // Nothing is new, so nothing is written.
  ASSERT_TRUE(pipelines.write_folder(folder).ok());
  for (const auto& f : std::filesystem::directory_iterator(folder)) EXPECT_EQ(f.last_write_time(), written);
  EXPECT_TRUE(pipelines.read_folder(folder).ok());
  std::filesystem::remove_all(folder);
}

/// Callers that need the same pipelines at the same time share them, and each pipeline is created once.
TEST(Device, MakesAPipelineOnceForManyThreads) {
  MOKA_NEEDS_VULKAN();
  auto context = devices::vulkan::Context::get();
  ASSERT_TRUE(context.ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; t++) threads.emplace_back([] { EXPECT_EQ(predict(), 0); });
  for (std::thread& t : threads) t.join();
  const size_t made = (*context)->pipelines().count();
  EXPECT_EQ(predict(), 0);
  EXPECT_EQ((*context)->pipelines().count(), made);
}

TEST(Device, ConvertsRowMajorFloat16Only) {
  MOKA_NEEDS_VULKAN();
  using kernel::Layout;
  const kernel::Device& d = devices::vulkan::device();
  const Shape shape{2, 3, 4};
  EXPECT_NE(d.convert(DType::fp32, shape, {}, Layout{}.as_half()).choice, nullptr);
  EXPECT_NE(d.convert(DType::fp32, shape, Layout{}.as_half(), {}).choice, nullptr);
  EXPECT_EQ(d.convert(DType::fp32, shape, {}, Layout::channels_last()).refusal, "a layout other than row-major");
  EXPECT_EQ(d.convert(DType::int32, shape, {}, Layout{}.as_half()).refusal, "element type int32");
}

}  // namespace
}  // namespace moka::vulkan_test

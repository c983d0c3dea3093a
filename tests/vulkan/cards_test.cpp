// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "vulkan/region_util.h"

/// Several cards of one machine. The loader lists a driver that computes on the CPU twice where two files name it.
namespace moka::vulkan_test {
namespace {

using namespace ir;

/// The file by which the loader finds a driver that computes on the CPU; empty: none is installed.
std::filesystem::path software_driver() {
  std::error_code error;
  for (const char* folder : {"/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d"})
    for (const auto& file : std::filesystem::directory_iterator(folder, error))
      if (file.path().filename().string().starts_with("lvp")) return file.path();
  return {};
}

bool has_two_cards() { return std::getenv("MOKA_TEST_TWO_CARDS") != nullptr; }

#define MOKA_NEEDS_TWO_CARDS() \
  if (!has_two_cards())        \
  GTEST_SKIP() << "runs in a process of its own, which Cards.EachThatTheLoaderListsIsADevice starts"

TEST(Cards, EachThatTheLoaderListsIsADevice) {
  const std::filesystem::path driver = software_driver();
  if (driver.empty()) GTEST_SKIP() << "no driver that computes on the CPU, which can be listed twice";
  if (has_two_cards()) GTEST_SKIP() << "is in such a process";
  const auto folder = std::filesystem::temp_directory_path() / cat("moka_cards_", getpid());
  std::filesystem::create_directory(folder);
  for (const char* name : {"a.json", "b.json"}) std::filesystem::copy_file(driver, folder / name);
  const std::string files = cat((folder / "a.json").string(), ":", (folder / "b.json").string());
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const auto out = folder / "out";
  const int status = std::system(cat("MOKA_TEST_TWO_CARDS=1 VK_ICD_FILENAMES=", files, " VK_DRIVER_FILES=", files, " ",
                                     self, " --gtest_filter=TwoCards.* >", out.string(), " 2>&1")
                                     .c_str());
  std::ifstream said(out);
  EXPECT_EQ(status, 0) << std::string(std::istreambuf_iterator<char>(said), {});
  std::filesystem::remove_all(folder);
}

TEST(Cards, NoneIsBesideTheBestOfOne) {
  if (has_two_cards()) GTEST_SKIP() << "there are two";
  MOKA_NEEDS_VULKAN();
  EXPECT_EQ(devices::vulkan::device().others().size() + 1, devices::vulkan::Context::count());
}

class TwoCards : public ::testing::Test {
 protected:
  void SetUp() override {
    MOKA_NEEDS_TWO_CARDS();
    ASSERT_EQ(devices::vulkan::Context::count(), 2u);
    const auto others = devices::vulkan::device().others();
    ASSERT_EQ(others.size(), 1u);
    second_ = others[0];
  }
  const kernel::Device& first_ = devices::vulkan::device();
  const kernel::Device* second_ = nullptr;
};

TEST_F(TwoCards, HaveNamesMemoriesAndKernelsOfTheirOwn) {
  EXPECT_EQ(first_.name(), "vulkan");
  EXPECT_EQ(second_->name(), "vulkan1");
  EXPECT_GE(first_.rank(), 0) << "compute units ask the best one";
  EXPECT_LT(second_->rank(), 0) << "the others are named";
  EXPECT_TRUE(second_->others().empty());
  EXPECT_EQ(second_->kernels().size(), first_.kernels().size());
  EXPECT_EQ(second_->identity(), first_.identity()) << "the same card twice";
  EXPECT_TRUE(second_->is_software());
  EXPECT_NE(first_.memory(), second_->memory());
}

TEST_F(TwoCards, BothCompute) {
  std::vector<Tensor> results;
  for (const kernel::Device* card : {&first_, second_, &first_}) {
    Region g;
    g.on(*card);
    Value* x = g.input({3, 40});
    Value* y = g.op("matmul", {{"x", x}, {"y", g.constant(g.random({40, 24}))}});
    const auto r = g.expect_same({g.op("sigmoid", {{"x", y}})});
    ASSERT_EQ(r.got.size(), 1u);
    results.push_back(r.got[0]);
  }
  for (size_t i = 1; i < results.size(); i++)
    EXPECT_EQ(std::memcmp(results[i].data(), results[0].data(), results[0].bytes()), 0) << i;
}

TEST_F(TwoCards, KeepTheirBuffersToThemselves) {
  auto here = first_.memory()->allocate(64), there = second_->memory()->allocate(64);
  ASSERT_TRUE(here.ok() && there.ok());
  const Shape shape{16};
  const kernel::Match copy = second_->convert(DType::fp32, shape, {}, {});
  ASSERT_NE(copy.choice, nullptr);
  kernel::RegionStep step;
  step.choice = copy.choice.get();
  step.in = {{DType::fp32, shape, {}, here->get()}};
  step.out = {{DType::fp32, shape, {}, there->get()}};
  auto queue = second_->open_queue();
  ASSERT_TRUE(queue.ok());
  auto submission = (*queue)->compile({{&step, 1}, {}, {}});
  ASSERT_FALSE(submission.ok());
  EXPECT_EQ(submission.error().code(), ErrorCode::device_lost);
  EXPECT_NE(submission.error().to_string().find("a buffer of another card"), std::string::npos);
}

}  // namespace
}  // namespace moka::vulkan_test

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "api/c_support.h"
#include "moka/program.h"

namespace {

constexpr int64_t kSize = 512;
constexpr size_t kBytes = kSize * kSize * sizeof(float);

/// A package with a matrix product of 512 x 512 weights, which is large enough to be mapped.
class Product {
 public:
  Product() {
    moka::ProgramBuilder b("ios16");
    const auto x = b.input("x", moka::DataType::float32, {64, kSize});
    std::vector<float> weight(kSize * kSize);
    for (size_t i = 0; i < weight.size(); i++) weight[i] = static_cast<float>(i % 17) - 8;
    b.output(b.op("linear", {{"x", x}, {"weight", moka::MultiArray::of(weight, {kSize, kSize})}}), "y");
    b.save(path_);
  }
  ~Product() { std::filesystem::remove_all(path_); }

  std::unique_ptr<moka_model, decltype(&moka_model_free)> load(const moka_configuration& configuration) const {
    moka_model* m = nullptr;
    EXPECT_EQ(moka_model_load(path_.c_str(), &configuration, &m), MOKA_OK) << moka_last_error();
    return {m, &moka_model_free};
  }

 private:
  std::string path_ = std::filesystem::temp_directory_path() / ("moka_c_" + std::to_string(getpid()) + ".mlpackage");
};

TEST(CConfiguration, LowMemoryPacksNothing) {
  const Product product;
  moka_configuration c = MOKA_CONFIGURATION_INIT;
  c.threads = 1;
  c.pack_while_loading = 1;
  const auto packed = product.load(c);
  c.low_memory = 1;
  const auto stored = product.load(c);
  ASSERT_TRUE(packed && stored);
  EXPECT_GE(packed->model.load_times().packed_bytes, kBytes);
  EXPECT_EQ(stored->model.load_times().packed_bytes, 0u);
}

TEST(CConfiguration, PackWhileLoading) {
  const Product product;
  moka_configuration c = MOKA_CONFIGURATION_INIT;
  const auto late = product.load(c);
  c.pack_while_loading = 1;
  const auto early = product.load(c);
  ASSERT_TRUE(late && early);
  EXPECT_EQ(late->model.load_times().packed_bytes, 0u);
  EXPECT_GE(early->model.load_times().packed_bytes, kBytes);
}

}  // namespace

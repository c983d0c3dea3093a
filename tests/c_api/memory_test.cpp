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

TEST(CSharedBuffer, IsAnInputAndABacking) {
  const Product product;
  moka_configuration c = MOKA_CONFIGURATION_INIT;
  const auto model = product.load(c);
  ASSERT_TRUE(model);
  constexpr size_t kValues = 64 * kSize * sizeof(float);
  moka_shared_buffer *memory = nullptr, *other = nullptr;
  ASSERT_EQ(moka_shared_buffer_new(2 * kValues, &memory), MOKA_OK) << moka_last_error();
  const int descriptor = moka_shared_buffer_file_descriptor(memory);
  ASSERT_EQ(moka_shared_buffer_open(descriptor, kValues, 0, &other), MOKA_OK) << moka_last_error();
  EXPECT_EQ(moka_shared_buffer_bytes(other), kValues);
  auto* x = static_cast<float*>(moka_shared_buffer_data(memory));
  for (size_t i = 0; i < 64 * kSize; i++) x[i] = 1;
  const int64_t shape[] = {64, kSize};
  const moka_array in{x, MOKA_FLOAT32, 2, shape, nullptr};
  const moka_array out{x + 64 * kSize, MOKA_FLOAT32, 2, shape, nullptr};
  moka_features *inputs = nullptr, *outputs = nullptr;
  ASSERT_EQ(moka_features_new(&inputs), MOKA_OK);
  ASSERT_EQ(moka_features_new(&outputs), MOKA_OK);
  ASSERT_EQ(moka_features_set_array(inputs, "x", &in), MOKA_OK);
  ASSERT_EQ(moka_features_set_array(outputs, "y", &out), MOKA_OK);
  ASSERT_EQ(moka_model_predict(model.get(), inputs, outputs, nullptr), MOKA_OK) << moka_last_error();
  // The other mapping of the same file.
  float expected = 0;
  for (int64_t i = 0; i < kSize; i++) expected += static_cast<float>(i % 17) - 8;
  EXPECT_EQ(static_cast<const float*>(moka_shared_buffer_data(other))[0], expected);
  moka_features_free(inputs);
  moka_features_free(outputs);
  moka_shared_buffer_free(other);
  moka_shared_buffer_free(memory);
}

TEST(CSharedBuffer, ErrorsLeaveTheResult) {
  moka_shared_buffer* made = nullptr;
  EXPECT_EQ(moka_shared_buffer_new(0, &made), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_shared_buffer_new(64, nullptr), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_shared_buffer_open(-1, 0, 0, &made), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(moka_shared_buffer_over(nullptr, 64, &made), MOKA_INVALID_ARGUMENT);
  EXPECT_EQ(made, nullptr);
  EXPECT_EQ(moka_shared_buffer_data(nullptr), nullptr);
  EXPECT_EQ(moka_shared_buffer_bytes(nullptr), 0u);
  EXPECT_EQ(moka_shared_buffer_file_descriptor(nullptr), -1);
  moka_shared_buffer_free(nullptr);
}

}  // namespace

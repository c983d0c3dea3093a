// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "format/format_util.h"
#include "format/model_file.h"
#include "format/proto/model.pb.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MOKA_MEMORY_IS_INFLATED 1
#endif

namespace moka::format {
namespace {

size_t anonymous_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("RssAnon:")) return std::stoul(line.substr(8));
  return 0;
}

void put_varint(std::string& out, uint64_t v) {
  for (; v >= 128; v >>= 7) out += static_cast<char>((v & 127) | 128);
  out += static_cast<char>(v);
}

std::string delimited(std::string key, uint64_t content) {
  put_varint(key, content);
  return key;
}

TEST(Memory, LargeModelStaysInItsFile) {
#ifdef MOKA_MEMORY_IS_INFLATED
  GTEST_SKIP() << "sanitizers change what memory a process takes";
#endif
  // A network of one dense layer whose 300 MB of weights are a hole in the file.
  constexpr uint64_t payload = 300'000'000;
  std::string weight = delimited("\x0a", payload);                       // WeightParams.floatValue
  std::string product = delimited("\xa2\x01", weight.size() + payload);  // InnerProductLayerParams.weights
  std::string layer =
      delimited("\xe2\x08", product.size() + weight.size() + payload);  // NeuralNetworkLayer.innerProduct
  uint64_t n = layer.size() + product.size() + weight.size() + payload;
  std::string network = delimited("\x0a", n);                     // NeuralNetwork.layers
  std::string model = delimited("\xa2\x1f", network.size() + n);  // Model.neuralNetwork
  test::TemporaryFolder folder;
  auto path = folder.path() / "large.mlmodel";
  test::write_file(path, model + network + layer + product + weight);
  ASSERT_EQ(truncate(path.c_str(), static_cast<off_t>(std::filesystem::file_size(path) + payload)), 0);

  size_t before = anonymous_kib();
  if (before == 0) GTEST_SKIP() << "/proc/self/status has no RssAnon";
  auto file = open_model(path.string());
  size_t after = anonymous_kib();
  ASSERT_TRUE(file.ok()) << file.error().to_string();
  auto data = file->weight_data(file->spec().neuralnetwork().layers(0).innerproduct().weights());
  ASSERT_TRUE(data.ok()) << data.error().to_string();
  EXPECT_EQ(data->bytes.size(), payload);
  EXPECT_LT(after, before + 10 * 1024);
}

}  // namespace
}  // namespace moka::format

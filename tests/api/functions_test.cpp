// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include "api/api_util.h"
#include "models_folder.h"
#include "temporary_folder.h"

/// Programs of several functions.
namespace moka::test {
namespace {

/// One record of 64 bytes behind the header, then two float32.
std::map<std::string, std::vector<std::byte>> weights(float a, float b) {
  std::vector<std::byte> file(64 + 64 + 64);
  const uint32_t header[2] = {1, 2}, record[2] = {0xDEADBEEF, 2};
  const uint64_t place[2] = {8, 128};
  const float values[2] = {a, b};
  std::memcpy(file.data(), header, sizeof header);
  std::memcpy(file.data() + 64, record, sizeof record);
  std::memcpy(file.data() + 72, place, sizeof place);
  std::memcpy(file.data() + 128, values, sizeof values);
  return {{"weights/weight.bin", file}};
}

const std::string kWeight =
    "tensor<fp32, [1, 2]> w = const()[val = tensor<fp32, [1, 2]>(BLOBFILE(path = "
    "string(\"@model_path/weights/weight.bin\"), offset = uint64(64)))];\n";

const std::string kTwoFunctions = "program(1.0)\n{\n func main<ios18>(tensor<fp32, [1, 2]> x) {\n" + kWeight +
                                  "tensor<fp32, [1, 1]> y = linear(x = x, weight = w);\n } -> (y);\n"
                                  " func many<ios17>(tensor<fp32, [?, 2]> rows, tensor<fp32, [1]> more) {\n" +
                                  kWeight +
                                  "tensor<fp32, [?, 1]> p = linear(x = rows, weight = w);\n"
                                  "tensor<fp32, [?, 1]> sums = add(x = p, y = more);\n"
                                  "tensor<fp32, [?, 1]> size = abs(x = sums);\n } -> (sums, size);\n}\n";

TEST(Functions, ShareWeightsAndHaveDescriptionsOfTheirOwn) {
  const Model main = Model::from_mil(kTwoFunctions, {}, weights(2, -3));
  ASSERT_EQ(main.description().functions.size(), 2u);
  EXPECT_EQ(main.description().default_function, "main");
  EXPECT_EQ(main.function().inputs.size(), 1u);
  EXPECT_EQ(values(main.predict({{"x", MultiArray::of(std::vector<float>{5, 1}, {1, 2})}}).array("y")),
            std::vector<double>{7});

  ModelConfiguration c;
  c.function_name = "many";
  const Features in{{"rows", MultiArray::of(std::vector<float>{1, 0, 0, 1, 1, 1}, {3, 2})},
                    {"more", MultiArray::of(std::vector<float>{0.5f}, {1})}};
  for (const Model& m : {Model::from_mil(kTwoFunctions, c, weights(2, -3)), main.configured(c)}) {
    ASSERT_EQ(m.function().inputs.size(), 2u);
    EXPECT_EQ(m.function().inputs[0].name, "rows");
    ASSERT_EQ(m.function().outputs.size(), 2u);
    const Features out = m.predict(in);
    EXPECT_EQ(values(out.array("sums")), (std::vector<double>{2.5, -2.5, -0.5}));
    EXPECT_EQ(values(out.array("size")), (std::vector<double>{2.5, 2.5, 0.5}));
  }
  c.function_name = "none";
  expect_error(ErrorKind::not_found, {"'main'", "'many'", "'none'"}, [&] { main.configured(c); });
}

constexpr int64_t kMade = 4096, kDepth = 8192, kRows = 8;

/// The package of tests/golden/multifunction_models.py. Row i of its 64 MiB weight is i % 64 / 64.
class Package {
 public:
  Package() {
    namespace fs = std::filesystem;
    const fs::path data = folder_ / "two.mlpackage/Data/com.apple.CoreML";
    fs::create_directories(data / "weights");
    fs::copy(MOKA_GOLDEN "/multifunction/two.mlmodel", data / "model.mlmodel");
    std::ofstream(folder_ / "two.mlpackage/Manifest.json")
        << R"({"fileFormatVersion": "1.0.0", "rootModelIdentifier": "m", "itemInfoEntries": {
  "m": {"author": "com.apple.CoreML", "description": "", "name": "model.mlmodel", "path": "com.apple.CoreML/model.mlmodel"},
  "w": {"author": "com.apple.CoreML", "description": "", "name": "weights", "path": "com.apple.CoreML/weights"}}})";
    std::ofstream weights(data / "weights/weight.bin", std::ios::binary);
    const uint32_t header[16] = {2, 2};
    weights.write(reinterpret_cast<const char*>(header), sizeof header);
    for (const auto& [rows, columns] : {std::pair{kMade, kDepth}, {int64_t{1}, kMade}}) {
      struct {
        uint32_t mark = 0xDEADBEEF, type = 1;
        uint64_t size, begin, rest[5] = {};
      } record;
      record.size = static_cast<uint64_t>(rows * columns * 2);
      record.begin = static_cast<uint64_t>(weights.tellp()) + sizeof record;
      weights.write(reinterpret_cast<const char*>(&record), sizeof record);
      std::vector<uint16_t> row(static_cast<size_t>(columns));
      for (int64_t i = 0; i < rows; i++) {
        // Half floats of the multiples of 1/64 below 1, computed from the bits of the floats.
        const float value = static_cast<float>(i % 64) / 64;
        const uint32_t bits = __builtin_bit_cast(uint32_t, value);
        std::fill(row.begin(), row.end(),
                  static_cast<uint16_t>(value == 0 ? 0 : ((bits >> 23) - 112) << 10 | (bits >> 13 & 0x3ff)));
        weights.write(reinterpret_cast<const char*>(row.data()), static_cast<std::streamsize>(row.size() * 2));
      }
    }
  }
  std::string path() const { return (folder_ / "two.mlpackage").string(); }

 private:
  TemporaryFolder folder_;
};

/// How many times the weights file is mapped.
int mappings() {
  std::ifstream maps("/proc/self/maps");
  int n = 0;
  for (std::string line; std::getline(maps, line);) n += line.find("weights/weight.bin") != std::string::npos;
  return n;
}

Features input_of_package() {
  std::vector<float> x(static_cast<size_t>(kRows * kDepth));
  for (int64_t i = 0; i < kRows; i++) x[static_cast<size_t>(i * kDepth)] = static_cast<float>(i) - 3;
  return {{"x", MultiArray::of(x, {kRows, kDepth})}};
}

/// A large file is mapped once and its weights are packed once, for any number of functions, by the second prediction.
TEST(Functions, MapAndPackWeightsOnce) {
  const Package package;
  const Features in = input_of_package();
  const Model plain = Model::load(package.path());
  EXPECT_EQ(plain.function().name, "plain");
  EXPECT_EQ(mappings(), 1);
  // As float16, or as floats on processors that do not convert float16.
  constexpr size_t kHalves = kMade * kDepth * sizeof(uint16_t), kFloats = 2 * kHalves;
  EXPECT_EQ(plain.load_times().packed_bytes, 0u);
  const auto first = values(plain.predict(in).array("y"));
  const size_t packed = plain.compute_plan(in).packed_bytes, expected = packed < kFloats ? kHalves : kFloats;
  EXPECT_GE(packed, expected);
  EXPECT_LE(packed, expected + expected / 16);
  ModelConfiguration c;
  c.function_name = "positive";
  const Model positive = plain.configured(c);
  EXPECT_EQ(mappings(), 1);
  EXPECT_EQ(positive.compute_plan(in).packed_bytes, 0u);
  const auto y = values(plain.predict(in).array("y")), z = values(positive.predict(in).array("y"));
  for (int64_t i = 0; i < kRows; i++)
    for (int64_t j = 0; j < kMade; j += 7) {
      const auto at = static_cast<size_t>(i * kMade + j);
      ASSERT_EQ(y[at], static_cast<double>(i - 3) * static_cast<double>(j % 64) / 64) << i << " " << j;
      ASSERT_EQ(first[at], y[at]);
      ASSERT_EQ(z[at], std::max(0.0, y[at]));
    }
}

/// Packed weights of one function remain available to others after that function is destroyed.
TEST(Functions, KeepWhatOthersHaveTakenOver) {
  const Package package;
  ModelConfiguration c;
  c.function_name = "positive";
  std::optional<Model> first = Model::load(package.path());
  EXPECT_GT(first->compute_plan(input_of_package()).packed_bytes, 0u);
  std::optional<Model> second = first->configured(c);
  first.reset();
  c.function_name = "plain";
  EXPECT_EQ(second->configured(c).compute_plan(input_of_package()).packed_bytes, 0u);
}

/// With a memory budget, loading packs all weights, so that exceeding it is an error of loading. pack_while_loading
/// does the same.
TEST(Functions, PackWhileLoading) {
  const Package package;
  ModelConfiguration with_budget, on_demand;
  with_budget.memory_budget = size_t{1} << 30;
  on_demand.pack_while_loading = true;
  for (const ModelConfiguration& c : {with_budget, on_demand})
    EXPECT_GE(Model::load(package.path(), c).load_times().packed_bytes, kMade * kDepth * sizeof(uint16_t));
}

}  // namespace
}  // namespace moka::test

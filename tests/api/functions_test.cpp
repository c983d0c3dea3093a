#include <cstring>

#include "api/api_util.h"

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

const std::string kTwo = "program(1.0)\n{\n func main<ios18>(tensor<fp32, [1, 2]> x) {\n" + kWeight +
                         "tensor<fp32, [1, 1]> y = linear(x = x, weight = w);\n } -> (y);\n"
                         " func many<ios17>(tensor<fp32, [?, 2]> rows, tensor<fp32, [1]> more) {\n" +
                         kWeight +
                         "tensor<fp32, [?, 1]> p = linear(x = rows, weight = w);\n"
                         "tensor<fp32, [?, 1]> sums = add(x = p, y = more);\n"
                         "tensor<fp32, [?, 1]> size = abs(x = sums);\n } -> (sums, size);\n}\n";

TEST(Functions, ShareWeightsAndHaveDescriptionsOfTheirOwn) {
  const Model main = Model::from_mil(kTwo, {}, weights(2, -3));
  ASSERT_EQ(main.description().functions.size(), 2u);
  EXPECT_EQ(main.description().default_function, "main");
  EXPECT_EQ(main.function().inputs.size(), 1u);
  EXPECT_EQ(values(main.predict({{"x", MultiArray::of(std::vector<float>{5, 1}, {1, 2})}}).array("y")),
            std::vector<double>{7});

  ModelConfiguration c;
  c.function_name = "many";
  const Features in{{"rows", MultiArray::of(std::vector<float>{1, 0, 0, 1, 1, 1}, {3, 2})},
                    {"more", MultiArray::of(std::vector<float>{0.5f}, {1})}};
  for (const Model& m : {Model::from_mil(kTwo, c, weights(2, -3)), main.configured(c)}) {
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

}  // namespace
}  // namespace moka::test

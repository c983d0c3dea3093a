// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>

#include "api/api_util.h"
#include "models_folder.h"

/// Forms that converters write and that neither the definitions nor other tests cover.
namespace moka::test {
namespace {

/// A weights file: records of 64 bytes, each followed by its data.
class Weights {
 public:
  Weights() : bytes_(64) { put(0, uint32_t{2}, 4); }

  /// The start of the record of these elements. Types: float16 1, float32 2, uint8 3, int8 4, uint1 9, uint4 11.
  template <class T>
  std::string add(uint32_t type, const std::vector<T>& data, uint64_t padding_bits = 0) {
    const size_t at = bytes_.size(), size = data.size() * sizeof(T);
    bytes_.resize(at + 64 + (size + 63) / 64 * 64);
    put(at, uint32_t{0xDEADBEEF});
    put(at, type, 4);
    put(at, uint64_t{size}, 8);
    put(at, uint64_t{at + 64}, 16);
    put(at, padding_bits, 24);
    std::memcpy(bytes_.data() + at + 64, data.data(), size);
    put(0, ++count_);
    return "(BLOBFILE(path = tensor<string, []>(\"@model_path/weights/weight.bin\"), offset = tensor<uint64, []>(" +
           std::to_string(at) + ")))";
  }
  std::map<std::string, std::vector<std::byte>> files() const { return {{"weights/weight.bin", bytes_}}; }

 private:
  template <class T>
  void put(size_t at, T v, size_t further = 0) {
    std::memcpy(bytes_.data() + at + further, &v, sizeof v);
  }
  std::vector<std::byte> bytes_;
  uint32_t count_ = 0;
};

std::string program_of(const char* opset, const std::string& inputs, const std::string& body) {
  return std::string("program(1.0)\n{\n func main<") + opset + ">(" + inputs + ") {\n" + body + "\n } -> (y);\n}\n";
}

/// y = weight x for the rows of the weight `w`, which `body` creates with shape [2, 4] in float16.
std::vector<double> product(const char* opset, const std::string& body, const Weights& weights) {
  const Model m =
      Model::from_mil(program_of(opset, "tensor<fp16, [1, 4]> x",
                                 body + "tensor<fp16, [1, 2]> p = linear(x = x, weight = w)[name = tensor<string, "
                                        "[]>(\"p\")];\ntensor<fp32, [1, 2]> y = cast(x = p, dtype = tensor<string, "
                                        "[]>(\"fp32\"))[name = tensor<string, []>(\"y\")];"),
                      {}, weights.files());
  return values(m.predict({{"x", MultiArray::of(std::vector<float>{1, 10, 100, 1000}, {1, 4})}}).array("y"));
}

constexpr uint16_t kOne = 0x3c00, kTwo = 0x4000, kThree = 0x4200, kFour = 0x4400;  // in float16

TEST(Converted, StatesAreWrittenByWriteState) {
  const std::string t = "tensor<fp16, [2]>";
  const Model m = Model::from_mil(program("state<" + t + "> kept, " + t + " x",
                                          t + " old = read_state(input = kept);\n" + t + " y = add(x = old, y = x);\n" +
                                              "write_state(input = kept, data = y)[name = string(\"write\")];",
                                          "y"));
  State s = m.new_state();
  const PredictionOptions with_state{&s};
  for (int n = 1; n < 4; n++) {
    const auto y = values(m.predict({{"x", MultiArray::of(std::vector<float>{1, -2}, {2})}}, with_state).array("y"));
    EXPECT_EQ(y, (std::vector<double>{1.0 * n, -2.0 * n}));
    EXPECT_EQ(values(s.read("kept")), y);
  }
}

TEST(Converted, PackedMasksAreAttributesInTheWeightsFile) {
  Weights file;
  const std::string data = file.add<uint16_t>(1, {kOne, kTwo, kThree}), mask = file.add<uint8_t>(3, {0b10000101});
  EXPECT_EQ(product("ios16",
                    "tensor<fp16, [2, 4]> w = constexpr_sparse_to_dense()[mask = tensor<uint8, [1]>" + mask +
                        ", name = tensor<string, []>(\"w\"), nonzero_data = tensor<fp16, [3]>" + data +
                        ", shape = tensor<uint32, [2]>([2, 4])];\n",
                    file),
            (std::vector<double>{1 + 200, 3000}));
}

TEST(Converted, PackedPalettesAreAttributesInTheWeightsFile) {
  Weights file;
  // Indices 0 1 2 3 / 3 3 0 2, the first in the lowest bits.
  const std::string indices = file.add<uint8_t>(3, {0b11100100, 0b10001111});
  const std::string lut = file.add<uint16_t>(1, {kOne, kTwo, kThree, kFour});
  EXPECT_EQ(product("ios16",
                    "tensor<fp16, [2, 4]> w = constexpr_lut_to_dense()[indices = tensor<uint8, [2]>" + indices +
                        ", lut = tensor<fp16, [4]>" + lut +
                        ", name = tensor<string, []>(\"w\"), shape = tensor<uint32, [2]>([2, 4])];\n",
                    file),
            (std::vector<double>{4321, 3144}));
}

TEST(Converted, AffineWeightsAreAttributesInTheWeightsFile) {
  Weights file;
  const std::string data = file.add<int8_t>(4, {1, 2, 3, 4, -1, -2, -3, 0});
  const std::string scale = file.add<uint16_t>(1, {kOne, kTwo}), zero = file.add<int8_t>(4, {1, -1});
  EXPECT_EQ(
      product("ios16",
              "tensor<fp16, [2, 4]> w = constexpr_affine_dequantize()[axis = int32(0), name = tensor<string, "
              "[]>(\"w\"), quantized_data = tensor<int8, [2, 4]>" +
                  data + ", scale = tensor<fp16, [2]>" + scale + ", zero_point = tensor<int8, [2]>" + zero + "];\n",
              file),
      (std::vector<double>{3210, 2000 - 400 - 20}));
}

TEST(Converted, SubByteTypesAreInputsInTheWeightsFile) {
  Weights file;
  const std::string mask = file.add<uint8_t>(9, {0b10000101}), some = file.add<uint16_t>(1, {kOne, kTwo, kThree});
  EXPECT_EQ(product("ios18",
                    "tensor<uint1, [2, 4]> m = const()[val = tensor<uint1, [2, 4]>" + mask +
                        "];\ntensor<fp16, [2, 4]> w = constexpr_sparse_to_dense(nonzero_data = tensor<fp16, [3]>" +
                        some + ", mask = m)[name = string(\"w\")];\n",
                    file),
            (std::vector<double>{1 + 200, 3000}));

  // int4: 1 2 / -1 -2 ..., two per byte, the first in the lower half.
  const std::string codes = file.add<uint8_t>(8, {0x21, 0xef, 0x03, 0x70});
  EXPECT_EQ(product("ios18",
                    "tensor<fp16, [2, 4]> w = constexpr_blockwise_shift_scale(data = tensor<int4, [2, 4]>" + codes +
                        ", scale = tensor<fp16, [2, 2]>([[1, 2], [0.5, 1]]))[name = string(\"w\")];\n",
                    file),
            (std::vector<double>{1 + 20 - 200 - 4000, 1.5 + 0 + 0 + 7000}));
}

/// Indices of any width are packed without gaps, from the lowest bit on.
TEST(Converted, IndicesOfEveryWidthInTheWeightsFile) {
  const std::pair<int, uint32_t> types[] = {{1, 9}, {2, 10}, {3, 12}, {4, 11}, {6, 13}, {8, 3}};
  for (const auto& [bits, type] : types) {
    SCOPED_TRACE(bits);
    const int entries = 1 << bits;
    std::vector<uint8_t> packed(static_cast<size_t>(bits));  // of 8 indices
    std::vector<double> expected(2);
    const double scale[] = {1, 10, 100, 1000};
    for (int i = 0; i < 8; i++) {
      const int index = (i * 5 + entries - 1) % entries;
      for (int b = 0; b < bits; b++)
        if (index >> b & 1)
          packed[static_cast<size_t>((i * bits + b) / 8)] |= static_cast<uint8_t>(1 << (i * bits + b) % 8);
      expected[static_cast<size_t>(i / 4)] += scale[i % 4] * (index - 1);
    }
    std::string values;
    for (int k = 0; k < entries; k++) values += (k == 0 ? "[" : ", [") + std::to_string(k - 1) + "]";
    Weights file;
    const std::string indices = file.add<uint8_t>(type, packed);
    EXPECT_EQ(product("ios18",
                      "tensor<fp16, [2, 4]> w = constexpr_lut_to_dense(indices = tensor<uint" + std::to_string(bits) +
                          ", [2, 4]>" + indices + ", lut = tensor<fp16, [1, 1, " + std::to_string(entries) +
                          ", 1]>([[[" + values + "]]]))[name = string(\"w\")];\n",
                      file),
              expected);
  }
}

/// A quantized table that is looked up where a mask is set: three operations for one weight.
TEST(Converted, QuantisedTablesOfSparsePalettes) {
  Weights file;
  const std::string mask = file.add<uint8_t>(9, {0b10010101});  // elements 0, 2, 4, 7
  const std::string indices = file.add<uint8_t>(10, {0b00011011}), table = file.add<int8_t>(4, {3, 5, 7, 9});
  EXPECT_EQ(product("ios18",
                    "tensor<fp16, [1, 1, 4, 1]> lut = constexpr_blockwise_shift_scale(data = tensor<int8, [1, 1, 4, "
                    "1]>" +
                        table +
                        ", scale = tensor<fp16, [1, 1, 1, 1]>([[[[0.5]]]]), offset = tensor<int8, [1, 1, 1, "
                        "1]>([[[[1]]]]))[name = string(\"lut\")];\n"
                        "tensor<uint1, [2, 4]> m, tensor<fp16, [4]> v = constexpr_lut_to_sparse(indices_mask = "
                        "tensor<uint1, [2, 4]>" +
                        mask + ", indices_nonzero_data = tensor<uint2, [4]>" + indices +
                        ", lut = lut)[name = string(\"v\")];\n"
                        "tensor<fp16, [2, 4]> w = constexpr_sparse_to_dense(nonzero_data = v, mask = m)[name = "
                        "string(\"w\")];\n",
                    file),
            (std::vector<double>{4 + 300, 2 + 1000}));
}

/// The table itself is quantized.
TEST(Converted, QuantisedTablesOfPalettes) {
  Weights file;
  const std::string indices = file.add<uint8_t>(10, {0b11100100, 0b10001111});
  const std::string table = file.add<int8_t>(4, {2, 4, 6, 8});
  EXPECT_EQ(
      product("ios18",
              "tensor<fp16, [1, 1, 4, 1]> lut = constexpr_blockwise_shift_scale(data = tensor<int8, [1, 1, 4, 1]>" +
                  table +
                  ", scale = tensor<fp16, [1, 1, 1, 1]>([[[[0.5]]]]))[name = string(\"lut\")];\n"
                  "tensor<fp16, [2, 4]> w = constexpr_lut_to_dense(indices = tensor<uint2, [2, 4]>" +
                  indices + ", lut = lut)[name = string(\"w\")];\n",
              file),
      (std::vector<double>{4321, 3144}));
}

TEST(Converted, SparsePalettesHaveTwoResults) {
  Weights file;
  const std::string mask = file.add<uint8_t>(9, {0b10010101});  // elements 0, 2, 4, 7
  const std::string indices = file.add<uint8_t>(10, {0b00011011});
  EXPECT_EQ(product("ios18",
                    "tensor<uint1, [2, 4]> m, tensor<fp16, [4]> v = constexpr_lut_to_sparse(indices_mask = "
                    "tensor<uint1, [2, 4]>" +
                        mask + ", indices_nonzero_data = tensor<uint2, [4]>" + indices +
                        ", lut = tensor<fp16, [2, 1, 4, 1]>([[[[1], [2], [3], [4]]], [[[5], [6], [7], "
                        "[8]]]]))[name = string(\"v\")];\n"
                        "tensor<fp16, [2, 4]> w = constexpr_sparse_to_dense(nonzero_data = v, mask = m)[name = "
                        "string(\"w\")];\n",
                    file),
            (std::vector<double>{4 + 300, 6 + 5000}));
}

TEST(Converted, SparseQuantisedWeightsHaveTwoResults) {
  Weights file;
  const std::string mask = file.add<uint8_t>(9, {0b10010101}), data = file.add<int8_t>(4, {4, -3, 2, 1});
  EXPECT_EQ(product("ios18",
                    "tensor<uint1, [2, 4]> m, tensor<fp16, [4]> v = constexpr_sparse_blockwise_shift_scale(data_mask = "
                    "tensor<uint1, [2, 4]>" +
                        mask + ", nonzero_data = tensor<int8, [4]>" + data +
                        ", scale = tensor<fp16, [2, 1]>([[0.5], [2]]), offset = tensor<int8, [2, 1]>([[2], "
                        "[0]]))[name = string(\"v\")];\n"
                        "tensor<fp16, [2, 4]> w = constexpr_sparse_to_dense(nonzero_data = v, mask = m)[name = "
                        "string(\"w\")];\n",
                    file),
            (std::vector<double>{1 - 250, 4 + 2000}));
}

/// Two values for each index, one after another along the axis.
TEST(Converted, PalettesOfVectors) {
  Weights file;
  const std::string columns = file.add<uint8_t>(9, {0b00000110}, 4);  // [[0, 1], [1, 0]]
  EXPECT_EQ(product("ios18",
                    "tensor<fp16, [2, 4]> w = constexpr_lut_to_dense(indices = tensor<uint1, [2, 2]>" + columns +
                        ", lut = tensor<fp16, [1, 1, 2, 2]>([[[[1, 2], [3, 4]]]]), vector_axis = int32(1))[name = "
                        "string(\"w\")];\n",
                    file),
            (std::vector<double>{4321, 2143}));
  const std::string rows = file.add<uint8_t>(9, {0b00000110}, 4);  // [[0, 1, 1, 0]]
  EXPECT_EQ(product("ios18",
                    "tensor<fp16, [2, 4]> w = constexpr_lut_to_dense(indices = tensor<uint1, [1, 4]>" + rows +
                        ", lut = tensor<fp16, [1, 1, 2, 2]>([[[[1, 2], [3, 4]]]]), vector_axis = int32(0))[name = "
                        "string(\"w\")];\n",
                    file),
            (std::vector<double>{1331, 2442}));
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// A layer with one unit that keeps its steps in a list, as TensorFlow's converters write it.
TEST(Converted, RecurrentLayersAreLoops) {
  const std::string list = "list<tensor<fp32, [1, 1]>, ?>";
  const std::string body =
      "tensor<int32, [3]> sizes = shape(x = x);\n"
      "int32 steps = gather(x = sizes, indices = int32(0), axis = int32(0));\n" +
      list +
      " start = make_list(init_length = steps, dynamic_length = bool(true), elem_shape = (int32(1), int32(1)), dtype = "
      "string(\"fp32\"));\n"
      "int32 i, " +
      list + " all, tensor<fp32, [1, 1]> last = while_loop(loop_vars = (int32(0), start, h0)) {\n" +
      "block test(int32 k, " + list +
      " l, tensor<fp32, [1, 1]> h) { bool more = less(x = k, y = steps); } -> (more);\n" + "block step(int32 k, " +
      list + " l, tensor<fp32, [1, 1]> h) {\n" +
      "tensor<fp32, [1, 1]> v = gather(x = x, indices = k, axis = int32(0));\n"
      "tensor<fp32, [1, 2]> both = concat(values = (v, h), axis = int32(1));\n"
      "tensor<fp32, [1, 2]> gates = linear(x = both, weight = tensor<fp32, [2, 2]>([[0.5, -1], [1, 0.25]]), bias = "
      "tensor<fp32, [2]>([0.125, -0.5]));\n"
      "tensor<fp32, [1, 2]> open = sigmoid(x = gates);\n"
      "tensor<fp32, [1, 1]> r, tensor<fp32, [1, 1]> z = split(x = open, num_splits = int32(2), axis = int32(1));\n"
      "tensor<fp32, [1, 1]> rh = mul(x = r, y = h);\n"
      "tensor<fp32, [1, 2]> mixed = concat(values = (v, rh), axis = int32(1));\n"
      "tensor<fp32, [1, 1]> raw = linear(x = mixed, weight = tensor<fp32, [1, 2]>([[1.5, -0.75]]));\n"
      "tensor<fp32, [1, 1]> fresh = tanh(x = raw);\n"
      "tensor<fp32, [1, 1]> change = sub(x = h, y = fresh);\n"
      "tensor<fp32, [1, 1]> part = mul(x = z, y = change);\n"
      "tensor<fp32, [1, 1]> next = add(x = fresh, y = part);\n" +
      list +
      " longer = list_write(ls = l, index = k, value = next);\n"
      "int32 after = add(x = k, y = int32(1)); } -> (after, longer, next);\n};\n"
      "tensor<int32, [?]> places = range_1d(start = int32(0), end = steps, step = int32(1));\n"
      "tensor<fp32, [?, 1, 1]> y = list_gather(ls = all, indices = places);";
  const Model m = Model::from_mil(program("tensor<fp32, [?, 1, 1]> x, tensor<fp32, [1, 1]> h0", body, "y, last"));
  for (int64_t steps : {7, 1, 40}) {
    std::vector<float> x;
    std::vector<double> expected;
    double h = 0.3f;
    for (int64_t t = 0; t < steps; t++) {
      const double v = x.emplace_back(std::sin(static_cast<float>(t)));
      const double r = sigmoid(0.5 * v - h + 0.125), z = sigmoid(v + 0.25 * h - 0.5);
      const double fresh = std::tanh(1.5 * v - 0.75 * r * h);
      expected.push_back(h = fresh + z * (h - fresh));
    }
    const Features out =
        m.predict({{"x", MultiArray::of(x, {steps, 1, 1})}, {"h0", MultiArray::of(std::vector<float>{0.3f}, {1, 1})}});
    const auto got = values(out.array("y"));
    ASSERT_EQ(got.size(), expected.size());
    for (size_t t = 0; t < got.size(); t++) EXPECT_NEAR(got[t], expected[t], 1e-5) << t;
    EXPECT_NEAR(out.array("last").at(0), expected.back(), 1e-5);
  }
}

/// Sizes that are taken out of a shape as scalars and joined again with concat.
TEST(Converted, ShapesAreJoinedFromScalars) {
  const Model m = Model::from_mil(
      program("tensor<fp32, [?, ?, 2]> x",
              "tensor<int32, [3]> sizes = shape(x = x);\n"
              "int32 rows = gather(x = sizes, indices = int32(0), axis = int32(0));\n"
              "int32 columns = gather(x = sizes, indices = int32(1), axis = int32(0));\n"
              "int32 cells = mul(x = rows, y = columns);\n"
              "tensor<int32, [2]> wanted = concat(values = (cells, int32(-1)), axis = int32(0), interleave = "
              "bool(false));\n"
              "tensor<fp32, [?, ?]> y = reshape(x = x, shape = wanted);",
              "y"));
  for (const auto& [rows, columns] : {std::pair<int64_t, int64_t>{3, 4}, {1, 1}, {5, 2}}) {
    MultiArray x(DataType::float32, {rows, columns, 2});
    for (int64_t i = 0; i < x.count(); i++) x.as<float>()[static_cast<size_t>(i)] = static_cast<float>(i);
    const MultiArray y = m.predict({{"x", x}}).array("y");
    EXPECT_EQ(y.shape(), (std::vector<int64_t>{rows * columns, 2}));
    EXPECT_EQ(values(y), values(x));
  }
}

/// Enumerated shapes for one input, a range for the other, float32 in and float16 out. The output's shape is not
/// described.
TEST(Converted, OutputsWithoutAShapeAndOfTheOtherFloat) {
  const Model m = Model::load(MOKA_GOLDEN "/flexible/program.mlmodel");
  EXPECT_TRUE(m.function().outputs[0].array.shape.empty());
  for (int round = 0; round < 2; round++)
    for (const int64_t columns : {2, 4, 8})
      for (int64_t rows = 1; rows <= 6; rows++) {
        std::vector<float> a, b;
        std::vector<double> expected;
        for (int64_t i = 0; i < columns; i++) a.push_back(static_cast<float>(i) + 0.5f);
        for (int64_t i = 0; i < rows; i++) b.push_back(static_cast<float>(10 * i));
        for (float down : b)
          for (float across : a) expected.push_back(down + across);
        const MultiArray y =
            m.predict({{"a", MultiArray::of(a, {1, columns})}, {"b", MultiArray::of(b, {rows, 1})}}).array("y");
        EXPECT_EQ(y.type(), DataType::float16);
        EXPECT_EQ(y.shape(), (std::vector<int64_t>{rows, columns}));
        EXPECT_EQ(values(y), expected);
      }
  auto with = [&](int64_t columns, int64_t rows) {
    return [&m, columns, rows] {
      m.predict({{"a", MultiArray(DataType::float32, {1, columns})}, {"b", MultiArray(DataType::float32, {rows, 1})}});
    };
  };
  expect_error(ErrorKind::invalid_argument, {"'a'", "1 x 2", "1 x 4", "1 x 8", "(1 x 3) was not in enumerated set"},
               with(3, 2));
  expect_error(ErrorKind::invalid_argument, {"'b'", "Size (7) of dimension (0) is not in allowed range (1..6)"},
               with(4, 7));
  expect_error(ErrorKind::invalid_argument, {"'b'", "Size (0) of dimension (0) is not in allowed range (1..6)"},
               with(4, 0));
}

/// Quantize-dequantize pairs around activations and int8 weights, as coremltools' linear_quantize_activations writes
/// them, compared with the same program without passes.
TEST(Converted, QuantizedActivations) {
  Weights file;
  std::vector<int8_t> codes;
  for (int i = 0; i < 16 * 32; i++) codes.push_back(static_cast<int8_t>(i * 37 % 256 - 128));
  std::vector<uint16_t> scales;
  for (int i = 0; i < 16; i++) scales.push_back(static_cast<uint16_t>(0x1c00 + 64 * i));
  const std::string data = file.add<int8_t>(4, codes), scale = file.add<uint16_t>(1, scales);
  const std::string text = program("tensor<fp16, [12, 32]> x",
                                   "tensor<int8, [12, 32]> q = quantize(input = x, scale = fp16(0.0302734375), "
                                   "zero_point = int8(-5), output_dtype = string(\"int8\"));\n"
                                   "tensor<fp16, [12, 32]> d = dequantize(input = q, scale = fp16(0.0302734375), "
                                   "zero_point = int8(-5));\n"
                                   "tensor<fp16, [16, 32]> w = constexpr_blockwise_shift_scale(data = tensor<int8, "
                                   "[16, 32]>" +
                                       data + ", scale = tensor<fp16, [16, 1]>" + scale +
                                       ");\n"
                                       "tensor<fp16, [12, 16]> z = linear(x = d, weight = w);\n"
                                       "tensor<fp16, [12, 16]> y = relu(x = z);",
                                   "y");
  ModelConfiguration plain;
  plain.optimize = false;
  plain.device = "reference";
  const Model fused = Model::from_mil(text, {}, file.files()), unfused = Model::from_mil(text, plain, file.files());
  std::vector<float> x;
  for (int i = 0; i < 12 * 32; i++) x.push_back(static_cast<float>(i * 29 % 331 - 165) / 32);
  const auto a = values(fused.predict({{"x", MultiArray::of(x, {12, 32})}}).array("y")),
             b = values(unfused.predict({{"x", MultiArray::of(x, {12, 32})}}).array("y"));
  double largest = 0;
  for (double v : b) largest = std::max(largest, v);
  EXPECT_GT(largest, 1);
  for (size_t i = 0; i < a.size(); i++) EXPECT_NEAR(a[i], b[i], 1e-3 * largest) << i;
}

/// A product of integers and a constant of float16 has integer results, on whichever side the constant is.
TEST(Converted, ProductsOfIntegersAndHalfConstants) {
  const std::string half = "tensor<fp16, [2]>([1.5, 2])";
  for (const std::string& operands : {"x = x, y = " + half, "x = " + half + ", y = x"}) {
    const Model m = Model::from_mil(
        program("tensor<int32, [2]> x", "tensor<int32, []> y = matmul(" + operands + ")[name = string(\"y\")];", "y"));
    MultiArray x(DataType::int32, {2});
    x.as<int32_t>()[0] = 4;
    x.as<int32_t>()[1] = 5;
    EXPECT_EQ(values(m.predict({{"x", x}}).array("y")), std::vector<double>{16}) << operands;
  }
}

}  // namespace
}  // namespace moka::test

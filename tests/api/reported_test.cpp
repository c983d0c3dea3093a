// SPDX-License-Identifier: Apache-2.0
#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "api/api_util.h"
#include "models_folder.h"

/// Issues that users reported against Core ML, by number in github.com/apple/coremltools.
namespace moka::test {
namespace {

/// The output `y` of a program of one input `x`.
std::vector<double> run(const std::string& input, const std::string& body, const std::vector<float>& x,
                        std::vector<int64_t> shape) {
  Model m = Model::from_mil(program(input + " x", body, "y"));
  return values(m.predict({{"x", MultiArray::of(x, std::move(shape))}}).array("y"));
}

void expect_relative(const std::vector<double>& got, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); i++)
    EXPECT_NEAR(got[i], expected[i], tolerance * std::max(1.0, std::fabs(expected[i]))) << i;
}

constexpr double kHalf = 1.0 / 2048;  ///< one rounding to float16

TEST(Reported, SoftplusInFloat16Of10_4_2687) {
  const std::vector<float> x{10.4f, 11.0f, 12.5f, 100.0f, 60000.0f, -10.4f, -20.0f};
  std::vector<double> expected;
  for (float v : x) expected.push_back(std::max(v, 0.0f) + std::log1p(std::exp(-std::fabs(static_cast<double>(v)))));
  for (const char* type : {"fp16", "fp32"}) {
    const std::string t = "tensor<" + std::string(type) + ", [7]>";
    expect_relative(run(t, t + " y = softplus(x = x);", x, {7}), expected, kHalf);
  }
}

TEST(Reported, LogSumExpInFloat16Of7_63_2690) {
  std::vector<float> x(64, 7.63f);
  for (size_t i = 32; i < 64; i++) x[i] = 200;
  expect_relative(run("tensor<fp16, [2, 32]>",
                      "tensor<fp16, [2]> y = reduce_log_sum_exp(x = x, axes = tensor<int32, [1]>([1]), keep_dims = "
                      "bool(false));",
                      x, {2, 32}),
                  {7.63 + std::log(32.0), 200 + std::log(32.0)}, kHalf);
}

TEST(Reported, AttentionOfTenAndMoreBatches_2650) {
  for (int64_t batch : {1, 9, 10, 11, 33}) {
    constexpr int64_t heads = 2, queries = 3, size = 4;
    std::vector<float> x(static_cast<size_t>(batch * heads * queries * size));
    for (size_t i = 0; i < x.size(); i++) x[i] = std::sin(static_cast<float>(i) * 0.7f);
    const std::string t = "tensor<fp32, [" + std::to_string(batch) + ", 2, 3, 4]>";
    const auto got = run(t, t + " y = scaled_dot_product_attention(query = x, key = x, value = x);", x,
                         {batch, heads, queries, size});
    std::vector<double> expected;
    for (int64_t b = 0; b < batch * heads; b++) {
      const float* rows = x.data() + b * queries * size;
      for (int64_t q = 0; q < queries; q++) {
        double weight[queries], total = 0;
        for (int64_t k = 0; k < queries; k++) {
          double dot = 0;
          for (int64_t d = 0; d < size; d++) dot += static_cast<double>(rows[q * size + d]) * rows[k * size + d];
          total += weight[k] = std::exp(dot / 2);
        }
        for (int64_t d = 0; d < size; d++) {
          double sum = 0;
          for (int64_t k = 0; k < queries; k++) sum += weight[k] / total * rows[k * size + d];
          expected.push_back(sum);
        }
      }
    }
    expect_relative(got, expected, 1e-6);
  }
}

/// Elements that ceil_mode adds after the padding count as padding (2772: in PyTorch they do not).
TEST(Reported, AveragePoolingOf7By4Padded3_1901) {
  constexpr int64_t n = 30;
  std::vector<float> x(n);
  for (int64_t i = 0; i < n; i++) x[static_cast<size_t>(i)] = static_cast<float>(i * i % 11);
  for (bool ceil : {false, true})
    for (bool exclude : {false, true}) {
      const int64_t room = n + 6 - 7, out = (room + (ceil ? 3 : 0)) / 4 + 1;
      std::vector<double> expected;
      for (int64_t o = 0; o < out; o++) {
        double sum = 0;
        int64_t inside = 0;
        for (int64_t i = o * 4 - 3; i < o * 4 + 4; i++) {
          if (i < 0 || i >= n) continue;
          sum += x[static_cast<size_t>(i)];
          inside++;
        }
        expected.push_back(sum / static_cast<double>(exclude ? inside : 7));
      }
      const std::string y = "tensor<fp32, [1, 1, " + std::to_string(out) + "]>";
      const auto got =
          run("tensor<fp32, [1, 1, 30]>",
              y +
                  " y = avg_pool(x = x, kernel_sizes = tensor<int32, [1]>([7]), strides = tensor<int32, "
                  "[1]>([4]), pad_type = string(\"custom\"), pad = tensor<int32, [2]>([3, 3]), "
                  "exclude_padding_from_average = bool(" +
                  (exclude ? "true" : "false") + "), ceil_mode = bool(" + (ceil ? "true" : "false") + "));",
              x, {1, 1, n});
      SCOPED_TRACE(testing::Message() << "ceil_mode " << ceil << ", exclude_padding " << exclude);
      expect_relative(got, expected, 1e-6);
    }
}

TEST(Reported, Float16OutputsOfAnyWidth_1893) {
  for (int64_t width : {1, 31, 32, 33, 63, 65}) {
    std::vector<float> x(static_cast<size_t>(3 * width));
    std::vector<double> expected;
    for (size_t i = 0; i < x.size(); i++) expected.push_back(x[i] = static_cast<float>(i));
    const std::string t = "tensor<fp16, [3, " + std::to_string(width) + "]>";
    Model m = Model::from_mil(program(t + " x", t + " y = relu(x = x);", "y"));
    const MultiArray y = m.predict({{"x", MultiArray::of(x, {3, width})}}).array("y");
    EXPECT_EQ(y.type(), DataType::float16);
    EXPECT_EQ(values(y), expected) << width;
  }
}

TEST(Reported, SeveralEnumeratedInputs_2730) {
  Model m = Model::load(MOKA_GOLDEN "/flexible/enumerated_pair.mlmodel");
  for (int64_t n : {4, 6, 8}) {
    std::vector<float> a(static_cast<size_t>(n), 2), b(static_cast<size_t>(n), 3);
    const auto y = values(m.predict({{"a", MultiArray::of(a, {n})}, {"b", MultiArray::of(b, {n})}}).array("y"));
    EXPECT_EQ(y, std::vector<double>(static_cast<size_t>(n), 5)) << n;
  }
  auto five = [&] {
    m.predict({{"a", MultiArray::of(std::vector<float>(5), {5})}, {"b", MultiArray::of(std::vector<float>(5), {5})}});
  };
  expect_error(ErrorKind::invalid_argument, {"'a'", "enumerated set"}, five);
}

TEST(Reported, FourBitPaletteWithScaleOfChannels_2688) {
  const auto y =
      run("tensor<fp16, [1, 2]>",
          "tensor<fp16, [2, 2]> palette = constexpr_lut_to_dense(indices = tensor<uint4, [2, 2]>([[0, 1], [15, "
          "2]]), lut = tensor<fp16, [1, 1, 16, 1]>([[[[1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0], [8.0], "
          "[9.0], [10.0], [11.0], [12.0], [13.0], [14.0], [15.0], [16.0]]]]));\n"
          "tensor<fp16, [2, 2]> w = constexpr_blockwise_shift_scale(data = palette, scale = tensor<fp16, [2, "
          "1]>([[0.5], [0.25]]));\n"
          "tensor<fp16, [1, 2]> y = linear(x = x, weight = w);",
          {1, 10}, {1, 2});
  EXPECT_EQ(y, (std::vector<double>{0.5 + 10, 4 + 7.5}));
}

/// Tables of 2, 4, 8, 16, 64 and 256 values, one for all weights or one for each row.
TEST(Reported, PalettesOfAllWidths) {
  for (const int bits : {1, 2, 3, 4, 6, 8})
    for (const bool rows : {false, true}) {
      const int entries = 1 << bits;
      auto entry = [&](int row, int k) { return k * 0.5 - 3 + (rows && row == 1 ? 100 : 0); };
      std::string codes, table;
      std::vector<double> expected(2);
      for (int row = 0; row < 2; row++) {
        codes += row == 0 ? "[" : ", [";
        for (int i = 0; i < 5; i++) {
          const int k = (row * 7 + i * 3 + (i == 4 ? entries - 1 : 0)) % entries;
          codes += (i == 0 ? "" : ", ") + std::to_string(k);
          expected[static_cast<size_t>(row)] += (i + 1) * entry(row, k);
        }
        codes += "]";
        if (row == 1 && !rows) continue;
        table += row == 0 ? "[[" : ", [[";
        for (int k = 0; k < entries; k++) table += (k == 0 ? "[" : ", [") + std::to_string(entry(row, k)) + "]";
        table += "]]";
      }
      const std::string lut =
          "tensor<fp16, [" + std::to_string(rows ? 2 : 1) + ", 1, " + std::to_string(entries) + ", 1]>";
      SCOPED_TRACE(testing::Message() << bits << " bits, rows " << rows);
      EXPECT_EQ(run("tensor<fp16, [1, 5]>",
                    "tensor<fp16, [2, 5]> w = constexpr_lut_to_dense(indices = tensor<uint" + std::to_string(bits) +
                        ", [2, 5]>([" + codes + "]), lut = " + lut + "([" + table +
                        "]));\ntensor<fp16, [1, 2]> y = linear(x = x, weight = w);",
                    {1, 2, 3, 4, 5}, {1, 5}),
                expected);
    }
}

/// The state is halved and the product of palettized weights and the input is added. The limit is known, and memory
/// stays.
TEST(Reported, TenThousandStatefulPalettisedPredictions_2716) {
  const Model m = Model::from_mil(program(
      "state<tensor<fp16, [1, 2]>> kept, tensor<fp16, [1, 2]> x",
      "tensor<fp16, [2, 2]> w = constexpr_lut_to_dense(indices = tensor<uint2, [2, 2]>([[0, 1], [3, 2]]), lut = "
      "tensor<fp16, [1, 1, 4, 1]>([[[[1], [2], [-1], [4]]]]));\n"
      "tensor<fp16, [1, 2]> old = read_state(input = kept);\n"
      "tensor<fp16, [1, 2]> half = mul(x = old, y = fp16(0.5));\n"
      "tensor<fp16, [1, 2]> fresh = linear(x = x, weight = w);\n"
      "tensor<fp16, [1, 2]> sum = add(x = half, y = fresh);\n"
      "tensor<fp16, [1, 2]> y = coreml_update_state(state = kept, value = sum);",
      "y"));
  State s = m.new_state();
  const PredictionOptions with_state{&s};
  const Features in{{"x", MultiArray::of(std::vector<float>{1, 2}, {1, 2})}};
  std::vector<double> last;
  size_t before = 0;
  for (int n = 0; n < 10000; n++) {
    last = values(m.predict(in, with_state).array("y"));
    if (n == 0) {
      EXPECT_EQ(last, (std::vector<double>{5, 2}));
    }
    if (n == 100) before = mallinfo2().uordblks;
  }
  EXPECT_EQ(last, (std::vector<double>{10, 4}));
  EXPECT_LE(mallinfo2().uordblks, before + 4096);
}

TEST(Reported, RoundGoesToEven) {
  for (const char* type : {"fp16", "fp32"}) {
    const std::string t = "tensor<" + std::string(type) + ", [8]>";
    EXPECT_EQ(run(t, t + " y = round(x = x);", {0.5f, 1.5f, 2.5f, 3.5f, -0.5f, -1.5f, -2.5f, 2.4375f}, {8}),
              (std::vector<double>{0, 2, 2, 4, -0.0, -2, -2, 2}));
  }
}

TEST(Reported, HardSwishInFloat16_2625) {
  const std::vector<float> x{-4, -3, -1.5f, 0, 1, 3, 100, 20000, 60000};
  std::vector<double> expected;
  for (float v : x) expected.push_back(v * std::clamp(static_cast<double>(v) + 3, 0.0, 6.0) / 6);
  const std::string t = "tensor<fp16, [9]>";
  expect_relative(run(t,
                      t + " a = add(x = x, y = fp16(3.0));\n" + t + " b = relu6(x = a);\n" + t +
                          " c = mul(x = x, y = b);\n" + t + " y = mul(x = c, y = fp16(0.16666667));",
                      x, {9}),
                  expected, 2 * kHalf);
}

/// torch.finfo(torch.float32).min is -inf in float16.
TEST(Reported, MasksThatBecameInfinite) {
  Model m = Model::from_mil(program("tensor<fp16, [1, 4]> scores, tensor<fp16, [1, 4]> keep",
                                    "tensor<fp16, [1, 4]> drop = sub(x = fp16(1.0), y = keep);\n"
                                    "tensor<fp16, [1, 4]> mask = mul(x = drop, y = fp16(-inf));\n"
                                    "tensor<fp16, [1, 4]> sum = add(x = scores, y = mask);\n"
                                    "tensor<fp16, [1, 4]> y = softmax(x = sum, axis = int32(1));",
                                    "y"));
  const MultiArray scores = MultiArray::of(std::vector<float>{1, 1, 5, 1}, {1, 4});
  auto with = [&](std::vector<float> keep) {
    return values(m.predict({{"scores", scores}, {"keep", MultiArray::of(keep, {1, 4})}}).array("y"));
  };
  EXPECT_EQ(with({1, 1, 0, 0}), (std::vector<double>{0.5, 0.5, 0, 0}));
  expect_relative(with({1, 1, 1, 1}), {0.0174, 0.0174, 0.9479, 0.0174}, 1e-3);
}

}  // namespace
}  // namespace moka::test

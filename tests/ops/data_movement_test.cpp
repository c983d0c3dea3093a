// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "ir/evaluate.h"
#include "ir/op_def.h"
#include "ir/text_reader.h"
#include "ops/common/packed.h"
#include "ops/common/strided.h"

namespace moka::ops {
namespace {

Tensor zeros(DType dtype, const Shape& shape) { return Tensor::zeros(dtype, shape).value(); }

/// The element-by-element meaning of a two-axis StridedCopy.
void expect_transposed(DType dtype, int64_t rows, int64_t columns) {
  Tensor from = zeros(dtype, {rows, columns}), to = zeros(dtype, {columns, rows});
  for (int64_t i = 0; i < rows * columns; i++) {
    if (dtype == DType::string)
      from.mut<std::string>()[static_cast<size_t>(i)] = std::to_string(i);
    else
      store_i64(from.view(), i, i % 7);
  }
  StridedCopy copy;
  copy.add(columns, rows, 1);
  copy.add(rows, 1, columns);
  copy.run(to.view(), 0, from.view(), 0);
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t c = 0; c < columns; c++) {
      const int64_t a = r * columns + c, b = c * rows + r;
      if (dtype == DType::string) {
        EXPECT_EQ(to.as<std::string>()[static_cast<size_t>(b)], std::to_string(a));
      } else {
        EXPECT_EQ(load_i64(to.view(), b), a % 7);
      }
    }
  }
}

TEST(StridedCopy, TransposesEveryElementSize) {
  for (DType t : {DType::int8, DType::fp16, DType::fp32, DType::int64, DType::uint4, DType::string}) {
    expect_transposed(t, 3, 5);
    expect_transposed(t, 70, 33);
  }
}

TEST(StridedCopy, RepeatsAndReverses) {
  Tensor from = Tensor::i32({1, 2, 3});
  Tensor to = zeros(DType::int32, {2, 3});
  StridedCopy copy;
  copy.add(2, 3, 0);
  copy.add(3, 1, -1);
  copy.run(to.view(), 0, from.view(), 2);
  for (int i = 0; i < 6; i++) EXPECT_EQ(to.as<int32_t>()[static_cast<size_t>(i)], 3 - i % 3);
}

TEST(Packed, UnpacksAnyRangeOfAnyWidth) {
  std::mt19937 random(1);
  for (DType t : {DType::uint1, DType::uint2, DType::uint3, DType::uint4, DType::uint6, DType::uint8}) {
    Tensor packed = zeros(t, {61});
    for (int64_t i = 0; i < 61; i++) store_i64(packed.view(), i, static_cast<int64_t>(random() & 255));
    for (int64_t first : {0, 1, 7, 8, 13}) {
      for (int64_t n : {0, 1, 5, 8, 17, 48}) {
        std::vector<uint8_t> got(static_cast<size_t>(n) + 1, 0xee);
        unpack_bits(packed.view().as<uint8_t>(), bits(t), first, n, got.data());
        for (int64_t i = 0; i < n; i++) EXPECT_EQ(got[static_cast<size_t>(i)], load_i64(packed.view(), first + i));
        EXPECT_EQ(got[static_cast<size_t>(n)], 0xee);
      }
    }
  }
}

TEST(Packed, CountsAndVisitsSetBits) {
  std::mt19937 random(2);
  Tensor mask = zeros(DType::uint1, {301});
  for (int64_t i = 0; i < 301; i++) store_i64(mask.view(), i, random() % 3 == 0);
  const auto* p = mask.view().as<uint8_t>();
  for (int64_t first : {0, 1, 8, 63, 64, 100}) {
    for (int64_t n : {0, 1, 7, 64, 65, 130, 201}) {
      std::vector<int64_t> want, got;
      for (int64_t i = first; i < first + n; i++)
        if (load_i64(mask.view(), i) != 0) want.push_back(i);
      for_each_set_bit(p, first, n, [&](int64_t i) { got.push_back(i); });
      EXPECT_EQ(got, want);
      EXPECT_EQ(count_bits(p, first, n), static_cast<int64_t>(want.size()));
    }
  }
}

TEST(Packed, BlockRunsCoverEveryElementWithItsBlock) {
  const Shape shape{4, 6, 2};
  for (const Shape& groups : {Shape{1, 1, 1}, Shape{4, 1, 1}, Shape{1, 3, 1}, Shape{2, 3, 1}, Shape{2, 2, 2},
                              Shape{1, 1, 2}, Shape{4, 6, 2}}) {
    BlockRuns runs(shape, groups);
    for (int64_t i = 0; i < shape.count(); i++) {
      const int64_t at[3] = {i / 12, i / 2 % 6, i % 2};
      int64_t group = 0;
      for (int k = 0; k < 3; k++) group = group * groups[k] + at[k] / (shape[k] / groups[k]);
      ASSERT_GE(runs.left(), 1);
      EXPECT_EQ(runs.group(), group) << "element " << i;
      runs.advance(1);
    }
  }
}

/// A function of one operation, run with the values of the text's constants.
Result<std::vector<RuntimeValue>> run(const std::string& params, const std::string& statements,
                                      const std::string& outputs, std::vector<RuntimeValue> inputs,
                                      const char* opset = "ios17") {
  const std::string text = "program(1.0)\n{ func main<" + std::string(opset) + ">(" + params + ") { " + statements +
                           " } -> (" + outputs + "); }";
  const Program program = MOKA_TRY(read_text(text, table()));
  EvaluateOptions options;
  options.table = &table();
  return evaluate(*program.functions[0], inputs, options);
}

std::string rejected(const std::string& params, const std::string& statements, std::vector<RuntimeValue> inputs,
                     const char* opset = "ios17") {
  auto r = run(params, statements, "y", std::move(inputs), opset);
  return r.ok() ? "" : r.error().to_string();
}

TEST(Indices, OutsideReadTheNearestUnlessForbidden) {
  const Tensor x = Tensor::i32({10, 20, 30}), ix = Tensor::i32({7, -7, -1});
  const std::string params = "tensor<int32, [3]> x, tensor<int32, [3]> i";
  const std::string free = "tensor<int32, [3]> y = gather(x = x, indices = i)[name = tensor<string, []>(\"g\")];";
  auto r = run(params, free, "y", {x, ix});
  ASSERT_TRUE(r.ok()) << r.error().to_string();
  EXPECT_TRUE(r.value()[0].tensor == Tensor::i32({30, 10, 30}));
  const std::string checked =
      "tensor<bool, []> t = const()[name = tensor<string, []>(\"t\"), val = tensor<bool, []>(true)]; "
      "tensor<int32, [3]> y = gather(x = x, indices = i, validate_indices = t)[name = tensor<string, []>(\"g\")];";
  EXPECT_NE(rejected(params, checked, {x, ix}).find("expected indices from 0 to 2, got 7"), std::string::npos);
}

TEST(Indices, OutsideAreNotWritten) {
  const Tensor x = Tensor::i32({10, 20, 30}), ix = Tensor::i32({7, -7, 1}), u = Tensor::i32({1, 2, 3});
  auto r = run("tensor<int32, [3]> x, tensor<int32, [3]> i, tensor<int32, [3]> u",
               "tensor<int32, [3]> y = scatter(data = x, indices = i, updates = u)[name = tensor<string, []>(\"s\")];",
               "y", {x, ix, u});
  ASSERT_TRUE(r.ok()) << r.error().to_string();
  EXPECT_TRUE(r.value()[0].tensor == Tensor::i32({10, 23, 30}));
}

TEST(Lists, DoNotGrowWhenFixedNorWithoutBound) {
  auto list = [](bool dynamic) {
    return std::string(
               "tensor<int32, []> n = const()[name = tensor<string, []>(\"n\"), val = tensor<int32, []>(2)]; "
               "tensor<bool, []> d = const()[name = tensor<string, []>(\"d\"), val = tensor<bool, []>(") +
           (dynamic ? "true" : "false") + ")]; list<tensor<fp32, [2]>, " + (dynamic ? "?" : "2") +
           "> l = make_list(init_length = n, dynamic_length = d, elem_shape = (n))[name = tensor<string, []>(\"l\")]; "
           "list<tensor<fp32, [2]>, " +
           (dynamic ? "?" : "2") +
           "> w = list_write(ls = l, index = i, value = x)[name = tensor<string, []>(\"w\")]; "
           "tensor<int32, []> y = list_length(ls = w)[name = tensor<string, []>(\"y\")];";
  };
  const std::string params = "tensor<fp32, [2]> x, tensor<int32, []> i";
  const Tensor x = Tensor::zeros(DType::fp32, {2}).value();
  EXPECT_EQ(rejected(params, list(true), {x, Tensor::scalar_i64(DType::int32, 9)}), "");
  EXPECT_NE(
      rejected(params, list(false), {x, Tensor::scalar_i64(DType::int32, 2)}).find("outside of a list of length 2"),
      std::string::npos);
  EXPECT_NE(rejected(params, list(true), {x, Tensor::scalar_i64(DType::int32, 2147483647)}).find("outside of a list"),
            std::string::npos);
  EXPECT_NE(rejected(params, list(true), {x, Tensor::scalar_i64(DType::int32, -1)}).find("outside of a list"),
            std::string::npos);
}

TEST(Slices, RuntimeBoundsThatDoNotFitAreAnError) {
  const Tensor x = Tensor::i32({10, 20, 30}), begin = Tensor::i32({2});
  const std::string text =
      "tensor<int32, [1]> n = const()[name = tensor<string, []>(\"n\"), val = tensor<int32, [1]>([2])]; "
      "tensor<int32, [2]> y = slice_by_size(x = x, begin = b, size = n)[name = tensor<string, []>(\"s\")];";
  EXPECT_NE(rejected("tensor<int32, [3]> x, tensor<int32, [1]> b", text, {x, begin}), "");
}

TEST(Slices, SqueezedEmptyAxesAreAnError) {
  const std::string bounds = "begin = n, end = n, begin_mask = t, squeeze_mask = t)[name = tensor<string, []>(\"s\")];";
  const std::string constants =
      "tensor<int32, [1]> n = const()[name = tensor<string, []>(\"n\"), val = tensor<int32, [1]>([0])]; "
      "tensor<bool, [1]> t = const()[name = tensor<string, []>(\"t\"), val = tensor<bool, [1]>([true])]; ";
  const std::string outside =
      "operation 's' (slice_by_index), parameter 'begin': index 0 is outside of axis 0 of size 0";
  const Tensor none = zeros(DType::fp32, {0});
  for (const char* size : {"0", "?"}) {
    const std::string params = "tensor<fp32, [" + std::string(size) + "]> x";
    EXPECT_NE(
        rejected(params, constants + "tensor<fp32, []> y = slice_by_index(x = x, " + bounds, {none}).find(outside),
        std::string::npos);
  }
  EXPECT_NE(
      rejected("tensor<fp32, [2, ?]> x, tensor<fp32, [2]> u",
               "tensor<int32, [2]> n = const()[name = tensor<string, []>(\"n\"), val = tensor<int32, [2]>([0, 2])]; "
               "tensor<bool, [2]> t = const()[name = tensor<string, []>(\"t\"), val = tensor<bool, [2]>([true, "
               "true])]; tensor<bool, [2]> q = const()[name = tensor<string, []>(\"q\"), val = tensor<bool, "
               "[2]>([false, true])]; tensor<fp32, [2, ?]> y = slice_update(x = x, update = u, begin = n, end = n, "
               "begin_mask = t, end_mask = t, squeeze_mask = q)[name = tensor<string, []>(\"s\")];",
               {zeros(DType::fp32, {2, 0}), zeros(DType::fp32, {2})}, "ios18")
          .find("index 0 is outside of axis 1 of size 0"),
      std::string::npos);
}

TEST(Hostile, HugeShapesAreRefused) {
  for (const char* statement :
       {"tensor<fp32, [?, ?, ?]> y = fill(shape = s)[name = tensor<string, []>(\"y\")];",
        "tensor<fp32, [?, ?, ?]> y = tile(x = x, reps = s)[name = tensor<string, []>(\"y\")];"}) {
    const std::string s =
        "tensor<int32, [3]> s = const()[name = tensor<string, []>(\"s\"), val = tensor<int32, [3]>([2147483647, "
        "2147483647, 2147483647])]; ";
    EXPECT_NE(rejected("tensor<fp32, [2, 2, 2]> x", s + statement, {Tensor::zeros(DType::fp32, {2, 2, 2}).value()}),
              "");
  }
}

}  // namespace
}  // namespace moka::ops

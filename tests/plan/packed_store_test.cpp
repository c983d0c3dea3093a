// SPDX-License-Identifier: Apache-2.0
#include "plan/packed_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "plan/constants.h"
#include "temporary_folder.h"

/// Which packed constants models have in common.
namespace moka::plan {
namespace {

using ir::DType;
using ir::Tensor;
using Sharing = PackedStore::Sharing;

constexpr int64_t kRows = 1024, kDepth = 512;  // 2 MiB of floats

/// A function of its own with a weight, as each load imports it.
struct Program {
  ir::Function function{"main", ir::Opset::ios17};
  ir::Builder builder{ops::table(), function.body()};
  ir::Value* weight = nullptr;

  explicit Program(Tensor tensor) : weight(*builder.constant("w", std::move(tensor))) {}
  ir::Value* scaled(double factor) {
    Tensor scale = *Tensor::zeros(DType::fp64, {kRows}), one = *Tensor::zeros(DType::fp64, {1});
    std::fill_n(scale.mut<double>().begin(), kRows, factor);  // 8 KiB
    one.mut<double>()[0] = 1;
    auto made = builder.op(
        "moka_scale_weights",
        {{"weight", weight}, {"input_scale", one}, {"output_scale", scale}, {"groups", 1}, {"transposed", false}});
    EXPECT_TRUE(made.ok()) << made.error().to_string();
    return made.ok() ? *made : nullptr;
  }
};

class SharedConstants : public ::testing::Test {
 protected:
  void write(char value) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << std::string(kRows * kDepth * sizeof(float), value);
  }
  /// The weight as an open of the file finds it.
  Tensor opened() const {
    const auto file = map_file(path_);
    EXPECT_TRUE(file.ok());
    return *Tensor::wrap(DType::fp32, {kRows, kDepth}, *file);
  }
  static ConstantPool pool() { return ConstantPool(nullptr, std::make_shared<PackedStore>()); }
  static std::shared_ptr<const std::byte> pack(ConstantPool& pool, const ir::Value& value,
                                               std::string_view key = "form") {
    auto packed = pool.pack(
        value, key, 64,
        [](const ir::TensorView& v, std::byte* to) {
          std::memcpy(to, v.data, 64);
          return Status();
        },
        nullptr);
    EXPECT_TRUE(packed.ok());
    return packed.ok() ? *packed : nullptr;
  }

  test::TemporaryFolder folder_;
  std::string path_ = (folder_ / "weights").string();
};

TEST_F(SharedConstants, OfOneFileExistOnce) {
  write('a');
  Program a(opened()), b(opened());
  auto first = pool(), second = pool();
  const auto made = pack(first, *a.weight);
  EXPECT_EQ(pack(second, *b.weight), made);
  EXPECT_EQ(first.packed_bytes(), 64u);
  EXPECT_EQ(first.shared_bytes(), 0u);
  EXPECT_EQ(second.packed_bytes(), 0u);
  EXPECT_EQ(second.shared_bytes(), 64u);
  EXPECT_TRUE(second.is_packed(*b.weight, "form", 64));
  EXPECT_NE(pack(second, *b.weight, "another form"), made);
  pack(second, *b.weight);
  EXPECT_EQ(second.packed_bytes(), 64u);
  EXPECT_EQ(second.shared_bytes(), 64u);
}

TEST_F(SharedConstants, AreMadeFromTheSameNumbers) {
  write('a');
  Program a(opened()), b(opened());
  auto first = pool(), second = pool();
  const auto doubled = pack(first, *a.scaled(2));
  EXPECT_EQ(doubled, pack(second, *b.scaled(2)));
  EXPECT_NE(doubled, pack(second, *b.scaled(3)));
  EXPECT_NE(doubled, pack(second, *b.weight));
}

TEST_F(SharedConstants, AreFreedWithTheLastModel) {
  write('a');
  Program a(opened()), b(opened());
  auto first = std::make_unique<ConstantPool>(nullptr, std::make_shared<PackedStore>()),
       second = std::make_unique<ConstantPool>(nullptr, std::make_shared<PackedStore>());
  std::weak_ptr<const std::byte> packed = pack(*first, *a.weight);
  pack(*second, *b.weight);
  first.reset();
  EXPECT_FALSE(packed.expired());
  second.reset();
  EXPECT_TRUE(packed.expired());
  auto third = pool();
  pack(third, *b.weight);
  EXPECT_EQ(third.packed_bytes(), 64u);
  EXPECT_EQ(third.shared_bytes(), 0u);
}

TEST_F(SharedConstants, OfAChangedFileAreOthers) {
  write('a');
  Program a(opened());
  auto first = pool();
  const auto before = pack(first, *a.weight);
  write('b');
  Program b(opened());
  auto second = pool();
  const auto after = pack(second, *b.weight);
  EXPECT_EQ(before.get()[63], std::byte{'a'});
  EXPECT_EQ(after.get()[63], std::byte{'b'});
  EXPECT_EQ(second.shared_bytes(), 0u);
}

/// Kernels lay out weights of other shapes and types differently, even if the bytes are the same.
TEST_F(SharedConstants, OfOtherShapesOrTypesAreOthers) {
  write('a');
  const auto file = map_file(path_);
  ASSERT_TRUE(file.ok());
  Program a(opened()), turned(*Tensor::wrap(DType::fp32, {kDepth, kRows}, *file)),
      whole(*Tensor::wrap(DType::int32, {kRows, kDepth}, *file));
  auto first = pool(), second = pool();
  const auto made = pack(first, *a.weight);
  EXPECT_NE(pack(second, *turned.weight), made);
  EXPECT_NE(pack(second, *whole.weight), made);
  EXPECT_EQ(pack(second, *a.weight), made);
}

/// Memory may be freed and used again. Only configurations of one opened model share what they make from it.
TEST_F(SharedConstants, OfMemoryAreOnesOwn) {
  const Tensor memory = *Tensor::zeros(DType::fp32, {kRows, kDepth});
  Program a(memory), b(memory);
  auto first = pool(), second = pool();
  EXPECT_NE(pack(first, *a.weight), pack(second, *b.weight));
  const auto store = std::make_shared<PackedStore>();
  ConstantPool third(nullptr, store), fourth(nullptr, store);
  EXPECT_EQ(pack(third, *a.weight), pack(fourth, *b.weight));
}

/// A value that is computed while loading and not packed, such as a transposed table.
TEST_F(SharedConstants, NeedNotBePacked) {
  write('a');
  Program a(opened()), b(opened());
  const auto transposed = [](Program& p) {
    return *p.builder.op("transpose", {{"x", p.weight}, {"perm", Tensor::i32({1, 0})}});
  };
  auto first = pool(), second = pool();
  const auto x = first.get(*transposed(a), true), y = second.get(*transposed(b), true);
  ASSERT_TRUE(x.ok() && y.ok());
  EXPECT_EQ(x->data(), y->data());
  constexpr size_t kBytes = kRows * kDepth * sizeof(float);
  EXPECT_EQ(first.kept_bytes(), kBytes);
  EXPECT_EQ(second.kept_bytes(), 0u);
  EXPECT_EQ(second.shared_bytes(), kBytes);
}

TEST_F(SharedConstants, CountAgainstNoOtherBudget) {
  write('a');
  Program a(opened()), b(opened());
  auto first = pool();
  const auto budget = std::make_shared<MemoryBudget>(size_t{10});
  ConstantPool second(budget, std::make_shared<PackedStore>());
  const auto made = pack(first, *a.weight);
  EXPECT_EQ(pack(second, *b.weight), made);
  EXPECT_EQ(budget->used(), 0u);
}

}  // namespace
}  // namespace moka::plan

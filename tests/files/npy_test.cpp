// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "files/file.h"
#include "files/files_util.h"
#include "files/samples.h"

namespace moka::test {
namespace {

MultiArray array_in(const FeatureValue& value) { return std::get<MultiArray>(value); }
MultiArray sample(std::string_view hex) { return array_in(decode_npy(samples::bytes(hex), "sample.npy")); }
StringSequence sample_texts(std::string_view hex) {
  return std::get<StringSequence>(decode_npy(samples::bytes(hex), "sample.npy"));
}

template <typename T>
std::vector<T> values(const MultiArray& array) {
  auto v = array.as<T>();
  return {v.begin(), v.end()};
}
std::vector<double> doubles(const MultiArray& array) { return values<double>(array.converted(DataType::float64)); }

using Shape = std::vector<int64_t>;

TEST(Npy, ReadsWhatNumpyWrote) {
  const MultiArray f4 = sample(samples::kF4C);
  EXPECT_EQ(f4.shape(), (Shape{2, 3}));
  EXPECT_EQ(values<float>(f4), (std::vector<float>{0, 1, 2, 3, 4, 5}));

  const MultiArray scalar = sample(samples::kScalar);
  EXPECT_EQ(scalar.shape(), Shape{});
  EXPECT_EQ(values<int64_t>(scalar), std::vector<int64_t>{-7});
}

TEST(Npy, BigEndianFortranOrderBecomesCOrder) {
  const MultiArray array = sample(samples::kBeI2Fortran);
  EXPECT_EQ(array.shape(), (Shape{2, 3}));
  EXPECT_EQ(values<int16_t>(array), (std::vector<int16_t>{1, -2, 3, 4, 500, -600}));
}

TEST(Npy, BoolsInThreeDimensionsOfFortranOrder) {
  const MultiArray array = sample(samples::kBool3dFV3);
  EXPECT_EQ(array.shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(doubles(array), (std::vector<double>{1, 0, 0, 0, 1, 1, 0, 1}));
}

TEST(Npy, HalvesKeepTheirBits) {
  const MultiArray array = sample(samples::kF2V2);
  EXPECT_EQ(array.type(), DataType::float16);
  EXPECT_EQ(doubles(array), (std::vector<double>{1.5, -2, 65504, 0x1p-24}));
}

TEST(Npy, Strings) {
  EXPECT_EQ(sample_texts(samples::kU), (std::vector<std::string>{"a", "\u00e9\u4e2d\U0001F600", ""}));
  EXPECT_EQ(sample_texts(samples::kSBe), (std::vector<std::string>{"xy", "z"}));
}

TEST(Npy, WritesTheVeryBytesThatNumpyDoes) {
  for (auto hex : {samples::kF4C, samples::kScalar}) EXPECT_EQ(encode_npy(sample(hex)), samples::bytes(hex));
}

TEST(Npy, StridedArraysAreWrittenInOrder) {
  std::vector<float> numbers{1, 2, 3, 4, 5, 6};
  const MultiArray turned(numbers.data(), DataType::float32, {3, 2}, {1, 3});
  EXPECT_EQ(doubles(array_in(decode_npy(encode_npy(turned)))), (std::vector<double>{1, 4, 2, 5, 3, 6}));
}

TEST(Npz, StoredAndDeflated) {
  const Features stored = decode_npz(samples::bytes(samples::kNpz), "a.npz");
  ASSERT_EQ(stored.size(), 2u);
  EXPECT_EQ(stored.begin()->first, "x");
  EXPECT_EQ(values<uint8_t>(stored.array("x")), (std::vector<uint8_t>{1, 2}));
  EXPECT_EQ(stored.array("y").shape(), (Shape{1, 1}));
  EXPECT_EQ(values<double>(stored.array("y")), std::vector<double>{0.5});

  const Features deflated = decode_npz(samples::bytes(samples::kNpzZ), "b.npz");
  ASSERT_EQ(deflated.size(), 2u);
  EXPECT_EQ(doubles(array_in(deflated.begin()->second)), std::vector<double>(20, 0));
  EXPECT_EQ(values<uint16_t>(array_in(std::next(deflated.begin())->second)), (std::vector<uint16_t>{0, 1, 2}));
}

TEST(Npz, RoundTrip) {
  std::vector<int32_t> numbers{-1, 2, 1 << 30};
  const Features arrays{{"a", MultiArray(numbers.data(), DataType::int32, {3})},
                        {"d/\u00e9", MultiArray(DataType::boolean, {1, 2})},
                        {"none", MultiArray(DataType::float64, {0, 7})}};
  const Features back = decode_npz(encode_npz(arrays), "c.npz");
  ASSERT_EQ(back.size(), arrays.size());
  for (const auto& [name, value] : arrays) {
    EXPECT_EQ(back.array(name).shape(), array_in(value).shape()) << name;
    EXPECT_EQ(back.array(name).type(), array_in(value).type()) << name;
    EXPECT_EQ(doubles(back.array(name)), doubles(array_in(value))) << name;
  }
  EXPECT_EQ(failure_of([] { encode_npz({{"x", 1.5}}); }).first, ErrorKind::invalid_argument);
}

TEST(Npz, DamageShowsInTheChecksum) {
  auto bytes = samples::bytes(samples::kNpz);
  bytes[184] ^= std::byte{1};  // the last element of x
  EXPECT_EQ(
      failure_of([&] { decode_npz(bytes, "d.npz"); }),
      std::pair(ErrorKind::malformed, std::string("d.npz[x.npy]: its checksum doesn't match; the file is damaged")));
}

std::vector<std::byte> with_header(const std::string& text) {
  using namespace files;
  Buffer out;
  put_text(out, std::string_view("\x93NUMPY\x01\x00", 8));
  put_number(out, static_cast<uint16_t>(text.size()));
  put_text(out, text);
  put_number<uint64_t>(out, 0);
  return out;
}

TEST(Npy, HostileHeadersAreErrors) {
  for (const char* header : {
           "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4611686018427387904)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551617,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
           "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}",
           "{'descr': '<U0', 'fortran_order': False, 'shape': (4611686018427387904,)}",
           "{'descr': '<U99999999999999999999', 'fortran_order': False, 'shape': (1,)}",
           "{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}",
           "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
           "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}",
           "{'descr': '<f4', 'fortran_order': False}",
           "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': ()}",
           "{'descr': '<f4', 'fortran_order': Maybe, 'shape': ()}",
           "{'descr': '<f4",
           "",
       }) {
    const ErrorKind kind = failure_of([&] { decode_npy(with_header(header), "hostile.npy"); }).first;
    EXPECT_TRUE(kind == ErrorKind::malformed || kind == ErrorKind::unsupported) << header;
  }
}

TEST(Npy, AnEmptyArrayMayHaveAnyOtherDimensions) {
  const auto bytes = with_header("{'descr': '<f4', 'fortran_order': True, 'shape': (4611686018427387, 0, 9)}");
  EXPECT_EQ(array_in(decode_npy(bytes, "empty.npy")).count(), 0);
  const auto huge = with_header("{'descr': '<f4', 'fortran_order': True, 'shape': (4611686018427387904, 0, 9)}");
  EXPECT_EQ(failure_of([&] { decode_npy(huge, "huge.npy"); }).first, ErrorKind::unsupported);
}

TEST(Npy, TextsHaveOneDimension) {
  const auto table = with_header("{'descr': '|S1', 'fortran_order': False, 'shape': (2, 2)}");
  EXPECT_EQ(
      failure_of([&] { decode_npy(table, "t.npy"); }),
      std::pair(ErrorKind::unsupported, std::string("t.npy: expected strings along one dimension, got 2 dimensions")));
  const auto column = with_header("{'descr': '|S1', 'fortran_order': False, 'shape': (2, 1)}");
  EXPECT_EQ(std::get<StringSequence>(decode_npy(column, "t.npy")), (StringSequence{"", ""}));
}

TEST(Npy, AnArrayWithoutDataIsRefused) {
  const MultiArray none(nullptr, DataType::float32, {2, 3}), empty(nullptr, DataType::float32, {0});
  const std::pair refusal(ErrorKind::invalid_argument, std::string("npy: expected an array with data, got none"));
  EXPECT_EQ(failure_of([&] { encode_npy(none); }), refusal);
  EXPECT_EQ(failure_of([&] { encode_npz({{"x", none}}); }), refusal);
  EXPECT_EQ(array_in(decode_npy(encode_npy(empty))).count(), 0);
}

TEST(Npy, MessagesNameFileExpectedAndGot) {
  EXPECT_EQ(failure_of([] {
              decode_npy(with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}"), "three.npy");
            }).second,
            "three.npy: the shape asks for 12 bytes of data, got 8");
}

}  // namespace
}  // namespace moka::test

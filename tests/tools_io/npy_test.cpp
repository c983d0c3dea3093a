// SPDX-License-Identifier: Apache-2.0
#include "io/npy.h"

#include <gtest/gtest.h>

#include "io/io_error.h"
#include "samples.h"

namespace moka::io {
namespace {

Array sample(std::string_view hex) { return parse_npy(samples::bytes(hex), "sample.npy"); }

template <typename T>
std::vector<T> values(const Array& array) {
  auto v = array.as<T>();
  return {v.begin(), v.end()};
}

using Shape = std::vector<size_t>;

TEST(Npy, ReadsWhatNumpyWrote) {
  const Array f4 = sample(samples::kF4C);
  EXPECT_EQ(f4.shape, (Shape{2, 3}));
  EXPECT_EQ(values<float>(f4), (std::vector<float>{0, 1, 2, 3, 4, 5}));

  const Array scalar = sample(samples::kScalar);
  EXPECT_EQ(scalar.shape, Shape{});
  EXPECT_EQ(values<int64_t>(scalar), std::vector<int64_t>{-7});
}

TEST(Npy, BigEndianFortranOrderBecomesCOrder) {
  const Array array = sample(samples::kBeI2Fortran);
  EXPECT_EQ(array.shape, (Shape{2, 3}));
  EXPECT_EQ(values<int16_t>(array), (std::vector<int16_t>{1, -2, 3, 4, 500, -600}));
}

TEST(Npy, BoolsInThreeDimensionsOfFortranOrder) {
  const Array array = sample(samples::kBool3dFV3);
  EXPECT_EQ(array.shape, (Shape{2, 2, 2}));
  EXPECT_EQ(array.to_doubles(), (std::vector<double>{1, 0, 0, 0, 1, 1, 0, 1}));
}

TEST(Npy, HalvesKeepTheirBits) {
  const Array array = sample(samples::kF2V2);
  EXPECT_EQ(array.type, ElementType::float16);
  EXPECT_EQ(array.to_doubles(), (std::vector<double>{1.5, -2, 65504, 0x1p-24}));
}

TEST(Npy, Strings) {
  EXPECT_EQ(sample(samples::kU).texts, (std::vector<std::string>{"a", "\u00e9\u4e2d\U0001F600", ""}));
  EXPECT_EQ(sample(samples::kSBe).texts, (std::vector<std::string>{"xy", "z"}));
}

TEST(Npy, WritesTheVeryBytesThatNumpyDoes) {
  for (auto hex : {samples::kF4C, samples::kScalar, samples::kU}) {
    EXPECT_EQ(encode_npy(sample(hex)), samples::bytes(hex));
  }
}

TEST(Npy, AskingForAnotherTypeIsAnError) {
  EXPECT_THROW(sample(samples::kF4C).as<double>(), IoError);
  EXPECT_THROW(sample(samples::kU).to_doubles(), IoError);
}

TEST(Npz, StoredAndDeflated) {
  const auto stored = parse_npz(samples::bytes(samples::kNpz), "a.npz");
  ASSERT_EQ(stored.size(), 2u);
  EXPECT_EQ(stored[0].name, "x");
  EXPECT_EQ(values<uint8_t>(stored[0].array), (std::vector<uint8_t>{1, 2}));
  EXPECT_EQ(stored[1].name, "y");
  EXPECT_EQ(stored[1].array.shape, (Shape{1, 1}));
  EXPECT_EQ(values<double>(stored[1].array), std::vector<double>{0.5});

  const auto deflated = parse_npz(samples::bytes(samples::kNpzZ), "b.npz");
  ASSERT_EQ(deflated.size(), 2u);
  EXPECT_EQ(deflated[0].array.to_doubles(), std::vector<double>(20, 0));
  EXPECT_EQ(values<uint16_t>(deflated[1].array), (std::vector<uint16_t>{0, 1, 2}));
}

TEST(Npz, RoundTrip) {
  const std::vector<NamedArray> arrays = {{"a", Array::of<int32_t>({3}, std::vector<int32_t>{-1, 2, 1 << 30})},
                                          {"d/\u00e9", Array::of_texts({1, 2}, {"one", "\u4e8c"})},
                                          {"none", Array::of<double>({0, 7}, std::vector<double>{})}};
  const auto back = parse_npz(encode_npz(arrays), "c.npz");
  ASSERT_EQ(back.size(), arrays.size());
  for (size_t i = 0; i < arrays.size(); ++i) {
    EXPECT_EQ(back[i].name, arrays[i].name);
    EXPECT_EQ(back[i].array.shape, arrays[i].array.shape);
    EXPECT_EQ(back[i].array.bytes, arrays[i].array.bytes);
    EXPECT_EQ(back[i].array.texts, arrays[i].array.texts);
  }
}

TEST(Npz, DamageShowsInTheChecksum) {
  auto bytes = samples::bytes(samples::kNpz);
  bytes[184] ^= std::byte{1};  // the last element of x
  EXPECT_THROW(parse_npz(bytes, "d.npz"), IoError);
}

std::vector<std::byte> with_header(std::string text) {
  Bytes out;
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
    EXPECT_THROW(parse_npy(with_header(header), "hostile.npy"), IoError) << header;
  }
}

TEST(Npy, AnEmptyArrayMayHaveAnyOtherDimensions) {
  const auto bytes = with_header("{'descr': '<f4', 'fortran_order': True, 'shape': (4611686018427387904, 0, 9)}");
  EXPECT_EQ(parse_npy(bytes, "empty.npy").count(), 0u);
}

TEST(Npy, MessagesNameFileExpectedAndGot) {
  try {
    parse_npy(with_header("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}"), "three.npy");
    FAIL() << "no error";
  } catch (const IoError& error) {
    EXPECT_STREQ(error.what(), "three.npy: the shape asks for 12 bytes of data, got 8");
  }
}

}  // namespace
}  // namespace moka::io

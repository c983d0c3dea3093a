// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "format/format_util.h"
#include "format/weights/blob.h"
#include "format/weights/weight_store.h"

namespace moka::format {
namespace {

namespace fs = std::filesystem;

struct Expected {
  uint64_t offset;
  BlobType type;
  unsigned padding;
  std::string hex;
};

// data/blobs.bin as coremltools' writer made it: offsets as it returned them, per type the values 1, 0, 1, 1, 0.
const Expected expected[] = {
    {64, BlobType::float16, 0, "003c0000003c003c0000"},
    {192, BlobType::float32, 0, "0000803f000000000000803f0000803f00000000"},
    {320, BlobType::uint8, 0, "0100010100"},
    {448, BlobType::int8, 0, "0100010100"},
    {576, BlobType::int16, 0, "01000000010001000000"},
    {704, BlobType::uint16, 0, "01000000010001000000"},
    {832, BlobType::int4, 4, "011100"},
    {960, BlobType::uint1, 3, "0d"},
    {1088, BlobType::uint2, 6, "5100"},
    {1216, BlobType::uint4, 4, "011100"},
    {1344, BlobType::uint3, 1, "4102"},
    {1472, BlobType::uint6, 2, "01100400"},
    {1600, BlobType::int32, 0, "0100000000000000010000000100000000000000"},
    {1728, BlobType::uint32, 0, "0100000000000000010000000100000000000000"},
};

std::string hex(const Bytes& bytes) {
  std::string out;
  for (unsigned char c : bytes.text()) {
    out += "0123456789abcdef"[c >> 4];
    out += "0123456789abcdef"[c & 15];
  }
  return out;
}

Bytes sample_blob() { return Bytes::from(test::read_file(fs::path(MOKA_TEST_DATA) / "blobs.bin")); }

TEST(Weights, EveryTypeAsWrittenByCoremltools) {
  Bytes file = sample_blob();
  auto all = list_blobs(file);
  ASSERT_TRUE(all.ok()) << all.error().to_string();
  ASSERT_EQ(all->size(), std::size(expected));
  for (size_t i = 0; i < all->size(); ++i) {
    auto blob = read_blob(file, expected[i].offset);
    ASSERT_TRUE(blob.ok()) << blob.error().to_string();
    for (const Blob& b : {*blob, (*all)[i]}) {
      EXPECT_EQ(b.offset, expected[i].offset);
      EXPECT_EQ(b.type, expected[i].type);
      EXPECT_EQ(b.padding_bits, expected[i].padding);
      EXPECT_EQ(b.count, 5u);
      EXPECT_EQ(hex(b.data), expected[i].hex);
    }
  }
}

Bytes edited(size_t offset, uint64_t value, size_t size) {
  std::string s(sample_blob().text());
  std::memcpy(s.data() + offset, &value, size);
  return Bytes::from(std::move(s));
}

void expect_error(const Result<Blob>& blob, ErrorCode code, std::string_view part) {
  ASSERT_FALSE(blob.ok());
  EXPECT_EQ(blob.error().code(), code);
  EXPECT_NE(blob.error().to_string().find(part), std::string::npos) << blob.error().to_string();
}

TEST(Weights, BadRecordsAreErrors) {
  using enum ErrorCode;
  expect_error(read_blob(edited(4, 1, 4), 64), unsupported, "version 1");
  expect_error(read_blob(edited(4, 3, 4), 64), unsupported, "version 3");
  expect_error(read_blob(edited(64, 7, 4), 64), malformed, "starts with 7");
  expect_error(read_blob(edited(68, 18, 4), 64), unsupported, "type 18");
  expect_error(read_blob(edited(68, 0, 4), 64), unsupported, "type 0");
  expect_error(read_blob(edited(72, ~0ull, 8), 64), malformed, "ends after");
  expect_error(read_blob(edited(72, 9, 8), 64), malformed, "whole number of float16");
  expect_error(read_blob(edited(80, ~0ull - 63, 8), 64), malformed, "ends after");
  expect_error(read_blob(edited(80, 132, 8), 64), malformed, "aligned");
  expect_error(read_blob(edited(832 + 24, 8, 8), 832), malformed, "padding");
  expect_error(read_blob(edited(832 + 24, 1, 8), 832), malformed, "whole number of int4");
  for (uint64_t offset : {uint64_t{0}, uint64_t{65}, uint64_t{1812}, uint64_t{1792}, ~uint64_t{0}, uint64_t{1} << 63})
    expect_error(read_blob(sample_blob(), offset), malformed, cat("byte ", offset));
  EXPECT_FALSE(read_blob(Bytes{}, 64).ok());
}

TEST(Weights, PaddingOfWholeByteTypesIsIgnored) {
  auto blob = read_blob(edited(64 + 24, 0x1234567890abcdef, 8), 64);
  ASSERT_TRUE(blob.ok()) << blob.error().to_string();
  EXPECT_EQ(blob->padding_bits, 0u);
  EXPECT_EQ(blob->count, 5u);
}

TEST(Weights, ListNeedsAsManyBlobsAsCounted) {
  EXPECT_FALSE(list_blobs(edited(0, 15, 4)).ok());
  EXPECT_FALSE(list_blobs(edited(0, 0xffffffff, 4)).ok());
  EXPECT_EQ(list_blobs(edited(0, 13, 4))->size(), 13u);
  EXPECT_FALSE(list_blobs(edited(80, 64, 8)).ok());  // data before its record
}

TEST(Weights, StoreInMemory) {
  auto store = WeightStore::in_memory({{"weights/weight.bin", sample_blob()}});
  for (const char* name : {"@model_path/weights/weight.bin", "weights/weight.bin", "@model_path/./weights//weight.bin"})
    EXPECT_TRUE(store.blob(name, 64).ok()) << name;
  EXPECT_EQ(store.file("@model_path/weights/other.bin").error().code(), ErrorCode::not_found);
  for (const char* name : {"@model_path/../weights/weight.bin", "/etc/hostname", ""})
    EXPECT_EQ(store.file(name).error().code(), ErrorCode::malformed) << name;
}

TEST(Weights, StoreCopiesUnalignedMemory) {
  std::string s = "x" + std::string(sample_blob().text());
  Bytes whole = Bytes::from(s);
  auto store = WeightStore::in_memory({{"w", whole.slice(1, whole.size() - 1)}});
  auto blob = store.blob("w", 192);
  ASSERT_TRUE(blob.ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(blob->data.data()) % 16, 0u);
  EXPECT_EQ(hex(blob->data), expected[1].hex);
}

TEST(Weights, FilesThatAreReadSayWhatMappedOnesSay) {
  std::vector<Bytes> files{sample_blob()};
  for (auto [at, value, size] : std::vector<std::tuple<size_t, uint64_t, size_t>>{{4, 1, 4},
                                                                                  {64, 7, 4},
                                                                                  {68, 18, 4},
                                                                                  {72, ~0ull, 8},
                                                                                  {72, 0, 8},
                                                                                  {72, 1024, 8},
                                                                                  {72, 9, 8},
                                                                                  {80, ~0ull - 63, 8},
                                                                                  {80, 132, 8},
                                                                                  {80, 64, 8},
                                                                                  {80, 0, 8},
                                                                                  {80, 1024, 8},
                                                                                  {80, 1792, 8},
                                                                                  {192 + 8, 1664, 8},
                                                                                  {192 + 16, 128, 8},
                                                                                  {832 + 24, 8, 8},
                                                                                  {832 + 24, 1, 8}})
    files.push_back(edited(at, value, size));
  test::TemporaryFolder folder;
  const fs::path path = folder.path() / "w.bin";
  int copied = 0;
  for (const Bytes& file : files) {
    test::write_file(path, std::string(file.text()));
    const auto store = WeightStore::in_folder(folder.path(), folder.path());
    ASSERT_TRUE(store.ok());
    for (uint64_t offset : {0ull, 64ull, 65ull, 192ull, 832ull, 1728ull, 1792ull, 1812ull, ~0ull, 1ull << 63}) {
      const auto mapped = store->blob("w.bin", offset);
      const auto reading = store->read_files();
      const auto read = store->blob("w.bin", offset);
      ASSERT_EQ(read.ok(), mapped.ok()) << offset;
      if (!read.ok()) {
        EXPECT_EQ(read.error().to_string(), mapped.error().to_string());
        continue;
      }
      EXPECT_EQ(read->type, mapped->type);
      EXPECT_EQ(read->count, mapped->count);
      EXPECT_EQ(read->offset, mapped->offset);
      EXPECT_EQ(read->padding_bits, mapped->padding_bits);
      EXPECT_EQ(hex(read->data), hex(mapped->data));
      copied += read->data.data() != mapped->data.data();
    }
  }
  EXPECT_GT(copied, 0);
}

TEST(Weights, StoreStaysInsideItsFolder) {
  test::TemporaryFolder folder;
  fs::path root = folder.path() / "m.mlpackage", base = root / "Data/model";
  std::string content(sample_blob().text());
  test::write_file(base / "weights/weight.bin", content);
  test::write_file(root / "Data/shared/weight.bin", content);
  test::write_file(folder.path() / "secret.bin", content);
  fs::create_symlink(folder.path() / "secret.bin", base / "weights/link.bin");
  fs::create_directory_symlink(folder.path(), base / "up");
  fs::create_symlink("weight.bin", base / "weights/inner.bin");
  auto store = WeightStore::in_folder(root, base);
  ASSERT_TRUE(store.ok());
  for (const char* name : {"@model_path/weights/weight.bin", "@model_path/../shared/weight.bin", "weights/inner.bin"})
    EXPECT_TRUE(store->blob(name, 64).ok()) << name;
  for (std::string name : {"@model_path/../../../secret.bin", "weights/link.bin", "up/secret.bin", "../../..",
                           "/etc/hostname", "../../../m.mlpackage2/x"}) {
    auto file = store->file(name);
    ASSERT_FALSE(file.ok()) << name;
    EXPECT_EQ(file.error().code(), ErrorCode::malformed) << name;
    EXPECT_NE(file.error().to_string().find(name.substr(name.find('/') == 11 ? 12 : 0)), std::string::npos);
  }
  EXPECT_EQ(store->file("weights/none.bin").error().code(), ErrorCode::not_found);
  EXPECT_EQ(store->file("weights").error().code(), ErrorCode::io);
}

}  // namespace
}  // namespace moka::format

// SPDX-License-Identifier: Apache-2.0
#include "base/file_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include "base/bytes.h"

namespace moka {
namespace {

class FileReaderTest : public testing::Test {
 protected:
  void write(size_t size, unsigned seed) {
    content_.resize(size);
    for (size_t i = 0; i < size; i++) content_[i] = static_cast<char>((i * 31 + i / 4096 + seed) % 251);
    std::ofstream(path_, std::ios::binary).write(content_.data(), static_cast<std::streamsize>(size));
  }
  void TearDown() override { ::unlink(path_.c_str()); }

  std::string path_ = testing::TempDir() + "moka_file_reader_test";
  std::string content_;
};

TEST_F(FileReaderTest, PartsAreWhatTheFileHas) {
  write((size_t{3} << 20) + 17, 1);
  const auto file = map_file(path_);
  ASSERT_TRUE(file.ok());
  FileReader reader;
  for (auto [offset, size] : {std::pair<size_t, size_t>{0, file->size()}, {1, 4096}, {4097, 100000}, {5, 4 << 10}}) {
    const auto read = reader.read(file->data() + offset, size);
    ASSERT_NE(read, nullptr);
    EXPECT_EQ(std::memcmp(read.get(), content_.data() + offset, size), 0);
  }
}

TEST_F(FileReaderTest, PartsThatAreHeldDoNotChange) {
  write(1 << 20, 2);
  const auto file = map_file(path_);
  ASSERT_TRUE(file.ok());
  FileReader reader;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; t++)
    threads.emplace_back([&, t] {
      for (size_t i = 0; i < 50; i++) {
        const size_t a = (t * 7919 + i * 4001) % 900000, b = (t * 104729 + i * 5003) % 900000;
        const auto first = reader.read(file->data() + a, 50000), second = reader.read(file->data() + b, 60000);
        ASSERT_TRUE(first != nullptr && second != nullptr);
        ASSERT_EQ(std::memcmp(first.get(), content_.data() + a, 50000), 0);
        ASSERT_EQ(std::memcmp(second.get(), content_.data() + b, 60000), 0);
      }
    });
  for (std::thread& t : threads) t.join();
}

TEST_F(FileReaderTest, OtherContentIsNotRead) {
  write(1 << 20, 3);
  const auto file = map_file(path_);
  ASSERT_TRUE(file.ok());
  EXPECT_NE(FileReader().read(file->data(), 8192), nullptr);
  const std::string other = path_ + ".other";
  std::ofstream(other, std::ios::binary) << content_;
  ASSERT_EQ(std::rename(other.c_str(), path_.c_str()), 0);
  EXPECT_EQ(FileReader().read(file->data(), 8192), nullptr) << "another file of the same name and content";
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  EXPECT_EQ(FileReader().read(file->data(), 8192), nullptr);
  const std::vector<std::byte> heap(8192);
  EXPECT_EQ(FileReader().read(heap.data(), heap.size()), nullptr);
}

/// Huge pages may come slowly, and a small part would take a whole one.
TEST_F(FileReaderTest, BuffersAskForNoHugePages) {
  write(3 << 20, 4);
  const auto file = map_file(path_);
  ASSERT_TRUE(file.ok());
  FileReader reader;
  const auto read = reader.read(file->data(), file->size());
  ASSERT_NE(read, nullptr);
  const auto at = reinterpret_cast<uintptr_t>(read.get());
  std::ifstream maps("/proc/self/smaps");
  bool inside = false, found = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t first = 0, last = 0;
    if (std::sscanf(line.c_str(), "%zx-%zx ", &first, &last) == 2) inside = first <= at && at < last;
    if (!inside || !line.starts_with("VmFlags:")) continue;
    found = true;
    EXPECT_EQ(line.find(" hg"), std::string::npos) << line;
  }
  EXPECT_TRUE(found);
}

TEST_F(FileReaderTest, SmallAndHugePartsAreLeftToTheMapping) {
  write(size_t{17} << 20, 4);
  const auto file = map_file(path_);
  ASSERT_TRUE(file.ok());
  FileReader reader;
  EXPECT_EQ(reader.read(file->data(), 100), nullptr);
  EXPECT_EQ(reader.read(file->data(), file->size()), nullptr);
  EXPECT_EQ(reader.read(file->data() + file->size() - 5000, 10000), nullptr) << "past the end of the file";
}

}  // namespace
}  // namespace moka

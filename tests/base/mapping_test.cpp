// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/bytes.h"
#include "temporary_folder.h"

/// Which files of the same name are mapped once.
namespace moka {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLarge = size_t{1} << 20;

class Mapping : public ::testing::Test {
 protected:
  void write(char value, size_t size = kLarge) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << std::string(size, value);
  }
  Bytes map() const {
    auto bytes = map_file(path_);
    EXPECT_TRUE(bytes.ok());
    return bytes.ok() ? *bytes : Bytes{};
  }

  test::TemporaryFolder folder_;
  std::string path_ = (folder_ / "file").string();
};

TEST_F(Mapping, AnUnchangedFileIsMappedOnce) {
  write('a');
  const Bytes first = map(), second = map();
  EXPECT_EQ(first.data(), second.data());
  EXPECT_EQ(place_in_file(first.data() + 5, 10)->offset, 5u);
}

/// Under its later name, so that readers find it where it is now.
TEST_F(Mapping, KnowsTheNewNameOfAMovedFile) {
  write('a');
  const Bytes first = map();
  const std::string before = path_;
  path_ = (folder_ / "moved").string();
  fs::rename(before, path_);
  const Bytes moved = map();  // moving changes a time stamp on some file systems
  EXPECT_EQ(place_in_file(moved.data(), 10)->path, path_);
}

TEST_F(Mapping, AFileThatChangedInPlaceIsMappedAnew) {
  write('a');
  const Bytes first = map();
  const auto time = fs::last_write_time(path_);
  write('b');
  fs::last_write_time(path_, time);
  const Bytes second = map();
  EXPECT_NE(first.data(), second.data());
  EXPECT_EQ(second.text(), std::string(kLarge, 'b'));
  EXPECT_NE(place_in_file(first.data(), 1)->content, place_in_file(second.data(), 1)->content);
}

TEST_F(Mapping, AFileThatTookThePlaceIsMappedAnew) {
  write('a');
  const Bytes first = map();
  fs::remove(path_);
  write('b');
  const Bytes second = map();
  EXPECT_EQ(first.text(), std::string(kLarge, 'a'));
  EXPECT_EQ(second.text(), std::string(kLarge, 'b'));
}

/// Time stamps cannot tell these changes apart.
TEST_F(Mapping, AFileThatChangedAMomentAgoIsMappedAnew) {
  for (int i = 0; i < 50; i++) {
    write('a', 100);
    const Bytes first = map();
    write('b', 100);
    const Bytes second = map();
    ASSERT_NE(first.data(), second.data()) << i;
    ASSERT_EQ(second.text(), std::string(100, 'b'));
  }
}

TEST_F(Mapping, IsReleasedWithItsLastOwner) {
  write('a');
  Bytes first = map(), second = map();
  const std::byte* at = first.data();
  first = {};
  EXPECT_TRUE(place_in_file(at, kLarge).has_value());
  second = {};
  EXPECT_FALSE(place_in_file(at, kLarge).has_value());
  EXPECT_EQ(map().text(), std::string(kLarge, 'a'));
}

}  // namespace
}  // namespace moka

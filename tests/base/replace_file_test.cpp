// SPDX-License-Identifier: Apache-2.0
#include "base/replace_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "temporary_folder.h"

namespace moka {
namespace {

namespace fs = std::filesystem;

class ReplaceFile : public ::testing::Test {
 protected:
  static Status replace(const std::string& path, std::string_view text) {
    const std::span<const std::byte> part = std::as_bytes(std::span(text));
    return replace_file(path, OutputKind::json, {&part, 1}, false);
  }
  static std::string text_of(const fs::path& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  size_t count() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()));
  }
  std::string in(const std::string& name) const { return (folder_ / name).string(); }

  test::TemporaryFolder folder_;
};

TEST_F(ReplaceFile, TwoAtATimeWriteFilesOfTheirOwn) {
  Result<FileReplacement> one = FileReplacement::begin(in("x"), OutputKind::json),
                          two = FileReplacement::begin(in("x"), OutputKind::json);
  ASSERT_TRUE(one.ok() && two.ok());
  for (FileReplacement* file : {&*one, &*two}) {
    const std::string_view text = file == &*one ? "first" : "other";
    ASSERT_TRUE(file->add(std::as_bytes(std::span(text))).ok());
  }
  ASSERT_TRUE(one->finish(false).ok());
  EXPECT_EQ(text_of(in("x")), "first");
  ASSERT_TRUE(two->finish(false).ok());
  EXPECT_EQ(text_of(in("x")), "other");
  EXPECT_EQ(count(), 1u);
}

TEST_F(ReplaceFile, LeavesNothingWhenItIsNotFinished) {
  ASSERT_TRUE(FileReplacement::begin(in("x"), OutputKind::json).ok());
  EXPECT_EQ(count(), 0u);
}

TEST_F(ReplaceFile, FollowsSymbolicLinks) {
  fs::create_directory(in("folder"));
  fs::create_symlink("folder/x", in("second"));
  fs::create_symlink("second", in("first"));
  for (const char* text : {"{}", "[]"}) {
    ASSERT_TRUE(replace(in("first"), text).ok());
    EXPECT_TRUE(fs::is_symlink(in("first")) && fs::is_symlink(in("second")));
    EXPECT_EQ(text_of(in("folder/x")), text);
  }
  fs::create_symlink("round", in("round"));
  const Status round = replace(in("round"), "");
  ASSERT_FALSE(round.ok());
  EXPECT_NE(round.error().to_string().find("levels of symbolic links"), std::string::npos);
}

TEST_F(ReplaceFile, RefusesWhatIsNoRegularFile) {
  const Status status = replace(in("."), "text");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), ErrorCode::invalid_argument);
  EXPECT_NE(status.error().to_string().find("expected the path of a file"), std::string::npos);
}

TEST_F(ReplaceFile, WritesIntoDevicesAndPipes) {
  ASSERT_EQ(::mkfifo(in("pipe").c_str(), 0600), 0);
  fs::create_symlink("pipe", in("link"));
  for (const char* name : {"pipe", "link"}) {
    const int reader = ::open(in(name).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ASSERT_TRUE(replace(in(name), "text").ok());
    char read[8] = {};
    EXPECT_EQ(::read(reader, read, sizeof read), 4);
    EXPECT_STREQ(read, "text");
    ::close(reader);
  }
  EXPECT_TRUE(fs::is_fifo(in("pipe")));
  EXPECT_TRUE(replace("/dev/null", "text").ok());
  const Status full = replace("/dev/full", "text");
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().to_string(), "'/dev/full': cannot be written: No space left on device");
}

TEST_F(ReplaceFile, ReplacesOnlyTheOwnKind) {
  for (const char* text : {"", "{}", "[1]"}) {
    std::ofstream(in("x")) << text;
    EXPECT_TRUE(replace(in("x"), "{}").ok()) << text;
  }
  std::ofstream(in("x")) << "text";
  const Status status = replace(in("x"), "{}");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code(), ErrorCode::invalid_argument);
  EXPECT_EQ(text_of(in("x")), "text");
  EXPECT_TRUE(FileReplacement::begin(in("x"), OutputKind::json, true).ok());
}

}  // namespace
}  // namespace moka

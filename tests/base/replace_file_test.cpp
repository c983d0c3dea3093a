#include "base/replace_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

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
    return replace_file(path, {&part, 1}, false);
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
  Result<FileReplacement> one = FileReplacement::begin(in("x")), two = FileReplacement::begin(in("x"));
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
  ASSERT_TRUE(FileReplacement::begin(in("x")).ok());
  EXPECT_EQ(count(), 0u);
}

TEST_F(ReplaceFile, FollowsSymbolicLinks) {
  fs::create_directory(in("folder"));
  fs::create_symlink("folder/x", in("second"));
  fs::create_symlink("second", in("first"));
  for (const char* text : {"new", "newer"}) {
    ASSERT_TRUE(replace(in("first"), text).ok());
    EXPECT_TRUE(fs::is_symlink(in("first")) && fs::is_symlink(in("second")));
    EXPECT_EQ(text_of(in("folder/x")), text);
  }
  fs::create_symlink("round", in("round"));
  const Status round = replace(in("round"), "");
  ASSERT_FALSE(round.ok());
  EXPECT_NE(round.error().to_string().find("too many symbolic links"), std::string::npos);
}

TEST_F(ReplaceFile, RefusesWhatIsNoRegularFile) {
  ASSERT_EQ(::mkfifo(in("pipe").c_str(), 0600), 0);
  fs::create_symlink("pipe", in("link"));
  for (const char* name : {"pipe", "link", "."}) {
    const Status status = replace(in(name), "text");
    ASSERT_FALSE(status.ok()) << name;
    EXPECT_EQ(status.error().code(), ErrorCode::invalid_argument);
    EXPECT_NE(status.error().to_string().find("expected the path of a file"), std::string::npos);
  }
  EXPECT_TRUE(fs::is_fifo(in("pipe")));
}

}  // namespace
}  // namespace moka

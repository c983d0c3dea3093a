// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "temporary_folder.h"
#include "trace/door.h"
#include "trace/kept_events.h"
#include "trace/read.h"

/// Rings and the sockets of processes that let themselves be recorded. tests/cli/live_test.py records programs.
namespace moka::trace {
namespace {

namespace fs = std::filesystem;

TEST(KeptEvents, KeepsTheNewestAndTheNamesThatTheyNeed) {
  const auto lane = static_cast<uint8_t>(Lane::activity);
  const Origin here{7, "worker"};
  constexpr size_t kEach = sizeof(Event) + sizeof(void*);
  KeptEvents kept({.bytes = 4 * kEach});
  const ModelId model = add_model("kept.mlmodel");
  kept.add({1, 1, label("loaded before", "loaded", {{"path", "/kept"}}), model, 0, Event::Kind::slice, lane}, here);
  for (int64_t i = 0; i < 100; i++)
    kept.add({10 * i, 10 * i + 5, label(cat("event ", i), "kind"), model, 0, Event::Kind::slice, lane}, here);
  EXPECT_EQ(kept.left_out(), 96u);
  EXPECT_EQ(kept.first(-1), 960);
  Encoder encoder(kept.first(0), 0);
  kept.encode(encoder);
  const std::string bytes = encoder.take();
  const auto contents = read(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(contents.ok());
  ASSERT_EQ(contents->slices.size(), 5u);
  EXPECT_EQ(contents->slices[0].texts.at("path"), "/kept");
  EXPECT_EQ(contents->slices[0].from, 960);
  EXPECT_EQ(contents->slices[1].name, "event 96");
  EXPECT_EQ(contents->slices[4].name, "event 99");
  EXPECT_EQ(contents->tracks.at(contents->slices[4].track).thread, "thread 7, worker");
}

TEST(KeptEvents, KeepsTheLastSecondsAndNoEndWithoutABeginning) {
  const auto lane = static_cast<uint8_t>(Lane::compute);
  const Origin here{7, {}};
  KeptEvents kept({.seconds = 1e-6});
  const Label* outer = label("outer", "kind");
  kept.add({0, 0, outer, 0, 0, Event::Kind::begin, lane}, here);
  for (int64_t i = 1; i < 10; i++) kept.add({1000 * i, 1000 * i + 10, outer, 0, 0, Event::Kind::slice, lane}, here);
  kept.add({9500, 0, nullptr, 0, 0, Event::Kind::end, lane}, here);
  Encoder encoder(kept.first(0), 0);
  kept.encode(encoder);
  const std::string bytes = encoder.take();
  const auto contents = read(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(contents.ok());
  ASSERT_EQ(contents->slices.size(), 1u);
  EXPECT_EQ(contents->slices[0].from, 9000);
  EXPECT_EQ(contents->slices[0].to, 9010);
}

TEST(KeptEvents, SizesAndSecondsAsText) {
  const auto all = parse_ring("64M", "2.5");
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->bytes, size_t{64} << 20);
  EXPECT_EQ(all->seconds, 2.5);
  EXPECT_EQ(parse_ring("4096", "")->bytes, 4096u);
  EXPECT_FALSE(parse_ring("", "")->is_limited());
  for (const char* size : {"M", "0", "-1", "1T", "64 M", "99999999999G", "1e3"})
    EXPECT_FALSE(parse_ring(size, "").ok()) << size;
  for (const char* last : {"0", "-1", "nan", "inf", "x", "1s"}) EXPECT_FALSE(parse_ring("", last).ok()) << last;
}

class Doors : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  static bool answers(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof address.sun_path, "%s", path.c_str());
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const bool is_open = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    close(fd);
    return is_open;
  }
  const test::TemporaryFolder folder_;
};

TEST_F(Doors, OnlyTheUserMayConnectAndTheFileGoesWithTheDoor) {
  {
    Door door;
    ASSERT_TRUE(door.open(path("a.sock")).ok());
    struct stat s {};
    ASSERT_EQ(lstat(door.path().c_str(), &s), 0);
    EXPECT_EQ(s.st_mode & 0777, 0600u);
    EXPECT_TRUE(answers(door.path()));
    EXPECT_TRUE(door.is_reachable());
  }
  EXPECT_FALSE(fs::exists(path("a.sock")));
  Door in_folder;
  ASSERT_TRUE(in_folder.open(folder_.path().string()).ok());
  EXPECT_EQ(in_folder.path(), path(cat(getpid(), ".sock")));
  fs::remove(in_folder.path());
  EXPECT_FALSE(in_folder.is_reachable());
}

TEST_F(Doors, NothingIsReplacedButAnAbandonedSocket) {
  std::ofstream(path("text")) << "keep me";
  fs::create_symlink(path("text"), path("link"));
  fs::create_symlink(path("absent"), path("dangling"));
  for (const char* name : {"text", "link", "dangling"}) {
    Door door;
    const Status opened = door.open(path(name));
    ASSERT_FALSE(opened.ok()) << name;
    EXPECT_NE(opened.error().message().find("is not a socket of this user and is not replaced"), std::string::npos);
  }
  EXPECT_EQ(fs::file_size(path("text")), 7u);
  EXPECT_FALSE(fs::exists(path("absent")));
  // As a process that was killed leaves it.
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "%s", path("old.sock").c_str());
  ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  close(fd);
  Door door;
  ASSERT_TRUE(door.open(path("old.sock")).ok());
  EXPECT_EQ(door.path(), path("old.sock"));
  EXPECT_TRUE(answers(door.path()));
}

TEST_F(Doors, OthersOfOnePathHaveTheNumberInTheirs) {
  Door first, second, third;
  ASSERT_TRUE(first.open(path("a.sock")).ok());
  ASSERT_TRUE(second.open(path("a.sock")).ok());
  ASSERT_TRUE(third.open(path("a.sock")).ok());
  EXPECT_EQ(second.path(), path(cat("a-", getpid(), ".sock")));
  EXPECT_EQ(third.path(), path(cat("a-", getpid(), "-2.sock")));
  for (const Door* d : {&first, &second, &third}) EXPECT_TRUE(answers(d->path()));
  Door long_name;
  const Status opened = long_name.open(path(std::string(200, 'x')));
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code(), ErrorCode::invalid_argument);
}

TEST_F(Doors, TheUsersFolderIsOneThatOthersCannotEnter) {
  const char* before = std::getenv("XDG_RUNTIME_DIR");
  const std::string kept = before == nullptr ? "" : before;
  setenv("XDG_RUNTIME_DIR", folder_.path().c_str(), 1);
  const auto made = default_folder();
  ASSERT_TRUE(made.ok());
  EXPECT_EQ(*made, path("moka"));
  EXPECT_EQ(fs::status(*made).permissions(), fs::perms::owner_all);
  fs::permissions(*made, fs::perms::owner_all | fs::perms::others_exec);
  EXPECT_FALSE(default_folder().ok());
  fs::remove(*made);
  fs::create_directory_symlink(folder_.path(), *made);
  EXPECT_FALSE(default_folder().ok());
  if (before == nullptr)
    unsetenv("XDG_RUNTIME_DIR");
  else
    setenv("XDG_RUNTIME_DIR", kept.c_str(), 1);
}

}  // namespace
}  // namespace moka::trace

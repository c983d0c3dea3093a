// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "temporary_folder.h"
#include "trace/live.h"
#include "trace/present.h"
#include "trace/read.h"

/// One process records itself as another would. tests/cli/live_test.py uses processes.
namespace moka::trace {
namespace {

namespace fs = std::filesystem;

/// The other end of a recording.
class Peer {
 public:
  explicit Peer(const std::string& path) : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof address.sun_path, "%s", path.c_str());
    EXPECT_EQ(connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0) << path;
  }
  ~Peer() { hang_up(); }
  void hang_up() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }
  std::string ask(const std::string& request) {
    EXPECT_GT(send(fd_, request.data(), request.size(), MSG_NOSIGNAL), 0);
    std::string line;
    char c = 0;
    while (recv(fd_, &c, 1, 0) == 1 && c != '\n') line += c;
    return line;
  }
  std::string rest() {
    std::string out;
    char bytes[4096];
    for (ssize_t n = 0; (n = recv(fd_, bytes, sizeof bytes, 0)) > 0;) out.append(bytes, static_cast<size_t>(n));
    return out;
  }
  /// The trace after "stop".
  Contents stopped() {
    EXPECT_EQ(send(fd_, "stop\n", 5, MSG_NOSIGNAL), 5);
    const std::string bytes = rest();
    auto contents = read(std::as_bytes(std::span(bytes)));
    EXPECT_TRUE(contents.ok());
    return contents.ok() ? *contents : Contents{};
  }

 private:
  int fd_;
};

constexpr const char* kRecord = "moka-trace/1 record\n";
constexpr const char* kOk = "moka-trace/1 ok";

bool wait_until(const std::function<bool()>& condition) {
  for (int i = 0; i < 6000 && !condition(); i++) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return condition();
}

std::vector<std::string> slice_names(const Contents& contents) {
  std::vector<std::string> out;
  for (const Slice& s : contents.slices) out.push_back(s.name);
  return out;
}

class Recording : public testing::Test {
 protected:
  /// A socket of this test, until its folder goes.
  std::string open() {
    const auto path = allow((folder_ / "live.sock").string());
    EXPECT_TRUE(path.ok());
    return path.ok() ? *path : "";
  }
  const test::TemporaryFolder folder_;
};

TEST_F(Recording, HoldsWhatHappensMeanwhileAndTheModelsOfBefore) {
  const std::string path = open();
  Present model;
  model.list("before.mlmodel", "/models/before.mlmodel", 0.5);
  { const Span early(Lane::activity, "early"); }
  Peer peer(path);
  ASSERT_EQ(peer.ask(kRecord), kOk);
  ASSERT_TRUE(wait_until([] { return is_on(); }));
  {
    const Use use(model.model_of("before.mlmodel"));
    const Span span(Lane::activity, "meanwhile");
  }
  const Contents contents = peer.stopped();
  EXPECT_EQ(slice_names(contents), (std::vector<std::string>{"loaded before", "meanwhile"}));
  EXPECT_EQ(contents.slices[0].texts.at("path"), "/models/before.mlmodel");
  EXPECT_EQ(contents.slices[0].numbers.at("load_ns"), 500'000'000);
  for (const Slice& s : contents.slices)
    EXPECT_EQ(contents.tracks.at(contents.tracks.at(s.track).parent).name, "before.mlmodel");
  EXPECT_TRUE(wait_until([] { return !is_on(); }));
}

TEST_F(Recording, ListsTheModelsThatAreLoaded) {
  const std::string path = open();
  Present kept;
  kept.list("kept.mlmodel", "/models/a\nb.mlmodel", 0);
  {
    Present gone;
    gone.list("gone.mlmodel", "", 0);
  }
  Peer peer(path);
  ASSERT_EQ(peer.ask("moka-trace/1 list\n"), kOk);
  const std::string listed = peer.rest();
  EXPECT_NE(listed.find(" kept.mlmodel\npath /models/a?b.mlmodel\n"), std::string::npos) << listed;
  EXPECT_EQ(listed.find("gone"), std::string::npos);
}

TEST_F(Recording, EndsWithItsPeerAndTheProgramGoesOn) {
  const std::string path = open();
  {
    Peer peer(path);
    ASSERT_EQ(peer.ask(kRecord), kOk);
    ASSERT_TRUE(wait_until([] { return is_on(); }));
    Peer second(path);
    EXPECT_EQ(second.ask(kRecord), "moka-trace/1 error the process is being recorded already");
  }
  EXPECT_TRUE(wait_until([] {
    const Span span(Lane::activity, "to nobody");
    return !is_on();
  }));
  Peer again(path);
  EXPECT_EQ(again.ask(kRecord), kOk);
  again.stopped();
}

TEST_F(Recording, GivesWayToTheProgramsOwnTrace) {
  const std::string path = open();
  const std::string own = (folder_ / "own.pftrace").string();
  Peer peer(path);
  ASSERT_EQ(peer.ask(kRecord), kOk);
  ASSERT_TRUE(wait_until([] { return is_on(); }));
  { const Span span(Lane::activity, "of both"); }
  EXPECT_TRUE(stop().ok());  // no trace of the program's own
  EXPECT_TRUE(is_on());
  ASSERT_TRUE(start(own).ok());
  const std::string bytes = peer.rest();
  const auto recorded = read(std::as_bytes(std::span(bytes)));
  ASSERT_TRUE(recorded.ok());
  EXPECT_EQ(slice_names(*recorded), std::vector<std::string>{"of both"});
  Peer late(path);
  EXPECT_EQ(late.ask(kRecord), cat("moka-trace/1 error the process already traces to '", own, "'"));
  { const Span span(Lane::activity, "of the program"); }
  EXPECT_TRUE(stop().ok());
  const auto contents = read_file(own);
  ASSERT_TRUE(contents.ok());
  EXPECT_EQ(slice_names(*contents), std::vector<std::string>{"of the program"});
}

TEST_F(Recording, AChildOfAForkHasASocketOfItsOwn) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer ends a forked child that starts threads";
#endif
  const std::string path = open();
  Peer peer(path);
  ASSERT_EQ(peer.ask(kRecord), kOk);
  ASSERT_TRUE(wait_until([] { return is_on(); }));
  int done[2];
  ASSERT_EQ(pipe(done), 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    const bool was_on = is_on();  // opens the socket
    { const Span span(Lane::activity, "in the child"); }
    char ignored = 0;
    close(done[1]);
    (void)!::read(done[0], &ignored, 1);
    end_live();
    _exit(was_on ? 1 : 0);
  }
  close(done[0]);
  const std::string theirs = (folder_ / cat("live-", child, ".sock")).string();
  EXPECT_TRUE(wait_until([&] { return fs::exists(theirs); }));
  {
    Peer of_child(theirs);
    EXPECT_EQ(of_child.ask("moka-trace/1 list\n"), kOk);
    EXPECT_TRUE(of_child.rest().starts_with(cat("pid ", child, "\n")));
  }
  { const Span span(Lane::activity, "in the parent"); }
  EXPECT_EQ(slice_names(peer.stopped()), std::vector<std::string>{"in the parent"});
  close(done[1]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_FALSE(fs::exists(theirs));
  EXPECT_TRUE(fs::exists(path));
}

}  // namespace
}  // namespace moka::trace

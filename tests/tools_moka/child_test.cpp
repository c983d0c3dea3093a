// SPDX-License-Identifier: Apache-2.0
#include "child.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace moka::cli {
namespace {

/// A process whose descendants come to this one when their parents end.
class Children : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0); }
  void TearDown() override { prctl(PR_SET_CHILD_SUBREAPER, 0); }
};

TEST_F(Children, EndWhenTheirParentEndedBeforeTheyAskedForTheSignal) {
  const pid_t parent = fork();
  if (parent == 0) {
    const pid_t own = getpid();
    if (fork() > 0) _exit(0);
    while (getppid() == own) usleep(1000);
    end_with(own);
    _exit(77);  // went on
  }
  ASSERT_GT(parent, 0);
  ASSERT_EQ(wait_for(parent), 0);
  int status = 0;
  ASSERT_GT(waitpid(-1, &status, 0), 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

TEST_F(Children, EndWhenTheirParentIsKilled) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    const pid_t child = fork_bound("a test");
    if (child != 0) {
      for (;;) pause();
    }
    (void)!write(ends[1], "x", 1);  // the signal is set
    for (;;) pause();
  }
  ASSERT_GT(parent, 0);
  char byte = 0;
  ASSERT_EQ(read(ends[0], &byte, 1), 1);
  kill(parent, SIGKILL);
  EXPECT_TRUE(WIFSIGNALED(wait_for(parent)));
  int status = 0;
  ASSERT_GT(waitpid(-1, &status, 0), 0);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  close(ends[0]);
  close(ends[1]);
}

TEST_F(Children, StayWhileTheirParentDoes) {
  const pid_t child = fork_bound("a test");
  if (child == 0) _exit(5);
  const int status = wait_for(child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 5);
}

}  // namespace
}  // namespace moka::cli

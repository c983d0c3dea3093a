// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <vector>

/// Child processes that do not outlive the process that started them.
namespace moka::cli {

/// Like fork, but the system kills the child when the calling thread ends, also when SIGKILL ends it. Call it in a
/// thread that waits for the child or lives as long as the process. Flushes the output first. Throws IoError, which
/// names `what`.
pid_t fork_bound(const char* what);
/// For a child made by fork: ends this process when its parent ends, at once if `parent` is no longer its parent.
void end_with(pid_t parent);
/// Ends this process within seconds after the process that the environment variable MOKA_PARENT names, if it is set.
/// Removes the variable, because children have another parent.
void end_with_named_parent();
/// Waits until the child ends. Returns the status of waitpid.
int wait_for(pid_t child);

/// Hands signals that would end this process on to a child, so that this process can clean up after it. Signals that
/// were ignored stay ignored.
class SignalsForChild {
 public:
  /// `passed`: handed on. `ignored`: ignored, because the terminal sends them to the child as well.
  explicit SignalsForChild(const std::vector<int>& passed, const std::vector<int>& ignored = {});
  ~SignalsForChild() { restore(); }
  SignalsForChild(const SignalsForChild&) = delete;
  SignalsForChild& operator=(const SignalsForChild&) = delete;
  /// The handlers of before, also in the child.
  void restore() const;
  static void set_child(pid_t child);
  /// The last signal that was handed on; 0: none.
  static int caught();

 private:
  struct Handler {
    int signal;
    struct sigaction before;
  };
  std::vector<Handler> before_;
};

}  // namespace moka::cli

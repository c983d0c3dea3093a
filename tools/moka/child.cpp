// SPDX-License-Identifier: Apache-2.0
#include "child.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "io/io_error.h"
#include "print.h"
#include "text.h"

namespace moka::cli {

namespace {

volatile sig_atomic_t child_of_signals = 0, caught_signal = 0;

void hand_on(int number) {
  caught_signal = number;
  if (child_of_signals > 0) kill(static_cast<pid_t>(child_of_signals), number);
}

}  // namespace

void end_with(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have ended before the call. A parent outside of this process's namespace has the number 0.
  const pid_t now = getppid();
  if (now != parent && now != 0) _exit(1);
}

pid_t fork_bound(const char* what) {
  flush_output();
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) throw io::IoError(fmt::format("{} cannot be started: {}", what, std::strerror(errno)));
  if (child == 0) end_with(parent);
  return child;
}

void end_with_named_parent() {
  const char* const named = std::getenv("MOKA_PARENT");
  const auto number = parse_integer(named == nullptr ? "" : named);
  unsetenv("MOKA_PARENT");
  if (!number || *number < 1) return;
  const auto parent = static_cast<pid_t>(*number);
  // The signal of end_with would come when the parent's thread ends, which may be long before the parent does. A
  // program between the parent and this process, such as a script that starts Python, has another number.
  const bool is_direct = getppid() == parent;
  const auto is_gone = [=] { return is_direct ? getppid() != parent : kill(parent, 0) != 0 && errno == ESRCH; };
  std::thread([=] {
    while (!is_gone()) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    kill(getpid(), SIGTERM);  // lets commands remove their temporary files
    std::this_thread::sleep_for(std::chrono::seconds(2));
    kill(getpid(), SIGKILL);
  }).detach();
}

int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

SignalsForChild::SignalsForChild(const std::vector<int>& passed, const std::vector<int>& ignored) {
  child_of_signals = 0;
  caught_signal = 0;
  const auto handle = [&](int signal, void (*handler)(int)) {
    struct sigaction to {};
    to.sa_handler = handler;
    Handler& h = before_.emplace_back(Handler{signal, {}});
    sigaction(signal, nullptr, &h.before);
    if (h.before.sa_handler != SIG_IGN) sigaction(signal, &to, nullptr);
  };
  for (int s : passed) handle(s, hand_on);
  for (int s : ignored) handle(s, SIG_IGN);
}

void SignalsForChild::restore() const {
  for (const Handler& h : before_) sigaction(h.signal, &h.before, nullptr);
}

void SignalsForChild::set_child(pid_t child) {
  child_of_signals = child;
  if (caught_signal != 0) kill(child, caught_signal);
}

int SignalsForChild::caught() { return caught_signal; }

}  // namespace moka::cli

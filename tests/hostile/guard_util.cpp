// SPDX-License-Identifier: Apache-2.0
#include "hostile/guard_util.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "moka/error.h"

#if defined(__SANITIZE_ADDRESS__)
// Makes an allocation far beyond the budget fail, as the address space limit does in plain builds.
extern "C" const char* __asan_default_options() {
  return "max_allocation_size_mb=1024:allocator_may_return_null=1:hard_rss_limit_mb=6144:detect_leaks=0:detect_odr_"
         "violation=0";
}
#elif defined(__SANITIZE_THREAD__)
// The same for ThreadSanitizer. A limit on addresses would leave no room for its shadow memory.
extern "C" const char* __tsan_default_options() {
  return "max_allocation_size_mb=1024:allocator_may_return_null=1:hard_rss_limit_mb=6144";
}
#endif

namespace moka::test {

namespace {

/// Memory that a process may use beyond the budget: code, stacks, the decoded model.
constexpr size_t kOverhead = size_t{1} << 30;
constexpr unsigned kSeconds = kSanitized ? 120 : 20;

/// The child's report to its parent.
struct Progress {
  volatile int current, loaded, predicted;
  char what[1000];
};

Progress& progress() {
  static auto* p = static_cast<Progress*>(
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  return *p;
}

[[noreturn]] void stop(int code, const char* what) {
  std::strncpy(progress().what, what, sizeof progress().what - 1);
  _exit(code);
}

[[noreturn]] void run_child(int next, int end, bool timed, const std::function<void(int)>& body) {
  std::signal(SIGALRM, SIG_DFL);
  if (!kSanitized) {
    rlimit limit{kBudget + kOverhead, kBudget + kOverhead};
    setrlimit(RLIMIT_AS, &limit);
  }
  rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  for (int i = next; i < end; i++) {
    progress().current = i;
    if (timed) alarm(kSeconds);
    try {
      body(i);
    } catch (const Exception& e) {
      if (std::getenv("MOKA_HOSTILE_VERBOSE") != nullptr) std::cerr << i << ": " << e.what() << std::endl;
      if (e.kind() == ErrorKind::internal || *e.what() == 0) stop(70, e.what());
    } catch (const std::exception& e) {
      stop(71, e.what());
    }
  }
  _exit(0);
}

}  // namespace

void count_loaded() { progress().loaded = progress().loaded + 1; }
void count_predicted() { progress().predicted = progress().predicted + 1; }

int case_count(int usual) {
  const char* set = std::getenv("MOKA_HOSTILE_CASES");
  return set != nullptr ? std::max(1, std::atoi(set)) : kSanitized ? std::max(1, usual / 5) : usual;
}

uint64_t seed_of(const std::string& text, uint64_t number) {
  uint64_t h = 1469598103934665603u;
  for (char c : text) h = (h ^ static_cast<uint8_t>(c)) * 1099511628211u;
  return h + number;
}

std::string keep_bytes(const std::string& name, const std::string& bytes) {
  std::filesystem::path p = std::filesystem::path(MOKA_HOSTILE_FOUND) / name;
  std::filesystem::create_directories(p.parent_path());
  std::ofstream(p, std::ios::binary) << bytes;
  return p.string();
}

void guarded(const std::string& name, int count, const std::function<void(int)>& body,
             const std::function<std::string(int)>& keep) {
  ASSERT_NE(&progress(), MAP_FAILED);
  progress() = {};
  int next = 0, end = count;
  const char* only = std::getenv("MOKA_HOSTILE_ONLY");
  if (only != nullptr) next = std::atoi(only), end = next + 1;
  while (next < end) {
    std::cout.flush();
    pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) run_child(next, end, only == nullptr, body);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) break;
    int number = progress().current;
    std::string how = !WIFSIGNALED(status)          ? "ended with " + std::to_string(WEXITSTATUS(status))
                      : WTERMSIG(status) == SIGALRM ? "took more than " + std::to_string(kSeconds) + " s"
                                                    : std::string("died: ") + strsignal(WTERMSIG(status));
    ADD_FAILURE() << name << ", change " << number << ": " << how << " " << progress().what << "\n  kept as "
                  << keep(number);
    progress().what[0] = 0;
    next = number + 1;
  }
  std::cout << "  " << name << ": " << end << " changes, " << progress().loaded << " loaded, " << progress().predicted
            << " predicted\n";
}

}  // namespace moka::test

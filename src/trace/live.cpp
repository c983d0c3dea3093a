// SPDX-License-Identifier: Apache-2.0
#include "trace/live.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "trace/door.h"
#include "trace/kept_events.h"
#include "trace/present.h"

namespace moka::trace {

namespace {

constexpr std::string_view kProtocol = "moka-trace/1 ";
constexpr int kLookForSocket = 5000;  ///< milliseconds between looks whether the socket's file is still there

/// The thread and what it shares with those who start and end it. Never destroyed.
struct Live {
  std::mutex mutex;
  Door door;
  std::string where;                  ///< what was asked for, for the child of a fork
  std::atomic<bool> is_asked{false};  ///< `where` holds
  bool has_thread = false, ends = false;
  pthread_t thread{};
  int recording = -1;  ///< the connection of the one that records
};
Live& live() {
  static auto& one = *new Live;
  return one;
}

/// For the handler of the signal.
std::atomic<int> wake_up{-1};
std::atomic<bool> is_signaled{false};

void wake() {
  const uint64_t one = 1;
  (void)!::write(wake_up.load(), &one, sizeof one);
}

void on_signal(int) {
  const int error = errno;
  is_signaled.store(true);
  wake();
  errno = error;
}

void show_error(const char* from, const Error& error) {
  std::fprintf(stderr, "moka: %s: %s\n", from, error.to_string().c_str());
}

bool is_same_user(int connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid();
}

/// A line without its end; empty: none came in time.
std::string line_from(int connection) {
  std::string out;
  char c = 0;
  while (out.size() < 256) {
    const ssize_t n = recv(connection, &c, 1, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return {};
    if (c == '\n') return out;
    out += c;
  }
  return {};
}

/// In one line.
std::string plain(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20; }, '?');
  return text;
}

std::string listing() {
  std::string out = cat(kProtocol, "ok\npid ", getpid(), "\n");
  const int64_t at = now();
  each_present([&](Present&, const Present::Facts& f) {
    out += cat("model ", (at - f.since) / 1'000'000, " ", plain(f.name), "\n");
    if (!f.path.empty()) out += cat("path ", plain(f.path), "\n");
  });
  return out;
}

/// The value behind "name=" in a request.
std::string_view word_of(std::string_view request, std::string_view name) {
  const size_t at = request.find(cat(" ", name, "="));
  if (at == std::string_view::npos) return {};
  request.remove_prefix(at + name.size() + 2);
  return request.substr(0, request.find(' '));
}

void end_recording() {
  const int connection = std::exchange(live().recording, -1);
  if (connection < 0) return;
  stop_recording();
  close(connection);
}

Status record_for(int connection, std::string_view request) {
  if (!is_recording()) end_recording();  // the program's own trace ended it, and its reader has yet to go
  if (live().recording >= 0) return fail(ErrorCode::invalid_argument, "the process is being recorded already");
  const Ring ring = MOKA_TRY(parse_ring(word_of(request, "bytes"), word_of(request, "seconds")));
  return start_recording(connection, cat(kProtocol, "ok\n"), ring);
}

/// Answers one that has connected, and keeps the connection of a recording.
void answer(int connection) {
  const timeval patience{2, 0}, stall{5, 0};
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &stall, sizeof stall);
  if (is_same_user(connection)) {
    std::string request = line_from(connection);
    if (request == cat(kProtocol, "list")) {
      say(connection, listing());
    } else if (request.starts_with(cat(kProtocol, "record"))) {
      if (const Status started = record_for(connection, request); started.ok()) {
        live().recording = connection;
        return;
      } else {
        say(connection, cat(kProtocol, "error ", plain(started.error().to_string()), "\n"));
      }
    } else if (!request.empty()) {
      say(connection, cat(kProtocol, "error expected 'moka-trace/1 list' or 'moka-trace/1 record'\n"));
    }
  }
  close(connection);
}

/// Opens the socket that the signal asked for, or one that was removed.
void look_after_door() {
  Live& all = live();
  const std::lock_guard lock(all.mutex);
  const bool asked = is_signaled.exchange(false);
  if (all.ends) return;
  if (asked && !all.door.is_open()) {
    all.is_asked = true;
    all.where.clear();
  }
  if (!all.is_asked || (all.door.is_open() && all.door.is_reachable())) return;
  if (const Status opened = all.door.open(all.where); !opened.ok()) {
    show_error("the socket for traces", opened.error());
    all.is_asked = false;
  }
}

void serve() {
  Live& all = live();
  for (;;) {
    look_after_door();
    pollfd wanted[3] = {{wake_up.load(), POLLIN, 0}, {-1, POLLIN, 0}, {all.recording, POLLIN, 0}};
    {
      const std::lock_guard lock(all.mutex);
      if (all.ends) break;
      if (all.door.is_open()) wanted[1].fd = all.door.fd();
    }
    const int n = poll(wanted, 3, wanted[1].fd >= 0 ? kLookForSocket : -1);
    if (n < 0 && errno != EINTR) break;
    if (n <= 0) continue;
    if (wanted[0].revents != 0) {
      uint64_t count = 0;
      (void)!::read(wanted[0].fd, &count, sizeof count);
    }
    // "stop", the end of the one that records, or of the recording.
    if (wanted[2].revents != 0) end_recording();
    if (wanted[1].revents != 0) {
      int connection = -1;
      {
        const std::lock_guard lock(all.mutex);
        if (all.door.is_open()) connection = accept4(all.door.fd(), nullptr, nullptr, SOCK_CLOEXEC);
      }
      if (connection >= 0) answer(connection);
    }
  }
  end_recording();
}

/// Call it with the lock.
Status start_thread(Live& all) {
  if (all.has_thread) return {};
  if (all.ends) return fail(ErrorCode::io, "the process ends");
  prepare_process();
  if (wake_up.load() < 0) wake_up.store(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  // The program's handlers of signals run in its own threads.
  sigset_t every, before;
  sigfillset(&every);
  pthread_sigmask(SIG_SETMASK, &every, &before);
  const int error = wake_up.load() < 0 ? errno
                                       : pthread_create(
                                             &all.thread, nullptr,
                                             [](void*) -> void* {
                                               pthread_setname_np(pthread_self(), "moka-live");
                                               serve();
                                               return nullptr;
                                             },
                                             nullptr);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) return fail(ErrorCode::io, "the system refuses a thread: ", std::strerror(error));
  all.has_thread = true;
  return {};
}

/// "SIGUSR2", "USR2" or a number; 0: none of these.
int signal_of(std::string_view name) {
  if (name.starts_with("SIG")) name.remove_prefix(3);
  for (int i = 1; i < SIGRTMIN; i++)
    if (const char* known = sigabbrev_np(i); known != nullptr && name == known) return i;
  for (int i = 1; i <= SIGRTMAX; i++)
    if (name == std::to_string(i)) return i;
  return 0;
}

Status await_signal(Live& all, std::string_view name) {
  const int number = signal_of(name);
  struct sigaction before {};
  if (number == 0 || number == SIGKILL || number == SIGSTOP || sigaction(number, nullptr, &before) != 0)
    return fail(ErrorCode::invalid_argument, "expected a signal such as SIGUSR2, got '", name, "'");
  if ((before.sa_flags & SA_SIGINFO) != 0 || before.sa_handler != SIG_DFL) {
    if (before.sa_handler == on_signal) return start_thread(all);
    return fail(ErrorCode::invalid_argument, "the program handles ", name, ", which stays so");
  }
  MOKA_TRY(start_thread(all));
  struct sigaction own {};
  own.sa_handler = on_signal;
  own.sa_flags = SA_RESTART;
  sigfillset(&own.sa_mask);
  sigaction(number, &own, nullptr);
  return {};
}

const char* variable(const char* name) {
  const char* value = secure_getenv(name);
  return value != nullptr && *value != 0 ? value : nullptr;
}

Status open_at(Live& all, const std::string& where) {
  MOKA_TRY(all.door.open(where));
  all.where = where;
  all.is_asked = true;
  MOKA_TRY(start_thread(all));
  return {};
}

}  // namespace

void say(int socket, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    text.remove_prefix(static_cast<size_t>(n));
  }
}

Result<std::string> allow(const std::string& where) {
  prepare_process();  // not with the lock, which a fork takes
  is_on();            // what the environment asks for comes first
  Live& all = live();
  const std::lock_guard lock(all.mutex);
  if (!all.door.is_open() || !where.empty()) MOKA_TRY(open_at(all, where));
  wake();
  return all.door.path();
}

bool is_allowed_by_environment() {
  return live().is_asked || variable("MOKA_TRACE_SOCKET") != nullptr || variable("MOKA_TRACE_SIGNAL") != nullptr;
}

void allow_as_asked() {
  Live& all = live();
  const std::lock_guard lock(all.mutex);
  const char* where = variable("MOKA_TRACE_SOCKET");
  if (!all.door.is_open() && (all.is_asked || where != nullptr)) {
    const Status opened = open_at(all, all.is_asked ? all.where : where);
    if (!opened.ok()) show_error("MOKA_TRACE_SOCKET", opened.error());
  }
  const char* name = variable("MOKA_TRACE_SIGNAL");
  if (name == nullptr) return;
  if (const Status awaited = await_signal(all, name); !awaited.ok()) show_error("MOKA_TRACE_SIGNAL", awaited.error());
}

void end_live() {
  Live& all = live();
  bool waits = false;
  {
    const std::lock_guard lock(all.mutex);
    all.ends = true;
    waits = std::exchange(all.has_thread, false);
  }
  wake();
  if (waits && pthread_equal(all.thread, pthread_self()) == 0) pthread_join(all.thread, nullptr);
  const std::lock_guard lock(all.mutex);
  all.door.close();
}

void hold_live() { live().mutex.lock(); }
void release_live() { live().mutex.unlock(); }

void forget_live() {
  Live& all = live();
  all.door.forget();
  all.has_thread = false;
  if (all.recording >= 0) close(std::exchange(all.recording, -1));
  if (const int fd = wake_up.exchange(-1); fd >= 0) close(fd);
}

}  // namespace moka::trace

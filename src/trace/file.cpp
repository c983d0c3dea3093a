// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <system_error>

#include "base/output.h"
#include "trace/live.h"
#include "trace/present.h"
#include "trace/writer.h"

namespace moka::trace {

namespace {

struct Running {
  std::mutex mutex;
  Writer* writer = nullptr;
};
Running& running() {
  static auto& one = *new Running;
  return one;
}

bool is_asked_for() {
  const char* path = std::getenv("MOKA_TRACE");
  return path != nullptr && *path != 0;
}

std::string with_process(std::string path) {
  for (size_t at = path.find("%p"); at != std::string::npos; at = path.find("%p", at))
    path.replace(at, 2, std::to_string(getpid()));
  return path;
}

/// "out.pftrace" as "out-123.pftrace".
std::string beside(const std::string& path) {
  const size_t slash = path.rfind('/'), dot = path.rfind('.');
  const size_t at = dot == std::string::npos || (slash != std::string::npos && dot < slash) ? path.size() : dot;
  return path.substr(0, at) + "-" + std::to_string(getpid()) + path.substr(at);
}

Result<std::pair<int, std::string>> open_file(std::string path, bool force) {
  for (int attempt = 0;; attempt++) {
    MOKA_TRY_IN(check_output(path, OutputKind::trace, force), "trace");
    const int named = named_descriptor(path);
    const int fd =
        named >= 0 ? fcntl(named, F_DUPFD_CLOEXEC, 0) : open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0) return fail(ErrorCode::io, "trace '", path, "': cannot be written: ", std::strerror(errno));
    if (named >= 0) return std::pair(fd, std::move(path));
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK || attempt > 0) {
      // A pipe cannot be cut, and need not be.
      if (ftruncate(fd, 0) != 0 && errno != EINVAL) {
        const int error = errno;
        close(fd);
        return fail(ErrorCode::io, "trace '", path, "': cannot be written: ", std::strerror(error));
      }
      return std::pair(fd, std::move(path));
    }
    close(fd);
    path = beside(path);
  }
}

/// Tells the process that traces this one, through the pipe that MOKA_TRACE_ERRORS names.
void tell_tracer(const Error& error) {
  const char* pipe = std::getenv("MOKA_TRACE_ERRORS");
  const int fd = pipe == nullptr ? -1 : open(pipe, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return;
  const std::string text = error.to_string();
  struct stat status {};
  if (fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode)) (void)!write(fd, text.data(), text.size());
  close(fd);
}

void show(const Error& error) {
  std::fprintf(stderr, "moka: %s%s\n", is_asked_for() ? "MOKA_TRACE: " : "", error.to_string().c_str());
}

void forget_trace() {
  Writer* const writer = std::exchange(running().writer, nullptr);  // its thread and its end are the parent's
  if (writer != nullptr) writer->abandon();
  forget_live();
  forget_all();
  state.store(is_asked_for() || is_allowed_by_environment() ? kUnknown : kOff);
}

/// Ends what is written, also for one that attached. Call it with the lock.
Status end_writer(Running& r) {
  state.store(kOff);
  const std::unique_ptr<Writer> writer(std::exchange(r.writer, nullptr));
  return writer->finish();
}

/// Takes `fd`. Call it with the lock.
Status run_writer(Running& r, int fd, const std::string& path, bool is_socket, const Ring& ring) {
  prepare_process();
  r.writer = new Writer(fd, path, is_socket, ring);
  try {
    r.writer->run();
  } catch (const std::system_error&) {
    delete std::exchange(r.writer, nullptr);
    return fail(ErrorCode::io, "trace '", path, "': the system refuses a thread");
  }
  restart_counts();
  state.store(kOn);
  record_present();
  return {};
}

Result<std::string> start_locked(Running& r, const std::string& path, bool force, const Ring& ring) {
  if (r.writer != nullptr && !r.writer->is_socket())
    return fail(ErrorCode::invalid_argument, "trace '", path, "': the process already traces to '", r.writer->path(),
                "'");
  auto opened = MOKA_TRY(open_file(with_process(path), force));
  // The program's own trace goes before that of one who attached.
  if (r.writer != nullptr) (void)end_writer(r).ok();
  MOKA_TRY(run_writer(r, opened.first, opened.second, false, ring));
  return opened.second;
}

Result<std::string> start_as_asked(Running& r) {
  const char *size = std::getenv("MOKA_TRACE_RING"), *last = std::getenv("MOKA_TRACE_LAST");
  const Ring ring = MOKA_TRY(parse_ring(size == nullptr ? "" : size, last == nullptr ? "" : last));
  return start_locked(r, std::getenv("MOKA_TRACE"), false, ring);
}

}  // namespace

void prepare_process() {
  static std::once_flag once;
  std::call_once(once, [] {
    std::atexit([] {
      end_live();
      if (const Status stopped = stop(); !stopped.ok()) show(stopped.error());
    });
    pthread_atfork(
        [] {
          running().mutex.lock();
          hold_live();
          hold_present();
          prepare_fork();
        },
        [] {
          resume();
          release_present();
          release_live();
          running().mutex.unlock();
        },
        [] {
          forget_trace();
          release_present();
          release_live();
          running().mutex.unlock();
        });
  });
}

bool find_out() {
  Running& r = running();
  const std::lock_guard lock(r.mutex);
  if (state.load() != kUnknown) return state.load() == kOn;
  state.store(kOff);
  if (is_allowed_by_environment()) allow_as_asked();
  if (!is_asked_for()) return false;
  const auto started = start_as_asked(r);
  if (!started.ok()) show(started.error());
  if (!started.ok()) tell_tracer(started.error());
  return started.ok();
}

Result<std::string> start(const std::string& path, bool force, const Ring& ring) {
  const std::lock_guard lock(running().mutex);
  if (path.empty()) return fail(ErrorCode::invalid_argument, "trace: expected the path of a file, got none");
  if (state.load() == kUnknown && is_allowed_by_environment()) allow_as_asked();
  return start_locked(running(), path, force, ring);
}

Status stop() {
  Running& r = running();
  const std::lock_guard lock(r.mutex);
  if (state.load() == kUnknown && !is_asked_for() && !is_allowed_by_environment()) state.store(kOff);
  if (r.writer == nullptr || r.writer->is_socket()) return {};
  Status finished = end_writer(r);
  if (!finished.ok() && is_asked_for()) tell_tracer(finished.error());
  return finished;
}

Status start_recording(int socket, std::string_view greeting, const Ring& ring) {
  Running& r = running();
  const std::lock_guard lock(r.mutex);
  if (r.writer != nullptr)
    return fail(ErrorCode::invalid_argument, "the process already traces to '", r.writer->path(), "'");
  const int fd = fcntl(socket, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) return fail(ErrorCode::io, "the socket cannot be used: ", std::strerror(errno));
  say(socket, greeting);
  return run_writer(r, fd, "socket", true, ring);
}

bool is_recording() {
  Running& r = running();
  const std::lock_guard lock(r.mutex);
  return r.writer != nullptr && r.writer->is_socket();
}

void stop_recording() {
  Running& r = running();
  const std::lock_guard lock(r.mutex);
  if (r.writer != nullptr && r.writer->is_socket()) (void)end_writer(r).ok();
}

}  // namespace moka::trace

// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/output.h"
#include "trace/encode.h"

namespace moka::trace {

namespace {

constexpr auto kInterval = std::chrono::milliseconds(50);

/// Nanoseconds from zero of the steady clock to zero of Perfetto's, which counts the time asleep as well.
int64_t epoch() {
  const auto read = [](clockid_t id) {
    timespec t{};
    clock_gettime(id, &t);
    return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
  };
  return read(CLOCK_BOOTTIME) - read(CLOCK_MONOTONIC);
}

/// Bytes of the process that are in memory.
int64_t resident() {
  const int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  char text[128] = {};
  const ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
  if (fd >= 0) close(fd);
  if (n <= 0) return 0;
  char* rest = nullptr;
  std::strtoll(text, &rest, 10);
  return std::strtoll(rest, nullptr, 10) * sysconf(_SC_PAGESIZE);
}

/// A trace that is being written, and its thread.
class File {
 public:
  File(int fd, std::string path) : fd_(fd), path_(std::move(path)), encoder_(now(), epoch()) {}
  ~File() { close(fd_); }
  void run() {
    sample();
    thread_ = std::thread([this] {
      pthread_setname_np(pthread_self(), "moka-trace");
      std::unique_lock lock(mutex_);
      while (!stops_) {
        changed_.wait_for(lock, kInterval);
        lock.unlock();
        sample();
        flush();
        lock.lock();
      }
    });
  }
  Status finish() {
    {
      const std::lock_guard lock(mutex_);
      stops_ = true;
    }
    changed_.notify_one();
    thread_.join();
    sample();
    flush();
    encoder_.finish(now());
    write();
    if (error_ != 0) return fail(ErrorCode::io, "trace '", path_, "': cannot be written: ", std::strerror(error_));
    return {};
  }
  const std::string& path() const { return path_; }

 private:
  void sample() { encoder_.sample(Counter::memory, now(), resident()); }
  void flush() {
    each_log([this](Log& log) { log.drain([&](const Event& event) { encoder_.add(event, log); }); });
    write();
  }
  void write() {
    const std::string bytes = encoder_.take();
    for (size_t done = 0; done < bytes.size() && error_ == 0;) {
      const ssize_t n = ::write(fd_, bytes.data() + done, bytes.size() - done);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0)
        error_ = errno;
      else
        done += static_cast<size_t>(n);
    }
  }

  const int fd_;
  const std::string path_;
  Encoder encoder_;
  int error_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stops_ = false;
  std::thread thread_;
};

struct Running {
  std::mutex mutex;
  File* file = nullptr;
  bool is_prepared = false;
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

void prepare_process() {
  std::atexit([] {
    if (const Status stopped = stop(); !stopped.ok()) show(stopped.error());
  });
  pthread_atfork(
      [] {
        running().mutex.lock();
        prepare_fork();
      },
      [] {
        resume();
        running().mutex.unlock();
      },
      [] {
        running().file = nullptr;  // its thread and its end are the parent's
        forget_all();
        state.store(is_asked_for() ? kUnknown : kOff);
        running().mutex.unlock();
      });
}

Result<std::string> start_locked(Running& r, const std::string& path, bool force) {
  if (r.file != nullptr)
    return fail(ErrorCode::invalid_argument, "trace '", path, "': the process already traces to '", r.file->path(),
                "'");
  auto opened = MOKA_TRY(open_file(with_process(path), force));
  if (!r.is_prepared) prepare_process();
  r.is_prepared = true;
  r.file = new File(opened.first, opened.second);
  try {
    r.file->run();
  } catch (const std::system_error&) {
    delete std::exchange(r.file, nullptr);
    return fail(ErrorCode::io, "trace '", path, "': the system refuses a thread");
  }
  restart_counts();
  state.store(kOn);
  return opened.second;
}

}  // namespace

bool find_out() {
  Running& r = running();
  const std::lock_guard lock(r.mutex);
  if (state.load() != kUnknown) return state.load() == kOn;
  state.store(kOff);
  if (!is_asked_for()) return false;
  const auto started = start_locked(r, std::getenv("MOKA_TRACE"), false);
  if (!started.ok()) show(started.error());
  if (!started.ok()) tell_tracer(started.error());
  return started.ok();
}

Result<std::string> start(const std::string& path, bool force) {
  const std::lock_guard lock(running().mutex);
  if (path.empty()) return fail(ErrorCode::invalid_argument, "trace: expected the path of a file, got none");
  return start_locked(running(), path, force);
}

Status stop() {
  Running& r = running();
  const std::lock_guard lock(r.mutex);
  if (state.load() == kUnknown && !is_asked_for()) state.store(kOff);
  if (r.file == nullptr) return {};
  state.store(kOff);
  const std::unique_ptr<File> file(std::exchange(r.file, nullptr));
  Status finished = file->finish();
  if (!finished.ok() && is_asked_for()) tell_tracer(finished.error());
  return finished;
}

}  // namespace moka::trace

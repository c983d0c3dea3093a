// SPDX-License-Identifier: Apache-2.0
#include "trace/writer.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

namespace moka::trace {

namespace {

constexpr auto kInterval = std::chrono::milliseconds(50), kShortInterval = std::chrono::milliseconds(5);
constexpr size_t kMany = 50'000;  ///< events in an interval, beyond which the memory of threads may fill up in the next

/// Nanoseconds from zero of the steady clock to zero of Perfetto's, which counts the time asleep as well.
int64_t epoch() {
  const auto time_of = [](clockid_t id) {
    timespec t{};
    clock_gettime(id, &t);
    return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
  };
  return time_of(CLOCK_BOOTTIME) - time_of(CLOCK_MONOTONIC);
}

/// Bytes of the process that are in memory.
int64_t resident() {
  const int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  char text[128] = {};
  const ssize_t n = fd < 0 ? 0 : ::read(fd, text, sizeof text - 1);
  if (fd >= 0) close(fd);
  if (n <= 0) return 0;
  char* rest = nullptr;
  std::strtoll(text, &rest, 10);
  return std::strtoll(rest, nullptr, 10) * sysconf(_SC_PAGESIZE);
}

Origin here() { return {static_cast<int64_t>(gettid()), {}}; }

}  // namespace

Writer::Writer(int fd, std::string path, bool is_socket, const Ring& ring)
    : fd_(fd), path_(std::move(path)), is_socket_(is_socket), epoch_(epoch()) {
  if (ring.is_limited())
    kept_ = std::make_unique<KeptEvents>(ring);
  else
    encoder_ = std::make_unique<Encoder>(now(), epoch_);
}

Writer::~Writer() {
  if (fd_ >= 0) close(fd_);
}

void Writer::run() {
  // What was dropped while no trace was written is of no interest.
  each_log([](Log& log) { log.take_dropped(); });
  sample();
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "moka-trace");
    std::unique_lock lock(mutex_);
    for (bool is_busy = false; !stops_;) {
      changed_.wait_for(lock, is_busy ? kShortInterval : kInterval);
      lock.unlock();
      sample();
      const size_t taken = flush();
      // A ring takes events faster than threads record them, if it is asked in time.
      is_busy = kept_ != nullptr && taken > (is_busy ? kMany / 10 : kMany);
      lock.lock();
    }
  });
}

Status Writer::finish() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_one();
  thread_.join();
  sample();
  flush();
  write_kept();
  const int64_t at = now();
  if (left_out_ > 0) encoder_->sample(Counter::left_out, at, static_cast<int64_t>(left_out_));
  encoder_->finish(at);
  write();
  if (is_socket_) shutdown(fd_, SHUT_WR);
  if (error_ != 0) return fail(ErrorCode::io, "trace '", path_, "': cannot be written: ", std::strerror(error_));
  return {};
}

void Writer::abandon() {
  if (is_socket_) close(std::exchange(fd_, -1));
}

void Writer::sample() {
  const int64_t at = now(), bytes = resident();
  if (encoder_ != nullptr) return encoder_->sample(Counter::memory, at, bytes);
  kept_->add({at, bytes, nullptr, 0, 0, Event::Kind::counter, static_cast<uint8_t>(Counter::memory)}, here());
}

size_t Writer::flush() {
  size_t taken = 0;
  each_log([&](Log& log) {
    log.drain([&](const Event& event) {
      taken++;
      if (encoder_ != nullptr)
        encoder_->add(event, log);
      else
        kept_->add(event, log);
    });
    left_out_ += log.take_dropped();
  });
  if (encoder_ != nullptr) write();
  return taken;
}

void Writer::write_kept() {
  if (kept_ == nullptr) return;
  encoder_ = std::make_unique<Encoder>(kept_->first(now()), epoch_);
  kept_->encode(*encoder_);
  left_out_ += kept_->left_out();
  kept_.reset();
}

void Writer::write() {
  const std::string bytes = encoder_->take();
  for (size_t done = 0; done < bytes.size() && error_ == 0;) {
    const char* from = bytes.data() + done;
    const ssize_t n =
        is_socket_ ? send(fd_, from, bytes.size() - done, MSG_NOSIGNAL) : ::write(fd_, from, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      error_ = errno;
    else
      done += static_cast<size_t>(n);
  }
  // Whoever waits at the other end of a broken socket, or watches this one, learns of it.
  if (error_ != 0 && is_socket_) shutdown(fd_, SHUT_RDWR);
}

}  // namespace moka::trace

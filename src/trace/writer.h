// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "trace/encode.h"
#include "trace/kept_events.h"

namespace moka::trace {

/// A trace that is being written, and its thread.
class Writer {
 public:
  /// Takes `fd`, a file or a socket. `path`: what errors call it.
  Writer(int fd, std::string path, bool is_socket, const Ring& ring);
  ~Writer();
  Writer(const Writer&) = delete;
  /// Throws std::system_error: there is no thread.
  void run();
  /// Writes all that was recorded. The end of a socket tells its reader that nothing follows.
  Status finish();
  const std::string& path() const { return path_; }
  /// Whether one that attached records, not the program.
  bool is_socket() const { return is_socket_; }
  /// For the child of a fork, in which its thread does not exist.
  void abandon();

 private:
  void sample();
  size_t flush();  ///< returns the number of events
  void write();
  void write_kept();

  int fd_;
  const std::string path_;
  const bool is_socket_;
  const int64_t epoch_;
  std::unique_ptr<Encoder> encoder_;  ///< nullptr: a ring keeps the events
  std::unique_ptr<KeptEvents> kept_;
  uint64_t left_out_ = 0;
  int error_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stops_ = false;
  std::thread thread_;
};

}  // namespace moka::trace

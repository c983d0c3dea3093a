// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Processes of this user that let others record them, and the connection to one (docs/seeing.md#a-program-that-runs).
namespace moka::cli {

class PeerConnection {
 public:
  PeerConnection() = default;
  PeerConnection(PeerConnection&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), pid_(other.pid_), path_(std::move(other.path_)) {}
  PeerConnection& operator=(PeerConnection&& other) noexcept;
  ~PeerConnection();
  /// Not connected where nobody listens, or another user does.
  static PeerConnection to(const std::string& path);
  bool is_connected() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  pid_t pid() const { return pid_; }  ///< of the process that listens
  const std::string& path() const { return path_; }
  /// Sends a request and returns the first line of the answer without its first word. Throws IoError: the process
  /// refuses, or is another program.
  std::string ask(const std::string& request) const;
  void say(std::string_view text) const;
  /// The answer until its end.
  std::string rest() const;

 private:
  int fd_ = -1;
  pid_t pid_ = 0;
  std::string path_;
};

/// Connections to all sockets of a process; several copies of the library have one each.
std::vector<PeerConnection> listening(pid_t pid);
/// The same. Sends the process the signal
/// that MOKA_TRACE_SIGNAL names in its environment, if it has no socket yet and handles the signal.
std::vector<PeerConnection> connections_to(pid_t pid);
/// Why a process cannot be recorded.
std::string why_not(pid_t pid);

/// Processes of this user that may have a socket.
std::vector<pid_t> possible_peers();
/// The words of its command, joined.
std::string command_of(pid_t pid);
/// Seconds since it began.
double age_of(pid_t pid);

}  // namespace moka::cli

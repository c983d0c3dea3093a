// SPDX-License-Identifier: Apache-2.0
#include "trace_peers.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <thread>

#include "io/io_error.h"
#include "text.h"

namespace moka::cli {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kProtocol = "moka-trace/1 ";

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::map<std::string, std::string> environment_of(pid_t pid) {
  std::map<std::string, std::string> out;
  const std::string all = content_of(fmt::format("/proc/{}/environ", pid));
  for (size_t at = 0; at < all.size();) {
    const size_t end = std::min(all.find('\0', at), all.size()), equals = all.find('=', at);
    if (equals < end) out[all.substr(at, equals - at)] = all.substr(equals + 1, end - equals - 1);
    at = end + 1;
  }
  return out;
}

bool is_of_this_user(pid_t pid) {
  struct stat s {};
  return stat(fmt::format("/proc/{}", pid).c_str(), &s) == 0 && s.st_uid == geteuid();
}

/// The number that the name of a socket in a folder begins with; 0: it is no such name.
pid_t process_in(const std::string& name) {
  if (!name.ends_with(".sock")) return 0;
  return static_cast<pid_t>(parse_integer(name.substr(0, name.find_first_of("-."))).value_or(0));
}

std::vector<std::string> own_folders(const std::string& run) {
  std::vector<std::string> out{fmt::format("{}/moka-{}", P_tmpdir, geteuid())};
  if (!run.empty()) out.push_back(run + "/moka");
  return out;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Where the sockets of a process may be.
std::set<std::string> candidates(pid_t pid) {
  auto environment = environment_of(pid);
  std::vector<std::string> folders = own_folders(variable("XDG_RUNTIME_DIR"));
  for (std::string& f : own_folders(environment["XDG_RUNTIME_DIR"])) folders.push_back(std::move(f));
  std::string given = environment["MOKA_TRACE_SOCKET"];
  if (!given.empty() && !given.starts_with('/')) given = fmt::format("/proc/{}/cwd/{}", pid, given);
  std::set<std::string> out;
  std::error_code error;
  if (fs::is_directory(given, error)) folders.push_back(given);
  for (const std::string& folder : folders)
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
      if (process_in(it->path().filename().string()) == pid) out.insert(it->path().string());
  if (given.empty() || fs::is_directory(given, error)) return out;
  out.insert(given);
  // Other processes of the same path have their number in the name.
  const fs::path path(given);
  const std::string start = fmt::format("{}-{}", path.stem().string(), pid);
  for (fs::directory_iterator it(path.parent_path(), error), end; !error && it != end; it.increment(error))
    if (it->path().filename().string().starts_with(start)) out.insert(it->path().string());
  return out;
}

int signal_number(std::string_view name) {
  if (const auto number = parse_integer(name)) return static_cast<int>(*number);
  if (name.starts_with("SIG")) name.remove_prefix(3);
  for (int i = 1; i < SIGRTMIN; i++)
    if (const char* known = sigabbrev_np(i); known != nullptr && name == known) return i;
  return 0;
}

/// Whether the process has a handler of the signal, which would end it otherwise.
bool handles(pid_t pid, int number) {
  const std::string status = content_of(fmt::format("/proc/{}/status", pid));
  const size_t at = status.find("SigCgt:");
  if (at == std::string::npos || number < 1 || number > 64) return false;
  const uint64_t mask = std::strtoull(status.c_str() + at + 7, nullptr, 16);
  return (mask >> (number - 1) & 1) != 0;
}

}  // namespace

PeerConnection& PeerConnection::operator=(PeerConnection&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(pid_, other.pid_);
  std::swap(path_, other.path_);
  return *this;
}

PeerConnection::~PeerConnection() {
  if (fd_ >= 0) close(fd_);
}

PeerConnection PeerConnection::to(const std::string& path) {
  PeerConnection out;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return out;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  out.fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  out.path_ = path;
  const timeval patience{10, 0};
  ucred peer{};
  socklen_t size = sizeof peer;
  setsockopt(out.fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  setsockopt(out.fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  // A socket of somebody else must not pose as that of a process.
  if (connect(out.fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      getsockopt(out.fd_, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 || peer.uid != geteuid())
    return {};
  out.pid_ = peer.pid;
  return out;
}

void PeerConnection::say(std::string_view text) const { (void)send(fd_, text.data(), text.size(), MSG_NOSIGNAL); }

std::string PeerConnection::ask(const std::string& request) const {
  say(fmt::format("{}{}\n", kProtocol, request));
  std::string line;
  char c = 0;
  while (line.size() < 4096 && recv(fd_, &c, 1, 0) == 1 && c != '\n') line += c;
  if (!line.starts_with(kProtocol))
    throw io::IoError(fmt::format("{}: expected the answer of a process that uses Moka, got {}", path_,
                                  line.empty() ? "none" : "something else"));
  line.erase(0, kProtocol.size());
  if (line.starts_with("error ")) throw io::IoError(fmt::format("process {}: {}", pid_, line.substr(6)));
  return line;
}

std::string PeerConnection::rest() const {
  std::string out;
  char bytes[4096];
  for (ssize_t n = 0; (n = recv(fd_, bytes, sizeof bytes, 0)) > 0;) out.append(bytes, static_cast<size_t>(n));
  return out;
}

std::vector<PeerConnection> listening(pid_t pid) {
  std::vector<PeerConnection> out;
  for (const std::string& path : candidates(pid))
    if (PeerConnection c = PeerConnection::to(path); c.is_connected() && c.pid() == pid) out.push_back(std::move(c));
  return out;
}

std::vector<PeerConnection> connections_to(pid_t pid) {
  std::vector<PeerConnection> out = listening(pid);
  if (!out.empty() || !is_of_this_user(pid)) return out;
  const int number = signal_number(environment_of(pid)["MOKA_TRACE_SIGNAL"]);
  if (!handles(pid, number) || kill(pid, number) != 0) return out;
  for (int attempt = 0; out.empty() && attempt < 100; attempt++) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    out = listening(pid);
  }
  return out;
}

std::string why_not(pid_t pid) {
  if (!fs::exists(fmt::format("/proc/{}", pid))) return fmt::format("process {}: there is none", pid);
  if (!is_of_this_user(pid)) return fmt::format("process {}: belongs to another user", pid);
  auto environment = environment_of(pid);
  if (environment.contains("MOKA_TRACE_SOCKET") || environment.contains("MOKA_TRACE_SIGNAL"))
    return fmt::format("process {}: has loaded no model yet, so nobody listens", pid);
  return fmt::format(
      "process {}: does not let itself be recorded; start it with MOKA_TRACE_SOCKET=1 in the environment, or call "
      "moka::allow_tracing()",
      pid);
}

std::vector<pid_t> possible_peers() {
  std::set<pid_t> out;
  std::error_code error;
  for (const std::string& folder : own_folders(variable("XDG_RUNTIME_DIR")))
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
      if (const pid_t pid = process_in(it->path().filename().string()); pid > 0) out.insert(pid);
  for (fs::directory_iterator it("/proc", error), end; !error && it != end; it.increment(error))
    if (const auto pid = parse_integer(it->path().filename().string());
        pid && is_of_this_user(static_cast<pid_t>(*pid)))
      if (environment_of(static_cast<pid_t>(*pid)).contains("MOKA_TRACE_SOCKET")) out.insert(static_cast<pid_t>(*pid));
  return {out.begin(), out.end()};
}

std::string command_of(pid_t pid) {
  std::string out = content_of(fmt::format("/proc/{}/cmdline", pid));
  while (out.ends_with('\0')) out.pop_back();
  std::replace_if(
      out.begin(), out.end(), [](unsigned char c) { return c < 0x20; }, ' ');
  return out;
}

double age_of(pid_t pid) {
  const std::string stat = content_of(fmt::format("/proc/{}/stat", pid));
  // The name of the program, in parentheses, may contain spaces; the 20th field behind it is the start.
  size_t at = stat.rfind(')');
  for (int field = 0; at != std::string::npos && field < 20; field++) at = stat.find(' ', at + 1);
  if (at == std::string::npos) return 0;
  const double up = std::strtod(content_of("/proc/uptime").c_str(), nullptr);
  const double start = std::strtod(stat.c_str() + at, nullptr) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return std::max(0.0, up - start);
}

}  // namespace moka::cli

// SPDX-License-Identifier: Apache-2.0
#include "trace/door.h"

#include <dirent.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

namespace moka::trace {

namespace {

constexpr std::string_view kExtension = ".sock";

std::optional<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un out{};
  out.sun_family = AF_UNIX;
  if (path.size() >= sizeof out.sun_path || path.find('\0') != std::string::npos) return std::nullopt;
  std::memcpy(out.sun_path, path.c_str(), path.size() + 1);
  return out;
}

int new_socket() { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

/// Whether a socket of this user lies at the path and nobody listens to it.
bool is_abandoned(const std::string& path) {
  struct stat s {};
  if (lstat(path.c_str(), &s) != 0 || !S_ISSOCK(s.st_mode) || s.st_uid != geteuid()) return false;
  const auto address = address_of(path);
  const int fd = address ? new_socket() : -1;
  if (fd < 0) return false;
  const bool is_refused =
      connect(fd, reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0 && errno == ECONNREFUSED;
  ::close(fd);
  return is_refused;
}

bool is_own_socket(const std::string& path) {
  struct stat s {};
  return lstat(path.c_str(), &s) == 0 && S_ISSOCK(s.st_mode) && s.st_uid == geteuid();
}

/// "a/b.sock" as "a/b-TEXT.sock".
std::string with_text(const std::string& path, const std::string& text) {
  const size_t slash = path.rfind('/'), dot = path.rfind('.');
  const bool has_extension = dot != std::string::npos && (slash == std::string::npos || dot > slash);
  const size_t at = has_extension ? dot : path.size();
  return path.substr(0, at) + "-" + text + path.substr(at);
}

/// Removes the sockets of processes that were killed.
void remove_abandoned(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> all(opendir(folder.c_str()), closedir);
  if (all == nullptr) return;
  while (const dirent* entry = readdir(all.get())) {
    const std::string_view name = entry->d_name;
    int pid = 0;
    if (!name.ends_with(kExtension)) continue;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ec != std::errc() || pid <= 0) continue;
    if (kill(pid, 0) == 0 || errno != ESRCH) continue;
    if (const std::string path = cat(folder, "/", name); is_abandoned(path)) unlink(path.c_str());
  }
}

Result<std::string> own_folder(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return fail(ErrorCode::io, "folder '", path, "': cannot be made: ", std::strerror(errno));
  struct stat s {};
  if (lstat(path.c_str(), &s) != 0 || !S_ISDIR(s.st_mode) || s.st_uid != geteuid() || (s.st_mode & 077) != 0)
    return fail(ErrorCode::io, "folder '", path,
                "': expected one that belongs to this user and only the user can enter");
  return path;
}

}  // namespace

Result<std::string> default_folder() {
  const char* run = secure_getenv("XDG_RUNTIME_DIR");
  struct stat s {};
  if (run != nullptr && *run == '/' && stat(run, &s) == 0 && S_ISDIR(s.st_mode) && s.st_uid == geteuid())
    return own_folder(cat(run, "/moka"));
  return own_folder(cat(P_tmpdir, "/moka-", geteuid()));
}

Result<bool> Door::bind_to(const std::string& path) {
  const auto address = address_of(path);
  if (!address)
    return fail(ErrorCode::invalid_argument, "socket '", path, "': expected a path of at most ",
                sizeof(sockaddr_un::sun_path) - 1, " bytes");
  for (int attempt = 0; attempt < 3; attempt++) {
    const int fd = new_socket();
    if (fd < 0) return fail(ErrorCode::io, "socket '", path, "': cannot be made: ", std::strerror(errno));
    // The file gets the mode that the socket has when it is bound, so that it never has another one.
    const bool is_bound =
        fchmod(fd, 0600) == 0 && bind(fd, reinterpret_cast<const sockaddr*>(&*address), sizeof *address) == 0;
    const int error = errno;
    struct stat s {};
    if (is_bound && listen(fd, 8) == 0 && lstat(path.c_str(), &s) == 0) {
      fd_ = fd;
      path_ = path;
      device_ = s.st_dev;
      number_ = s.st_ino;
      return true;
    }
    ::close(fd);
    if (error != EADDRINUSE) return fail(ErrorCode::io, "socket '", path, "': cannot be made: ", std::strerror(error));
    if (is_abandoned(path)) {
      unlink(path.c_str());
      continue;
    }
    if (is_own_socket(path)) return false;  // another process listens
    return fail(ErrorCode::io, "socket '", path, "': is not a socket of this user and is not replaced");
  }
  return false;
}

Status Door::open(const std::string& where) {
  close();
  std::string path = where;
  struct stat s {};
  if (where.empty() || where == "1") path = MOKA_TRY(default_folder());
  if (stat(path.c_str(), &s) == 0 && S_ISDIR(s.st_mode)) {
    remove_abandoned(path);
    path = cat(path, path.ends_with('/') ? "" : "/", getpid(), kExtension);
  }
  if (MOKA_TRY(bind_to(path))) return {};
  // A second copy of the library in this process, or another process with the same path.
  const bool has_number = path.find(std::to_string(getpid())) != std::string::npos;
  const std::string base = has_number ? path : with_text(path, std::to_string(getpid()));
  if (!has_number && MOKA_TRY(bind_to(base))) return {};
  for (int copy = 2; copy < 100; copy++)
    if (MOKA_TRY(bind_to(with_text(base, std::to_string(copy))))) return {};
  return fail(ErrorCode::io, "socket '", path, "': other processes listen there");
}

bool Door::is_reachable() const {
  struct stat s {};
  return lstat(path_.c_str(), &s) == 0 && s.st_dev == device_ && s.st_ino == number_;
}

void Door::close() {
  if (fd_ < 0) return;
  if (is_reachable()) unlink(path_.c_str());
  forget();
}

void Door::forget() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

}  // namespace moka::trace

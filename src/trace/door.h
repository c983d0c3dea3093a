// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>

#include "base/error.h"

namespace moka::trace {

/// The socket through which other processes of the same user ask this one for a trace.
class Door {
 public:
  Door() = default;
  /// Removes the socket's file, if it is still that of this door.
  ~Door() { close(); }
  Door(const Door&) = delete;

  /// `where`: the path of the socket; a folder, where the process's number names it; "" or "1": the user's own folder
  /// (default_folder()). If another process listens at the path, the number is inserted before the extension. Nothing
  /// else than an abandoned socket of this user is replaced. Errors: io, invalid_argument (the path is too long).
  Status open(const std::string& where);
  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  const std::string& path() const { return path_; }
  /// Whether the socket's file is there, which a cleaner of temporary files may have removed.
  bool is_reachable() const;
  void close();
  /// In the child of a fork: the file is the parent's.
  void forget();

 private:
  Result<bool> bind_to(const std::string& path);

  int fd_ = -1;
  std::string path_;
  dev_t device_ = 0;
  ino_t number_ = 0;
};

/// $XDG_RUNTIME_DIR/moka, else moka-UID in /tmp. Makes it. Error io: it is not a folder that only this user can enter.
Result<std::string> default_folder();

}  // namespace moka::trace

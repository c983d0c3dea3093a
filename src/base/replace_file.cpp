// SPDX-License-Identifier: Apache-2.0
#include "base/replace_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>
#include <utility>

namespace moka {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view between = ".unfinished-";
constexpr size_t digits = 16;

Error io_error(const std::string& path, int error = errno) {
  return fail(ErrorCode::io, "'", path, "': cannot be written: ", std::strerror(error));
}

/// Makes a file with a random name, since process numbers are not unique among containers that share a folder.
Result<int> make_unfinished(const std::string& path, mode_t mode, std::string& made) {
  std::random_device random;
  for (int tries = 0; tries < 100; ++tries) {
    char text[digits + 1];
    std::snprintf(text, sizeof text, "%08x%08x", random(), random());
    const std::string name = cat(path, between, text);
    const int file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file >= 0) {
      made = name;
      return file;
    }
    if (errno != EEXIST) break;
  }
  return io_error(path);
}

Status write_all(int file, const std::string& path, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(file, bytes.data(), std::min(bytes.size(), size_t{1} << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error(path);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return {};
}

}  // namespace

Result<std::string> link_target(const std::string& path) {
  constexpr int most = 40;
  fs::path at = path;
  std::error_code error;
  for (int i = 0; fs::is_symlink(fs::symlink_status(at, error)); ++i) {
    if (i == most) return fail(ErrorCode::io, "'", path, "': too many symbolic links");
    const fs::path next = fs::read_symlink(at, error);
    if (error) return fail(ErrorCode::io, "'", at.string(), "': ", error.message());
    at = at.parent_path() / next;
  }
  return at.string();
}

Result<FileReplacement> FileReplacement::begin(const std::string& path, OutputKind kind, bool force,
                                               const std::vector<std::string>& inputs) {
  MOKA_TRY(check_output(path, kind, force, inputs));
  FileReplacement out;
  struct stat old {};
  const bool exists = ::stat(path.c_str(), &old) == 0;
  if (const int named = named_descriptor(path); named >= 0 || (exists && !S_ISREG(old.st_mode))) {
    out.path_ = path;
    out.file_ = named >= 0 ? ::fcntl(named, F_DUPFD_CLOEXEC, 0) : ::open(path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
    return out.file_ >= 0 ? Result<FileReplacement>(std::move(out)) : io_error(path);
  }
  out.path_ = MOKA_TRY(link_target(path));
  if (!fs::path(out.path_).has_filename())
    return fail(ErrorCode::invalid_argument, "'", path, "': expected the path of a file, got a folder");
  // Renaming would replace a file that is protected against writing.
  if (exists && ::access(out.path_.c_str(), W_OK) != 0) return io_error(path);
  std::error_code error;
  if (const fs::path folder = fs::path(out.path_).parent_path(); !folder.empty()) {
    fs::create_directories(folder, error);
    if (error) return fail(ErrorCode::io, "'", folder.string(), "': cannot be made: ", error.message());
  }
  const bool secret = kind == OutputKind::identity;
  out.file_ = MOKA_TRY(make_unfinished(out.path_, secret ? 0600 : 0644, out.made_));
  if (exists && !secret && ::fchmod(out.file_, old.st_mode & 07777) != 0) return io_error(path);
  return out;
}

FileReplacement::FileReplacement(FileReplacement&& other) noexcept
    : path_(std::move(other.path_)), made_(std::move(other.made_)), file_(std::exchange(other.file_, -1)) {
  other.made_.clear();
}

FileReplacement::~FileReplacement() {
  if (file_ >= 0) ::close(file_);
  if (!made_.empty()) std::remove(made_.c_str());
}

Status FileReplacement::add(std::span<const std::byte> bytes) { return write_all(file_, path_, bytes); }

Status FileReplacement::finish(bool sync) {
  if (sync && !made_.empty() && ::fsync(file_) != 0) return io_error(path_);
  if (::close(std::exchange(file_, -1)) != 0) return io_error(path_);
  if (!made_.empty() && std::rename(made_.c_str(), path_.c_str()) != 0) return io_error(path_);
  made_.clear();
  return {};
}

Status replace_file(const std::string& path, OutputKind kind, std::span<const std::span<const std::byte>> parts,
                    bool sync, bool force) {
  FileReplacement file = MOKA_TRY(FileReplacement::begin(path, kind, force));
  for (const auto& part : parts) MOKA_TRY(file.add(part));
  return file.finish(sync);
}

std::string_view replaced_by_unfinished(std::string_view name) {
  if (name.size() < between.size() + digits) return {};
  const std::string_view number = name.substr(name.size() - digits);
  name.remove_suffix(digits);
  if (!name.ends_with(between) || number.find_first_not_of("0123456789abcdef") != std::string_view::npos) return {};
  return name.substr(0, name.size() - between.size());
}

}  // namespace moka

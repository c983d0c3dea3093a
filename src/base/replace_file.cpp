#include "base/replace_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>

namespace moka {
namespace {

constexpr std::string_view between = ".unfinished-";
constexpr size_t digits = 16;

Error io_error(const std::string& path, std::string_view what) {
  return fail(ErrorCode::io, "'", path, "': ", what, ": ", std::strerror(errno));
}

/// Makes a file with a random name, since process numbers are not unique among containers that share a folder.
Result<int> make_unfinished(const std::string& path, std::string& made) {
  std::random_device random;
  for (int tries = 0; tries < 100; ++tries) {
    char text[digits + 1];
    std::snprintf(text, sizeof text, "%08x%08x", random(), random());
    made = cat(path, between, text);
    const int file = ::open(made.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file >= 0) return file;
    if (errno != EEXIST) break;
  }
  return io_error(made, "making it");
}

Status write_all(int file, const std::string& path, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(file, bytes.data(), std::min(bytes.size(), size_t{1} << 30));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error(path, "writing");
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return {};
}

}  // namespace

Status replace_file(const std::string& path, std::span<const std::span<const std::byte>> parts, bool sync) {
  std::error_code error;
  if (const auto folder = std::filesystem::path(path).parent_path(); !folder.empty()) {
    std::filesystem::create_directories(folder, error);
    if (error) return fail(ErrorCode::io, "'", folder.string(), "': ", error.message());
  }
  std::string made;
  const int file = MOKA_TRY(make_unfinished(path, made));
  Status status;
  for (size_t i = 0; i < parts.size() && status.ok(); ++i) status = write_all(file, made, parts[i]);
  if (status.ok() && sync && ::fsync(file) != 0) status = io_error(made, "writing");
  if (::close(file) != 0 && status.ok()) status = io_error(made, "closing");
  if (status.ok() && std::rename(made.c_str(), path.c_str()) != 0) status = io_error(path, "replacing");
  if (!status.ok()) std::remove(made.c_str());
  return status;
}

std::string_view replaced_by_unfinished(std::string_view name) {
  if (name.size() < between.size() + digits) return {};
  const std::string_view number = name.substr(name.size() - digits);
  name.remove_suffix(digits);
  if (!name.ends_with(between) || number.find_first_not_of("0123456789abcdef") != std::string_view::npos) return {};
  return name.substr(0, name.size() - between.size());
}

}  // namespace moka

#include "runtime/cache_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace moka::runtime {

namespace {

namespace fs = std::filesystem;

constexpr size_t kMostBytes = 16 << 20;

Error io_error(const std::string& path, std::string_view what) {
  return fail(ErrorCode::io, "'", path, "': ", what, ": ", std::strerror(errno));
}

Status write_new(const std::string& path, std::string_view text) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) return io_error(path, "making it");
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = write(file, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    done += static_cast<size_t>(n);
  }
  Status status;
  if (done < text.size() || fsync(file) != 0) status = io_error(path, "writing");
  if (close(file) != 0 && status.ok()) status = io_error(path, "closing");
  return status;
}

}  // namespace

Result<std::string> read_cache_file(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return fail(ErrorCode::not_found, "'", path, "' does not exist");
  if (!fs::is_regular_file(status)) return fail(ErrorCode::io, "'", path, "' is no file");
  std::ifstream in(path, std::ios::binary);
  if (!in) return io_error(path, "opening");
  std::string text(kMostBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad()) return io_error(path, "reading");
  text.resize(static_cast<size_t>(in.gcount()));
  if (text.size() > kMostBytes) return fail(ErrorCode::malformed, "'", path, "' has more than ", kMostBytes, " bytes");
  return text;
}

Status replace_cache_file(const std::string& path, std::string_view text) {
  std::error_code error;
  if (const fs::path folder = fs::path(path).parent_path(); !folder.empty()) {
    fs::create_directories(folder, error);
    if (error) return fail(ErrorCode::io, "'", folder.string(), "': ", error.message());
  }
  static std::atomic<int> number{0};
  const std::string made = cat(path, ".", getpid(), ".", number++);
  Status status = write_new(made, text);
  if (status.ok() && std::rename(made.c_str(), path.c_str()) != 0) status = io_error(path, "replacing");
  if (!status.ok()) std::remove(made.c_str());
  return status;
}

Result<std::string> users_cache_file(std::string_view name, std::string_view what) {
  auto variable = [](const char* of) -> std::string {
    const char* value = std::getenv(of);
    return value == nullptr ? "" : value;
  };
  const std::string cache = variable("XDG_CACHE_HOME"), home = variable("HOME");
  if (cache.starts_with('/')) return cat(cache, "/moka/", name);
  if (home.empty()) return fail(ErrorCode::not_found, what, ": neither XDG_CACHE_HOME nor HOME is set");
  return cat(home, "/.cache/moka/", name);
}

}  // namespace moka::runtime

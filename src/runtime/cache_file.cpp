// SPDX-License-Identifier: Apache-2.0
#include "runtime/cache_file.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/replace_file.h"

namespace moka::runtime {

namespace {

namespace fs = std::filesystem;

constexpr size_t kMostBytes = 16 << 20;

Error io_error(const std::string& path, std::string_view what) {
  return fail(ErrorCode::io, "'", path, "': ", what, ": ", std::strerror(errno));
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

Status replace_cache_file(const std::string& path, OutputKind kind, std::string_view text) {
  const std::span<const std::byte> part = std::as_bytes(std::span(text));
  return replace_file(path, kind, {&part, 1}, true);
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

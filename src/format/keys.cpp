// SPDX-License-Identifier: Apache-2.0
#include "format/keys.h"

#include <fcntl.h>
#include <sodium.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>

namespace moka::format {
namespace {

constexpr size_t kLargestKey = 1 << 20;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

/// The content of a small file, which may be a pipe.
Result<std::string> read_small_file(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    const ErrorCode code = errno == ENOENT || errno == ENOTDIR ? ErrorCode::not_found : ErrorCode::io;
    return fail(code, "cannot open '", path, "': ", std::strerror(errno));
  }
  std::string text(kLargestKey, '\0');
  size_t size = 0;
  ssize_t n = 0;
  while (size < text.size() && (n = ::read(file, text.data() + size, text.size() - size)) != 0) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    size += static_cast<size_t>(n);
  }
  const int error = errno;
  ::close(file);
  if (n < 0) return fail(ErrorCode::io, "cannot read '", path, "': ", std::strerror(error));
  if (size == text.size()) return fail(ErrorCode::malformed, "'", path, "' is too large for a key");
  std::string out = text.substr(0, size);
  sodium_memzero(text.data(), size);
  return out;
}

struct Default {
  std::mutex mutex;
  KeySource source;
};
Default& default_source() {
  static Default* source = new Default;
  return *source;
}

}  // namespace

Status refuse_apple_key(const std::string& path) {
  if (!path.ends_with(".mlmodelkey")) return {};
  return fail(ErrorCode::unsupported, "'", path,
              "' is a key of Apple's model encryption, which only Apple's systems can use; 'moka key' makes a key for "
              "'moka encrypt'");
}

Result<std::string> read_identity_file(const std::string& path) {
  MOKA_TRY(refuse_apple_key(path));
  return read_small_file(path);
}

Result<std::string> read_passphrase_file(const std::string& path) {
  std::string text = MOKA_TRY(read_small_file(path));
  const size_t end = text.find_first_of("\r\n");
  if (end != std::string::npos) {
    sodium_memzero(text.data() + end, text.size() - end);
    text.resize(end);
  }
  if (text.empty()) return fail(ErrorCode::invalid_argument, "'", path, "': expected a passphrase in the first line");
  return text;
}

void set_default_key_source(KeySource source) {
  std::lock_guard lock(default_source().mutex);
  default_source().source = std::move(source);
}

Result<std::string> key_of(const KeySource& source, const std::string& model, bool passphrase) {
  KeySource asked = source;
  if (!asked) {
    std::lock_guard lock(default_source().mutex);
    asked = default_source().source;
  }
  if (asked)
    if (std::string key = MOKA_TRY(asked(model, passphrase)); !key.empty()) return key;
  if (passphrase) {
    if (std::string text = variable("MOKA_PASSPHRASE"); !text.empty()) return text;
    if (const std::string file = variable("MOKA_PASSPHRASE_FILE"); !file.empty())
      return MOKA_TRY_IN(read_passphrase_file(file), "MOKA_PASSPHRASE_FILE");
    return fail(ErrorCode::invalid_argument, "the model is encrypted with a passphrase, and none is given");
  }
  if (std::string text = variable("MOKA_IDENTITY"); !text.empty()) {
    if (text.find("AGE-SECRET-KEY-") != std::string::npos) return text;
    return MOKA_TRY_IN(read_identity_file(text), "MOKA_IDENTITY");
  }
  return fail(ErrorCode::invalid_argument, "the model is encrypted, and no identity is given");
}

}  // namespace moka::format

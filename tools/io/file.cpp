// SPDX-License-Identifier: Apache-2.0
#include "io/file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <system_error>

#include "io/io_error.h"

namespace moka::io {

Bytes read_file(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) fail(path.string(), "no such file");
  if (!std::filesystem::is_regular_file(status)) fail(path.string(), "expected a regular file, got something else");
  const auto size = std::filesystem::file_size(path, error);
  if (error) fail(path.string(), "can't tell the file's size: ", error.message());
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(path.string(), "can't be opened: ", std::strerror(errno));
  Bytes bytes(size);
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (static_cast<uintmax_t>(in.gcount()) != size) {
    fail(path.string(), "expected ", size, " bytes, got ", in.gcount());
  }
  return bytes;
}

std::string read_text(const std::filesystem::path& path) {
  if (std::error_code ignored; std::filesystem::is_fifo(path, ignored)) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  const Bytes bytes = read_file(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  if (!out) fail(path.string(), "can't be created: ", std::strerror(errno));
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  out.flush();
  if (out) return;
  const int error = errno;
  out.close();
  if (std::error_code ignored; std::filesystem::is_regular_file(path, ignored)) std::filesystem::remove(path, ignored);
  fail(path.string(), "writing ", bytes.size(), " bytes failed: ", std::strerror(error));
}

}  // namespace moka::io

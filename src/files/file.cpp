// SPDX-License-Identifier: Apache-2.0
#include "files/file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <system_error>

#include "files/error.h"

namespace moka::files {

namespace {

/// The system would cut the path there and open another file.
void require_no_nul(const std::string& path) {
  if (const size_t at = path.find('\0'); at != std::string::npos)
    refuse(ErrorKind::invalid_argument, path.substr(0, at), ": expected a path without NUL bytes, got one at byte ",
           at);
}

}  // namespace

Buffer read_file(const std::filesystem::path& path) {
  const std::string& name = path.native();
  require_no_nul(name);
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) refuse(ErrorKind::not_found, name, ": no such file");
  if (!std::filesystem::is_regular_file(status))
    refuse(ErrorKind::io, name, ": expected a regular file, got something else");
  const auto size = std::filesystem::file_size(path, error);
  if (error) refuse(ErrorKind::io, name, ": can't tell the file's size: ", error.message());
  std::ifstream in(path, std::ios::binary);
  if (!in) refuse(ErrorKind::io, name, ": can't be opened: ", std::strerror(errno));
  Buffer bytes(size);
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (static_cast<uintmax_t>(in.gcount()) != size)
    refuse(ErrorKind::io, name, ": expected ", size, " bytes, got ", in.gcount());
  return bytes;
}

std::string read_text(const std::filesystem::path& path) {
  require_no_nul(path.native());
  if (std::error_code ignored; std::filesystem::is_fifo(path, ignored)) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  return std::string(text_of(read_file(path)));
}

void ByteReader::seek(size_t position, std::string_view field) {
  if (position > bytes_.size())
    damaged(name_, field, " lies at byte ", position, ", but the file has ", bytes_.size(), " bytes");
  position_ = position;
}

std::span<const std::byte> ByteReader::take(size_t count, std::string_view field) {
  if (count > remaining())
    damaged(name_, field, " at byte ", position_, ": expected ", count, " bytes, got ", remaining());
  auto result = bytes_.subspan(position_, count);
  position_ += count;
  return result;
}

}  // namespace moka::files

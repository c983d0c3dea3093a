// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace moka::files {

using Buffer = std::vector<std::byte>;

/// The whole file. Throws not_found, io.
Buffer read_file(const std::filesystem::path& path);
/// The same, also from a pipe such as that of the shell's <(command).
std::string read_text(const std::filesystem::path& path);

inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Reads little-endian numbers from a range of bytes. Throws malformed, which names file and field, at the end of the
/// bytes.
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, std::string_view name) : bytes_(bytes), name_(name) {}

  size_t position() const { return position_; }
  size_t remaining() const { return bytes_.size() - position_; }
  void seek(size_t position, std::string_view field);
  std::span<const std::byte> take(size_t count, std::string_view field);
  std::string take_text(size_t count, std::string_view field) { return std::string(text_of(take(count, field))); }

  template <typename T>
  T number(std::string_view field) {
    auto from = take(sizeof(T), field);
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof(T); ++i) value |= static_cast<uint64_t>(from[i]) << (8 * i);
    return static_cast<T>(value);
  }

 private:
  std::span<const std::byte> bytes_;
  std::string name_;
  size_t position_ = 0;
};

/// Appends integers in little-endian order.
template <typename T>
void put_number(Buffer& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<std::byte>(static_cast<uint64_t>(value) >> (8 * i)));
}
inline void put_text(Buffer& out, std::string_view text) {
  for (char c : text) out.push_back(static_cast<std::byte>(c));
}

}  // namespace moka::files

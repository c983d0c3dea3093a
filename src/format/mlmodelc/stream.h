// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"

/// The flat binary files of a compiled model.
namespace moka::format {

/// Reads a flat little-endian stream; every count is checked against the bytes that are left.
class Stream {
 public:
  /// `file`: its name, for errors. `bytes` outlives the stream.
  Stream(const Bytes& bytes, std::string_view file) : bytes_(bytes), file_(file) {}

  size_t left() const { return bytes_.size() - at_; }

  template <class T>
  Result<T> number(std::string_view what) {
    if (left() < sizeof(T)) return ends(what, sizeof(T));
    T v;
    std::memcpy(&v, bytes_.data() + at_, sizeof v);
    at_ += sizeof v;
    return v;
  }

  Result<Bytes> bytes(std::string_view what, uint64_t size) {
    if (size > left()) return ends(what, size);
    Bytes out = bytes_.slice(at_, size);
    at_ += size;
    return out;
  }

  Result<Bytes> sized_bytes(std::string_view what) {
    auto size = MOKA_TRY(number<uint64_t>(what));
    return bytes(what, size);
  }

  Result<std::string> string(std::string_view what) {
    Bytes b = MOKA_TRY(sized_bytes(what));
    return std::string(b.text());
  }

  /// A count of elements of at least `element` bytes each.
  Result<uint64_t> count(std::string_view what, size_t element) {
    auto n = MOKA_TRY(number<uint64_t>(what));
    if (n > left() / element)
      return fail(ErrorCode::malformed, file_, ": ", what, " counts ", n, " elements at byte ", at_, " with ", left(),
                  " bytes left");
    return n;
  }

  Result<std::vector<std::string>> strings(std::string_view what) {
    auto n = MOKA_TRY(count(what, sizeof(uint64_t)));
    std::vector<std::string> out;
    out.reserve(n);
    for (uint64_t i = 0; i < n; ++i) out.push_back(MOKA_TRY(string(what)));
    return out;
  }

  Status expect(std::string_view what, uint64_t value) {
    auto got = MOKA_TRY(number<uint64_t>(what));
    if (got != value)
      return fail(ErrorCode::malformed, file_, ": ", what, " before byte ", at_, " is ", got, ", expected ", value);
    return {};
  }

 private:
  Error ends(std::string_view what, uint64_t size) const {
    return fail(ErrorCode::malformed, file_, ": ", what, " at byte ", at_, " takes ", size, " bytes; ", left(),
                " are left");
  }

  const Bytes& bytes_;
  std::string_view file_;
  size_t at_ = 0;
};

/// Appends little-endian numbers and counted strings.
class Writer {
 public:
  template <class T>
  void number(T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void string(std::string_view text) {
    number<uint64_t>(text.size());
    out += text;
  }
  void strings(const std::vector<std::string>& list) {
    number<uint64_t>(list.size());
    for (const auto& s : list) string(s);
  }
  std::string out;
};

}  // namespace moka::format

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"

namespace moka::format {

/// The content of a file in pieces, so that large pieces stay where they are until they are written.
class Rope {
 public:
  Rope() = default;
  explicit Rope(Bytes bytes) { append(std::move(bytes)); }

  /// Copies the text, which joins the text before it.
  void append(std::string_view text) {
    tail_ += text;
    size_ += text.size();
  }
  /// Refers to the bytes unless they are few.
  void append(Bytes bytes) {
    constexpr size_t few = 4096;
    if (bytes.size() < few) return append(bytes.text());
    flush();
    size_ += bytes.size();
    pieces_.push_back(std::move(bytes));
  }
  size_t size() const { return size_; }
  std::vector<Bytes> pieces() const;
  /// All in one piece. Copies unless there is one piece only.
  Bytes joined() const;

 private:
  void flush() {
    if (!tail_.empty()) pieces_.push_back(Bytes::from(std::move(tail_)));
    tail_.clear();
  }

  std::vector<Bytes> pieces_;
  std::string tail_;
  size_t size_ = 0;
};

}  // namespace moka::format

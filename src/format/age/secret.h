// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sodium.h>

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <string>

namespace moka::format::age {

/// Secret bytes. Their memory is locked if the system allows it, is left out of core dumps and is overwritten before it
/// is freed. Throws std::bad_alloc.
class Secret {
 public:
  explicit Secret(size_t size)
      : data_(sodium_init() < 0 ? nullptr : static_cast<unsigned char*>(sodium_malloc(size))), size_(size) {
    if (data_ == nullptr) throw std::bad_alloc();
  }
  unsigned char* data() { return data_.get(); }
  const unsigned char* data() const { return data_.get(); }
  size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(unsigned char* p) const { sodium_free(p); }
  };
  std::unique_ptr<unsigned char, Free> data_;
  size_t size_;
};

/// Overwrites a text when it goes out of scope.
class Wiper {
 public:
  explicit Wiper(std::string& text) : text_(text) {}
  ~Wiper() { sodium_memzero(text_.data(), text_.size()); }
  Wiper(const Wiper&) = delete;
  Wiper& operator=(const Wiper&) = delete;

 private:
  std::string& text_;
};

}  // namespace moka::format::age

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace moka::io {

/// A file that cannot be read or written, or has the wrong content. The message starts with the file's name.
class IoError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws IoError with the message "name: " and the parts, joined.
template <typename... Parts>
[[noreturn]] void fail(std::string_view name, const Parts&... parts) {
  std::ostringstream text;
  text << name << ": ";
  (text << ... << parts);
  throw IoError(text.str());
}

}  // namespace moka::io

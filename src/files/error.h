// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"
#include "moka/error.h"

namespace moka::files {

/// Throws Exception with the parts, joined.
template <class... Parts>
[[noreturn]] void refuse(ErrorKind kind, const Parts&... parts) {
  throw Exception(kind, cat(parts...));
}

/// The contents of the file `name` are damaged.
template <class... Parts>
[[noreturn]] void damaged(std::string_view name, const Parts&... parts) {
  refuse(ErrorKind::malformed, name, ": ", parts...);
}

}  // namespace moka::files

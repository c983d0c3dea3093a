// SPDX-License-Identifier: Apache-2.0
#include "boundary/path.h"

#include "base/error.h"
#include "moka/error.h"

namespace moka::boundary {

const std::string& native(const std::filesystem::path& path) {
  const std::string& text = path.native();
  if (const size_t at = text.find('\0'); at != std::string::npos)
    throw Exception(ErrorKind::invalid_argument,
                    cat("path '", text.substr(0, at), "': expected a text without NUL bytes, got one at byte ", at));
  return text;
}

std::vector<std::string> native(const std::vector<std::filesystem::path>& paths) {
  std::vector<std::string> out;
  for (const std::filesystem::path& p : paths) out.push_back(native(p));
  return out;
}

}  // namespace moka::boundary

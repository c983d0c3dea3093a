// SPDX-License-Identifier: Apache-2.0
#include "temporary_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>

#include "io/io_error.h"

namespace moka::cli {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder(const std::string& purpose, const fs::path& parent) {
  std::string path = (parent / ("moka-" + purpose + "-XXXXXX")).string();
  if (mkdtemp(path.data()) == nullptr) io::fail(path, "a folder cannot be made: ", std::strerror(errno));
  path_ = path;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace moka::cli

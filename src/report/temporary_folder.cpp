// SPDX-License-Identifier: Apache-2.0
#include "report/temporary_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "base/error.h"
#include "moka/error.h"

namespace moka::reporting {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder() {
  std::error_code error;
  const fs::path parent = fs::temp_directory_path(error);
  if (error) throw Exception(ErrorKind::io, cat("there is no folder for temporary files: ", error.message()));
  std::string path = (parent / "moka-report-XXXXXX").string();
  if (mkdtemp(path.data()) == nullptr)
    throw Exception(ErrorKind::io, cat(path, ": a temporary folder cannot be made: ", std::strerror(errno)));
  path_ = path;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace moka::reporting

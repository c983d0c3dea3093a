// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "format/model_file.h"

namespace moka::format {

/// The Manifest.json of an .mlpackage. Paths of items are relative to the Data folder; names cannot lead out of it.
struct Manifest {
  std::vector<PackageItem> items;
  size_t root = 0;  ///< index of the model in `items`
};

/// Errors: malformed (not JSON, a member that is missing or of the wrong type, a path that leaves the package, no root
/// model), unsupported (a later format version).
Result<Manifest> parse_manifest(const Bytes& json);

}  // namespace moka::format

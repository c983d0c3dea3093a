#pragma once

#include <map>
#include <string>

#include "base/bytes.h"

namespace moka::format {

/// The files of an .mlpackage folder: the manifest, the specification, and weights by their paths beside it
/// ("weights/weight.bin"). The same content gives the same files, identifiers of items included.
std::map<std::string, Bytes> package_files(Bytes specification, const std::map<std::string, Bytes>& weights);

}  // namespace moka::format

#pragma once

#include <map>
#include <string>

#include "base/bytes.h"

namespace moka::format {

/// The files of an .mlpackage folder: the manifest, the specification, and weights by their paths relative to it
/// ("weights/weight.bin"). The same content gives the same files, including the identifiers of items.
std::map<std::string, Bytes> package_files(Bytes specification, const std::map<std::string, Bytes>& weights);

}  // namespace moka::format

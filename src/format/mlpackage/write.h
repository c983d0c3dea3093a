// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "format/message/rope.h"

namespace moka::format {

/// The files of an .mlpackage folder: the manifest, the specification, and weights by their paths relative to it
/// ("weights/weight.bin"). The same content gives the same files, including the identifiers of items.
std::map<std::string, Rope> package_files(Rope specification, std::map<std::string, Rope> weights);

}  // namespace moka::format

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "compress/decompressed.h"
#include "format/source.h"

namespace moka::compress {

/// The two parts of `decompress`. `write`: false only lists the weights.
Result<std::vector<Decompressed>> decompress_programs(format::ModelSource& source, bool write);
Result<std::vector<Decompressed>> decompress_networks(const format::Message& specification, bool write);

}  // namespace moka::compress

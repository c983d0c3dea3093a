// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "compress/decompressed.h"
#include "format/source.h"

namespace moka::compress {

/// Makes plain constants of all weights that constexpr operations expand, as coremltools.optimize.coreml
/// .decompress_weights does, and floats of the quantized weights of neural networks; also in pipelines. Errors:
/// unsupported (a constexpr operation without constants, a quantized weight of a layer that compress does not write),
/// those of importing.
Result<std::vector<Decompressed>> decompress(format::ModelSource& source);

/// The weights that `decompress` would expand. Does not read their values.
Result<std::vector<Decompressed>> compressed_weights_of(const format::ModelSource& source);

}  // namespace moka::compress

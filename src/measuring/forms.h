// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "compress/decompress.h"
#include "compress/program.h"
#include "moka/compress.h"

namespace moka::measuring {

compress::Recipe recipe_of(const WeightCompression& compression);
/// Throws invalid_argument for options that contradict each other.
void check(const WeightCompression& compression);
/// Whether an exception's pattern matches this name or, as "type:add", this type.
bool applies(std::string_view pattern, std::string_view name, std::string_view type);
/// Reports decompressed weights in `to`: updates their entries, or adds new ones. Also adds weights that are still
/// compressed.
void add_decompressed(const std::vector<compress::Decompressed>& decompressed, std::vector<CompressedWeight>& to);
void add_compressed(const std::vector<compress::Decompressed>& compressed, std::vector<CompressedWeight>& to);
/// `compression`: the form that was requested for the weight; null: none.
CompressedWeight public_outcome(const compress::Outcome& outcome, const WeightCompression* compression);

}  // namespace moka::measuring

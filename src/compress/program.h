// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "compress/site.h"
#include "format/source.h"

namespace moka::compress {

/// Calls `choose` for each weight in order, and compresses the weights for which it returns a recipe. Decodes each
/// compressed weight and compares it with its source; one that differs by more than its form allows is skipped. Puts
/// all weights of programs into one file. Errors: unsupported (no ML program or neural network, or a program for iOS
/// 15), malformed.
Result<std::vector<Outcome>> compress(format::ModelSource& source, const Chooser& choose,
                                      const Progress& progress = nullptr);

/// The two parts of `compress`, for the programs and for the networks in a model.
Result<std::vector<Outcome>> compress_programs(format::ModelSource& source, const Chooser& choose,
                                               const Progress& progress);
Result<std::vector<Outcome>> compress_networks(format::ModelSource& source, const Chooser& choose,
                                               const Progress& progress);

}  // namespace moka::compress

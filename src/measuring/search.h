// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "format/source.h"
#include "measuring/sensitivity.h"
#include "moka/compress.h"

namespace moka::measuring {

/// How models in memory are loaded.
struct Loaders {
  std::function<ModelSource(format::ModelSource)> source;
  LoadInMemory in_memory;
};

/// As moka::search_compression.
SearchedModel search(const format::ModelSource& model, const CompressionSearch& search, const Loaders& loaders);

}  // namespace moka::measuring

#pragma once

#include "format/source.h"
#include "format/weights/weight_file.h"
#include "format/weights/weight_store.h"

namespace moka::compress {

/// Moves what the programs of the model still read from `store` to `file`, which becomes their only weight file.
Status finish(format::ModelSource& source, const format::WeightStore& store, format::WeightFile& file);

}  // namespace moka::compress

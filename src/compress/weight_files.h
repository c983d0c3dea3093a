// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/source.h"
#include "format/weights/weight_file.h"
#include "format/weights/weight_store.h"

namespace moka::compress {

/// The blob to which a MILSpec.Value.BlobFileValue refers. Errors as WeightStore::blob.
Result<format::Blob> blob_of(const format::Message& value, const format::WeightStore& store);

/// Copies the weights that the programs of the model still read from `store` to `file`, their only weight file from
/// then on.
Status finish(format::ModelSource& source, const format::WeightStore& store, format::WeightFile& file);

}  // namespace moka::compress

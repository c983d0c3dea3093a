// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "format/source.h"
#include "import/update/update.h"
#include "ir/tensor.h"

namespace moka::update {

/// Replaces weights of the network that learns: the model itself, or the last one of a pipeline. `layers`: those of the
/// network; `values`: by the names in them; weights without a value stay. Error data: a number is not finite.
Status set_weights(format::ModelSource& source, const std::vector<import::UpdatableLayer>& layers,
                   const std::map<std::string, ir::Tensor>& values);

}  // namespace moka::update

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compiler/metadata.h"
#include "format/model_file.h"

namespace moka::compiler {

/// Adds layer counts by the specification's names, and the element types of weights. Adds nothing for other models.
void add_network_facts(const proto::Model& model, const format::ModelFile& file, ModelFacts& facts);

}  // namespace moka::compiler

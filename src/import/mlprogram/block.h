// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/budget.h"
#include "ir/scope.h"

namespace moka::format {
class ModelFile;
}
namespace moka::proto::MILSpec {
class Block;
}

namespace moka::import {

/// The sources of an ML program's values.
struct ProgramSource {
  const format::ModelFile& file;
  MemoryBudget* budget = nullptr;
  const std::map<std::string, ir::Shape>* sizes = nullptr;  ///< of flexible inputs; may be null
  bool placeholders = false;                                ///< see ImportOptions
};

/// Appends the operations of `block`, whose inputs are in `scope`, and returns its outputs.
Result<std::vector<ir::Value*>> import_block(const proto::MILSpec::Block& block, const ProgramSource& source,
                                             ir::Builder& builder, ir::Scope& scope, int depth = 0);

}  // namespace moka::import

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>

#include "ir/program.h"

/// The part of metadata.json about programs.
namespace moka::compiler {

struct ProgramFacts {
  std::map<std::string, int64_t> histogram;  ///< "Ios16.conv", or "Conv" when iOS 15's definition applies
  std::set<std::string> compute, storage;    ///< names of element types: "Float16", "Palettized (4 bits)"
  void add(const ProgramFacts& other);
};

ProgramFacts facts_of(const ir::Function& function);

/// "Float16", "Mixed (Float16, Int32)"; empty for no types.
std::string precision(const std::set<std::string>& types);
/// "Float16", "Int8", "UInt8"; empty for strings.
std::string type_name(ir::DType type);

}  // namespace moka::compiler

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "base/bytes.h"
#include "format/model_file.h"

namespace moka::compiler {

/// The source of a compiled model, as far as the model contains it.
struct Decompiled {
  std::string specification;             ///< a serialized Model
  std::map<std::string, Bytes> weights;  ///< weight files by path relative to the specification: "weights/weight.bin"
  bool has_program = false;              ///< valid only in an .mlpackage
};

/// Restores embedded specifications unchanged, neural networks with the layers in their files, ML programs with the
/// operations of model.mil, and pipelines with their models. When models of a pipeline have weight files of the same
/// name, these are renamed: "weights/1-weight.bin". Errors: those of importing an ML program.
Result<Decompiled> decompile(const format::ModelFile& file);

}  // namespace moka::compiler

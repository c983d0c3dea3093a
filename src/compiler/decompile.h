#pragma once

#include <map>
#include <string>

#include "base/bytes.h"
#include "format/model_file.h"

namespace moka::compiler {

/// What a compiled model was made from, as far as it says so itself.
struct Decompiled {
  std::string specification;             ///< a serialized Model
  std::map<std::string, Bytes> weights;  ///< files that it refers to, by path beside it: "weights/weight.bin"
  bool has_program = false;              ///< it is valid in an .mlpackage only
};

/// Embedded specifications come as they are, neural networks with the layers that their files say, ML programs with the
/// operations of model.mil, pipelines with their models. Weight files of the same name in several models of a pipeline
/// get names of their own: "weights/1-weight.bin". Errors: those of importing an ML program.
Result<Decompiled> decompile(const format::ModelFile& file);

}  // namespace moka::compiler

#pragma once

#include <string>

#include "format/model_file.h"

namespace moka::format {

/// The specification of a compiled model as the bytes of an .mlmodel: embedded ones as they are, neural networks with
/// the layers that their files say, pipelines with their models. Errors: unsupported (ML programs).
Result<std::string> specification_of(const ModelFile& file);

}  // namespace moka::format

#pragma once

#include <functional>
#include <string>

#include "ir/program.h"

namespace moka::proto::MILSpec {
class Program;
}  // namespace moka::proto::MILSpec

namespace moka::compiler {

/// Returns the path that the message uses for the weights file at `path`.
using BlobName = std::function<std::string(const std::string& path)>;

/// Converts the program to a message of the specification. Constants from a weights file refer to it by name and
/// offset; all others are stored in the message. Omits information that only compiled text has
/// (FlexibleShapeInformation). Precondition: the program comes from a model and passes have not changed it.
void write_message(const ir::Program& program, proto::MILSpec::Program& message, const BlobName& blob_name);

}  // namespace moka::compiler

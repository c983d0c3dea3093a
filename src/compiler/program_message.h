#pragma once

#include <functional>
#include <string>

#include "ir/program.h"

namespace moka::proto::MILSpec {
class Program;
}  // namespace moka::proto::MILSpec

namespace moka::compiler {

/// The path that the message says for weights of the file at `path`.
using BlobName = std::function<std::string(const std::string& path)>;

/// The program as the message that specifications hold. Constants that came from a weights file refer to it by name
/// and offset, all others are in the message. What only compiled text says (FlexibleShapeInformation) is left out.
/// Precondition: the program comes from a model; passes have not changed it.
void write_message(const ir::Program& program, proto::MILSpec::Program& message, const BlobName& blob_name);

}  // namespace moka::compiler

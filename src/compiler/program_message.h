// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "ir/program.h"

namespace moka::proto::MILSpec {
class Program;
}  // namespace moka::proto::MILSpec

namespace moka::compiler {

/// Where a constant lies in a file of weights.
struct BlobPlace {
  std::string file;  ///< as the message names it: "@model_path/weights/weight.bin"
  uint64_t offset = 0;
};

struct MessageOptions {
  /// nullopt: the constant is stored in the message.
  std::function<std::optional<BlobPlace>(const ir::Constant&)> place;
  /// Tensors that belong to one operation become operations `const`, the form that coremltools reads.
  bool constants_as_operations = false;
};

/// Converts the program to a message of the specification. Omits information that only compiled text has
/// (FlexibleShapeInformation). Precondition: passes have not changed the program.
void write_message(const ir::Program& program, proto::MILSpec::Program& message, const MessageOptions& options);

/// The message of write_message, serialized.
std::string serialize_program(const ir::Program& program, const MessageOptions& options);

}  // namespace moka::compiler

#include "base/error.h"
#include "compiler/generate/generate.h"
#include "compiler/generate/reserved.h"
#include "compiler/generate/swift/writer.h"

namespace moka::compiler {

Sources write_swift(const import::ModelDescription& description, const std::string& model_name,
                    const GenerateOptions& options) {
  const swift::Writer writer{describe_interface(description, model_name, {true, swift_reserved, core_ml_types}),
                             options};
  const std::string file = writer.model.class_name + ".swift";
  return {{file, cat("//\n// ", file, "\n//\n// Generated from the model; edits are lost.\n//\n\nimport CoreML\n\n",
                     writer.input(), writer.output(), writer.model_class())}};
}

}  // namespace moka::compiler

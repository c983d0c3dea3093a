// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "compiler/generate/generate.h"
#include "compiler/generate/objective_c/writer.h"
#include "compiler/generate/reserved.h"

namespace moka::compiler {

namespace {
std::vector<std::string> setters_of(const import::FeatureDescription&, const std::string& name) {
  return {"set" + capitalized(name)};
}
}  // namespace

Sources write_objective_c(const import::ModelDescription& description, const std::string& model_name) {
  const objective_c::Writer writer{
      describe_interface(description, model_name, {true, objective_c_reserved, core_ml_types, setters_of})};
  const std::string& name = writer.model.class_name;
  const auto head = [&](const char* extension) {
    return cat("//\n// ", name, extension, "\n//\n// Generated from the model; edits are lost.\n//\n\n");
  };
  return {{name + ".h", cat(head(".h"),
                            "#import <Foundation/Foundation.h>\n#import <CoreML/CoreML.h>\n#include <stdint.h>\n"
                            "#include <os/log.h>\n\nNS_ASSUME_NONNULL_BEGIN\n",
                            writer.input_interface(), writer.output_interface(), writer.model_interface(),
                            "\nNS_ASSUME_NONNULL_END\n")},
          {name + ".m", cat(head(".m"),
                            "#if !__has_feature(objc_arc)\n#error This file needs automatic reference counting "
                            "(-fobjc-arc)\n#endif\n\n#import \"",
                            name, ".h\"\n", writer.input_implementation(),
                            writer.provider("Output", writer.model.outputs, ""), writer.model_implementation())}};
}

}  // namespace moka::compiler

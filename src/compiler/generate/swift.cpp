// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "compiler/generate/generate.h"
#include "compiler/generate/reserved.h"
#include "compiler/generate/swift/writer.h"

namespace moka::compiler {

namespace {
std::vector<std::string> swift_accessors(const import::FeatureDescription& feature, const std::string& name) {
  if (feature.kind == import::FeatureKind::image) return {"set" + capitalized(name)};
  if (feature.kind == import::FeatureKind::multi_array) return {name + "ShapedArray"};
  return {};
}
}  // namespace

Sources write_swift(const import::ModelDescription& description, const std::string& model_name,
                    const GenerateOptions& options) {
  const swift::Writer writer{
      describe_interface(description, model_name, {true, swift_reserved, core_ml_types, swift_accessors}), options};
  const std::string file = writer.model.class_name + ".swift";
  return {{file, cat("//\n// ", file, "\n//\n// Generated from the model; edits are lost.\n//\n\nimport CoreML\n\n",
                     writer.input(), writer.output(), writer.model_class())}};
}

}  // namespace moka::compiler

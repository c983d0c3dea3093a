// SPDX-License-Identifier: Apache-2.0
#include "compiler/generate/generate.h"

namespace moka::compiler {

Sources generate(const import::ModelDescription& description, const std::string& model_name, Language language,
                 const GenerateOptions& options) {
  switch (language) {
    case Language::swift: return write_swift(description, model_name, options);
    case Language::objective_c: return write_objective_c(description, model_name);
    case Language::cpp: return write_cpp(description, model_name);
    case Language::c: return write_c(description, model_name);
    case Language::python: return write_python(description, model_name);
  }
  return {};
}

}  // namespace moka::compiler

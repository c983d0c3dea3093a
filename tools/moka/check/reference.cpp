// SPDX-License-Identifier: Apache-2.0
#include "check/reference.h"

#include <filesystem>

#include "text.h"

namespace moka::cli {
std::string function_of_other(const std::string& path, const std::string& name) {
  return name.empty() || Model::describe(path).functions.size() < 2 ? std::string() : name;
}

std::unique_ptr<Reference> open_reference(const std::string& path, const FunctionDescription& function,
                                          ModelConfiguration configuration, const std::string& other_function) {
  std::filesystem::path trimmed = path;
  if (trimmed.filename().empty()) trimmed = trimmed.parent_path();
  const std::string ending = in_lower_case(trimmed.extension().string());
  if (ending == ".onnx" || ending == ".pt2") return python_reference(path, function);
  if (ending == ".npz" || ending == ".json") return saved_reference(path, function);
  const auto core_ml = [&] {
    configuration.function_name =
        other_function.empty() ? function_of_other(path, configuration.function_name) : other_function;
    return model_reference(Model::load(path, configuration), path);
  };
  if (ending == ".mlmodel" || ending == ".mlpackage" || ending == ".mlmodelc") return core_ml();
  std::error_code ignored;
  if (std::filesystem::is_directory(trimmed, ignored) && !std::filesystem::exists(trimmed / "Manifest.json", ignored) &&
      !std::filesystem::exists(trimmed / "coremldata.bin", ignored))
    return saved_reference(path, function);
  return core_ml();
}

}  // namespace moka::cli

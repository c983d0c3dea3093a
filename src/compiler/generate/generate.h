// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "compiler/generate/interface.h"

namespace moka::compiler {

enum class Language { swift, objective_c, cpp, c, python };

struct GenerateOptions {
  std::string swift_version = "5";
  bool public_access = false;  ///< Swift: other modules can use the classes
  bool global_module = false;  ///< Swift: Objective-C can use the classes
};

/// The specification versions of the systems that introduced parts of Core ML.
constexpr int with_configuration = 3, with_images = 4, with_async_load = 5, with_shaped_arrays = 6,
              with_async_prediction = 8, with_half_on_mac = 9, with_states = 9;

/// Source files by name.
using Sources = std::map<std::string, std::string>;

Sources generate(const import::ModelDescription& description, const std::string& model_name, Language language,
                 const GenerateOptions& options);

Sources write_swift(const import::ModelDescription& description, const std::string& model_name,
                    const GenerateOptions& options);
Sources write_objective_c(const import::ModelDescription& description, const std::string& model_name);
Sources write_cpp(const import::ModelDescription& description, const std::string& model_name);
Sources write_c(const import::ModelDescription& description, const std::string& model_name);
Sources write_python(const import::ModelDescription& description, const std::string& model_name);

}  // namespace moka::compiler

#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "import/description.h"

/// Source code that wraps a model, one file a language.
namespace moka::compiler {

/// An input, output or state in code.
struct Field {
  import::FeatureDescription feature;
  std::string identifier;
};

/// What generated code needs to know of a model's default function.
struct Interface {
  std::string class_name;
  std::string resource;  ///< the model's name, which its compiled folder has
  std::string summary;   ///< what the author says of it, on one line
  int specification_version = 1;
  std::vector<Field> inputs, outputs, states;
};

/// What a language allows as a name.
struct Naming {
  bool letters_beyond_ascii = false;
  std::span<const std::string_view> reserved;  ///< words, and what the generated code itself defines
};

/// Characters that a name cannot have become underscores, a leading digit gets one in front, reserved words one behind,
/// and names that are taken a number.
Interface describe_interface(const import::ModelDescription& description, const std::string& model_name,
                             const Naming& naming);

/// "scores as 1 by 4 matrix of floats": the author's words, else the name, and the type in words.
std::string documentation(const Field& field);

}  // namespace moka::compiler

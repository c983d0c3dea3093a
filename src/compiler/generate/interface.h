// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/generate/field.h"

/// Generates source code that wraps a model, one file per language.
namespace moka::compiler {

/// The properties of a model's default function that generated code needs.
struct Interface {
  std::string class_name;
  std::string resource;  ///< the model's name, which is also the name of its compiled folder
  std::string summary;   ///< the author's description on one line
  int specification_version = 1;
  std::vector<Field> inputs, outputs, states;
};

/// The rules of a language for names.
struct Naming {
  bool letters_beyond_ascii = false;
  std::string_view reserved;  ///< names that are not free (reserved.h)
  std::string_view types{};   ///< types that the generated code uses, reserved too
  /// The other names that a field called `name` declares, such as that of its setter. Null: there are none.
  std::vector<std::string> (*accessors)(const import::FeatureDescription&, const std::string& name) = nullptr;
};

/// Characters that are not allowed in names become underscores. A leading digit gets an underscore in front, a reserved
/// word one after it, and a name in use a number.
Interface describe_interface(const import::ModelDescription& description, const std::string& model_name,
                             const Naming& naming);

/// What code calls the pixels that it gives for an output, and takes for an input among others.
struct PixelFormats {
  std::string_view color, gray;
  std::string_view half;  ///< of a model whose gray is 16-bit floats
};
constexpr PixelFormats core_ml_formats{"kCVPixelFormatType_32BGRA", "kCVPixelFormatType_OneComponent8",
                                       "kCVPixelFormatType_OneComponent16Half"};

/// "scores as 1 by 4 matrix of floats": the author's description, or else the name, followed by the type in words and
/// the default, if there is one: "overlap as optional double value, by default 0.45".
std::string documentation(const Field& field, const PixelFormats& formats = core_ml_formats);

}  // namespace moka::compiler

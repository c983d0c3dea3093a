#pragma once

#include <string>
#include <string_view>

namespace moka::compiler {

/// The name of the class generated for a model file of this name (without folders and extension). Every character other
/// than letters, digits and underscores becomes an underscore, and a leading digit gets an underscore in front.
std::string class_name(std::string_view model_name);

/// "silero-vad" for "a/silero-vad.mlpackage/".
std::string model_name(std::string_view path);

}  // namespace moka::compiler

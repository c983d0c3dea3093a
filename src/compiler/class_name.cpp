#include "compiler/class_name.h"

#include <cctype>

namespace moka::compiler {

std::string class_name(std::string_view model_name) {
  std::string out;
  for (char c : model_name) {
    const auto u = static_cast<unsigned char>(c);
    // Keeps the bytes of letters beyond ASCII, which Swift and Objective-C accept.
    out += u >= 0x80 || std::isalnum(u) ? c : '_';
  }
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0]))) out.insert(out.begin(), '_');
  return out;
}

std::string model_name(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  path = path.substr(path.rfind('/') + 1);
  const size_t dot = path.rfind('.');
  if (dot != std::string_view::npos && dot > 0) path = path.substr(0, dot);
  return std::string(path);
}

}  // namespace moka::compiler

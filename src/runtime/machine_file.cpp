// SPDX-License-Identifier: Apache-2.0
#include "runtime/machine_file.h"

#include "base/json_depth.h"

namespace moka::runtime {

Result<Json> parse_machine_file(std::string_view text, const MachineFormat& format) {
  constexpr int kMaxDepth = 8;
  Json root;
  if (!json_nests_deeper(text, kMaxDepth)) root = Json::parse(text.begin(), text.end(), nullptr, false);
  if (!root.is_object()) return fail(ErrorCode::malformed, "no JSON object, or a damaged one");
  if (auto it = root.find("format"); it == root.end() || *it != format.name)
    return fail(ErrorCode::malformed, "its format is not '", format.name, "'");
  if (auto it = root.find("version"); it == root.end() || !it->is_number_integer() || *it != format.version)
    return fail(ErrorCode::unsupported, "its version is not ", format.version);
  if (auto it = root.find("machines"); it == root.end() || !it->is_array())
    return fail(ErrorCode::malformed, "it has no list 'machines'");
  return root;
}

Result<std::string> text_of(const Json& object, const char* key) {
  const auto it = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || it == object.end() || !it->is_string())
    return fail(ErrorCode::malformed, "no text '", key, "' where one is needed");
  return it->get<std::string>();
}

}  // namespace moka::runtime

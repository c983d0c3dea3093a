#include "format/json_text.h"

#include "base/json_depth.h"
#include "format/file_kind.h"

namespace moka::format {

using nlohmann::json;

Result<json> parse_json_object(const Bytes& bytes, std::string_view what, int max_depth) {
  const std::string_view text = bytes.text();
  // The parser's own callback takes time that grows with the square of the number of objects.
  if (json_nests_deeper(text, max_depth)) return fail(ErrorCode::malformed, what, " nests deeper than ", max_depth);
  json root = json::parse(text.begin(), text.end(), nullptr, false);
  if (!root.is_object())
    return foreign_or(fail(ErrorCode::malformed, "expected a JSON object"), bytes, "a JSON object").in(what);
  return root;
}

}  // namespace moka::format

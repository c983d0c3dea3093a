// SPDX-License-Identifier: Apache-2.0
#include "format/json_text.h"

#include "base/json_depth.h"
#include "format/file_kind.h"

namespace moka::format {

using nlohmann::json;

Result<json> parse_json_object(const Bytes& bytes, std::string_view what, int max_depth) {
  const std::string_view text = bytes.text();
  // The parser's own callback takes time that grows with the square of the number of objects.
  if (json_nests_deeper(text, max_depth)) return fail(ErrorCode::malformed, what, " nests deeper than ", max_depth);
  json root = json::value_t::discarded;
  try {
    root = json::parse(text.begin(), text.end());
  } catch (const json::parse_error& e) {
    if (text.starts_with("{"))
      return fail(ErrorCode::malformed, what, ": expected a JSON object, got an error at byte ", e.byte, " of ",
                  text.size());
  } catch (const json::exception&) {  // a number that is too large
  }
  if (root.is_array()) return fail(ErrorCode::malformed, what, ": expected a JSON object, got a list");
  if (!root.is_object())
    return foreign_or(fail(ErrorCode::malformed, "expected a JSON object"), bytes, "a JSON object").in(what);
  return root;
}

}  // namespace moka::format

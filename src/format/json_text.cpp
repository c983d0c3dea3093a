#include "format/json_text.h"

#include "format/file_kind.h"

namespace moka::format {

using nlohmann::json;

Result<json> parse_json_object(const Bytes& bytes, std::string_view what, int max_depth) {
  const std::string_view text = bytes.text();
  bool deep = false;
  const auto limit = [&](int depth, json::parse_event_t, json&) {
    deep |= depth > max_depth;
    return !deep;
  };
  json root = json::parse(text.begin(), text.end(), limit, false);
  if (deep) return fail(ErrorCode::malformed, what, " nests deeper than ", max_depth);
  if (!root.is_object())
    return foreign_or(fail(ErrorCode::malformed, "expected a JSON object"), bytes, "a JSON object").in(what);
  return root;
}

}  // namespace moka::format

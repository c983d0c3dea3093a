// SPDX-License-Identifier: Apache-2.0
#include "format/mlpackage/manifest.h"

#include "format/json_text.h"
#include "format/path_guard.h"

namespace moka::format {
namespace {

using nlohmann::json;

constexpr int max_depth = 16;

Result<std::string> text(const json& object, const char* key, bool required, std::string_view where) {
  auto it = object.find(key);
  if (it == object.end()) {
    if (!required) return std::string();
    return fail(ErrorCode::malformed, "Manifest.json: ", where, " has no '", key, "'");
  }
  if (!it->is_string())
    return fail(ErrorCode::malformed, "Manifest.json: '", key, "' of ", where, " is of type ", it->type_name(),
                ", expected string");
  return it->get<std::string>();
}

Result<PackageItem> read_item(const std::string& id, const json& object) {
  std::string where = cat("item '", id, "'");
  if (!object.is_object()) return fail(ErrorCode::malformed, "Manifest.json: ", where, " is not an object");
  PackageItem item;
  item.identifier = id;
  item.path = MOKA_TRY(text(object, "path", true, where));
  item.name = MOKA_TRY(text(object, "name", false, where));
  item.author = MOKA_TRY(text(object, "author", false, where));
  item.description = MOKA_TRY(text(object, "description", false, where));
  MOKA_TRY_IN(normalise_inside(item.path), cat("Manifest.json: ", where));
  return item;
}

}  // namespace

Result<Manifest> parse_manifest(const Bytes& bytes) {
  const json root = MOKA_TRY(parse_json_object(bytes, "Manifest.json", max_depth));
  std::string version = MOKA_TRY(text(root, "fileFormatVersion", true, "the package"));
  if (!version.starts_with("1."))
    return fail(ErrorCode::unsupported, "Manifest.json: fileFormatVersion '", version, "'; supported is 1.0.0");
  std::string root_id = MOKA_TRY(text(root, "rootModelIdentifier", true, "the package"));
  auto entries = root.find("itemInfoEntries");
  if (entries == root.end() || !entries->is_object())
    return fail(ErrorCode::malformed, "Manifest.json has no object 'itemInfoEntries'");
  Manifest out;
  bool found = false;
  for (const auto& [id, object] : entries->items()) {
    if (id == root_id) {
      out.root = out.items.size();
      found = true;
    }
    out.items.push_back(MOKA_TRY(read_item(id, object)));
  }
  if (!found)
    return fail(ErrorCode::malformed, "Manifest.json: rootModelIdentifier '", root_id, "' is not among its ",
                out.items.size(), " items");
  return out;
}

}  // namespace moka::format

// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "base/bytes.h"
#include "format/model_file.h"
#include "format/proto/model.pb.h"
#include "import/importer.h"
#include "import/registered_models.h"

/// Models that are elsewhere: in another file, or serialized inside of this one.
namespace moka::import {
namespace {

namespace fs = std::filesystem;
using proto::Model;

std::vector<std::string> split(const std::string& paths) {
  std::vector<std::string> out;
  for (size_t at = 0; at <= paths.size();) {
    const size_t end = std::min(paths.find(':', at), paths.size());
    out.push_back(paths.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

bool is_inside(const fs::path& file, const fs::path& folder) {
  const fs::path relative = file.lexically_relative(folder);
  return !relative.empty() && *relative.begin() != ".." && relative != ".";
}

/// The file, in one of the folders that the caller allows. Links are followed before this is decided.
Result<std::string> find(const std::string& name, const std::string& search, const format::ModelFile& from) {
  const std::vector<std::string> allowed = linked_folders();
  if (allowed.empty())
    return fail(ErrorCode::unsupported, "it is the file '", name, "' in '", search,
                "', and no folder is allowed for linked models (set_linked_model_folders, --linked-models)");
  std::error_code e;
  std::vector<fs::path> folders;
  for (const std::string& s : split(search)) {
    // Bundles of applications are the folders that the caller names.
    if (s.starts_with("$")) {
      folders.insert(folders.end(), allowed.begin(), allowed.end());
      continue;
    }
    const fs::path p = s.empty() ? "." : s;
    if (p.is_absolute())
      folders.push_back(p);
    else if (!from.path().empty())
      folders.push_back(fs::absolute(from.path(), e).parent_path() / p);
  }
  bool outside = false;
  for (const fs::path& folder : folders)
    for (const char* extension : {"", ".mlmodelc", ".mlpackage", ".mlmodel"}) {
      fs::path candidate = folder / name;
      if (*extension != '\0') candidate.replace_extension(extension);
      if (!fs::exists(candidate, e)) continue;
      const fs::path real = fs::canonical(candidate, e);
      if (e) continue;
      for (const std::string& a : allowed) {
        const fs::path root = fs::canonical(a, e);
        if (!e && is_inside(real, root)) return real.string();
      }
      outside = true;
    }
  return fail(ErrorCode::not_found, "the file '", name, "' in '", search, "'",
              outside ? ", which is outside of the folders that are allowed for linked models" : "");
}

Status import_linked(const Model& model, const ImportContext& context, ir::Builder& builder, Features& features) {
  const auto& link = model.linkedmodel().linkedmodelfile();
  const std::string name = link.linkedmodelfilename().defaultvalue();
  if (name.empty()) return fail(ErrorCode::malformed, "model type linkedModel: it names no file");
  if (context.options.placeholders)
    return import_placeholder(model, cat("linked model '", name, "'"), context, builder, features);
  const std::string path =
      MOKA_TRY_IN(find(name, link.linkedmodelsearchpath().defaultvalue(), context.file), "model type linkedModel");
  const std::string what = cat("linked model '", path, "'");
  const format::ModelFile file = MOKA_TRY_IN(format::open_model(path, {context.options.budget}), what);
  return import_other(file, MOKA_TRY(function_of(model, context)), what, context, builder, features);
}

Status import_serialized(const Model& model, const ImportContext& context, ir::Builder& builder, Features& features) {
  const auto& m = model.serializedmodel();
  const std::string what = cat("serialized model '", m.identifier(), "'");
  const Bytes bytes = Bytes::from(m.model());
  auto file = format::open_model_bytes(bytes, {}, {context.options.budget});
  if (!file.ok() && context.options.placeholders) return import_placeholder(model, what, context, builder, features);
  if (!file.ok())
    return fail(ErrorCode::unsupported, what, ": its ", m.model().size(),
                " bytes are of a form that is not known; expected a specification: ", file.error().to_string());
  return import_other(*file, MOKA_TRY(function_of(model, context)), what, context, builder, features);
}

Status import_link(const Model& model, const ImportContext& context, ir::Builder& builder, Features& features) {
  return model.Type_case() == Model::kLinkedModel ? import_linked(model, context, builder, features)
                                                  : import_serialized(model, context, builder, features);
}

}  // namespace

ModelImporter importer_linked() {
  static constexpr int types[] = {Model::kLinkedModel, Model::kSerializedModel};
  return {types, import_link};
}

}  // namespace moka::import

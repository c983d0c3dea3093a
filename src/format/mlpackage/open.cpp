// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "format/mlpackage/manifest.h"
#include "format/mlpackage/overlay.h"
#include "format/model_file_rep.h"
#include "format/proto/model.pb.h"

namespace moka::format {
namespace {

/// Returns whether there are overlays.
Result<bool> apply_overlays(const ModelFolder& folder, const std::string& data, const Manifest& manifest, bool verbatim,
                            proto::ModelDescription& description) {
  bool any = false;
  for (const PackageItem& item : manifest.items) {
    bool metadata = item.description == "External Metadata Overlay";
    bool features = item.description == "External FeatureDescription Overlay";
    if (!metadata && !features) continue;
    Bytes json = MOKA_TRY(folder.read(MOKA_TRY(folder.resolve(data, item.path))));
    MOKA_TRY(metadata ? apply_metadata_overlay(json, verbatim, description)
                      : apply_feature_overlay(json, verbatim, description));
    any = true;
  }
  return any;
}

Result<ModelFile> open_package(const std::string& path, const ModelFolder& folder, const OpenOptions& options) {
  auto rep = std::make_shared<ModelFile::Rep>();
  rep->container = Container::mlpackage;
  rep->path = path;
  Bytes json = MOKA_TRY(folder.read(MOKA_TRY(folder.resolve(folder.root(), "Manifest.json"))));
  Manifest manifest = MOKA_TRY(parse_manifest(json));
  std::string data = MOKA_TRY(folder.resolve(folder.root(), "Data"));
  // Names in the manifest cannot lead out of Data. Symbolic links of existing items must not lead out of it either.
  for (const PackageItem& item : manifest.items) {
    auto resolved = folder.resolve(data, item.path);
    if (!resolved.ok() && resolved.error().code() != ErrorCode::not_found)
      return std::move(std::move(resolved).error()).in(cat("item '", item.identifier, "'"));
  }
  const std::string& root = manifest.items[manifest.root].path;
  const std::string model = MOKA_TRY_IN(folder.resolve(data, root), "root model");
  if (folder.is_folder(model))
    return fail(ErrorCode::unsupported, "the root model '", root,
                "' is a folder; supported is a specification file (.mlmodel)");
  rep->raw = MOKA_TRY(folder.read(model));
  MOKA_TRY_IN(decode_file(rep->raw, options, *rep), cat("'", root, "'"));
  rep->overlaid = MOKA_TRY(
      apply_overlays(folder, data, manifest, options.verbatim_texts, *rep->decoded.model->mutable_description()));
  rep->specification_name = std::filesystem::path(root).stem().string();
  const std::string around = ModelFolder::parent(root);
  rep->weights = WeightStore::in_folder(folder, around.empty() ? data : MOKA_TRY(folder.resolve(data, around)));
  rep->items = std::move(manifest.items);
  return ModelFile(std::move(rep));
}

}  // namespace

Result<ModelFile> open_mlpackage(const std::string& path, const ModelFolder& folder, const OpenOptions& options) {
  return MOKA_TRY_IN(open_package(path, folder, options), place_of(path));
}

}  // namespace moka::format

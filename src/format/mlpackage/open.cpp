#include <filesystem>

#include "format/mlpackage/manifest.h"
#include "format/mlpackage/overlay.h"
#include "format/model_file_rep.h"
#include "format/path_guard.h"
#include "format/proto/model.pb.h"

namespace moka::format {
namespace {

namespace fs = std::filesystem;

Status apply_overlays(const std::string& root, const std::string& data, const Manifest& manifest,
                      proto::ModelDescription& description) {
  for (const PackageItem& item : manifest.items) {
    bool metadata = item.description == "External Metadata Overlay";
    bool features = item.description == "External FeatureDescription Overlay";
    if (!metadata && !features) continue;
    std::string path = MOKA_TRY(resolve_inside(root, data, item.path));
    Bytes json = MOKA_TRY(map_file(path));
    MOKA_TRY(metadata ? apply_metadata_overlay(json, description) : apply_feature_overlay(json, description));
  }
  return {};
}

Result<ModelFile> open_package(const std::string& path, const OpenOptions& options) {
  auto rep = std::make_shared<ModelFile::Rep>();
  rep->container = Container::mlpackage;
  rep->path = path;
  std::string root = MOKA_TRY(real_path(path));
  std::string manifest_path = MOKA_TRY(resolve_inside(root, root, "Manifest.json"));
  Bytes json = MOKA_TRY(map_file(manifest_path));
  Manifest manifest = MOKA_TRY(parse_manifest(json));
  std::string data = MOKA_TRY(resolve_inside(root, root, "Data"));
  // Names in the manifest cannot lead out of Data. Symbolic links of existing items must not lead out of it either.
  for (const PackageItem& item : manifest.items) {
    auto resolved = resolve_inside(root, data, item.path);
    if (!resolved.ok() && resolved.error().code() != ErrorCode::not_found)
      return std::move(std::move(resolved).error()).in(cat("item '", item.identifier, "'"));
  }
  std::string model = MOKA_TRY_IN(resolve_inside(root, data, manifest.items[manifest.root].path), "root model");
  std::error_code e;
  if (fs::is_directory(model, e))
    return fail(ErrorCode::unsupported, "the root model '", manifest.items[manifest.root].path,
                "' is a folder; supported is a specification file (.mlmodel)");
  rep->raw = MOKA_TRY(map_file(model));
  MOKA_TRY_IN(decode_file(rep->raw, options, *rep), cat("'", manifest.items[manifest.root].path, "'"));
  MOKA_TRY(apply_overlays(root, data, manifest, *rep->decoded.model->mutable_description()));
  rep->weights = MOKA_TRY(WeightStore::in_folder(root, fs::path(model).parent_path().string()));
  rep->items = std::move(manifest.items);
  return ModelFile(std::move(rep));
}

}  // namespace

Result<ModelFile> open_mlpackage(const std::string& path, const OpenOptions& options) {
  return MOKA_TRY_IN(open_package(path, options), cat("'", path, "'"));
}

}  // namespace moka::format

// SPDX-License-Identifier: Apache-2.0
#include "format/source.h"

#include <filesystem>

#include "format/mlpackage/manifest.h"
#include "format/mlpackage/write.h"
#include "format/model_file.h"
#include "format/path_guard.h"

namespace moka::format {
namespace {

namespace fs = std::filesystem;

Status read_files(const fs::path& root, const fs::path& place, ModelSource& source) {
  std::error_code ec;
  const fs::path base = place.parent_path();
  auto it = fs::recursive_directory_iterator(root, ec);
  for (; !ec && it != fs::recursive_directory_iterator(); it.increment(ec)) {
    if (!it->is_regular_file(ec)) continue;
    const fs::path name = it->path().lexically_relative(root);
    if (name == place) continue;
    const Bytes bytes = MOKA_TRY(map_file(MOKA_TRY(resolve_inside(root.string(), root.string(), name.string()))));
    const fs::path relative = name.lexically_relative(base);
    const bool beside = !relative.empty() && *relative.begin() != "..";
    if (beside)
      source.weights.emplace(relative.string(), Rope(bytes));
    else
      source.others.emplace(name.string(), Rope(bytes));
  }
  if (ec) return fail(ErrorCode::io, "'", root.string(), "': cannot be read: ", ec.message());
  return {};
}

/// Whether the model contains an ML program.
Result<bool> has_program(const Message& model) {
  const std::string type = MOKA_TRY(model.which("Type"));
  if (type == "mlProgram") return true;
  if (!type.starts_with("pipeline")) return false;
  const Message pipeline = MOKA_TRY(edit_pipeline(model.copy()));
  for (const Message& stage : MOKA_TRY(pipeline.children("models")))
    if (MOKA_TRY(has_program(stage))) return true;
  return false;
}

}  // namespace

std::map<std::string, Bytes> joined(const FileContents& files) {
  std::map<std::string, Bytes> out;
  for (const auto& [name, content] : files) out.emplace(name, content.joined());
  return out;
}

Result<ModelFile> open_source(const Message& specification, const FileContents& weights, const OpenOptions& options) {
  return open_model_bytes(MOKA_TRY(specification.serialize()).joined(), joined(weights), options);
}

Result<Message> edit_pipeline(Message model) {
  for (const char* type : {"pipeline", "pipelineClassifier", "pipelineRegressor"}) {
    if (MOKA_TRY(model.which("Type")) != type) continue;
    Message pipeline = MOKA_TRY(model.edit(type));
    return pipeline.def().name == "Pipeline" ? pipeline : pipeline.edit("pipeline");
  }
  return fail(ErrorCode::invalid_argument, "expected a pipeline, pipelineClassifier or pipelineRegressor, got ",
              MOKA_TRY(model.which("Type")));
}

Result<ModelSource> ModelSource::read(const std::string& path) {
  return read(MOKA_TRY(open_model(path, {.any_kind = true})));
}

Result<ModelSource> ModelSource::read(const ModelFile& file) {
  MOKA_TRY(refuse_encrypted(file, "changing it"));
  if (file.compiled() != nullptr)
    return fail(ErrorCode::invalid_argument, "'", file.path(),
                "': expected a model, got a compiled one; decompile it first");
  ModelSource source{MOKA_TRY(Message::parse("Model", file.raw()))};
  if (file.container() != Container::mlpackage) return source;
  const fs::path root = MOKA_TRY(real_path(file.path()));
  const Bytes json = MOKA_TRY(map_file((root / "Manifest.json").string()));
  const Manifest manifest = MOKA_TRY(parse_manifest(json));
  source.place = (fs::path("Data") / manifest.items[manifest.root].path).lexically_normal().string();
  MOKA_TRY(read_files(root, source.place, source));
  return source;
}

Status ModelSource::write(const std::string& path, bool force) const {
  std::string trimmed = path;
  while (trimmed.size() > 1 && trimmed.back() == '/') trimmed.pop_back();
  const bool package = fs::path(trimmed).extension() == ".mlpackage";
  if (!package && fs::path(trimmed).extension() != ".mlmodel")
    return fail(ErrorCode::invalid_argument, "'", path, "': expected a path that ends with .mlpackage or .mlmodel");
  if (!package && (!weights.empty() || MOKA_TRY(has_program(specification))))
    return fail(ErrorCode::invalid_argument, "'", path,
                "': expected a path that ends with .mlpackage: the model has an ML program or files of weights");
  Rope written = MOKA_TRY(specification.serialize());
  if (!package) return replace_file(std::move(written), trimmed, OutputKind::specification, force);
  if (place.empty())
    return replace_folder(package_files(std::move(written), weights), trimmed, OutputKind::package, force);
  FileContents files = others;
  const fs::path base = fs::path(place).parent_path();
  for (const auto& [name, content] : weights) files[(base / name).string()] = content;
  files[place] = std::move(written);
  return replace_folder(std::move(files), trimmed, OutputKind::package, force);
}

}  // namespace moka::format

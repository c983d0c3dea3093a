#include <filesystem>

#include "format/mlmodelc/coremldata.h"
#include "format/model_file_rep.h"
#include "format/path_guard.h"
#include "format/proto/model.pb.h"

namespace moka::format {
namespace {

constexpr int max_pipeline_depth = 16;
constexpr uint64_t max_stages = 65536;

/// Opens the compiled model in the folder `path`, part of the one whose real path is `root`. `left` limits the number
/// of models in all, so that links between folders cannot multiply them.
Result<ModelFile> open_compiled(const std::string& path, const std::string& root, const OpenOptions& options, int depth,
                                uint64_t& left);

Status open_stages(const std::string& folder, const std::string& root, const OpenOptions& options, int depth,
                   uint64_t& left, uint64_t count, ModelFile::Rep& rep) {
  if (depth >= max_pipeline_depth)
    return fail(ErrorCode::malformed, "pipelines nest deeper than ", max_pipeline_depth, " models");
  for (uint64_t i = 0; i < count; ++i) {
    if (left == 0) return fail(ErrorCode::malformed, "pipelines hold more than ", max_stages, " models");
    --left;
    std::string name = cat("model", i);
    std::string child = MOKA_TRY_IN(resolve_inside(root, folder, name), cat("pipeline of ", count, " models"));
    rep.children.push_back(MOKA_TRY_IN(open_compiled(child, root, options, depth + 1, left), name));
  }
  return {};
}

Result<ModelFile> open_compiled(const std::string& path, const std::string& root, const OpenOptions& options, int depth,
                                uint64_t& left) {
  auto rep = std::make_shared<ModelFile::Rep>();
  rep->container = Container::mlmodelc;
  rep->path = path;
  std::string folder = MOKA_TRY(real_path(path));
  std::string data_path = MOKA_TRY(resolve_inside(root, folder, "coremldata.bin"));
  rep->raw = MOKA_TRY(map_file(data_path));
  CoreMLData data = MOKA_TRY(parse_coremldata(rep->raw));
  rep->weights = MOKA_TRY(WeightStore::in_folder(root, folder));
  rep->compiled = std::make_unique<CompiledInfo>(
      CompiledInfo{data.type, {data.version[0], data.version[1], data.version[2]}, data.target, {}});
  auto metadata = resolve_inside(root, folder, "metadata.json");
  if (metadata.ok()) {
    rep->compiled->metadata_json = MOKA_TRY(map_file(*metadata));
  } else if (metadata.error().code() != ErrorCode::not_found) {
    return std::move(metadata).error();
  }

  if (data.target == "spec") {
    rep->decoded = MOKA_TRY(decode_model(data.spec, options.budget));
    if (static_cast<uint32_t>(rep->decoded.model->Type_case()) != data.type)
      return fail(ErrorCode::malformed, "coremldata.bin says model type ", data.type, ", its specification holds type ",
                  static_cast<int>(rep->decoded.model->Type_case()));
    return ModelFile(std::move(rep));
  }
  if (data.is_neural_network())
    return fail(ErrorCode::unsupported,
                "compiled neural networks (.mlmodelc of the espresso flavour) are not supported; the .mlmodel or "
                ".mlpackage it was made from is");
  rep->decoded = MOKA_TRY(decode_description(data.description, options.budget));
  proto::Model& model = *rep->decoded.model;
  model.set_specificationversion(static_cast<int32_t>(data.spec_version));
  if (data.is_program()) {
    std::string mil = MOKA_TRY_IN(resolve_inside(root, folder, "model.mil"), "compiled ML program");
    rep->mil_text = MOKA_TRY(map_file(mil));
    if (rep->mil_text.empty()) return fail(ErrorCode::malformed, "model.mil is empty");
  } else {
    switch (data.type) {
      case 200: model.mutable_pipelineclassifier(); break;
      case 201: model.mutable_pipelineregressor(); break;
      default: model.mutable_pipeline(); break;
    }
    MOKA_TRY(open_stages(folder, root, options, depth, left, data.stages, *rep));
  }
  return ModelFile(std::move(rep));
}

}  // namespace

Result<ModelFile> open_mlmodelc(const std::string& path, const OpenOptions& options) {
  std::string root = MOKA_TRY(real_path(path));
  uint64_t left = max_stages;
  return MOKA_TRY_IN(open_compiled(path, root, options, 0, left), cat("'", path, "'"));
}

}  // namespace moka::format

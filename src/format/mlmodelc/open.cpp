// SPDX-License-Identifier: Apache-2.0
#include "format/espresso/specification.h"
#include "format/file_kind.h"
#include "format/mlmodelc/coremldata.h"
#include "format/mlmodelc/stream.h"
#include "format/model_file_rep.h"
#include "format/proto/model.pb.h"

namespace moka::format {
namespace {

constexpr int max_pipeline_depth = 16;
constexpr uint64_t max_stages = 65536;

/// Opens the compiled model at the place `folder` of `files`. `left` limits the number of models in all, so that links
/// between folders cannot multiply them.
Result<ModelFile> open_compiled(const std::string& path, const ModelFolder& files, const std::string& folder,
                                const OpenOptions& options, int depth, uint64_t& left);

/// The kind of a compiled network and its class labels, for a network whose layers cannot be read.
void describe_network(const CoreMLData& data, proto::Model& model) {
  model.clear_Type();
  if (data.type == 303) {
    model.mutable_neuralnetworkregressor();
  } else if (data.type == 500) {
    model.mutable_neuralnetwork();
  } else {
    auto& classifier = *model.mutable_neuralnetworkclassifier();
    for (const auto& label : data.string_labels) classifier.mutable_stringclasslabels()->add_vector(label);
    for (const int64_t label : data.int64_labels) classifier.mutable_int64classlabels()->add_vector(label);
  }
}

Status open_stages(const std::string& folder, const ModelFolder& files, const OpenOptions& options, int depth,
                   uint64_t& left, uint64_t count, ModelFile::Rep& rep) {
  if (depth >= max_pipeline_depth)
    return fail(ErrorCode::malformed, "pipelines nest deeper than ", max_pipeline_depth, " models");
  for (uint64_t i = 0; i < count; ++i) {
    if (left == 0) return fail(ErrorCode::malformed, "pipelines hold more than ", max_stages, " models");
    --left;
    std::string name = cat("model", i);
    auto open = [&]() -> Result<ModelFile> {
      std::string child = MOKA_TRY_IN(files.resolve(folder, name), cat("pipeline of ", count, " models"));
      return MOKA_TRY_IN(open_compiled(cat(rep.path, "/", name), files, child, options, depth + 1, left), name);
    };
    auto child = open();
    if (!child.ok() && options.any_kind) return {};
    rep.children.push_back(MOKA_TRY(std::move(child)));
  }
  return {};
}

/// The file's bytes; empty when there is no such file.
Result<Bytes> optional_file(const std::string& folder, const ModelFolder& files, std::string_view name) {
  auto path = files.resolve(folder, name);
  if (path.ok()) return files.read(*path);
  if (path.error().code() == ErrorCode::not_found) return Bytes();
  return std::move(path).error();
}

/// The layers of a compiled neural network as those of a specification.
Status read_network(const std::string& folder, const ModelFolder& files, const CoreMLData& data,
                    const OpenOptions& options, ModelFile::Rep& rep) {
  auto file = [&](std::string_view name) -> Result<Bytes> {
    return files.read(MOKA_TRY_IN(files.resolve(folder, name), "compiled neural network"));
  };
  Bytes net_file = MOKA_TRY(file("model.espresso.net")), shape_file = MOKA_TRY(file("model.espresso.shape"));
  const size_t memory = espresso::json_memory(net_file.size() + shape_file.size());
  if (options.budget) MOKA_TRY(options.budget->take(memory, "layers of a compiled neural network"));
  auto read = [&]() -> Status {
    espresso::Network net = MOKA_TRY(espresso::parse_net(net_file));
    net.shapes = MOKA_TRY(espresso::parse_shapes(shape_file));
    net.blobs =
        MOKA_TRY(espresso::parse_weights(MOKA_TRY(file(net.storage.empty() ? "model.espresso.weights" : net.storage))));
    if (Bytes images = MOKA_TRY(optional_file(folder, files, "model/coremldata.bin")); !images.empty())
      net.transforms.merge(MOKA_TRY(espresso::parse_transforms(images)));
    Bytes optionals = MOKA_TRY(optional_file(folder, files, "neural_network_optionals/coremldata.bin"));
    return espresso::to_specification(net, data, espresso::parse_optionals(optionals), *rep.decoded.model,
                                      rep.decoded.payloads);
  };
  Status status = read();
  if (options.budget) options.budget->give_back(memory);
  return status;
}

Result<ModelFile> open_compiled(const std::string& path, const ModelFolder& files, const std::string& folder,
                                const OpenOptions& options, int depth, uint64_t& left) {
  auto rep = std::make_shared<ModelFile::Rep>();
  rep->container = Container::mlmodelc;
  rep->path = path;
  if (files.resolve(folder, "encryptionInfo").ok())
    return fail(ErrorCode::unsupported,
                "the model was encrypted by Apple's tools (encryptionInfo); only Apple's systems can fetch its key. "
                "Compile the model without --encrypt, and protect it with 'moka encrypt'");
  std::string data_path = MOKA_TRY(files.resolve(folder, "coremldata.bin"));
  rep->raw = MOKA_TRY(files.read(data_path));
  Result<CoreMLData> parsed = parse_coremldata(rep->raw);
  if (!parsed.ok())
    return foreign_or(std::move(parsed).error(), rep->raw, "the header of a compiled model").in("coremldata.bin");
  const CoreMLData data = *std::move(parsed);
  rep->weights = WeightStore::in_folder(files, folder);
  rep->compiled = std::make_unique<CompiledInfo>(
      CompiledInfo{data.type, {data.version[0], data.version[1], data.version[2]}, data.target, {}});
  rep->compiled->metadata_json = MOKA_TRY(optional_file(folder, files, "metadata.json"));

  if (data.target == "spec") {
    MOKA_TRY(decode_file(data.spec, options, *rep));
    if (static_cast<uint32_t>(rep->decoded.model->Type_case()) != data.type)
      return fail(ErrorCode::malformed, "coremldata.bin says model type ", data.type, ", its specification holds type ",
                  static_cast<int>(rep->decoded.model->Type_case()));
    return ModelFile(std::move(rep));
  }
  rep->remark = MOKA_TRY(check_version(static_cast<int>(data.spec_version), data.description, "ModelDescription"));
  rep->decoded = MOKA_TRY(decode_description(data.description, options.budget));
  proto::Model& model = *rep->decoded.model;
  model.set_specificationversion(static_cast<int32_t>(data.spec_version));
  if (data.is_neural_network()) {
    Status read = read_network(folder, files, data, options, *rep);
    if (!read.ok() && !options.any_kind) return std::move(read).error();
    if (!read.ok()) describe_network(data, model);
  } else if (data.is_program()) {
    auto mil = files.resolve(folder, "model.mil");
    if (!mil.ok() && options.any_kind) return ModelFile(std::move(rep));
    rep->mil_text = MOKA_TRY(files.read(MOKA_TRY_IN(std::move(mil), "compiled ML program")));
    if (rep->mil_text.text().find("program") == std::string_view::npos)
      return foreign_or(fail(ErrorCode::malformed, "expected MIL text, got no program"), rep->mil_text, "MIL text")
          .in("model.mil");
  } else {
    proto::Pipeline& pipeline = data.type == 200   ? *model.mutable_pipelineclassifier()->mutable_pipeline()
                                : data.type == 201 ? *model.mutable_pipelineregressor()->mutable_pipeline()
                                                   : *model.mutable_pipeline();
    MOKA_TRY(open_stages(folder, files, options, depth, left, data.stages, *rep));
    // The header does not say it, but only an updatable pipeline may hold an updatable model.
    model.set_isupdatable(!rep->children.empty() && rep->children.back().spec().isupdatable());
    if (const Bytes names = MOKA_TRY(optional_file(folder, files, "modelNames/coremldata.bin")); !names.empty()) {
      Stream in(names, "modelNames/coremldata.bin");
      for (std::string& name : MOKA_TRY(in.strings("names of models"))) pipeline.add_names(std::move(name));
    }
  }
  return ModelFile(std::move(rep));
}

}  // namespace

Result<ModelFile> open_mlmodelc(const std::string& path, const ModelFolder& folder, const OpenOptions& options) {
  uint64_t left = max_stages;
  return MOKA_TRY_IN(open_compiled(path, folder, folder.root(), options, 0, left), place_of(path));
}

}  // namespace moka::format

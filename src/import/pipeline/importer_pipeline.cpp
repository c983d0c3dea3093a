// SPDX-License-Identifier: Apache-2.0
#include "format/model_file.h"
#include "format/proto/model.pb.h"
#include "import/importer.h"
#include "import/model_type.h"
#include "import/outline.h"
#include "import/pipeline/thresholds.h"

namespace moka::import {
namespace {

using ir::NamedArg;
using ir::Tensor;
using ir::Type;
using ir::Value;
using proto::Model;

constexpr int kMaxNestedPipelines = 16;

bool is_neural_network(const Model& m) {
  return m.Type_case() == Model::kNeuralNetwork || m.Type_case() == Model::kNeuralNetworkClassifier ||
         m.Type_case() == Model::kNeuralNetworkRegressor;
}

/// A value in the form that a stage expects. Pipelines and ML programs convert their inputs themselves; other models
/// get arrays of the element type and shape that ImportedModel specifies.
Result<Value*> adapt(const Model& stage, const FeatureDescription& feature, Value* v, ir::Builder& builder,
                     const std::string& prefix, const ImportOptions& options) {
  if (format::pipeline_of(stage) != nullptr || stage.Type_case() == Model::kMlProgram ||
      stage.Type_case() == Model::TYPE_NOT_SET)
    return v;
  if (feature.kind == FeatureKind::image || !v->type.is_tensor() || v->type.dtype() == ir::DType::string) return v;
  Type wanted = MOKA_TRY(boundary_type(feature, !is_neural_network(stage)));
  if (!wanted.is_tensor() || wanted.dtype() == ir::DType::string) return v;
  const Type given = options.rows ? without_rows(v->type) : v->type;
  const bool sequences = (options.sequences || options.batches) && is_neural_network(stage) && given.rank() == 5;
  const bool reshape = !sequences && wanted.is_ranked() && wanted.is_concrete() && given.is_ranked() &&
                       !(wanted.shape() == given.shape());
  if (!reshape && wanted.dtype() == given.dtype()) return v;
  std::vector<NamedArg> args{{"x", v}, {"dtype", std::string(to_string(wanted.dtype()))}};
  if (options.rows) args.emplace_back("rows", true);
  if (reshape) args.emplace_back("shape", Tensor::i32(wanted.shape().dims()));
  return builder.op("ml_convert", std::move(args), cat(prefix, feature.name));
}

Status import_stage(const format::ModelFile::Stage& stage, const ImportContext& outer, const std::string& prefix,
                    ir::Builder& builder, Features& known) {
  ModelDescription d = MOKA_TRY(describe(*stage.model, stage.file));
  if (d.type_name.empty()) return fail(ErrorCode::malformed, "it holds no model of a known type");
  const FunctionDescription* f = d.function(d.default_function);
  if (f == nullptr) return fail(ErrorCode::malformed, "it describes no inputs and outputs");
  Features local;
  for (const FeatureDescription& feature : f->inputs) {
    auto it = known.find(feature.name);
    if (it != known.end()) {
      local[feature.name] = MOKA_TRY_IN(adapt(*stage.model, feature, it->second, builder, prefix, outer.options),
                                        cat("input '", feature.name, "'"));
    } else if (!feature.optional) {
      return fail(ErrorCode::malformed, "no earlier model and no input of the pipeline gives '", feature.name, "'");
    }
  }
  for (const auto& [name, value] : thresholds(*stage.model, stage.file))
    if (const auto it = known.find(name); it != known.end()) local.emplace(name, it->second);
  for (const FeatureDescription& state : f->states) {
    const auto it = known.find(state.name);
    if (it == known.end()) return fail(ErrorCode::malformed, "the pipeline does not keep its state '", state.name, "'");
    const Type wanted = MOKA_TRY(boundary_type(state, true));
    if (!(it->second->type == wanted))
      return fail(ErrorCode::malformed, "state '", state.name, "': expected ", wanted, ", got ", it->second->type);
    local[state.name] = it->second;
  }
  ImportContext context{stage.file, outer.options, prefix, outer.depth + 1, outer.update};
  Features results = std::move(local);
  MOKA_TRY(import_into(*stage.model, context, builder, results));
  for (const FeatureDescription& feature : f->outputs) {
    auto it = results.find(feature.name);
    if (it == results.end()) return fail(ErrorCode::internal, "it did not give its output '", feature.name, "'");
    known[feature.name] = it->second;
  }
  return {};
}

/// "model 1 of the pipeline ('suppression', nonMaximumSuppression)".
std::string stage_name(const Model& pipeline, const format::ModelFile::Stage& stage, size_t i) {
  const std::vector<std::string> names = outline_names(pipeline);
  std::string details = i < names.size() && !names[i].empty() ? cat("'", names[i], "'") : "";
  if (const auto type = model_type_name(model_type(*stage.model, stage.file)); !type.empty())
    details += cat(details.empty() ? "" : ", ", type);
  return cat("model ", i, " of the pipeline", details.empty() ? "" : cat(" (", details, ")"));
}

Status import_pipeline(const Model& model, const ImportContext& context, ir::Builder& builder, Features& features) {
  if (context.depth >= kMaxNestedPipelines)
    return fail(ErrorCode::unsupported, "pipelines nested more than ", kMaxNestedPipelines, " deep");
  std::vector<format::ModelFile::Stage> stages = context.file.stages(model);
  if (stages.empty()) return fail(ErrorCode::malformed, "pipeline without models");
  ModelDescription d = MOKA_TRY(describe(model, context.file));
  const FunctionDescription* f = d.function(d.default_function);
  if (f == nullptr) return fail(ErrorCode::malformed, "pipeline without inputs and outputs");
  Features known;
  for (const FeatureDescription& feature : f->inputs) {
    auto it = features.find(feature.name);
    if (it != features.end())
      known[feature.name] = it->second;
    else if (!feature.optional)
      return fail(ErrorCode::not_found, "pipeline: input '", feature.name, "' has no value");
  }
  for (const FeatureDescription& state : f->states)
    if (const auto it = features.find(state.name); it != features.end()) known[state.name] = it->second;
  for (const auto& [name, value] : thresholds(model, context.file))
    if (const auto it = features.find(name); it != features.end()) known.emplace(name, it->second);
  for (size_t i = 0; i < stages.size(); ++i)
    MOKA_TRY_IN(import_stage(stages[i], context, cat(context.prefix, "model", i, "_"), builder, known),
                stage_name(model, stages[i], i));
  for (const FeatureDescription& feature : f->outputs) {
    auto it = known.find(feature.name);
    if (it == known.end())
      return fail(ErrorCode::malformed, "pipeline: no model gives the output '", feature.name, "'");
    features[feature.name] = it->second;
  }
  return {};
}

}  // namespace

ModelImporter importer_pipeline() {
  static constexpr int types[] = {Model::kPipeline, Model::kPipelineClassifier, Model::kPipelineRegressor};
  return {types, import_pipeline, true};
}

}  // namespace moka::import

#include "api/structure.h"

#include "format/model_file.h"
#include "format/proto/model.pb.h"
#include "import/mlprogram/program.h"
#include "import/model_type.h"
#include "import/neuralnetwork/network.h"

namespace moka::api {

using import::ImportOptions;

namespace {

constexpr int kMaxDepth = 16;

ModelStructure::Block block_of(const ir::Block& block);

ModelStructure::Operation operation_of(const ir::Op& op) {
  ModelStructure::Operation out;
  out.name = op.name;
  out.type = op.type_name();
  for (const ir::Operand& operand : op.operands()) {
    std::vector<std::string> names;
    for (const ir::Value* v : operand.values)
      if (!v->is_inline_constant()) names.push_back(v->name);
    out.inputs.emplace_back(op.version().params[static_cast<size_t>(operand.param)].name, std::move(names));
  }
  for (size_t i = 0; i < op.output_count(); ++i) out.outputs.emplace_back(op.output(i)->name, cat(op.output(i)->type));
  for (size_t i = 0; i < op.block_count(); ++i) out.blocks.push_back(block_of(*op.block(i)));
  return out;
}

ModelStructure::Block block_of(const ir::Block& block) {
  ModelStructure::Block out;
  for (const auto& v : block.inputs()) out.inputs.emplace_back(v->name, cat(v->type));
  for (const auto& op : block.ops()) out.operations.push_back(operation_of(*op));
  for (const ir::Value* v : block.outputs()) out.outputs.push_back(v->name);
  return out;
}

template <class Layers>
std::vector<ModelStructure::Layer> layers_of(const Layers& layers) {
  std::vector<ModelStructure::Layer> out;
  for (const proto::NeuralNetworkLayer& l : layers) {
    const import::nn::LayerImport* known = import::nn::find_layer(l.layer_case());
    out.push_back({l.name(),
                   known != nullptr ? std::string(known->name) : cat("layer ", static_cast<int>(l.layer_case())),
                   {l.input().begin(), l.input().end()},
                   {l.output().begin(), l.output().end()}});
  }
  return out;
}

Result<ModelStructure> structure_of(const proto::Model& model, const format::ModelFile& file,
                                    const ImportOptions& options, int depth) {
  ModelStructure out;
  const int type = import::model_type(model, file);
  out.type = import::model_type_name(type);
  if (depth > kMaxDepth) return fail(ErrorCode::malformed, "models nested more than ", kMaxDepth, " deep");
  switch (type) {
    case import::kMLProgram: {
      const import::ModelDescription d = MOKA_TRY(import::describe(model));
      out.functions = functions_of(MOKA_TRY(import::import_program(model, file, options, d)));
      break;
    }
    case proto::Model::kNeuralNetwork: out.layers = layers_of(model.neuralnetwork().layers()); break;
    case proto::Model::kNeuralNetworkClassifier:
      out.layers = layers_of(model.neuralnetworkclassifier().layers());
      break;
    case proto::Model::kNeuralNetworkRegressor: out.layers = layers_of(model.neuralnetworkregressor().layers()); break;
    case proto::Model::kPipeline:
    case proto::Model::kPipelineClassifier:
    case proto::Model::kPipelineRegressor: {
      const proto::Pipeline& p = type == proto::Model::kPipeline             ? model.pipeline()
                                 : type == proto::Model::kPipelineClassifier ? model.pipelineclassifier().pipeline()
                                                                             : model.pipelineregressor().pipeline();
      int i = 0;
      for (const auto& stage : file.stages(model)) {
        std::string name = i < p.names_size() ? p.names(i) : cat("model", i);
        out.models.emplace_back(std::move(name), MOKA_TRY(structure_of(*stage.model, stage.file, options, depth + 1)));
        ++i;
      }
      break;
    }
    default: break;
  }
  return out;
}

}  // namespace

std::vector<ModelStructure::Function> functions_of(const ir::Program& program) {
  std::vector<ModelStructure::Function> out;
  for (const auto& f : program.functions)
    out.push_back({f->name, std::string(ir::to_string(f->opset)), block_of(f->body())});
  return out;
}

Result<ModelStructure> structure_of(const format::ModelFile& file, const ImportOptions& options) {
  return structure_of(file.spec(), file, options, 0);
}

}  // namespace moka::api

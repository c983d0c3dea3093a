#include "api/structure.h"

#include "format/model_file.h"
#include "import/mlprogram/program.h"
#include "import/model_type.h"
#include "import/outline.h"

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

Result<ModelStructure> structure_of(const proto::Model& model, const format::ModelFile& file,
                                    const import::ImportOptions& options, int depth) {
  ModelStructure out;
  const int type = import::model_type(model, file);
  out.type = import::model_type_name(type);
  if (depth > kMaxDepth) return fail(ErrorCode::malformed, "models nested more than ", kMaxDepth, " deep");
  if (type == import::kMLProgram) {
    const import::ModelDescription d = MOKA_TRY(import::describe(model));
    out.functions = functions_of(MOKA_TRY(import::import_program(model, file, options, d)));
    return out;
  }
  for (import::OutlineLayer& l : import::outline_layers(model))
    out.layers.push_back({std::move(l.name), std::move(l.type), std::move(l.inputs), std::move(l.outputs)});
  std::vector<std::string> names = import::outline_names(model);
  for (const auto& stage : file.stages(model)) {
    const size_t i = out.models.size();
    ModelStructure structure = MOKA_TRY(structure_of(*stage.model, stage.file, options, depth + 1));
    out.models.push_back({i < names.size() ? names[i] : cat("model", i), std::move(structure)});
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

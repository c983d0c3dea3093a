// SPDX-License-Identifier: Apache-2.0
#include "editing/infer.h"

#include <algorithm>
#include <functional>

#include "editing/program.h"
#include "format/model_file.h"
#include "import/importer.h"
#include "import/mlprogram/program.h"
#include "import/neuralnetwork/blob_sizes.h"

namespace moka::editing {
namespace {

/// Calls `visit` for the declared results of operations other than constants, and for the inputs of blocks.
Status for_results(const Message& block, const std::function<Status(Message)>& visit) {
  for (const Message& op : MOKA_TRY(block.children("operations"))) {
    if (MOKA_TRY(has_text(op, "type", "const"))) continue;
    for (const Message& output : MOKA_TRY(op.children("outputs"))) MOKA_TRY(visit(output));
    for (const Message& inner : MOKA_TRY(op.children("blocks"))) {
      for (const Message& input : MOKA_TRY(inner.children("inputs"))) MOKA_TRY(visit(input));
      MOKA_TRY(for_results(inner, visit));
    }
  }
  return {};
}

void add_types(const ir::Block& block, std::map<std::string, ir::Type>& out) {
  for (const auto& input : block.inputs()) out[input->name] = input->type;
  for (const auto& op : block.ops()) {
    for (size_t i = 0; i < op->output_count(); ++i) out[op->output(i)->name] = op->output(i)->type;
    for (size_t i = 0; i < op->block_count(); ++i) add_types(*op->block(i), out);
  }
}

/// Whether a prediction can return a value of the type as the feature.
bool is_described_as(import::FeatureKind described, const ir::Type& computed) {
  using Kind = import::FeatureKind;
  if (described == Kind::sequence) return true;
  if (described == Kind::dictionary) return computed.is_dict();
  if (!computed.is_tensor()) return false;
  return (described == Kind::string) == (computed.dtype() == ir::DType::string);
}

}  // namespace

Status check_import(const format::ModelSource& source) {
  const format::ModelFile file = MOKA_TRY(format::open_source(source.specification, source.weights, {}));
  const import::ImportedModel model = MOKA_TRY(import::import_model(file, {}));
  for (const import::FunctionDescription& described : model.description.functions) {
    const ir::Function* function = model.program.find(described.name);
    if (function == nullptr || function->body().outputs().size() != described.outputs.size()) continue;
    for (size_t i = 0; i < described.outputs.size(); ++i) {
      const ir::Type& type = function->body().outputs()[i]->type;
      if (!is_described_as(described.outputs[i].kind, type))
        return fail(ErrorCode::malformed, "output '", described.outputs[i].name, "': the model computes ", type,
                    ", which is not what is described");
    }
  }
  return {};
}

Result<std::map<std::string, std::vector<int64_t>>> network_sizes(const format::ModelSource& source) {
  const format::ModelFile file = MOKA_TRY(format::open_source(source.specification, source.weights, {}));
  return import::nn::blob_sizes(file);
}

std::vector<int64_t> described_size(std::vector<int64_t> size, bool is_exact) {
  if (is_exact || size.size() != 5) return size;
  size.erase(size.begin(), size.begin() + 2);
  if (size[1] == 1 && size[2] == 1) size.resize(1);
  return size;
}

namespace {

/// The declared results of each function, in the order of the program.
Result<std::vector<std::vector<Message>>> results_of(const Message& model) {
  std::vector<std::vector<Message>> out;
  for (const ProgramFunction& function : MOKA_TRY(program_functions(model))) {
    std::vector<Message>& mine = out.emplace_back();
    MOKA_TRY(for_results(function.block, [&](const Message& named) -> Status {
      mine.push_back(named);
      return {};
    }));
  }
  return out;
}

}  // namespace

Result<std::map<std::string, std::map<std::string, ir::Type>>> infer_types(const format::ModelSource& source) {
  const Message copy = source.specification.copy();
  for (const ProgramFunction& function : MOKA_TRY(program_functions(copy)))
    MOKA_TRY(for_results(function.block, [](Message named) -> Status {
      std::optional<TensorType> type = MOKA_TRY(tensor_type(MOKA_TRY(child_or_empty(named, "type"))));
      if (!type) return {};
      std::fill(type->shape.begin(), type->shape.end(), -1);
      return named.set("type", MOKA_TRY(make_type(*type)));
    }));
  const format::ModelFile file = MOKA_TRY(format::open_source(copy, source.weights, {}));
  const import::ModelDescription description = MOKA_TRY(import::describe_model(file));
  const ir::Program program = MOKA_TRY(import::import_program(file, {}, description));
  std::map<std::string, std::map<std::string, ir::Type>> out;
  for (const auto& function : program.functions) add_types(function->body(), out[function->name]);
  return out;
}

Status infer_again(format::ModelSource& source) {
  // Types are inferred by name, which values of sibling blocks may share.
  const format::ModelSource distinct{source.specification.copy(), source.weights};
  for (const ProgramFunction& function : MOKA_TRY(program_functions(distinct.specification)))
    MOKA_TRY(make_names_unique(function));
  const auto types = MOKA_TRY(infer_types(distinct));
  const std::vector<ProgramFunction> functions = MOKA_TRY(program_functions(source.specification));
  const auto results = MOKA_TRY(results_of(source.specification)), names = MOKA_TRY(results_of(distinct.specification));
  for (size_t f = 0; f < functions.size(); ++f) {
    const auto& inferred = types.at(functions[f].name);
    for (size_t i = 0; i < results[f].size(); ++i) {
      std::optional<TensorType> type = MOKA_TRY(tensor_type(MOKA_TRY(child_or_empty(results[f][i], "type"))));
      const auto found = inferred.find(MOKA_TRY(text_of(names[f][i], "name")));
      if (!type || found == inferred.end() || !found->second.is_tensor() || !found->second.is_ranked()) continue;
      const TensorType old = *type;
      type->shape.clear();
      for (int64_t size : found->second.shape()) type->shape.push_back(size < 0 ? -1 : size);
      if (*type != old) MOKA_TRY(Message(results[f][i]).set("type", MOKA_TRY(make_type(*type))));
    }
  }
  return {};
}

}  // namespace moka::editing

// SPDX-License-Identifier: Apache-2.0
#include "import/mlprogram/program.h"

#include <algorithm>
#include <utility>

#include "format/model_file.h"
#include "format/proto/model.pb.h"
#include "import/mlprogram/block.h"
#include "import/mlprogram/value.h"
#include "ir/text_reader.h"

namespace moka::import {

using namespace ir;
namespace mil = proto::MILSpec;

namespace {

template <class Values>
Status read_attributes(const Values& values, const ProgramSource& source, std::map<std::string, Constant>& out) {
  for (const auto& [key, value] : values)
    out.emplace(key, MOKA_TRY_IN(import_value(value, source.file, source.budget), cat("attribute '", key, "'")));
  return {};
}

Status import_function(const mil::Function& function, const ProgramSource& source, Function& f) {
  const auto block = function.block_specializations().find(function.opset());
  if (block == function.block_specializations().end())
    return fail(ErrorCode::malformed, "expected a block for opset '", function.opset(), "', got none");
  Scope scope;
  int64_t symbol = kAnyDim - 1;
  for (const auto& input : function.inputs()) {
    Type type = MOKA_TRY_IN(import_type(input.type()), cat("input '", input.name(), "'"));
    if (scope.find(input.name()) != nullptr)
      return fail(ErrorCode::malformed, "input '", input.name(), "' is declared twice");
    if (source.sizes != nullptr) type = with_sizes(std::move(type), *source.sizes, input.name());
    if (type.is_tensor() && type.is_ranked())
      for (int i = 0; i < type.rank(); ++i)
        if (type.shape()[i] == kAnyDim) type.shape()[i] = symbol--;
    scope.add(input.name(), f.body().add_input(f.unique_name(input.name()), std::move(type)));
  }
  MOKA_TRY(read_attributes(function.attributes(), source, f.attributes));
  Builder builder(ops::table(), f.body());
  f.body().set_outputs(MOKA_TRY(import_block(block->second, source, builder, scope)));
  return {};
}

Result<Program> from_messages(const mil::Program& message, const ProgramSource& source) {
  Program program;
  MOKA_TRY(read_attributes(message.attributes(), source, program.attributes));
  std::map<std::string, const mil::Function*> functions;
  for (const auto& [name, function] : message.functions()) functions.emplace(name, &function);
  for (const auto& [name, function] : functions) {
    const auto opset = opset_from_string(function->opset());
    if (!opset)
      return fail(ErrorCode::unsupported, "function '", name, "': opset '", function->opset(), "' is not known");
    program.functions.push_back(std::make_unique<Function>(name, *opset));
    MOKA_TRY_IN(import_function(*function, source, *program.functions.back()), cat("function '", name, "'"));
  }
  return program;
}

Result<Program> from_text(const ProgramSource& source) {
  const format::ModelFile& file = source.file;
  TextOptions options;
  options.budget = source.budget;
  options.sizes = source.sizes;
  options.placeholders = source.placeholders;
  options.blob = [&](std::string_view path, uint64_t offset, const Type& type) {
    return import_blob(file.weights(), path, offset, type);
  };
  return MOKA_TRY_IN(read_text(file.mil_text().text(), ops::table(), options), "model.mil");
}

/// Matches each described feature with its value: inputs by name, outputs by name or, where names differ, by position.
Status match_description(Function& f, const FunctionDescription& d) {
  for (const auto* list : {&d.inputs, &d.states})
    for (const FeatureDescription& feature : *list) {
      const auto inputs = f.body().inputs();
      if (std::none_of(inputs.begin(), inputs.end(), [&](const auto& v) { return v->name == feature.name; }))
        return fail(ErrorCode::malformed, "input '", feature.name, "' is described, but the program does not have it");
    }
  for (const auto& v : f.body().inputs()) {
    const auto same = [&](const FeatureDescription& feature) { return feature.name == v->name; };
    if (std::none_of(d.inputs.begin(), d.inputs.end(), same) && std::none_of(d.states.begin(), d.states.end(), same))
      return fail(ErrorCode::malformed, "the program's input '", v->name, "' is not described");
  }
  const auto outputs = f.body().outputs();
  if (outputs.size() != d.outputs.size())
    return fail(ErrorCode::malformed, "expected ", d.outputs.size(), " outputs as described, got ", outputs.size());
  std::vector<Value*> ordered;
  for (const FeatureDescription& feature : d.outputs) {
    const auto it =
        std::find_if(outputs.begin(), outputs.end(), [&](const Value* v) { return v->name == feature.name; });
    if (it != outputs.end()) ordered.push_back(*it);
  }
  if (ordered.size() == outputs.size()) f.body().set_outputs(std::move(ordered));
  return {};
}

}  // namespace

namespace {

Result<Program> read_program(const proto::Model& model, const format::ModelFile& file, const ProgramSource& source) {
  if (model.has_mlprogram()) return from_messages(model.mlprogram(), source);
  if (&model == &file.spec() && !file.mil_text().empty()) return from_text(source);
  return fail(ErrorCode::malformed, "expected an ML program, got none");
}

}  // namespace

Result<Program> import_program(const proto::Model& model, const format::ModelFile& file, const ImportOptions& options,
                               const ModelDescription& description) {
  const ProgramSource source{file, options.budget.get(), &options.sizes, options.placeholders};
  const auto reading = file.weights().read_files();
  Result<Program> read = read_program(model, file, source);
  // The whole file is missing, so the error names the file and not the first operation that reads it.
  if (!read.ok() && read.error().code() == ErrorCode::not_found)
    return fail(ErrorCode::not_found, read.error().message());
  if (!read.ok()) return std::move(read).error();
  Program program = std::move(read).value();
  for (const FunctionDescription& d : description.functions) {
    Function* f = program.find(d.name);
    if (f == nullptr)
      return fail(ErrorCode::malformed, "function '", d.name, "' is described, but the program does not have it");
    MOKA_TRY_IN(match_description(*f, d), cat("function '", d.name, "'"));
  }
  return program;
}

Result<Program> import_program(const format::ModelFile& file, const ImportOptions& options,
                               const ModelDescription& description) {
  return import_program(file.spec(), file, options, description);
}

}  // namespace moka::import

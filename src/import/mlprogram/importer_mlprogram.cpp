// SPDX-License-Identifier: Apache-2.0
#include "format/model_file.h"
#include "format/proto/model.pb.h"
#include "import/importer.h"
#include "import/mlprogram/program.h"
#include "import/model_type.h"
#include "ir/inline.h"

namespace moka::import {

namespace {

/// A feature with the element type that the ML program declares.
Result<ir::Value*> convert(ir::Builder& builder, ir::Value* v, const ir::Type& wanted, const std::string& name) {
  if (!v->type.is_tensor() || !wanted.is_tensor() || v->type.dtype() == wanted.dtype()) return v;
  return builder.op("cast", {{"x", v}, {"dtype", std::string(ir::to_string(wanted.dtype()))}}, name);
}

/// An ML program as one stage of a pipeline: its default function, inlined.
Status import_stage(const proto::Model& model, const ImportContext& context, ir::Builder& builder, Features& features) {
  const ModelDescription description = MOKA_TRY(describe(model, context.file));
  const ir::Program program = MOKA_TRY(import_program(model, context.file, context.options, description));
  const ir::Function& f = *program.find(description.default_function);
  const FunctionDescription& d = *description.function(description.default_function);
  std::vector<ir::Value*> inputs;
  for (const auto& input : f.body().inputs()) {
    const auto it = features.find(input->name);
    if (it == features.end())
      return fail(ErrorCode::malformed, "ML program: its input '", input->name, "' is computed by nothing");
    inputs.push_back(MOKA_TRY(convert(builder, it->second, input->type, cat(context.prefix, input->name, "_cast"))));
  }
  const auto outputs = MOKA_TRY(ir::inline_function(builder, f, inputs, context.prefix));
  for (size_t i = 0; i < outputs.size(); ++i) features[d.outputs[i].name] = outputs[i];
  return {};
}

constexpr int kTypes[] = {kMLProgram};

}  // namespace

ModelImporter importer_mlprogram() { return {kTypes, import_stage}; }

}  // namespace moka::import

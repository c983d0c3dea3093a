// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "api/build.h"
#include "api/internal.h"
#include "api/program_impl.h"
#include "compiler/place_weights.h"
#include "ir/inline.h"

namespace moka {

namespace {

/// The names of Moka's own operations begin with these.
constexpr std::string_view kOwnPrefixes[] = {"nn_", "ml_", "moka_"};

/// The version of the specification that has the opset: 6 for iOS 15, 10 for iOS 26.
int version_of(ir::Opset opset) {
  constexpr int newest = 10, difference = 9;
  return opset >= ir::Opset::ios26 ? newest : std::max(static_cast<int>(opset) - difference, 6);
}

}  // namespace

void ProgramBuilder::Impl::check_outputs() const {
  if (parts.empty()) throw Exception(ErrorKind::invalid_argument, "program: it has no function");
  for (const Part& part : parts)
    if (part.outputs.empty())
      throw Exception(ErrorKind::invalid_argument, cat("function '", part.function->name, "': it has no output"));
}

Message ProgramBuilder::Impl::describing_model() const {
  check_outputs();
  ModelDescription description = texts;
  description.functions.clear();
  for (const Part& part : parts) description.functions.push_back(part.described);
  description.default_function = description.functions[0].name;
  if (description.functions.size() == 1 && description.default_function == "main")
    description.functions[0].name.clear();
  description.specification_version = version_of(opset);
  Message model = describe_model(description);
  if (description.functions.size() > 1 && opset < ir::Opset::ios18)
    throw Exception(ErrorKind::invalid_argument,
                    cat("program: expected opset ios18 or later for several functions, got ", to_string(opset)));
  return model;
}

format::ModelSource ProgramBuilder::Impl::write() const {
  Message model = describing_model();
  format::WeightFile weights;
  compiler::MessageOptions options;
  options.constants_as_operations = true;
  options.place = compiler::place_in(weights, opset);
  const std::string message = compiler::serialize_program(program, options);
  model.set("mlProgram", Message::parse("MILSpec.Program", std::as_bytes(std::span(message))));
  format::ModelSource out{model.impl().message};
  if (!weights.empty()) out.weights["weights/weight.bin"] = weights.content();
  return out;
}

Result<ir::Program> ProgramBuilder::Impl::copy() const {
  format::WeightFile weights;
  const auto place = compiler::place_in(weights, opset);
  return ir::copy_program(program, ops::table(), [&](ir::Constant& constant) {
    if (auto at = place(constant)) {
      constant.blob_path = std::move(at->file);
      constant.blob_offset = at->offset;
    }
  });
}

ModelSource ProgramBuilder::source() const { return ModelSource(std::make_shared<ModelSource::Impl>(impl_->write())); }

std::vector<std::string> operations_of(const std::string& opset) {
  const auto o = ir::opset_from_string(opset);
  if (!o) throw Exception(ErrorKind::invalid_argument, cat("opset: expected ios15 to ios26, got '", opset, "'"));
  std::vector<std::string> out;
  for (const ir::OpDef& def : ops::table().defs()) {
    const bool own = std::any_of(std::begin(kOwnPrefixes), std::end(kOwnPrefixes),
                                 [&](std::string_view prefix) { return def.name.starts_with(prefix); });
    if (!own && def.at(*o) != nullptr) out.push_back(def.name);
  }
  return out;
}

std::vector<OperationParameter> parameters_of(const std::string& operation, const std::string& opset) {
  const auto o = ir::opset_from_string(opset);
  if (!o) throw Exception(ErrorKind::invalid_argument, cat("opset: expected ios15 to ios26, got '", opset, "'"));
  const ir::OpVersion* version = api::unwrap(ops::table().resolve(operation, *o));
  std::vector<OperationParameter> out;
  for (const ir::ParamDef& p : version->params) {
    if (p.internal) continue;
    std::string type = p.kind == ir::ParamKind::tensor  ? ir::to_string(version->domain(p))
                       : p.kind == ir::ParamKind::list  ? "a list"
                       : p.kind == ir::ParamKind::dict  ? "a dictionary"
                       : p.kind == ir::ParamKind::state ? "a state"
                                                        : "anything";
    out.push_back({p.name, std::move(type), p.constant, p.optional});
  }
  return out;
}

}  // namespace moka

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "import/importer.h"
#include "ir/registered.h"

/// Models that a program registers: classes of custom models, and replacements for models of Apple's systems.
namespace moka::import {

/// How a model file describes such a model.
struct CustomModelSpec {
  std::string name;  ///< by which it is registered
  std::string description;
  std::map<std::string, ir::Constant> parameters;  ///< bytes are tensors of uint8
  FunctionDescription function;
};

/// An entry of the process's registry: code or a file.
struct RegisteredModel {
  std::function<Result<std::shared_ptr<const ir::Registered>>(CustomModelSpec spec)> make;
  std::string path;
};

/// Adds an entry, or replaces the one of the same name.
void register_model(const std::string& name, RegisteredModel entry);
/// Removes an entry. Returns whether there was one.
bool unregister_model(std::string_view name);
std::shared_ptr<const RegisteredModel> registered_model(std::string_view name);
std::vector<std::string> registered_model_names();
using RegisteredModels = std::map<std::string, std::shared_ptr<const RegisteredModel>, std::less<>>;
RegisteredModels registered_models();
void set_registered_models(RegisteredModels all);

/// A phrase that says what a program must register for a model of that type; "" if nothing.
std::string_view needs_of(int type);

/// The inputs and outputs of a model that stands for code or for another file. Error malformed: it describes none.
Result<FunctionDescription> function_of(const proto::Model& model, const ImportContext& context);
/// Imports `entry` in place of `model`, whose description gives the inputs and outputs. Errors: unsupported (the
/// registered file has other inputs or outputs); those of its import.
Status import_registered(const RegisteredModel& entry, CustomModelSpec spec, const ImportContext& context,
                         ir::Builder& builder, Features& features);
/// Imports a placeholder of `model`, which gives what the description says (ImportOptions::placeholders). `what` names
/// it.
Status import_placeholder(const proto::Model& model, const std::string& what, const ImportContext& context,
                          ir::Builder& builder, Features& features);
/// Imports the model of another file in the place of one that `outer` describes. `what` names it in errors.
Status import_other(const format::ModelFile& file, const FunctionDescription& outer, const std::string& what,
                    const ImportContext& context, ir::Builder& builder, Features& features);

/// The folders in which linked models may lie. None unless set.
void set_linked_folders(std::vector<std::string> folders);
std::vector<std::string> linked_folders();

}  // namespace moka::import

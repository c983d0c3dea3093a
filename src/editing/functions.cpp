// SPDX-License-Identifier: Apache-2.0
#include "editing/functions.h"

#include "editing/program.h"
#include "editing/weights.h"

namespace moka::editing {
namespace {

constexpr int kFunctions = 9;  // of the specification, which has functions
constexpr const char* kFields[] = {"input", "output", "state"};
constexpr const char* kTexts[] = {"predictedFeatureName", "predictedProbabilitiesName"};

/// Moves features from one interface to another.
Status copy_features(const Message& from, Message to) {
  for (const char* field : kFields) MOKA_TRY(to.set_all(field, MOKA_TRY(from.children(field))));
  for (const char* field : kTexts) MOKA_TRY(set_text(to, field, MOKA_TRY(text_of(from, field))));
  return {};
}

Status clear_features(Message from) {
  for (const char* field : kFields) MOKA_TRY(from.clear(field));
  for (const char* field : kTexts) MOKA_TRY(from.clear(field));
  return {};
}

Status check_program(const Message& model, std::string_view what) {
  const std::string kind = MOKA_TRY(kind_of(model));
  if (kind == "mlProgram") return {};
  return fail(ErrorCode::unsupported, what, ": expected an ML program, got ", name_of_kind(kind));
}

Result<Interface> interface_named(const Message& model, const std::string& name) {
  std::string known;
  for (const Interface& interface : MOKA_TRY(interfaces(model))) {
    if (interface.function == name) return interface;
    known += cat(known.empty() ? "" : ", ", interface.function);
  }
  return fail(ErrorCode::not_found, "the model has no function '", name, "'; it has: ", known);
}

Result<std::string> default_function(const Message& model) {
  const Message description = MOKA_TRY(child_or_empty(model, "description"));
  const std::string name = MOKA_TRY(text_of(description, "defaultFunctionName"));
  return name.empty() ? MOKA_TRY(interfaces(model)).at(0).function : name;
}

/// Describes the functions of a program that describes none.
Status describe_functions(Message model) {
  Message description = MOKA_TRY(model.edit("description"));
  if (MOKA_TRY(description.count("functions")) > 0) return {};
  const ProgramFunction function = MOKA_TRY(function_of(model, {"main", description}));
  Message described = MOKA_TRY(description.edit("functions"));
  MOKA_TRY(set_text(described, "name", function.name));
  MOKA_TRY(copy_features(description, described));
  MOKA_TRY(clear_features(description));
  return set_text(description, "defaultFunctionName", function.name);
}

}  // namespace

Status extract_function(format::ModelSource& source, const std::string& name) {
  Message model = source.specification;
  MOKA_TRY(check_program(model, "function"));
  const Interface interface = MOKA_TRY(interface_named(model, name));
  const ProgramFunction function = MOKA_TRY(function_of(model, interface));
  Message program = MOKA_TRY(model.child("mlProgram"));
  std::vector<Message> kept;
  for (const Message& entry : MOKA_TRY(program.children("functions")))
    if (MOKA_TRY(has_text(entry, "key", function.name))) kept.push_back(entry);
  MOKA_TRY(set_text(kept.at(0), "key", "main"));
  MOKA_TRY(program.set_all("functions", kept));
  Message description = MOKA_TRY(model.edit("description"));
  if (MOKA_TRY(description.count("functions")) > 0) {
    MOKA_TRY(copy_features(interface.message, description));
    MOKA_TRY(description.clear("functions"));
    MOKA_TRY(description.clear("defaultFunctionName"));
  }
  return drop_unused_weights(source);
}

Status add_function(format::ModelSource& source, const std::string& name, const format::ModelSource& other,
                    const std::string& from) {
  MOKA_TRY(check_program(source.specification, "function"));
  MOKA_TRY(check_program(other.specification, "function"));
  if (name.empty()) return fail(ErrorCode::invalid_argument, "function: expected a name, got an empty text");
  MOKA_TRY(describe_functions(source.specification));
  for (const ProgramFunction& f : MOKA_TRY(program_functions(source.specification)))
    if (f.name == name) return fail(ErrorCode::invalid_argument, "the model has a function '", name, "' already");
  format::ModelSource added = other;
  added.specification = other.specification.copy();
  const std::string wanted = from.empty() ? MOKA_TRY(default_function(added.specification)) : from;
  const Interface interface = MOKA_TRY(interface_named(added.specification, wanted));
  const ProgramFunction function = MOKA_TRY(function_of(added.specification, interface));
  MOKA_TRY(bring_weights(source, added.weights, function.function));
  Message description = MOKA_TRY(source.specification.edit("description"));
  Message described = MOKA_TRY(description.edit("functions"));
  MOKA_TRY(set_text(described, "name", name));
  MOKA_TRY(copy_features(interface.message, described));
  Message program = MOKA_TRY(source.specification.child("mlProgram"));
  Message entry = MOKA_TRY(program.edit("functions"));
  MOKA_TRY(set_text(entry, "key", name));
  MOKA_TRY(entry.set("value", function.function));
  MOKA_TRY(merge_weights(source));
  MOKA_TRY(need_version(source.specification, MOKA_TRY(integer_of(other.specification, "specificationVersion"))));
  return need_version(source.specification, kFunctions);
}

Status set_default_function(Message model, const std::string& name) {
  MOKA_TRY(check_program(model, "function"));
  MOKA_TRY(interface_named(model, name));
  const Message description = MOKA_TRY(model.edit("description"));
  if (MOKA_TRY(description.count("functions")) == 0) return {};
  return set_text(description, "defaultFunctionName", name);
}

}  // namespace moka::editing

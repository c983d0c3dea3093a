// SPDX-License-Identifier: Apache-2.0
#include "editing/version.h"

#include "editing/pipeline.h"
#include "editing/program.h"

namespace moka::editing {
namespace {

constexpr System kSystems[] = {{"ios11", 1, ""},        {"ios12", 3, ""},        {"ios13", 4, ""},
                               {"ios14", 5, ""},        {"ios15", 6, "CoreML5"}, {"ios16", 7, "CoreML6"},
                               {"ios17", 8, "CoreML7"}, {"ios18", 9, "CoreML8"}, {"ios26", 10, "CoreML9"}};

}  // namespace

std::span<const System> systems() { return kSystems; }

const System* find_system(std::string_view name) {
  for (const System& system : kSystems)
    if (system.name == name) return &system;
  return nullptr;
}

Status set_target(Message model, std::string_view name) {
  const System* target = find_system(name);
  std::string known;
  for (const System& system : kSystems) known += cat(known.empty() ? "" : ", ", system.name);
  if (target == nullptr)
    return fail(ErrorCode::invalid_argument, "target: expected one of ", known, ", got '", name, "'");
  const int64_t version = MOKA_TRY(integer_of(model, "specificationVersion"));
  if (version > target->version)
    return fail(ErrorCode::invalid_argument, "target ", name, ": the model has specification version ", version,
                ", which is newer than ", target->version);
  const std::string kind = MOKA_TRY(kind_of(model));
  if (is_pipeline(kind))
    for (const Stage& stage : MOKA_TRY(stages_of(model)))
      MOKA_TRY_IN(set_target(stage.model, name), cat("stage '", stage.name, "'"));
  if (kind == "mlProgram")
    for (const ProgramFunction& function : MOKA_TRY(program_functions(model)))
      for (const Message& entry : MOKA_TRY(function.function.children("block_specializations")))
        if (MOKA_TRY(has_text(entry, "key", function.opset))) {
          MOKA_TRY(set_text(entry, "key", std::string(target->opset)));
          MOKA_TRY(set_text(function.function, "opset", std::string(target->opset)));
        }
  return set_integer(model, "specificationVersion", target->version);
}

}  // namespace moka::editing

#include <algorithm>
#include <set>

#include "editing/version.h"
#include "linting/lint.h"

namespace moka::linting {
namespace {

using import::FeatureKind;

struct Need {
  int version = 1;  ///< of the specification
  std::string what;
};

void add_feature(const import::FeatureDescription& f, std::vector<Need>& needs) {
  const std::string name = cat("feature '", f.name, "'");
  if (f.kind == FeatureKind::state) needs.push_back({9, cat("state '", f.name, "'")});
  if (f.kind == FeatureKind::multi_array && f.array.dtype == ir::DType::fp16)
    needs.push_back({7, name + " of float16"});
  if (f.kind == FeatureKind::multi_array && f.array.dtype == ir::DType::int8) needs.push_back({10, name + " of int8"});
  if (f.kind == FeatureKind::image && f.image.color == import::ColorSpace::grayscale_float16)
    needs.push_back({7, name + " of float16 pixels"});
  if (!f.array.ranges.empty() || !f.array.enumerated.empty() || f.image.width_range || !f.image.enumerated.empty())
    needs.push_back({3, name + " of flexible size"});
}

int version_of(ir::Opset opset) {
  const editing::System* system = editing::find_system(to_string(opset));
  return system == nullptr ? 1 : system->version;
}

/// What the model has and the version that introduced it.
std::vector<Need> needs_of(const Subject& subject) {
  std::vector<Need> out;
  const bool is_program = subject.description.type_name == "mlProgram";
  if (is_program) out.push_back({6, "an ML program"});
  if (is_program && subject.description.functions.size() > 1) out.push_back({9, "several functions"});
  for (const import::FunctionDescription& function : subject.description.functions)
    for (const auto* features : {&function.inputs, &function.outputs, &function.states})
      for (const import::FeatureDescription& f : *features) add_feature(f, out);
  if (is_program)
    for (const FunctionView& view : subject.functions)
      out.push_back({version_of(view.function->opset), cat("the opset ", to_string(view.function->opset))});
  return out;
}

std::string system_of(int version) {
  for (const editing::System& system : editing::systems())
    if (system.version >= version) return std::string(system.name);
  return cat("version ", version);
}

void check_target(const Subject& subject, const editing::System& target, Report& report) {
  if (subject.description.specification_version > target.version)
    report.add(Level::error, "model",
               {cat("it does not load on ", target.name),
                cat("its specification version ", subject.description.specification_version, " needs ",
                    system_of(subject.description.specification_version)),
                cat("Convert with minimum_deployment_target ", target.name, ".")});
  if (subject.description.type_name != "mlProgram") return;
  std::set<std::string> told;
  for (const FunctionView& view : subject.functions)
    for_each_op(view, [&](const ir::Op& op) {
      const ir::OpDef& def = *op.version().def;
      if (version_of(def.versions[0].since) <= target.version || !told.insert(def.name).second) return;
      report.add(Level::error, place_of(op),
                 {cat(target.name, " does not have the operation"),
                  cat("it came with ", to_string(def.versions[0].since)), "Write it in terms of older operations."},
                 &view);
    });
}

void check(const Subject& subject, Report& report) {
  const int version = subject.description.specification_version;
  for (const Need& need : needs_of(subject)) {
    if (need.version > version)
      report.add(Level::error, "model",
                 {cat("its specification version ", version, " does not have ", need.what),
                  cat("it came with version ", need.version, ", ", system_of(need.version)), ""});
  }
  if (const editing::System* target = editing::find_system(subject.target)) {
    check_target(subject, *target, report);
    for (const Need& need : needs_of(subject))
      if (need.version > target->version && need.version <= version)
        report.add(Level::error, "model",
                   {cat(target->name, " does not have ", need.what), cat("it came with ", system_of(need.version)),
                    "Do without it, or raise the target."});
  }
}

Result<std::vector<std::string>> fix(const Subject& subject, format::ModelSource& source) {
  int needed = subject.description.specification_version;
  for (const Need& need : needs_of(subject)) needed = std::max(needed, need.version);
  if (needed <= subject.description.specification_version) return std::vector<std::string>{};
  MOKA_TRY(editing::set_integer(source.specification, "specificationVersion", needed));
  return std::vector<std::string>{cat("raised the specification version to ", needed)};
}

}  // namespace

Rule rule_system_version() {
  return {"system-version",
          Level::error,
          "Operations, states, functions and types that the declared system, or that of --target, does not have",
          "Raise the specification version (moka lint --fix), so that older systems refuse the model.",
          check,
          fix};
}

}  // namespace moka::linting

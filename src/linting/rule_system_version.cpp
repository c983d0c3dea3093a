// SPDX-License-Identifier: Apache-2.0
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

/// `is_pipeline`: the version of a stage counts for sizes, and Create ML's pipelines have an older one.
void add_feature(const import::FeatureDescription& f, bool is_pipeline, std::vector<Need>& needs) {
  const std::string name = cat("feature '", f.name, "'");
  if (f.kind == FeatureKind::state) needs.push_back({9, cat("state '", f.name, "'")});
  if (f.kind == FeatureKind::multi_array && f.array.dtype == ir::DType::fp16)
    needs.push_back({7, cat(name, " of float16")});
  if (f.kind == FeatureKind::multi_array && f.array.dtype == ir::DType::int8)
    needs.push_back({10, cat(name, " of int8")});
  if (f.kind == FeatureKind::image && f.image.color == import::ColorSpace::grayscale_float16)
    needs.push_back({7, cat(name, " of float16 pixels")});
  if (is_pipeline) return;
  const auto varies = [](const import::SizeRange& range) { return range.lower != range.upper; };
  if (std::any_of(f.array.ranges.begin(), f.array.ranges.end(), varies) || f.array.enumerated.size() > 1 ||
      f.image.enumerated.size() > 1 || (f.image.width_range && varies(*f.image.width_range)) ||
      (f.image.height_range && varies(*f.image.height_range)))
    needs.push_back({3, cat(name, " of flexible size")});
}

int version_of(ir::Opset opset) {
  const editing::System* system = editing::find_system(to_string(opset));
  return system == nullptr ? 1 : system->version;
}

/// The features of Core ML that the model uses, with the specification version that introduced each.
std::vector<Need> needs_of(const Subject& subject) {
  std::vector<Need> out;
  const bool is_program = subject.description.type_name == "mlProgram";
  const bool is_pipeline = subject.description.type_name.starts_with("pipeline");
  if (is_program) out.push_back({6, cat("an ML program")});
  if (is_program && subject.description.functions.size() > 1) out.push_back({9, cat("several functions")});
  for (const import::FunctionDescription& function : subject.description.functions)
    for (const auto* features : {&function.inputs, &function.outputs, &function.states})
      for (const import::FeatureDescription& f : *features) add_feature(f, is_pipeline, out);
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

/// Operations of a program that cannot be imported, which its own opset does not have.
void check_opset(const import::Outline::Function& function, const std::vector<import::Outline::Operation>& operations,
                 std::set<std::string>& told, Report& report) {
  const std::optional<ir::Opset> opset = ir::opset_from_string(function.opset);
  if (!opset) return;
  for (const import::Outline::Operation& op : operations) {
    for (const import::Outline::Block& block : op.blocks) check_opset(function, block.operations, told, report);
    const ir::OpDef* def = ops::table().find(op.type);
    if (def == nullptr || def->at(*opset) != nullptr || !told.insert(op.type).second) continue;
    report.add(Level::error, cat("operation '", op.name, "' (", op.type, ")"),
               {cat("the opset ", to_string(*opset), " of its function does not have the operation"),
                cat("it came with ", to_string(def->versions[0].since)),
                "Convert with a later minimum_deployment_target, or write it in terms of older operations."});
  }
}

void check_system_version(const Subject& subject, Report& report) {
  if (subject.program == nullptr && subject.outline != nullptr) {
    std::set<std::string> told;
    for (const import::Outline::Function& function : subject.outline->functions)
      check_opset(function, function.body.operations, told, report);
  }
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

Result<std::vector<std::string>> fix_system_version(const Subject& subject, format::ModelSource& source) {
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
          check_system_version,
          fix_system_version};
}

}  // namespace moka::linting

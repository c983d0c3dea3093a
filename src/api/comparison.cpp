// SPDX-License-Identifier: Apache-2.0
#include "moka/comparison.h"

#include <algorithm>
#include <map>

#include "api/internal.h"
#include "boundary/path.h"
#include "diff/compare.h"
#include "diff/fields.h"
#include "moka/model.h"

namespace moka {
namespace {

struct Opened {
  format::ModelFile file;
  Result<import::ImportedModel> model;
  ModelDescription description;
  const ir::Function* function = nullptr;
  const FunctionDescription* features = nullptr;
};

/// The description of a model that cannot be imported.
ModelDescription described(const format::ModelFile& file) {
  std::vector<std::string> faults;
  return api::to_public(import::outline_description(file, faults));
}

Opened open(const std::string& path, const std::string& wanted, const KeySource& key) {
  format::ModelFile file = api::unwrap(format::open_model(path, {nullptr, false, api::key_source(key)}));
  Result<import::ImportedModel> model = import::import_model(file, {});
  if (!model.ok() && model.error().code() != ErrorCode::unsupported) api::raise(model.error());
  Opened out{std::move(file), std::move(model), {}};
  out.description = out.model.ok() ? api::to_public(out.model->description) : described(out.file);
  const std::string& name = wanted.empty() ? out.description.default_function : wanted;
  for (const FunctionDescription& f : out.description.functions)
    if (f.name == name) out.features = &f;
  if (out.model.ok()) {
    out.function = out.model->program.find(name);
    if (out.function == nullptr && wanted.empty() && out.model->program.functions.size() == 1)
      out.function = out.model->program.functions[0].get();
  }
  if ((out.model.ok() && out.function == nullptr) || out.features == nullptr)
    api::raise(fail(ErrorCode::not_found, "function '", name, "': '", path, "' does not have it"));
  return out;
}

void add(const std::string& what, const std::string& first, const std::string& second,
         std::vector<ModelComparison::Feature>& to) {
  if (first != second) to.push_back({what, first, second});
}

void compare_labels(const ModelDescription& a, const ModelDescription& b, std::vector<ModelComparison::Feature>& to) {
  const size_t most = std::max(a.class_labels.size(), b.class_labels.size());
  const auto count = [](const ModelDescription& d) { return std::to_string(d.class_labels.size()); };
  add("number of class labels", count(a), count(b), to);
  for (size_t i = 0; i < most; ++i) {
    const auto text = [&](const ModelDescription& d) { return i < d.class_labels.size() ? d.class_labels[i] : ""; };
    add(cat("class label ", i), text(a), text(b), to);
  }
}

void compare_metadata(const Opened& a, const Opened& b, std::vector<ModelComparison::Feature>& to) {
  const ModelDescription &x = a.description, &y = b.description;
  add("specification version", std::to_string(x.specification_version), std::to_string(y.specification_version), to);
  add("description", x.short_description, y.short_description, to);
  add("author", x.author, y.author, to);
  add("license", x.license, y.license, to);
  add("version", x.version, y.version, to);
  std::map<std::string, std::pair<std::string, std::string>> texts;
  for (const auto& [key, text] : x.user_defined) texts[cat("'", key, "'")].first = text;
  for (const auto& [key, text] : y.user_defined) texts[cat("'", key, "'")].second = text;
  const auto describe = [&](const char* what, const std::vector<FeatureDescription>& ours,
                            const std::vector<FeatureDescription>& theirs) {
    for (const FeatureDescription& f : ours)
      texts[cat("description of ", what, " '", f.name, "'")].first = f.description;
    for (const FeatureDescription& f : theirs)
      texts[cat("description of ", what, " '", f.name, "'")].second = f.description;
  };
  describe("input", a.features->inputs, b.features->inputs);
  describe("output", a.features->outputs, b.features->outputs);
  for (const auto& [what, both] : texts) add(what, both.first, both.second, to);
}

void compare_features(const char* what, const std::vector<FeatureDescription>& a,
                      const std::vector<FeatureDescription>& b, std::vector<ModelComparison::Feature>& to) {
  const auto find = [](const std::vector<FeatureDescription>& in, const std::string& name) {
    return std::find_if(in.begin(), in.end(), [&](const auto& f) { return f.name == name; });
  };
  const auto text_of = [](const FeatureDescription& f) {
    return cat(f.formatted_type(), f.optional ? " (optional)" : "");
  };
  for (const FeatureDescription& f : a) {
    const auto at = find(b, f.name);
    const std::string first = text_of(f), second = at == b.end() ? "" : text_of(*at);
    if (first != second) to.push_back({cat(what, " '", f.name, "'"), first, second});
  }
  for (const FeatureDescription& f : b)
    if (find(a, f.name) == a.end()) to.push_back({cat(what, " '", f.name, "'"), "", text_of(f)});
}

}  // namespace

bool ModelComparison::same() const {
  const auto alone = [](const Operation& op) { return op.partner < 0 && !op.is_transparent; };
  return differences.empty() && interface.empty() && fields.empty() && std::none_of(a.begin(), a.end(), alone) &&
         std::none_of(b.begin(), b.end(), alone);
}

const char* name_of(ModelComparison::Kind kind) {
  switch (kind) {
    case ModelComparison::Kind::type: return "type";
    case ModelComparison::Kind::input: return "input";
    case ModelComparison::Kind::parameter: return "parameter";
    case ModelComparison::Kind::weight: return "weight";
    case ModelComparison::Kind::element: return "element";
  }
  return "";
}

ModelComparison compare_models(const std::filesystem::path& first_path, const std::filesystem::path& second_path,
                               const ComparisonOptions& options) {
  const std::string &a = boundary::native(first_path), &b = boundary::native(second_path);
  const Opened first = open(a, options.function_a, options.key), second = open(b, options.function_b, options.key);
  ModelComparison out;
  if (first.function != nullptr && second.function != nullptr) {
    out = diff::compare(*first.function, *second.function);
  } else {
    const bool is_first = first.function == nullptr;
    out.fault =
        cat("'", is_first ? a : b, "' cannot be imported: ", (is_first ? first : second).model.error().message());
    out.fields = diff::compare_fields(a, b);
  }
  out.function_a = first.features->name;
  out.function_b = second.features->name;
  compare_features("input", first.features->inputs, second.features->inputs, out.interface);
  compare_features("output", first.features->outputs, second.features->outputs, out.interface);
  compare_features("state", first.features->states, second.features->states, out.interface);
  compare_labels(first.description, second.description, out.interface);
  compare_metadata(first, second, out.metadata);
  return out;
}

}  // namespace moka

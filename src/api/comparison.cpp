#include "moka/comparison.h"

#include <algorithm>

#include "api/internal.h"
#include "diff/compare.h"

namespace moka {
namespace {

struct Opened {
  import::ImportedModel model;
  ModelDescription description;
  const ir::Function* function = nullptr;
  const FunctionDescription* features = nullptr;
};

Opened open(const std::string& path, const std::string& wanted) {
  const format::ModelFile file = api::unwrap(format::open_model(path, {nullptr, false, api::key_source(nullptr)}));
  Opened out{api::unwrap(import::import_model(file, {}))};
  out.description = api::to_public(out.model.description);
  const std::string& name = wanted.empty() ? out.model.description.default_function : wanted;
  out.function = out.model.program.find(name);
  if (out.function == nullptr && wanted.empty() && out.model.program.functions.size() == 1)
    out.function = out.model.program.functions[0].get();
  for (const FunctionDescription& f : out.description.functions)
    if (f.name == name) out.features = &f;
  if (out.function == nullptr || out.features == nullptr)
    api::raise(fail(ErrorCode::not_found, "function '", name, "': '", path, "' does not have it"));
  return out;
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
  return differences.empty() && interface.empty() && std::none_of(a.begin(), a.end(), alone) &&
         std::none_of(b.begin(), b.end(), alone);
}

ModelComparison compare_models(const std::string& a, const std::string& b, const ComparisonOptions& options) {
  const Opened first = open(a, options.function_a), second = open(b, options.function_b);
  ModelComparison out = diff::compare(*first.function, *second.function);
  out.function_a = first.features->name;
  out.function_b = second.features->name;
  compare_features("input", first.features->inputs, second.features->inputs, out.interface);
  compare_features("output", first.features->outputs, second.features->outputs, out.interface);
  compare_features("state", first.features->states, second.features->states, out.interface);
  return out;
}

}  // namespace moka

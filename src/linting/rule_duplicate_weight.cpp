// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <set>

#include "base/sha256.h"
#include "editing/weights.h"
#include "linting/lint.h"
#include "linting/repair.h"

namespace moka::linting {
namespace {

constexpr size_t kLeastBytes = 4096;  ///< bytes; smaller ones are not worth it

struct Copy {
  std::string name;
  size_t bytes = 0;
};

void add(std::map<std::string, std::vector<Copy>>& copies, std::set<std::string>& places, const std::string& name,
         std::span<const std::byte> bytes, const std::string& place) {
  if (bytes.size() < kLeastBytes || !places.insert(place).second) return;
  copies[base64(sha256(bytes))].push_back({name, bytes.size()});
}

void check_duplicate_weight(const Subject& subject, Report& report) {
  std::map<std::string, std::vector<Copy>> copies;
  std::set<std::string> places;  // a weight that two functions share is stored once
  for (const FunctionView& view : subject.functions)
    for (const auto& op : view.function->body().ops()) {
      const ir::Constant* constant = op->has_trait(ir::Trait::constant) ? op->output()->constant() : nullptr;
      if (constant == nullptr || constant->blob_path.empty() || constant->tensor.empty_handle()) continue;
      const ir::Tensor& t = constant->tensor;
      add(copies, places, op->output()->name, {static_cast<const std::byte*>(t.data()), t.bytes()},
          cat(constant->blob_path, ":", constant->blob_offset));
    }
  if (subject.is_network() && subject.outline != nullptr)
    for (const import::Outline::Weight& weight : subject.outline->weights)
      add(copies, places, weight.name, weight.data.span, weight.name);
  for (const auto& [hash, all] : copies) {
    for (size_t i = 1; i < all.size(); ++i)
      report.add(
          Level::warning, cat("weight '", all[i].name, "'"),
          {cat("it is stored again: '", all[0].name, "' has the same elements"), cat(all[i].bytes, " bytes"), ""});
  }
}

Result<std::vector<std::string>> fix_duplicate_weight(const Subject&, format::ModelSource& source) {
  const size_t before = weight_bytes(source);
  if (before == 0) return std::vector<std::string>{};
  format::ModelSource merged = source;
  merged.specification = source.specification.copy();
  MOKA_TRY(editing::merge_weights(merged));
  const size_t after = weight_bytes(merged);
  if (after >= before) return std::vector<std::string>{};
  source = std::move(merged);
  return std::vector<std::string>{cat("stored equal weights once, ", before - after, " bytes less")};
}

}  // namespace

Rule rule_duplicate_weight() {
  return {"duplicate-weight",
          Level::warning,
          "Weights of 4096 bytes and more that are stored several times",
          "Store them once: moka lint --fix for ML programs.",
          check_duplicate_weight,
          fix_duplicate_weight};
}

}  // namespace moka::linting

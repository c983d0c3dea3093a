// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <set>

#include "editing/weights.h"
#include "format/weights/blob.h"
#include "format/weights/weight_store.h"
#include "linting/lint.h"
#include "linting/repair.h"

namespace moka::linting {
namespace {

constexpr int64_t kLeastElements = 256;  ///< elements; smaller constants cost nothing

Status check_files(const format::ModelSource& source, Report& report) {
  std::map<std::string, std::set<uint64_t>> used;
  MOKA_TRY(
      editing::for_messages(source.specification, "MILSpec.Value.BlobFileValue", [&](format::Message blob) -> Status {
        const std::string name = MOKA_TRY(editing::text_of(blob, "fileName"));
        used[std::string(format::WeightStore::relative_name(name))].insert(
            static_cast<uint64_t>(MOKA_TRY(editing::integer_of(blob, "offset"))));
        return {};
      }));
  for (const auto& [name, content] : source.weights) {
    if (!name.ends_with(".bin")) continue;
    const Bytes file = content.joined();
    const auto blobs = format::list_blobs(file);
    if (!blobs.ok()) continue;  // the rule loading reports a damaged file
    size_t count = 0, bytes = 0;
    for (const format::Blob& blob : *blobs)
      if (!used[name].contains(blob.offset)) {
        ++count;
        bytes += blob.data.size();
      }
    if (count > 0)
      report.add(Level::warning, cat("file '", name, "'"),
                 {"it has weights that no program refers to",
                  cat(count, " of ", blobs->size(), " weights, ", bytes, " bytes"), ""});
  }
  return {};
}

void check_unused_weight(const Subject& subject, Report& report) {
  for (const FunctionView& view : subject.functions)
    for (const auto& op : view.function->body().ops()) {
      if (!op->has_trait(ir::Trait::constant) || op->output()->is_used()) continue;
      const ir::Constant* constant = op->output()->constant();
      if (constant == nullptr || constant->tensor.empty_handle() || constant->tensor.count() < kLeastElements) continue;
      report.add(Level::warning, cat("weight '", op->output()->name, "'"),
                 {"nothing reads it", cat(constant->tensor.bytes(), " bytes"), ""}, &view);
    }
  if (subject.source != nullptr) (void)check_files(*subject.source, report);
}

Result<std::vector<std::string>> fix_unused_weight(const Subject&, format::ModelSource& source) {
  const size_t before = weight_bytes(source);
  MOKA_TRY(drop_unused(source));
  const size_t after = weight_bytes(source);
  if (after == before) return std::vector<std::string>{};
  return std::vector<std::string>{cat("dropped ", before - after, " bytes of weights")};
}

}  // namespace

Rule rule_unused_weight() {
  return {"unused-weight",
          Level::warning,
          "Weights in the model or its files that nothing reads",
          "Drop them: moka lint --fix for ML programs.",
          check_unused_weight,
          fix_unused_weight};
}

}  // namespace moka::linting

#include "compress/program.h"

#include <algorithm>
#include <map>
#include <mutex>

#include "compress/blocks.h"
#include "compress/encode_site.h"
#include "compress/messages.h"

namespace moka::compress {
namespace {

using format::Message;

struct Replacement {
  const Encoding* encoding = nullptr;
  Form form = Form::ios16;
};

/// Replaces constants by name in all blocks of a function.
Status replace(const Message& model, const std::map<std::string, Replacement>& by_name, format::WeightFile& file) {
  return each(model, "MILSpec.Block", [&](Message block) -> Status {
    std::vector<Message> operations;
    bool changed = false;
    for (const Message& op : MOKA_TRY(block.children("operations"))) {
      const auto it = MOKA_TRY(text(op, "type")) == "const" ? by_name.find(MOKA_TRY(result_name(op))) : by_name.end();
      if (it == by_name.end()) {
        operations.push_back(op);
        continue;
      }
      changed = true;
      for (Message& made : MOKA_TRY(operations_of(*it->second.encoding, it->first, it->second.form, file)))
        operations.push_back(made);
    }
    if (!changed) return {};
    MOKA_TRY(block.clear("operations"));
    for (const Message& op : operations) MOKA_TRY(block.set("operations", op));
    return {};
  });
}

/// Moves what stays as it is to the new file.
Status move_blobs(const Message& model, const format::WeightStore& store, format::WeightFile& file) {
  return each(model, "MILSpec.Value.BlobFileValue", [&](Message value) -> Status {
    const std::string name = MOKA_TRY(text(value, "fileName"));
    const std::string moved = cat("@model_path/", kWeightFile);
    if (name == kNewFile) return value.set("fileName", moved);
    const auto offset = MOKA_TRY(value.values("offset"));
    const format::Blob blob = MOKA_TRY(store.blob(name, offset.empty() ? 0 : std::get<uint64_t>(offset[0])));
    MOKA_TRY(value.set("fileName", moved));
    return value.set("offset", file.add(blob.type, blob.data, blob.count));
  });
}

}  // namespace

Result<std::vector<Outcome>> compress_programs(format::ModelSource& source, const Chooser& choose,
                                               const Progress& progress) {
  const std::vector<Found> found = MOKA_TRY(constants_of(source));
  if (found.empty()) return std::vector<Outcome>();
  const format::WeightStore store = store_of(source);
  std::vector<Made> made(found.size());
  std::vector<size_t> work;
  std::map<std::string, size_t> first;
  for (size_t i = 0; i < found.size(); ++i) {
    const bool shared = !first.emplace(key_of(found[i]), i).second;
    made[i].outcome.site = site_of(found[i], shared);
    if (!shared) made[i].outcome.bytes_before = made[i].outcome.bytes_after = bytes_of(made[i].outcome.site);
    made[i].outcome.recipe = choose(made[i].outcome.site);
    if (!made[i].outcome.recipe.keeps() && !shared) work.push_back(i);
  }
  std::mutex mutex;
  std::optional<Error> failed;
  size_t done = 0;
  in_parallel(work.size(), [&](size_t k) {
    const size_t i = work[k];
    auto result = encode_site(found[i], made[i].outcome.site, made[i].outcome.recipe, store);
    if (result.ok() && result->encoding) result->encoding->decoded = {};
    std::lock_guard lock(mutex);
    if (!result.ok())
      failed = std::move(result).error();
    else
      made[i] = *std::move(result);
    if (progress) progress(++done, work.size());
  });
  if (failed) return *std::move(failed);

  std::vector<Outcome> out;
  std::vector<std::map<std::string, Replacement>> by_function;
  for (size_t i = 0; i < found.size(); ++i) {
    const size_t original = first.at(key_of(found[i]));
    if (original != i) {
      const Site site = made[i].outcome.site;
      made[i].outcome = made[original].outcome;
      made[i].outcome.site = site;
      made[i].outcome.bytes_before = made[i].outcome.bytes_after = 0;
    }
    out.push_back(made[i].outcome);
    by_function.resize(std::max(by_function.size(), found[i].function + 1));
    if (made[original].encoding)
      by_function[found[i].function][found[i].name] = {&*made[original].encoding, found[i].form};
  }
  format::WeightFile file;
  size_t function = 0;
  MOKA_TRY(each(source.specification, "MILSpec.Function", [&](const Message& message) -> Status {
    const size_t index = function++;
    return index < by_function.size() ? replace(message, by_function[index], file) : Status();
  }));
  MOKA_TRY(move_blobs(source.specification, store, file));
  for (auto it = source.weights.begin(); it != source.weights.end();)
    it = it->first.starts_with("weights/") ? source.weights.erase(it) : std::next(it);
  if (!file.empty()) source.weights[std::string(kWeightFile)] = file.content();
  return out;
}

}  // namespace moka::compress

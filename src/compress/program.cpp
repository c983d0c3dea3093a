// SPDX-License-Identifier: Apache-2.0
#include "compress/program.h"

#include <algorithm>
#include <map>

#include "compress/encode_site.h"
#include "compress/make_all.h"
#include "compress/messages.h"
#include "compress/weight_files.h"

namespace moka::compress {
namespace {

using format::Message;

struct Replacement {
  const Encoding* encoding = nullptr;
  Form form = Form::ios16;
};

/// By the constant's index among the operations of the function.
using Replacements = std::map<size_t, Replacement>;

/// Replaces constants of one function.
class Replacer {
 public:
  Replacer(const Replacements& replacements, format::WeightFile& file) : replacements_(replacements), file_(file) {}

  Status run(Message block) {
    std::vector<Message> operations;
    bool changed = false;
    for (const Message& op : MOKA_TRY(block.children("operations"))) {
      const auto it = replacements_.find(count_++);
      for (const Message& inner : MOKA_TRY(op.children("blocks"))) MOKA_TRY(run(inner));
      if (it == replacements_.end()) {
        operations.push_back(op);
        continue;
      }
      changed = true;
      const std::string name = MOKA_TRY(result_name(op));
      for (Message& made : MOKA_TRY(operations_of(*it->second.encoding, name, it->second.form, file_)))
        operations.push_back(std::move(made));
    }
    return changed ? block.set_all("operations", operations) : Status();
  }

 private:
  const Replacements& replacements_;
  format::WeightFile& file_;
  size_t count_ = 0;
};

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
  const auto make = [&](size_t i) {
    return encode_site(found[i], made[i].outcome.site, made[i].outcome.recipe, store);
  };
  MOKA_TRY(make_all(work, made, make, progress));

  std::vector<Outcome> out;
  std::vector<Replacements> by_function;
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
      by_function[found[i].function][found[i].number] = {&*made[original].encoding, found[i].form};
  }
  format::WeightFile file;
  size_t function = 0;
  MOKA_TRY(each(source.specification, "MILSpec.Function", [&](const Message& message) -> Status {
    const size_t index = function++;
    if (index >= by_function.size()) return {};
    Replacer replacer(by_function[index], file);
    for (const Message& block : MOKA_TRY(blocks_of(message))) MOKA_TRY(replacer.run(block));
    return {};
  }));
  MOKA_TRY(finish(source, store, file));
  return out;
}

}  // namespace moka::compress

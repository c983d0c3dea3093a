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
  MOKA_TRY(finish(source, store, file));
  return out;
}

}  // namespace moka::compress

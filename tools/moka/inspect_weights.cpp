// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "inspect.h"
#include "model_facts.h"
#include "print.h"
#include "text.h"

namespace moka::cli {

using io::Align;
using io::Shrink;

std::string weights_text(const ModelStructure& structure, const std::string& function) {
  const auto groups = weight_groups(structure, function);
  if (groups.empty()) return {};
  io::Table table({{"weights", Align::left},
                   {"stored", Align::left},
                   {"arrays", Align::right},
                   {"parameters", Align::right},
                   {"bytes", Align::right},
                   {"share", Shrink::drop}});
  WeightGroup total;
  for (const auto& group : groups) {
    total.weights += group.weights;
    total.parameters += group.parameters;
    total.bytes += group.bytes;
  }
  for (const auto& group : groups)
    table.add_row({group.element, group.storage, format_count(group.weights), format_count(group.parameters),
                   format_bytes(static_cast<double>(group.bytes)),
                   bar(total.bytes ? static_cast<double>(group.bytes) / static_cast<double>(total.bytes) : 0, 20)});
  if (groups.size() > 1) {
    table.add_rule();
    table.add_row({"all", "", format_count(total.weights), format_count(total.parameters),
                   format_bytes(static_cast<double>(total.bytes))});
  }
  return "\n" + table_text(table);
}

std::string weight_list_text(const ModelStructure& structure, const std::string& function,
                             const StatisticsReader& statistics) {
  io::Table table({{"weight", Shrink::middle},
                   {"type", Align::left},
                   {"bytes", Align::right},
                   {"bits", Align::right},
                   {"minimum", Align::right},
                   {"maximum", Align::right},
                   {"zeros", Align::right},
                   {"different", Align::right},
                   {"stored", Shrink::drop}});
  const auto weights = weights_of(structure, function);
  io::Progress progress("reading weights", weights.size());
  for (const auto* weight : weights) {
    std::vector<std::string> row{
        weight->name, short_type(weight->type),
        weight->bytes == 0 && !weight->available ? "" : format_bytes(static_cast<double>(weight->bytes))};
    if (const auto s = statistics.read(*weight); s && s->count > 0)
      row.insert(row.end(), {std::to_string(s->bits), format_number(s->minimum), format_number(s->maximum),
                             format_percent(static_cast<double>(s->zeros) / static_cast<double>(s->count)),
                             s->distinct ? format_count(static_cast<int64_t>(s->distinct)) : ""});
    else
      row.insert(row.end(), 5, "");
    row.push_back(weight->available ? weight->storage : weight->storage + ", missing");
    table.add_row(std::move(row));
    progress.advance();
  }
  return table.empty() ? "" : "\n" + table_text(table);
}

}  // namespace moka::cli

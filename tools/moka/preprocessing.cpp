#include <fmt/format.h>
#include <fmt/ranges.h>

#include "node_facts.h"
#include "print.h"
#include "text.h"

namespace moka::cli {
namespace {

void add_preprocessing(const ModelStructure& structure, const std::string& where, io::Table& table) {
  for (const auto& p : structure.preprocessing) {
    std::vector<std::string> bias;
    for (const double b : p.bias) bias.push_back(format_number(b));
    const std::string added = p.mean_image > 0 ? fmt::format("minus {} numbers", format_count(p.mean_image))
                                               : fmt::format("{}", fmt::join(bias, " "));
    table.add_row({where + p.input, p.channels, p.mean_image > 0 ? "" : format_number(p.scale), added, p.stored});
  }
  for (const auto& part : structure.models) add_preprocessing(part.structure, where + part.name + ": ", table);
}

}  // namespace

std::string preprocessing_text(const ModelStructure& structure) {
  io::Table table({{"preprocessing", io::Shrink::middle},
                   {"channels", io::Align::left},
                   {"scale", io::Align::left},
                   {"bias", io::Align::left},
                   {"stored as", io::Align::left}});
  add_preprocessing(structure, "", table);
  return table.empty() ? "" : "\n" + table_text(table);
}

Json preprocessing_json(const ModelStructure& structure) {
  Json out = Json::array();
  for (const auto& p : structure.preprocessing) {
    Json json{{"input", p.input}, {"stored", p.stored}};
    if (!p.function.empty()) json["function"] = p.function;
    if (!p.channels.empty()) json["channels"] = p.channels;
    if (p.mean_image > 0)
      json["meanImage"] = p.mean_image;
    else
      json["scale"] = finite_or_null(p.scale);
    for (const double b : p.bias) json["bias"].push_back(finite_or_null(b));
    out.push_back(std::move(json));
  }
  return out;
}

}  // namespace moka::cli

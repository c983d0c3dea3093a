// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "node_facts.h"
#include "print.h"
#include "text.h"

namespace moka::cli {
namespace {

std::string joined(const std::vector<double>& numbers) {
  std::vector<std::string> texts;
  for (const double number : numbers) texts.push_back(format_number(number));
  return fmt::format("{}", fmt::join(texts, " "));
}

void add_preprocessing(const ModelStructure& structure, const std::string& where, io::Table& table) {
  for (const auto& p : structure.preprocessing) {
    const std::string added =
        p.mean_image > 0 ? fmt::format("minus {} numbers", format_count(p.mean_image)) : joined(p.bias);
    table.add_row({where + p.input, p.channels, p.mean_image > 0 ? "" : joined(p.scale), added, p.stored});
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
    else if (p.scale.size() == 1)
      json["scale"] = finite_or_null(p.scale[0]);
    else
      for (const double s : p.scale) json["scale"].push_back(finite_or_null(s));
    for (const double b : p.bias) json["bias"].push_back(finite_or_null(b));
    out.push_back(std::move(json));
  }
  return out;
}

}  // namespace moka::cli

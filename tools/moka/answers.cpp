// SPDX-License-Identifier: Apache-2.0
#include "answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "convert.h"
#include "io/table.h"
#include "text.h"

namespace moka::cli {
namespace {

using io::Align;
using io::Shrink;

constexpr size_t kTop = 5;
using Entries = std::vector<std::pair<std::string, double>>;

bool are_probabilities(const Entries& entries) {
  return std::all_of(entries.begin(), entries.end(), [](const auto& e) { return e.second >= 0 && e.second <= 1.0001; });
}

std::string class_text(const Entries& entries, bool color, size_t width) {
  const bool probabilities = are_probabilities(entries);
  double most = 0;
  for (const auto& [key, number] : entries)
    if (std::isfinite(number)) most = std::max(most, std::abs(number));
  io::Table table(
      {{"class", Shrink::middle}, {probabilities ? "probability" : "value", Align::right}, {"", Shrink::drop}});
  for (size_t i = 0; i < std::min(kTop, entries.size()); ++i) {
    const auto& [key, number] = entries[i];
    const double share = probabilities ? number : most > 0 ? number / most : 0;
    table.add_row({key, probabilities ? format_percent(number) : format_number(number),
                   io::painted(bar(share, 30), i ? io::Color::none : io::Color::green, color)});
  }
  std::string out = table.render(color, width);
  if (entries.size() > kTop)
    out += io::painted(fmt::format("and {} more", format_count(static_cast<int64_t>(entries.size() - kTop))),
                       io::Color::dim, color) +
           "\n";
  return out;
}

std::string first_values(const MultiArray& array, int64_t most) {
  std::string out;
  for (int64_t i = 0; i < std::min(most, array.count()); ++i)
    out += (i ? " " : "") + format_number(shortest(array.at(i), array.type()));
  return out + (array.count() > most ? " …" : "");
}

std::string short_text(const FeatureValue& value) {
  struct Visitor {
    std::string operator()(std::monostate) const { return "-"; }
    std::string operator()(int64_t v) const { return std::to_string(v); }
    std::string operator()(double v) const { return format_number(v); }
    std::string operator()(const std::string& v) const { return v; }
    std::string operator()(const MultiArray& v) const { return first_values(v, 6); }
    std::string operator()(const Image& v) const { return fmt::format("{} x {}", v.width, v.height); }
    std::string operator()(const PixelBuffer& v) const { return fmt::format("{} x {}", v.width, v.height); }
    std::string operator()(const Dictionary& v) const {
      const Entries entries = ranked(v);
      if (entries.empty()) return "empty";
      const auto& [key, number] = entries[0];
      return fmt::format("{} {}", key, are_probabilities(entries) ? format_percent(number) : format_number(number));
    }
    std::string operator()(const StringSequence& v) const { return fmt::format("{}", fmt::join(v, ", ")); }
    std::string operator()(const Int64Sequence& v) const { return fmt::format("{}", fmt::join(v, " ")); }
  };
  std::string text = std::visit(Visitor{}, value);
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  return text;
}

std::string missing_text(const ArrayFacts& facts) {
  std::string out;
  if (facts.nan) out += plural(facts.nan, "nan");
  if (facts.infinite) out += (out.empty() ? "" : ", ") + format_count(facts.infinite) + " inf";
  return out;
}

}  // namespace

Entries ranked(const Dictionary& dictionary) {
  Entries entries(dictionary.strings.begin(), dictionary.strings.end());
  for (const auto& [key, number] : dictionary.ints) entries.emplace_back(std::to_string(key), number);
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return a.second > b.second || (std::isnan(b.second) && !std::isnan(a.second));
  });
  return entries;
}

std::string shown(const Features& outputs, const FunctionDescription& function, bool color, size_t width) {
  std::string out;
  if (const FeatureValue* predicted = outputs.find(function.predicted_feature_name);
      predicted && !function.predicted_feature_name.empty())
    out += fmt::format("{}  {}\n", function.predicted_feature_name,
                       io::painted(short_text(*predicted), io::Color::bold, color));
  io::Table table({{"output", Shrink::middle},
                   {"type", Shrink::end},
                   {"min", Align::right},
                   {"max", Align::right},
                   {"mean", Align::right},
                   {"values", Shrink::end}});
  bool any = false;
  std::string lists;
  for (const auto& [name, value] : outputs) {
    if (name == function.predicted_feature_name) continue;
    if (const auto* dictionary = std::get_if<Dictionary>(&value)) {
      const Entries entries = ranked(*dictionary);
      lists +=
          fmt::format("\n{}  {}\n", io::painted(name, io::Color::bold, color),
                      io::painted(entries.size() == 1 ? std::string("1 entry")
                                                      : format_count(static_cast<int64_t>(entries.size())) + " entries",
                                  io::Color::dim, color));
      if (!entries.empty()) lists += class_text(entries, color, width);
      continue;
    }
    any = true;
    const auto* array = std::get_if<MultiArray>(&value);
    if (!array || array->count() < 2) {
      const bool picture = std::holds_alternative<Image>(value);
      table.add_row({name, describe_in_full(value), "", "", "", picture ? "-o DIR writes it" : short_text(value)});
      continue;
    }
    const ArrayFacts facts = facts_of(*array);
    const std::string missing = missing_text(facts);
    const auto number = [&](double v) {
      return facts.finite ? format_number(shortest(v, array->type())) : std::string("-");
    };
    std::string values = short_text(value);
    if (!missing.empty()) values = missing + "  " + values;
    table.add_row({name, describe_in_full(value), number(facts.least), number(facts.most), number(facts.mean), values});
  }
  if (any) out += (out.empty() ? "" : "\n") + table.render(color, width);
  if (out.empty() && !lists.empty()) lists.erase(0, 1);
  return out + lists;
}

std::string shown_batch(const std::vector<Features>& outputs, const FunctionDescription& function, bool color,
                        size_t width) {
  std::vector<io::Table::Column> columns{{"row"}};
  for (const auto& output : function.outputs) columns.emplace_back(output.name, Align::automatic, Shrink::end);
  io::Table table(std::move(columns));
  for (size_t r = 0; r < outputs.size(); ++r) {
    std::vector<std::string> row{std::to_string(r + 1)};
    for (const auto& output : function.outputs) {
      const FeatureValue* value = outputs[r].find(output.name);
      row.push_back(value ? short_text(*value) : "-");
    }
    table.add_row(std::move(row));
  }
  return table.render(color, width);
}

}  // namespace moka::cli

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "check/diff.h"
#include "check/verify.h"
#include "io/table.h"
#include "print.h"
#include "text.h"

namespace moka::cli {
namespace {

using io::Align;
using io::Shrink;
using Kind = ModelComparison::Kind;
using Operations = std::vector<ModelComparison::Operation>;

constexpr size_t kMostRows = 40, kTrailEnds = 12, kLongest = 48;

std::string painted(std::string_view text, io::Color color) { return io::painted(text, color, color_output()); }

std::string title(std::string_view text) { return "\n" + bold(text) + "\n"; }

std::string ratio(double snr) {
  return std::isfinite(snr) ? fmt::format("{:.1f} dB", snr) : snr > 0 ? "equal" : "-inf dB";
}

/// "conv_1", or "conv_1 / conv1" when the names differ.
std::string names_of(const ModelComparison& s, int a, int b) {
  if (a < 0 || b < 0) return "outputs";
  const std::string &one = s.a[static_cast<size_t>(a)].name, &two = s.b[static_cast<size_t>(b)].name;
  return one == two ? one : fmt::format("{} / {}", one, two);
}

std::string place_of(const NumberDifference& n) {
  std::string out;
  for (const int64_t i : n.at) out += fmt::format("{}{}", out.empty() ? "" : ", ", i);
  return fmt::format("[{}]: {} and {}", out, format_number(n.first), format_number(n.second));
}

std::string more(size_t count) {
  return count > kMostRows ? dim(fmt::format("and {} more; --json lists all\n", count - kMostRows)) : "";
}

/// Where graphs differ first, then weights from the largest difference on.
std::vector<const ModelComparison::Difference*> by_weight(const ModelComparison& s) {
  std::vector<const ModelComparison::Difference*> out;
  for (const auto& d : s.differences)
    if (d.kind != Kind::element) out.push_back(&d);
  const auto rank = [](const ModelComparison::Difference& d) {
    return d.kind != Kind::weight || !d.numbers ? -INFINITY : d.numbers->unlike > 0 ? -1e9 : d.numbers->snr;
  };
  std::stable_sort(out.begin(), out.end(), [&](const auto* x, const auto* y) { return rank(*x) < rank(*y); });
  return out;
}

std::string differences_text(const ModelComparison& s) {
  const auto differences = by_weight(s);
  const auto elements = static_cast<int64_t>(s.differences.size() - differences.size());
  std::string out;
  if (!differences.empty()) {
    io::Table table({{"operation", Shrink::middle, io::Color::yellow},
                     {"type", Shrink::drop},
                     {"parameter", Shrink::middle},
                     {"a", Shrink::end},
                     {"b", Shrink::end},
                     {"different", Align::right},
                     {"largest", Align::right},
                     {"signal to noise", Align::right},
                     {"where", Align::left, Shrink::drop}});
    for (size_t i = 0; i < std::min(differences.size(), kMostRows); ++i) {
      const ModelComparison::Difference& d = *differences[i];
      const auto absent = [](const std::string& text) { return text.empty() ? "none" : shortened(text, kLongest); };
      const std::string type = d.a < 0 ? "" : s.a[static_cast<size_t>(d.a)].type;
      const bool counts = d.numbers && d.kind == Kind::weight;
      table.add_row(
          {names_of(s, d.a, d.b), d.kind == Kind::type ? "" : type, d.kind == Kind::type ? "type" : d.parameter,
           absent(d.first), absent(d.second),
           counts ? fmt::format("{} of {}", format_count(d.numbers->different), format_count(d.numbers->elements)) : "",
           d.numbers ? format_number(d.numbers->largest) : "", counts ? ratio(d.numbers->snr) : "",
           counts ? place_of(*d.numbers) : ""});
    }
    out += title("Parameters and weights that differ") + table_text(table) + more(differences.size());
  }
  if (elements > 0)
    out += "\n" + fact("types", plural(elements, "constant") + " with the same numbers in another element type");
  return out;
}

std::string features_text(const char* heading, const char* what, const std::vector<ModelComparison::Feature>& list) {
  if (list.empty()) return "";
  io::Table table({{what, Shrink::middle}, {"a", Shrink::wrap}, {"b", Shrink::wrap}});
  for (size_t i = 0; i < std::min(list.size(), kMostRows); ++i) {
    const auto text = [](const std::string& t) { return t.empty() ? "none" : shortened(t, kLongest); };
    table.add_row({list[i].what, text(list[i].first), text(list[i].second)});
  }
  return title(heading) + table_text(table) + more(list.size());
}

std::string inputs_text(const ModelComparison::Operation& op) {
  std::string out;
  for (const auto& [parameter, values] : op.inputs)
    for (const std::string& value : values) out += fmt::format("{}{} = {}", out.empty() ? "" : ", ", parameter, value);
  return out;
}

std::string alone_text(const char* heading, const Operations& operations, const Operations& others) {
  io::Table table(
      {{"operation", Shrink::middle, io::Color::yellow}, {"type"}, {"reads", Shrink::end}, {"", Shrink::end}});
  size_t count = 0;
  for (const ModelComparison::Operation& op : operations) {
    if (op.partner >= 0 || op.is_transparent || ++count > kMostRows) continue;
    table.add_row(
        {op.name, op.type, inputs_text(op),
         op.fused_into < 0 ? "" : fmt::format("in its place: {}", others[static_cast<size_t>(op.fused_into)].name)});
  }
  return count == 0 ? "" : title(heading) + table_text(table) + more(count);
}

std::string structure_text(const ModelComparison& s) {
  const std::string about = features_text("Inputs, outputs and labels that differ", "interface", s.interface) +
                            features_text("Metadata that differs", "metadata", s.metadata);
  if (!s.fault.empty())
    return fact("compared", "the fields of the files, since " + s.fault) + about +
           features_text("Fields that differ", "field", s.fields);
  int64_t paired = 0, renamed = 0, transparent = 0;
  for (const auto& op : s.a) {
    paired += op.partner >= 0;
    renamed += op.partner >= 0 && s.b[static_cast<size_t>(op.partner)].name != op.name;
    transparent += op.partner < 0 && op.is_transparent;
  }
  for (const auto& op : s.b) transparent += op.partner < 0 && op.is_transparent;
  std::string out =
      fact("operations",
           fmt::format("{} and {}, {} paired{}{}", format_count(static_cast<int64_t>(s.a.size())),
                       format_count(static_cast<int64_t>(s.b.size())), format_count(paired),
                       renamed > 0 ? fmt::format(", {} renamed", format_count(renamed)) : "",
                       transparent > 0 ? fmt::format("; {} on one side only", plural(transparent, "cast")) : ""));
  out += fact("constants", fmt::format("{} compared, {}", format_count(s.constants), plural(s.elements, "element")));
  return out + about + alone_text("Operations only in a", s.a, s.b) + alone_text("Operations only in b", s.b, s.a) +
         differences_text(s);
}

std::string range_text(const ArrayFacts& facts) {
  if (facts.finite == 0) return "not finite";
  return fmt::format("{} … {}", format_number(facts.least), format_number(facts.most));
}

std::string region_text(const Operations& operations, const std::vector<int>& region) {
  std::string out;
  for (const int i : region) {
    const ModelComparison::Operation& op = operations[static_cast<size_t>(i)];
    out += fmt::format("{}{} ({}): {}", out.empty() ? "" : "; ", op.name, op.type, inputs_text(op));
  }
  return out;
}

std::string trail_text(const ValueDiff& v, const ModelComparison& s) {
  io::Table table({{"operation", Shrink::middle},
                   {"type", Shrink::drop},
                   {"value in a", Align::right},
                   {"in b", Align::right},
                   {"largest", Align::right},
                   {"relative", Align::right},
                   {"signal to noise", Align::right}});
  const auto type_of = [&](const std::string& value) {
    for (const auto& op : s.a)
      for (const auto& [name, type] : op.outputs)
        if (name == value) return op.type;
    return std::string();
  };
  for (size_t n = 0; n < v.trail.size(); ++n) {
    if (n == kTrailEnds && v.trail.size() > 2 * kTrailEnds) {
      table.add_row({fmt::format("… {} more", v.trail.size() - 2 * kTrailEnds)});
      n = v.trail.size() - kTrailEnds;
    }
    const ComparedValue& one = v.found.values[v.trail[n]];
    const std::string name =
        one.operation == one.other_operation ? one.operation : one.operation + " / " + one.other_operation;
    table.add_row({name, type_of(one.value), range_text(one.facts), range_text(one.other_facts),
                   one.has_form ? format_number(one.difference) : "other form",
                   one.has_form ? format_number(one.relative) : "",
                   one.unlike     ? "NaN or infinite"
                   : one.has_form ? ratio(one.snr)
                                  : ""});
  }
  return table_text(table);
}

std::string values_text(const ValueDiff& v, const ModelComparison& s) {
  if (!v.fault.empty()) return "\n" + fact("values", painted(v.fault, io::Color::red));
  int64_t compared = 0, equal = 0, differ = 0;
  for (const ComparedValue& one : v.found.values) {
    compared += !one.other.empty();
    equal += !one.other.empty() && one.equal;
    differ += one.differs;
  }
  std::string out = title("Values") + fact("predictions", format_count(v.predictions));
  const std::string limit = v.min_snr ? fmt::format("with at least {:.1f} dB of signal to noise", *v.min_snr)
                                      : fmt::format("within {:.2g} of the greatest magnitude", v.tolerance);
  out += fact("compared", fmt::format("{} of {} values: {} equal, {} {}, {} differ", format_count(compared),
                                      format_count(static_cast<int64_t>(v.found.values.size())), format_count(equal),
                                      format_count(compared - equal - differ), limit, format_count(differ)));
  if (!v.origins.empty()) {
    out += fact(v.found.first ? "differs" : "not equal",
                painted(v.found.values[v.origins[0]].operation, v.found.first ? io::Color::red : io::Color::yellow) +
                    (v.found.first ? " is the first operation whose value differs"
                                   : " is the first operation whose value is not equal"));
    out += fact("in a", region_text(s.a, v.region_a));
    out += fact("in b", region_text(s.b, v.region_b));
    std::vector<std::string> others;
    for (size_t i = 1; i < v.origins.size(); ++i) others.push_back(v.found.values[v.origins[i]].operation);
    if (!others.empty()) out += fact("also", quoted_list(others) + ", which read nothing that differs");
    out += title("From there to the outputs") + trail_text(v, s);
  }
  io::Table table({{"output", Shrink::middle},
                   {"b's", Shrink::drop},
                   {"signal to noise", Align::right},
                   {"largest error", Align::right},
                   {"relative", Align::right},
                   {"agreement", Align::left}});
  for (const OutputError& e : v.outputs)
    table.add_row({e.name, e.other, decibels(e), e.has_numbers() ? format_number(e.absolute) : "",
                   e.has_numbers() ? format_number(e.relative) : "", agreement(e)});
  out += title("Outputs") + table_text(table);
  for (const std::string& failure : v.failures) out += fact("differs", painted(failure, io::Color::red));
  return out;
}

}  // namespace

std::string diff_text(const Diff& diff) {
  std::string out = fact("a", diff.a) + fact("b", diff.b);
  if (diff.has_structure) out += structure_text(diff.structure);
  if (diff.values) out += values_text(*diff.values, diff.structure);
  return out + "\n" +
         fact("result", diff.same() ? painted("the same", io::Color::green) : painted("different", io::Color::red));
}

}  // namespace moka::cli

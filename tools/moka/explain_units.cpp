// SPDX-License-Identifier: Apache-2.0
#include "explain_units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "io/table.h"
#include "print.h"
#include "text.h"

namespace moka::cli {

namespace {

constexpr size_t kShownOperations = 20;

using io::Align;
using io::Shrink;

std::string bytes(size_t n) { return format_bytes(static_cast<double>(n)); }

bool has_choice(const ComputePlan& plan) {
  return std::any_of(plan.operations.begin(), plan.operations.end(), [](const auto& o) { return o.bids.size() > 1; });
}

std::string cost_text(const ComputePlan& plan) {
  const PlannedCost& c = plan.cost;
  const double total = c.compute + c.transfers + c.launches;
  if (total <= 0) return {};
  std::string out = "\n" + bold("the choice between units") + "\n";
  out += fact("costs", fmt::format("{}: {} of work, {} of transfers, {} of submissions", format_seconds(total),
                                   format_seconds(c.compute), format_seconds(c.transfers), format_seconds(c.launches)));
  if (std::isfinite(c.on_host)) out += fact("on the CPU", format_seconds(c.on_host));
  out += fact("it is", c.is_optimal ? "the cheapest of all" : "the cheapest that was found");
  return out + fact("rates", plan.rates == "table" ? "careful estimates; 'moka rates' measures them" : plan.rates);
}

std::string regions_text(const ComputePlan& plan) {
  if (plan.regions.empty()) return {};
  io::Table table({{"region", Align::right},
                   {"device"},
                   {"operations", Align::right},
                   {"uploads", Align::right},
                   {"downloads", Align::right},
                   {"takes", Align::right},
                   {"saves", Align::right}});
  for (size_t i = 0; i < plan.regions.size(); ++i) {
    const PlannedRegion& r = plan.regions[i];
    const std::string saves = !std::isfinite(r.saves) ? "pinned" : r.saves > 0 ? format_seconds(r.saves) : "";
    table.add_row({std::to_string(i + 1), r.device, format_count(static_cast<int64_t>(r.operations)),
                   bytes(r.upload_bytes), bytes(r.download_bytes), format_seconds(r.seconds + r.launch), saves});
  }
  return "\n" + table_text(table);
}

std::string transfers_text(const ComputePlan& plan, bool all) {
  std::vector<const PlannedOperation*> shown;
  for (const PlannedOperation& o : plan.operations)
    if (o.type == "transfer") shown.push_back(&o);
  if (shown.empty()) return {};
  const size_t count = shown.size();
  if (!all && count > kShownOperations) {
    std::stable_sort(shown.begin(), shown.end(), [](const auto* a, const auto* b) { return a->bytes > b->bytes; });
    shown.resize(kShownOperations);
  }
  io::Table table(
      {{"transfer", Shrink::middle}, {"bytes", Align::right}, {"region", Align::right}, {"why", Shrink::wrap}});
  for (const PlannedOperation* o : shown)
    table.add_row({o->name, format_count(static_cast<int64_t>(o->bytes)), std::to_string(o->region + 1), o->reason});
  std::string out = "\n" + table_text(table);
  if (count > shown.size())
    out += dim(fmt::format("the {} largest of {}; --all shows them all", shown.size(),
                           plural(static_cast<int64_t>(count), "transfer"))) +
           "\n";
  return out;
}

double chosen_seconds(const PlannedOperation& o) {
  for (const UnitBid& b : o.bids)
    if (b.device == o.device && b.refusal.empty()) return b.seconds;
  return 0;
}

std::string bids_text(const ComputePlan& plan, bool all) {
  std::vector<std::string> devices;
  std::vector<const PlannedOperation*> shown;
  for (const PlannedOperation& o : plan.operations) {
    if (o.bids.size() < 2) continue;
    shown.push_back(&o);
    for (const UnitBid& b : o.bids)
      if (std::find(devices.begin(), devices.end(), b.device) == devices.end()) devices.push_back(b.device);
  }
  const size_t count = shown.size();
  if (!all && count > kShownOperations) {
    std::stable_sort(shown.begin(), shown.end(),
                     [](const auto* a, const auto* b) { return chosen_seconds(*a) > chosen_seconds(*b); });
    shown.resize(kShownOperations);
  }
  std::vector<io::Table::Column> columns{{"operation", Shrink::middle}, {"type", Shrink::middle}};
  for (const std::string& d : devices) columns.push_back({d, Align::right});
  const bool has_refusals = std::any_of(shown.begin(), shown.end(), [](const PlannedOperation* o) {
    return std::any_of(o->bids.begin(), o->bids.end(), [](const UnitBid& b) { return !b.refusal.empty(); });
  });
  if (has_refusals) columns.push_back({"refused, since", Shrink::wrap});
  io::Table table(std::move(columns));
  for (const PlannedOperation* o : shown) {
    std::vector<std::string> row{o->name, o->type};
    std::string refusals;
    for (const std::string& device : devices) {
      std::string cell;
      for (const UnitBid& b : o->bids) {
        if (b.device != device) continue;
        cell = !b.refusal.empty() ? "refused" : format_seconds(b.seconds) + (b.device == o->device ? " *" : "");
        if (!b.refusal.empty()) refusals += (refusals.empty() ? "" : "; ") + b.refusal;
      }
      row.push_back(cell);
    }
    if (has_refusals) row.push_back(refusals);
    table.add_row(std::move(row));
  }
  std::string out = "\n" + table_text(table) + dim("* where it runs");
  if (count > shown.size())
    out += dim(fmt::format("; the {} most expensive of {}; --all shows every one", shown.size(),
                           plural(static_cast<int64_t>(count), "operation")));
  return out + "\n";
}

/// A reason for which a unit refuses operations.
struct Obstacle {
  std::string reason, remedy, source, rule;
  std::vector<std::string> operations;
};

struct OffUnit {
  size_t takes = 0;    ///< number of operations that the unit would run
  size_t doubted = 0;  ///< those of them that Core ML would probably run elsewhere
  std::vector<Obstacle> doubts;
  std::vector<Obstacle> obstacles;
};

/// Why the plan has no bids of a unit other than the CPU.
std::string why_not_asked(const ComputePlan& plan) {
  for (const PassRemark& r : plan.remarks)
    if (r.pass == "devices" &&
        (r.text.find("is not used") != std::string::npos || r.text.find("is used only") != std::string::npos))
      return r.text;
  return "the unit was not asked";
}

std::vector<Obstacle> obstacles_of(std::map<std::array<std::string, 4>, std::vector<std::string>>& found) {
  std::vector<Obstacle> out;
  for (auto& [texts, names] : found) out.push_back({texts[0], texts[1], texts[2], texts[3], std::move(names)});
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.operations.size() > b.operations.size(); });
  return out;
}

OffUnit off_unit(const ComputePlan& plan, const std::string& unit) {
  OffUnit out;
  std::map<std::array<std::string, 4>, std::vector<std::string>> found, doubts;
  for (const PlannedOperation& o : plan.operations) {
    if (o.kernel.empty()) continue;
    const auto bid = std::find_if(o.bids.begin(), o.bids.end(), [&](const UnitBid& b) { return b.unit == unit; });
    if (bid == o.bids.end())
      found[{why_not_asked(plan)}].push_back(o.name);
    else if (!bid->refusal.empty())
      found[{bid->refusal, bid->remedy, bid->source, bid->rule}].push_back(o.name);
    else
      out.takes++;
    if (bid != o.bids.end() && !bid->doubt.empty()) {
      doubts[{bid->doubt, bid->remedy, bid->source, bid->rule}].push_back(o.name);
      out.doubted++;
    }
  }
  out.obstacles = obstacles_of(found);
  out.doubts = obstacles_of(doubts);
  return out;
}

std::string obstacles_text(const std::vector<Obstacle>& obstacles, const char* why) {
  if (obstacles.empty()) return {};
  std::vector<io::Table::Column> columns{
      {"operations", Align::right}, {"for example", Shrink::middle}, {why, Shrink::wrap}};
  const bool has_rules =
      std::any_of(obstacles.begin(), obstacles.end(), [](const Obstacle& o) { return !o.source.empty(); });
  if (has_rules) columns.insert(columns.end(), {{"instead", Shrink::wrap}, {"source", Shrink::wrap}});
  io::Table table(std::move(columns));
  for (const Obstacle& o : obstacles) {
    std::vector<std::string> row{format_count(static_cast<int64_t>(o.operations.size())), o.operations[0], o.reason};
    if (has_rules) row.insert(row.end(), {o.remedy, o.source});
    table.add_row(std::move(row));
  }
  return "\n" + table_text(table);
}

Json obstacles_json(const std::vector<Obstacle>& obstacles) {
  Json out = Json::array();
  for (const Obstacle& o : obstacles) {
    Json one{{"reason", o.reason}, {"operations", o.operations}};
    if (!o.rule.empty()) one["rule"] = o.rule;
    if (!o.remedy.empty()) one["remedy"] = o.remedy;
    if (!o.source.empty()) one["source"] = o.source;
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace

std::string pins_text(const ComputePlan& plan) {
  if (plan.pins.empty()) return {};
  io::Table table({{"pin", Shrink::middle}, {"device"}, {"operations", Align::right}, {"", Shrink::wrap}});
  for (const PlannedPin& p : plan.pins) {
    const size_t later = p.matched - p.decided;
    table.add_row({p.operations, p.device, format_count(static_cast<int64_t>(p.matched)),
                   later > 0 ? fmt::format("later pins count for {}", format_count(static_cast<int64_t>(later))) : ""});
  }
  return "\n" + table_text(table);
}

std::string units_text(const ComputePlan& plan, bool all) {
  if (!has_choice(plan)) return {};
  return cost_text(plan) + regions_text(plan) + transfers_text(plan, all) + bids_text(plan, all);
}

std::string off_unit_text(const ComputePlan& plan, const std::string& unit) {
  const OffUnit off = off_unit(plan, unit);
  size_t stays = 0;
  for (const Obstacle& o : off.obstacles) stays += o.operations.size();
  std::string out = fact("unit", unit);
  if (unit == "neuralEngine")
    out += fact("preview",
                "there is no Neural Engine off Apple's chips; rules that public sources document say what "
                "it would run, and the CPU computes that, rounded to float16");
  out += fact("takes", plural(static_cast<int64_t>(off.takes), "operation"));
  out += fact("stays off", plural(static_cast<int64_t>(stays), "operation"));
  if (off.doubted > 0)
    out += fact("doubtful", fmt::format("{} that it takes, and that Core ML would probably prefer elsewhere",
                                        plural(static_cast<int64_t>(off.doubted), "operation")));
  return out + obstacles_text(off.obstacles, "stays off because") + obstacles_text(off.doubts, "doubtful because");
}

void add_units(const ComputePlan& plan, Json& json) {
  const PlannedCost& c = plan.cost;
  json["rates"] = plan.rates;
  json["cost"] = {{"computeSeconds", c.compute},
                  {"transferSeconds", c.transfers},
                  {"launchSeconds", c.launches},
                  {"onHostSeconds", finite_or_null(c.on_host)},
                  {"isOptimal", c.is_optimal}};
  json["pins"] = Json::array();
  for (const PlannedPin& p : plan.pins)
    json["pins"].push_back({{"operations", p.operations},
                            {"device", p.device},
                            {"matched", p.matched},
                            {"decided", p.decided},
                            {"note", p.note}});
  json["regions"] = Json::array();
  for (const PlannedRegion& r : plan.regions)
    json["regions"].push_back({{"device", r.device},
                               {"operations", r.operations},
                               {"uploadBytes", r.upload_bytes},
                               {"downloadBytes", r.download_bytes},
                               {"seconds", r.seconds},
                               {"launchSeconds", r.launch},
                               {"savesSeconds", finite_or_null(r.saves)}});
}

void add_off_unit(const ComputePlan& plan, const std::string& unit, Json& json) {
  const OffUnit off = off_unit(plan, unit);
  json["unit"] = unit;
  json["takes"] = off.takes;
  json["staysOff"] = obstacles_json(off.obstacles);
  json["doubted"] = off.doubted;
  json["doubts"] = obstacles_json(off.doubts);
}

}  // namespace moka::cli

// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "io/table.h"
#include "print.h"
#include "report.h"
#include "text.h"

namespace moka::cli {
namespace {

/// A figure of one report and how far it strays while nothing changes.
struct Figure {
  double value = 0;
  double noise = 0;  ///< a fraction of `value`
};

/// The median of samples in the order of time. The machine drifts more slowly than predictions repeat, so the noise is
/// that between the medians of eight stretches, not that between neighbors.
Figure figure_of(const std::vector<double>& samples) {
  constexpr size_t kStretches = 8;
  const auto median = [](std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return percentile(v, 0.5);
  };
  Figure f{median(samples), 0};
  std::vector<double> parts;
  if (samples.size() < 2 * kStretches) {
    parts = samples;
  } else {
    for (size_t i = 0; i < kStretches; i++)
      parts.push_back(median({samples.begin() + static_cast<std::ptrdiff_t>(i * samples.size() / kStretches),
                              samples.begin() + static_cast<std::ptrdiff_t>((i + 1) * samples.size() / kStretches)}));
  }
  std::sort(parts.begin(), parts.end());
  if (f.value > 0) f.noise = (parts.back() - parts.front()) / 2 / f.value;
  return f;
}

std::vector<double> samples_of(const Json& statistics) { return statistics.at("samples").get<std::vector<double>>(); }

class Comparison {
 public:
  Comparison(double tolerance, Json& out) : tolerance_(tolerance), out_(out) {}

  void figure(const std::string& setting, const char* name, const char* unit, Figure before, Figure after) {
    if (before.value <= 0 || after.value <= 0) return;
    const double change = after.value / before.value - 1, noise = before.noise + after.noise;
    const bool is_beyond = std::abs(change) > std::max(tolerance_, noise);
    const char* verdict = !is_beyond ? "same" : change > 0 ? "worse" : "better";
    out_.at("changes").push_back({{"setting", setting},
                                  {"what", name},
                                  {"unit", unit},
                                  {"before", before.value},
                                  {"after", after.value},
                                  {"change", change},
                                  {"noise", noise},
                                  {"verdict", verdict}});
    if (is_beyond && change > 0) regressions_++;
  }
  void remark(std::string text) { out_.at("remarks").push_back(std::move(text)); }
  void regression(std::string text) {
    remark(std::move(text));
    regressions_++;
  }
  int regressions() const { return regressions_; }

 private:
  const double tolerance_;
  Json& out_;
  int regressions_ = 0;
};

/// Operations that moved to another device or kernel: where a change of time comes from.
void compare_operations(const std::string& setting, const Json& before, const Json& after, Comparison& to) {
  std::map<std::string, std::string> where;
  for (const Json& o : before)
    where[o.at("name").get<std::string>()] =
        o.at("device").get<std::string>() + " " + o.at("kernel").get<std::string>();
  size_t moved = 0;
  std::string examples;
  for (const Json& o : after) {
    const auto at = where.find(o.at("name").get<std::string>());
    const std::string now = o.at("device").get<std::string>() + " " + o.at("kernel").get<std::string>();
    if (o.at("kernel") == "" || at == where.end() || at->second == now) continue;
    if (moved++ < 3)
      examples += fmt::format("{}'{}' from {} to {}", examples.empty() ? "" : ", ", at->first, at->second, now);
  }
  if (moved > 0)
    to.remark(fmt::format("{}: {} run elsewhere: {}{}", setting, plural(static_cast<int64_t>(moved), "operation"),
                          examples, moved > 3 ? ", ..." : ""));
}

std::string hardware(const Json& setting) {
  std::string out;
  for (const Json& u : setting.at("machine").at("units")) out += u.at("description").get<std::string>() + "; ";
  return out;
}

}  // namespace

Json compared(const Json& before, const Json& after, double tolerance) {
  Json out{{"format", "moka-report-comparison"}, {"version", 1}, {"tolerance", tolerance}};
  out["changes"] = Json::array();
  out["remarks"] = Json::array();
  Comparison to(tolerance, out);
  const auto find = [](const Json& report, const Json& name) -> const Json* {
    for (const Json& s : report.at("settings"))
      if (s.at("name") == name) return &s;
    return nullptr;
  };
  if (before.at("model").at("name") != after.at("model").at("name"))
    to.remark(fmt::format("the models have different names: {} and {}",
                          before.at("model").at("name").get<std::string>(),
                          after.at("model").at("name").get<std::string>()));
  size_t matched = 0;
  for (const Json& a : after.at("settings")) {
    const auto name = a.at("name").get<std::string>();
    const Json* b = find(before, a.at("name"));
    if (b == nullptr) {
      to.remark(name + ": only the new report has this setting");
      continue;
    }
    matched++;
    if (a.contains("error")) {
      if (b->contains("error"))
        to.remark(name + ": fails in both: " + a.at("error").get<std::string>());
      else
        to.regression(name + ": fails now: " + a.at("error").get<std::string>());
      continue;
    }
    if (b->contains("error")) {
      to.remark(name + ": works now; it failed: " + (*b).at("error").get<std::string>());
      continue;
    }
    if (hardware(*b) != hardware(a)) to.remark(name + ": the reports are from different machines");
    to.figure(name, "load", "s", figure_of(samples_of((*b).at("load"))), figure_of(samples_of(a.at("load"))));
    to.figure(name, "prediction", "s", figure_of(samples_of((*b).at("steady"))), figure_of(samples_of(a.at("steady"))));
    const auto p90 = [](const Json& s) {
      return Figure{s.at("steady").at("p90").get<double>(),
                    figure_of(samples_of(s.at("steady"))).noise +
                        (s.at("steady").at("p90").get<double>() - s.at("steady").at("median").get<double>()) /
                            std::max(s.at("steady").at("p90").get<double>(), 1e-12)};
    };
    to.figure(name, "prediction, p90", "s", p90(*b), p90(a));
    for (const auto& [what, key] :
         {std::pair{"peak memory", "peakBytes"}, {"packed weights", "packedBytes"}, {"values", "arenaBytes"}})
      to.figure(name, what, "B", {(*b).at("memory").at(key).get<double>(), 0},
                {a.at("memory").at(key).get<double>(), 0});
    compare_operations(name, (*b).at("operations"), a.at("operations"), to);
  }
  for (const Json& b : before.at("settings"))
    if (find(after, b.at("name")) == nullptr)
      to.remark(b.at("name").get<std::string>() + ": only the old report has this setting");
  if (matched == 0) to.regression("the reports have no setting in common");
  out["regressions"] = to.regressions();
  return out;
}

std::string comparison_text(const Json& comparison) {
  io::Table table({{"setting", io::Shrink::middle},
                   {"", io::Align::left},
                   {"before", io::Align::right},
                   {"after", io::Align::right},
                   {"change", io::Align::right},
                   {"noise", io::Align::right},
                   {"", io::Align::left}});
  for (const Json& c : comparison.at("changes")) {
    const auto shown = [&](const char* key) {
      const double v = c.at(key).get<double>();
      return c.at("unit") == "s" ? format_seconds(v) : format_bytes(v);
    };
    table.add_row({c.at("setting").get<std::string>(), c.at("what").get<std::string>(), shown("before"), shown("after"),
                   fmt::format("{:+.1f}%", c.at("change").get<double>() * 100),
                   format_percent(c.at("noise").get<double>()),
                   c.at("verdict") == "same" ? "" : c.at("verdict").get<std::string>()});
  }
  std::string out = table.empty() ? std::string() : table_text(table) + "\n";
  for (const Json& r : comparison.at("remarks")) out += fact("remark", r.get<std::string>());
  const int n = comparison.at("regressions").get<int>();
  return out + fact("result", n == 0 ? "nothing is worse beyond noise" : plural(n, "regression"));
}

}  // namespace moka::cli

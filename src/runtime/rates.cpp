// SPDX-License-Identifier: Apache-2.0
#include "runtime/rates.h"

#include <algorithm>
#include <cmath>

#include "runtime/cache_file.h"
#include "runtime/machine_file.h"

namespace moka::runtime {

namespace {

constexpr MachineFormat kUnitRates{"moka unit rates", 1};

struct Field {
  const char* name;
  double kernel::UnitRates::*rate;
  double kernel::WorkRates::*work;
};
constexpr Field kCosts[] = {{"launchSeconds", &kernel::UnitRates::launch, nullptr},
                            {"transferSeconds", &kernel::UnitRates::latency, nullptr},
                            {"transferBytesPerSecond", &kernel::UnitRates::bytes_per_second, nullptr}};
constexpr Field kWork[] = {{"fp32", nullptr, &kernel::WorkRates::fp32},
                           {"fp16", nullptr, &kernel::WorkRates::fp16},
                           {"bytes", nullptr, &kernel::WorkRates::bytes}};

Result<double> number_of(const Json& json, const char* key, bool may_be_zero) {
  const auto it = json.is_object() ? json.find(key) : json.end();
  if (!json.is_object() || it == json.end() || !it->is_number())
    return fail(ErrorCode::malformed, "no number '", key, "' where one is needed");
  const double v = it->get<double>();
  if (!std::isfinite(v) || v < 0 || (v == 0 && !may_be_zero))
    return fail(ErrorCode::malformed, "'", key, "' must be a positive number, not ", v);
  return v;
}

Result<kernel::WorkRates> work_of(const Json& unit, const char* key) {
  kernel::WorkRates out;
  const auto it = unit.find(key);
  if (it == unit.end()) return fail(ErrorCode::malformed, "no object '", key, "' where one is needed");
  for (const Field& f : kWork) out.*f.work = MOKA_TRY(number_of(*it, f.name, true));
  return out;
}

Result<KnownUnit> unit_of(const Json& json) {
  KnownUnit u;
  u.device = MOKA_TRY(text_of(json, "device"));
  u.identity = MOKA_TRY(text_of(json, "identity"));
  u.date = MOKA_TRY(text_of(json, "date"));
  u.disturbed = json.value("disturbed", Json()) == true;
  for (const Field& f : kCosts) u.rates.*f.rate = MOKA_TRY(number_of(json, f.name, true));
  if (u.rates.bytes_per_second <= 0) return fail(ErrorCode::malformed, "'", u.device, "' transfers nothing");
  u.rates.measured = MOKA_TRY(work_of(json, "perSecond"));
  u.rates.estimated = MOKA_TRY(work_of(json, "estimatedPerSecond"));
  return u;
}

/// Three digits: more are noise.
double rounded(double v) {
  if (!(v > 0)) return 0;
  const double unit = std::pow(10, std::floor(std::log10(v)) - 2);
  return std::round(v / unit) * unit;
}

Json to_json(const KnownUnit& u) {
  Json json{{"device", u.device}, {"identity", u.identity}, {"date", u.date}};
  if (u.disturbed) json["disturbed"] = true;
  for (const Field& f : kCosts) json[f.name] = rounded(u.rates.*f.rate);
  for (const Field& f : kWork) {
    json["perSecond"][f.name] = rounded(u.rates.measured.*f.work);
    json["estimatedPerSecond"][f.name] = rounded(u.rates.estimated.*f.work);
  }
  return json;
}

bool is_of(const Json& section, const RatesMachine& machine) {
  return section.is_object() && section.value("processor", Json()) == machine.processor &&
         section.value("build", Json()) == machine.build && section.value("threads", Json()) == machine.threads;
}

}  // namespace

Result<std::vector<KnownUnit>> parse_rates(std::string_view text, const RatesMachine& machine) {
  const Json root = MOKA_TRY(parse_machine_file(text, kUnitRates));
  std::vector<KnownUnit> out;
  for (const Json& section : root["machines"]) {
    if (!is_of(section, machine)) continue;
    const auto units = section.find("units");
    if (units == section.end() || !units->is_array()) return fail(ErrorCode::malformed, "no list 'units'");
    for (const Json& u : *units) out.push_back(MOKA_TRY(unit_of(u)));
  }
  return out;
}

std::string merged_rates(std::string_view before, const RatesMachine& machine, std::span<const KnownUnit> units) {
  Json root{{"format", kUnitRates.name}, {"version", kUnitRates.version}, {"machines", Json::array()}};
  Json section{{"processor", machine.processor},
               {"build", machine.build},
               {"threads", machine.threads},
               {"units", Json::array()}};
  if (auto parsed = parse_machine_file(before, kUnitRates); parsed.ok()) {
    for (const Json& other : (*parsed)["machines"])
      if (other.is_object() && !is_of(other, machine) &&
          (other.value("processor", Json()) != machine.processor || other.value("build", Json()) == machine.build))
        root["machines"].push_back(other);
    if (auto mine = parse_rates(before, machine); mine.ok())
      for (const KnownUnit& u : *mine)
        if (std::none_of(units.begin(), units.end(), [&](const KnownUnit& n) { return n.device == u.device; }))
          section["units"].push_back(to_json(u));
  }
  for (const KnownUnit& u : units) section["units"].push_back(to_json(u));
  root["machines"].push_back(std::move(section));
  return root.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<std::string> default_rates() { return users_cache_file("rates.json", "the user's rates"); }

}  // namespace moka::runtime

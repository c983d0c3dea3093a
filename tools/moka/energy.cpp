// SPDX-License-Identifier: Apache-2.0
#include "energy.h"

#include <fmt/format.h>

#include "text.h"

namespace moka::cli {

namespace {

std::string format_joules(double joules) {
  if (joules >= 1) return format_number(joules) + " J";
  if (joules >= 1e-3) return format_number(joules * 1e3) + " mJ";
  return format_number(joules * 1e6) + " \u00b5J";
}

}  // namespace

std::string format_energy(const Energy& energy) {
  return energy.parts.empty() ? std::string() : format_joules(energy.joules());
}

std::string energy_text(const Energy& energy) {
  std::string parts, missing;
  for (const EnergyPart& part : energy.parts)
    parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", part.name, format_joules(part.joules));
  for (const std::string& reason : energy.missing) missing += (missing.empty() ? "" : "; ") + reason;
  if (parts.empty()) return "not available: " + missing;
  std::string out = format_joules(energy.joules()) + " a prediction";
  if (energy.parts.size() > 1 || energy.missing.empty()) out += ": " + parts;
  return missing.empty() ? out : out + " (without " + missing + ")";
}

Json energy_json(const Energy& energy) {
  Json out{{"parts", Json::array()}, {"missing", energy.missing}};
  if (!energy.parts.empty()) out["joules"] = energy.joules();
  for (const EnergyPart& part : energy.parts) out["parts"].push_back({{"name", part.name}, {"joules", part.joules}});
  return out;
}

}  // namespace moka::cli

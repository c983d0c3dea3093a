// SPDX-License-Identifier: Apache-2.0
#include "update/settings.h"

#include <algorithm>
#include <cmath>

#include "base/whole.h"

namespace moka::update {

namespace {

double to_double(const Setting& value) {
  return std::visit([](auto v) { return static_cast<double>(v); }, value);
}

/// The value in the type of the parameter.
Result<Setting> converted(const import::UpdateParameter& parameter, const Setting& value) {
  const double number = to_double(value);
  const auto refuse = [&](const char* expected) {
    return fail(ErrorCode::invalid_argument, parameter.name, ": expected ", expected, ", got ", to_text(value));
  };
  if (std::holds_alternative<bool>(parameter.value)) {
    if (!std::holds_alternative<bool>(value) && number != 0 && number != 1) return refuse("true or false");
    return Setting(number != 0);
  }
  if (std::holds_alternative<bool>(value)) return refuse("a number");
  if (std::holds_alternative<double>(parameter.value)) {
    if (!std::isfinite(number)) return refuse("a finite number");
    return Setting(number);
  }
  if (std::holds_alternative<int64_t>(value)) return value;
  if (!is_int64(number)) return refuse("a whole number");
  return Setting(static_cast<int64_t>(number));
}

Status check_allowed(const import::UpdateParameter& p, const Setting& value) {
  const auto refuse = [&](const auto&... allowed) {
    return fail(ErrorCode::invalid_argument, p.name, ": the model allows ", allowed..., ", got ", to_text(value));
  };
  if (const auto* number = std::get_if<double>(&value)) {
    if (p.range && (*number < p.range->first || *number > p.range->second))
      return refuse(p.range->first, " to ", p.range->second);
    return {};
  }
  const auto* integer = std::get_if<int64_t>(&value);
  if (integer == nullptr) return {};
  if (p.bounds && (*integer < p.bounds->first || *integer > p.bounds->second))
    return refuse(p.bounds->first, " to ", p.bounds->second);
  if (!p.allowed.empty() && std::find(p.allowed.begin(), p.allowed.end(), *integer) == p.allowed.end()) {
    std::string all;
    for (const int64_t v : p.allowed) all += cat(all.empty() ? "" : ", ", v);
    return refuse(all);
  }
  if (*integer < 1 && p.name != "seed") return refuse("positive numbers");
  return {};
}

/// Networks can always be given an order of the examples.
const import::UpdateParameter* find_parameter(const import::UpdateDescription& update, std::string_view name) {
  static const import::UpdateParameter order[] = {{"shuffle", false, {}, {}, {}}, {"seed", int64_t{0}, {}, {}, {}}};
  const import::UpdateParameter* own = update.parameter(name);
  if (own != nullptr || update.neighbors) return own;
  const auto it = std::find_if(std::begin(order), std::end(order), [&](const auto& p) { return p.name == name; });
  return it == std::end(order) ? nullptr : it;
}

}  // namespace

std::string to_text(const Setting& setting) {
  if (const auto* flag = std::get_if<bool>(&setting)) return *flag ? "true" : "false";
  return std::visit([](auto v) { return cat(v); }, setting);
}

Settings default_settings(const import::UpdateDescription& update) {
  Settings out;
  for (const auto& p : update.parameters) out.emplace(p.name, p.value);
  return out;
}

Status change_settings(Settings& settings, const Settings& changes, const import::UpdateDescription& update) {
  Settings changed = settings;
  for (const auto& [name, value] : changes) {
    const import::UpdateParameter* parameter = find_parameter(update, name);
    if (parameter == nullptr) {
      std::string all;
      for (const auto& p : update.parameters) all += cat(all.empty() ? "" : ", ", p.name);
      return fail(ErrorCode::invalid_argument, "the model has no parameter '", name, "' for updates; it has ", all);
    }
    const Setting own = MOKA_TRY(converted(*parameter, value));
    // A default that is not allowed is the model's own, which is checked on its own.
    const auto current = settings.find(name);
    if (current == settings.end() || current->second != own) MOKA_TRY(check_allowed(*parameter, own));
    changed[name] = own;
  }
  settings = std::move(changed);
  return {};
}

}  // namespace moka::update

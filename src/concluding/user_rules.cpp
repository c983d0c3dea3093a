// SPDX-License-Identifier: Apache-2.0
#include "concluding/user_rules.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_depth.h"
#include "base/pattern.h"
#include "concluding/rule.h"

namespace moka::concluding {

namespace {

using RulesJson = nlohmann::json;

struct TextMember {
  const char* name;
  std::string UserRule::*to;
};
struct NumberMember {
  const char* name;
  double UserRule::*to;
};
constexpr TextMember kTexts[] = {{"name", &UserRule::name}, {"says", &UserRule::says}, {"remedy", &UserRule::remedy}};
constexpr TextMember kWhere[] = {{"lane", &UserRule::lane},     {"kind", &UserRule::kind},
                                 {"name", &UserRule::event},    {"model", &UserRule::model},
                                 {"device", &UserRule::device}, {"kernel", &UserRule::kernel},
                                 {"reason", &UserRule::reason}};
constexpr NumberMember kAtLeast[] = {
    {"count", &UserRule::least_count},     {"perPrediction", &UserRule::least_per_prediction},
    {"seconds", &UserRule::least_seconds}, {"each", &UserRule::least_each},
    {"share", &UserRule::least_share},     {"ofPredictions", &UserRule::least_of_predictions}};

template <class Members>
std::string known(const Members& members) {
  std::string out;
  for (const auto& m : members) out += cat(out.empty() ? "" : ", ", m.name);
  return out;
}

template <class Members, class Set>
Status read_members(const RulesJson& json, const Members& members, const std::string& place, const Set& set) {
  if (!json.is_object()) return fail(ErrorCode::malformed, place, ": expected an object");
  for (const auto& [key, value] : json.items()) {
    bool is_known = false;
    for (const auto& m : members)
      if (key == m.name) {
        is_known = true;
        if (!set(m, value)) return fail(ErrorCode::malformed, place, ".", key, ": got a value of another type");
      }
    if (!is_known) return fail(ErrorCode::malformed, place, ": expected ", known(members), ", got '", key, "'");
  }
  return {};
}

Result<UserRule> parse_user_rule(const RulesJson& json, const std::string& place) {
  UserRule out;
  const auto set_text = [&](const TextMember& m, const RulesJson& value) {
    if (value.is_string()) out.*m.to = value.get<std::string>();
    return value.is_string();
  };
  const auto set_number = [&](const NumberMember& m, const RulesJson& value) {
    if (value.is_number()) out.*m.to = value.get<double>();
    return value.is_number() && out.*m.to >= 0;
  };
  if (!json.is_object()) return fail(ErrorCode::malformed, place, ": expected an object");
  RulesJson rest = json;
  const auto take = [&](const char* name) {
    RulesJson value = rest.contains(name) ? rest[name] : RulesJson::object();
    rest.erase(name);
    return value;
  };
  const RulesJson where = take("where"), least = take("atLeast");
  for (const auto& [key, value] : rest.items())
    if (key != "name" && key != "says" && key != "remedy")
      return fail(ErrorCode::malformed, place, ": expected name, says, remedy, where, atLeast, got '", key, "'");
  MOKA_TRY(read_members(rest, kTexts, place, set_text));
  MOKA_TRY(read_members(where, kWhere, cat(place, ".where"), set_text));
  MOKA_TRY(read_members(least, kAtLeast, cat(place, ".atLeast"), set_number));
  if (out.name.empty() || out.says.empty())
    return fail(ErrorCode::malformed, place, ": expected a name and what it says");
  constexpr std::string_view kLanes[] = {"Activity", "Data", "Compute"};
  if (!out.lane.empty() && std::none_of(std::begin(kLanes), std::end(kLanes),
                                        [&](std::string_view lane) { return matches_pattern(out.lane, lane); }))
    return fail(ErrorCode::malformed, place, ".where.lane: expected Activity, Data or Compute, got '", out.lane, "'");
  for (const Rule& rule : rules())
    if (rule.name == out.name)
      return fail(ErrorCode::malformed, place, ".name: '", out.name, "' is the name of a rule of Moka");
  return out;
}

bool matches(const std::string& pattern, std::string_view text) {
  return pattern.empty() || matches_pattern(pattern, text);
}

bool is_meant(const UserRule& rule, const Event& e) {
  const bool names_device = e.kind() == "stretch" || e.kind() == "region";
  return e.track != nullptr && matches(rule.lane, e.track->name) && matches(rule.kind, e.kind()) &&
         matches(rule.event, e.name()) && matches(rule.device, names_device ? e.name() : e.text("device")) &&
         matches(rule.kernel, e.text("kernel")) && matches(rule.reason, e.text("reason"));
}

/// With what stands for words in braces. Unknown words stay.
std::string filled(std::string text, const std::vector<std::pair<std::string_view, std::string>>& words) {
  for (const auto& [word, value] : words) {
    const std::string mark = cat("{", word, "}");
    for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + value.size()))
      text.replace(at, mark.size(), value);
  }
  return text;
}

}  // namespace

Result<std::vector<UserRule>> parse_user_rules(std::string_view json, const std::string& what) {
  constexpr int kDeepest = 8;
  const RulesJson all = json_nests_deeper(json, kDeepest) ? RulesJson(RulesJson::value_t::discarded)
                                                          : RulesJson::parse(json, nullptr, false);
  if (!all.is_object() || !all.contains("rules") || !all["rules"].is_array())
    return fail(ErrorCode::malformed, what, ": expected JSON with a list 'rules'");
  std::vector<UserRule> out;
  for (size_t i = 0; i < all["rules"].size(); i++)
    out.push_back(MOKA_TRY_IN(parse_user_rule(all["rules"][i], cat("rules[", i, "]")), what));
  return out;
}

void conclude(const UserRule& rule, const Subject& subject, std::vector<Conclusion>& to) {
  Conclusions out(rule.name, rule.remedy, to);
  for (const Model& m : subject.models) {
    if (!matches(rule.model, m.name)) continue;
    Events events;
    for (const Events* lane : {&m.activity, &m.data, &m.compute})
      for (const Event* e : filtered(*lane, [&](const Event& x) { return is_meant(rule, x); })) events.push_back(e);
    if (events.empty()) continue;
    const auto count = static_cast<double>(events.size()), predictions = static_cast<double>(m.predictions.size());
    const double spent = seconds_of(events), computing = seconds_of(m.predictions);
    const double share = subject.seconds() > 0 ? spent / subject.seconds() : 0;
    const double of_predictions = computing > 0 ? spent / computing : 0;
    const double per_prediction = predictions > 0 ? count / predictions : 0;
    if (count < rule.least_count || spent < rule.least_seconds || spent < rule.least_each * count ||
        share < rule.least_share || of_predictions < rule.least_of_predictions ||
        per_prediction < rule.least_per_prediction)
      continue;
    char each[32];
    std::snprintf(each, sizeof each, "%.3g", per_prediction);
    std::string text = filled(rule.says, {{"count", std::to_string(events.size())},
                                          {"times", times(static_cast<int64_t>(events.size()))},
                                          {"perPrediction", each},
                                          {"predictions", std::to_string(m.predictions.size())},
                                          {"seconds", duration(spent)},
                                          {"each", duration(spent / count)},
                                          {"share", percent(share)},
                                          {"ofPredictions", percent(of_predictions)},
                                          {"model", m.name},
                                          {"name", events.front()->name()}});
    out.add(m, std::move(text), events);
  }
}

}  // namespace moka::concluding

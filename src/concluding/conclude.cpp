// SPDX-License-Identifier: Apache-2.0
#include "concluding/conclude.h"

#include <algorithm>
#include <set>

#include "base/bytes.h"
#include "boundary/errors.h"
#include "boundary/path.h"
#include "concluding/user_rules.h"

namespace moka {

namespace concluding {

namespace {

constexpr size_t kMostShown = 5;
constexpr double kLeastOfTrace = 0.001;  ///< of the traced time; what costs less is not worth a change

bool names(const std::vector<std::string>& all, std::string_view name) {
  return std::find(all.begin(), all.end(), name) != all.end();
}

Status check_names(const std::vector<std::string>& given, const std::vector<UserRule>& own) {
  for (const std::string& name : given) {
    bool is_known = false;
    std::string known;
    const auto compare = [&](std::string_view rule) {
      is_known |= name == rule;
      known += cat(known.empty() ? "" : ", ", rule);
    };
    for (const Rule& r : rules()) compare(r.name);
    for (const UserRule& r : own) compare(r.name);
    if (!is_known) return fail(ErrorCode::invalid_argument, "rule '", name, "': expected one of ", known);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Concluded>> concluded(const std::string& trace, const ConclusionOptions& options) {
  std::vector<UserRule> own;
  if (const std::string& path = boundary::native(options.rules); !path.empty()) {
    const Bytes text = MOKA_TRY_IN(map_file(path), "the file of rules");
    own = MOKA_TRY(parse_user_rules(text.text(), cat("'", path, "'")));
  }
  MOKA_TRY(check_names(options.only, own));
  MOKA_TRY(check_names(options.ignore, own));
  auto out = std::make_unique<Concluded>(MOKA_TRY(trace::read_file(trace)));
  const auto is_used = [&](std::string_view name) {
    return (options.only.empty() || names(options.only, name)) && !names(options.ignore, name);
  };
  for (const Rule& r : rules()) {
    Conclusions to(r.name, r.remedy, out->conclusions);
    if (is_used(r.name)) r.conclude(out->subject, to);
  }
  const double least = kLeastOfTrace * out->subject.seconds();
  std::erase_if(out->conclusions, [&](const Conclusion& c) { return c.seconds < least; });
  for (const UserRule& r : own)
    if (is_used(r.name)) conclude(r, out->subject, out->conclusions);
  std::stable_sort(out->conclusions.begin(), out->conclusions.end(),
                   [](const Conclusion& a, const Conclusion& b) { return a.seconds > b.seconds; });
  return out;
}

Events chosen_events(const Conclusion& conclusion, size_t most) {
  Events all = conclusion.events;
  if (all.empty()) return {};
  const auto [first, last] = std::minmax_element(
      all.begin(), all.end(), [](const Event* a, const Event* b) { return a->slice->from < b->slice->from; });
  std::set<const Event*> out{*first, *last};
  std::stable_sort(all.begin(), all.end(), [](const Event* a, const Event* b) { return a->seconds() > b->seconds(); });
  for (const Event* e : all)
    if (out.size() < most) out.insert(e);
  Events sorted(out.begin(), out.end());
  std::sort(sorted.begin(), sorted.end(),
            [](const Event* a, const Event* b) { return a->slice->from < b->slice->from; });
  return sorted;
}

namespace {

TraceEvent public_event(const Event& e, const Subject& subject) {
  TraceEvent out;
  out.process = e.process;
  if (e.model != nullptr) out.model = e.model->name;
  if (e.track != nullptr) {
    out.lane = e.track->name;
    out.thread = e.track->thread;
  }
  out.name = e.name();
  out.kind = e.kind();
  out.start = static_cast<double>(e.slice->from - subject.first) * 1e-9;
  out.seconds = e.seconds();
  for (const auto& [name, text] : e.slice->texts) out.details.emplace_back(name, text);
  for (const auto& [name, number] : e.slice->numbers) out.details.emplace_back(name, std::to_string(number));
  return out;
}

}  // namespace

TraceConclusions to_public(const Concluded& all) {
  TraceConclusions out;
  const Subject& subject = all.subject;
  out.seconds = subject.seconds();
  out.left_out = subject.left_out;
  std::set<std::string> models;
  for (const Model& m : subject.models) {
    out.predictions += static_cast<int64_t>(m.predictions.size());
    if (!m.name.empty()) models.insert(cat(m.path, "\n", m.name));
  }
  out.models = static_cast<int64_t>(models.size());
  for (const Conclusion& c : all.conclusions) {
    TraceConclusion& to = out.conclusions.emplace_back();
    to.rule = c.rule;
    to.process = c.process;
    to.model = c.model;
    to.text = c.text;
    to.remedy = c.remedy;
    to.count = static_cast<int64_t>(c.events.size());
    to.seconds = c.seconds;
    to.share = out.seconds > 0 ? c.seconds / out.seconds : 0;
    for (const Event* e : chosen_events(c, kMostShown)) to.events.push_back(public_event(*e, subject));
  }
  return out;
}

}  // namespace concluding

std::vector<TraceRule> trace_rules() {
  std::vector<TraceRule> out;
  for (const concluding::Rule& r : concluding::rules())
    out.push_back({std::string(r.name), std::string(r.summary), std::string(r.remedy)});
  std::sort(out.begin(), out.end(), [](const TraceRule& a, const TraceRule& b) { return a.name < b.name; });
  return out;
}

TraceConclusions conclude_trace(const std::filesystem::path& trace, const ConclusionOptions& options) {
  return concluding::to_public(*boundary::unwrap(concluding::concluded(boundary::native(trace), options)));
}

}  // namespace moka

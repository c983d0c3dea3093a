// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include "plan/choices.h"
#include "plan/claim.h"
#include "plan/plan.h"

namespace moka::plan {

namespace {

using kernel::Device;
using kernel::KernelDef;
using kernel::Match;
using kernel::MatchCall;

/// Work below this is finished by one thread before others wake up.
constexpr double kParallelSeconds = 30e-6;
/// A kernel must take less than this part of the time of another one to be preferred to it. A smaller gain is noise.
constexpr double kWorthwhile = 0.97;

/// The result of `claim` for one thread, or for all threads when they pay off.
template <class Claim>
Match with_threads(MatchCall& call, const PlanOptions& options, int& threads, Claim claim) {
  call.threads = threads = 1;
  Match m = claim(call);
  if (m.choice && options.threads > 1 && m.choice->cost > kParallelSeconds) {
    call.threads = threads = options.threads;
    m = claim(call);
  }
  return m;
}

Match ask(const Device& device, const KernelDef& def, MatchCall& call, const PlanOptions& options, int& threads) {
  call.device = &device;
  call.asked = true;
  Match m = with_threads(call, options, threads, [&](const MatchCall& c) { return def.claim(c); });
  call.asked = false;
  return m;
}

const KernelDef* kernel_of(const Device& device, std::string_view name) {
  for (const KernelDef& k : device.kernels())
    if (k.name == name) return &k;
  return nullptr;
}

int competitors(const Device& device, std::string_view op) {
  int n = 0;
  for (const KernelDef& k : device.kernels()) n += k.measured && k.runs(op);
  return n;
}

const std::string* pin_of(const KernelChoices& choices, const MatchCall& call) {
  if (choices.pins.empty()) return nullptr;
  auto it = choices.pins.find(call.call.name());
  if (it == choices.pins.end()) it = choices.pins.find(shape_text(call));
  return it == choices.pins.end() ? nullptr : &it->second;
}

Result<ChosenKernel> pinned(const std::string& name, MatchCall& call, const PlanOptions& options,
                            std::span<const Device* const> devices) {
  const std::string& op = call.call.version().def->name;
  const std::string where =
      cat("operation '", call.call.name(), "' (", op, "): kernel '", name, "', to which it is pinned");
  std::string others;
  for (const Device* d : devices) {
    for (const KernelDef& k : d->kernels())
      if (!k.ops.empty() && k.runs(op)) others += cat(others.empty() ? "" : ", ", k.name);
    const KernelDef* def = kernel_of(*d, name);
    if (def == nullptr) continue;
    if (!def->runs(op)) return fail(ErrorCode::unsupported, where, ", does not run ", op);
    ChosenKernel out;
    Match m = ask(*d, *def, call, options, out.threads);
    if (!m.choice) return fail(ErrorCode::unsupported, where, ", refuses it: ", m.refusal);
    out.device = d;
    out.choice = std::move(m.choice);
    out.by = ChosenBy::pin;
    return out;
  }
  return fail(ErrorCode::not_found, where, ", does not exist; those for ", op, " are ",
              others.empty() ? "none" : others);
}

/// The kernel to use: the rules' choice, or if that is slower, the first of those that are as fast as the fastest one.
/// What two runs of another kernel took is compared with the shortest run of the rules' choice, so that a single
/// measurement does not decide. `rule`: the rules' choice.
size_t chosen_of(std::span<const Timed> times, size_t rule) {
  double least = HUGE_VAL;
  for (size_t i = 0; i < times.size(); i++)
    if (i != rule) least = std::min(least, times[i].repeated);
  if (least >= kWorthwhile * times[rule].least) return rule;
  for (size_t i = 0; i < times.size(); i++)
    if (i != rule && kWorthwhile * times[i].repeated <= least) return i;
  return rule;
}

/// Replaces the rules' choice in `out` with the fastest of the device's kernels, as measured now.
Status measure(const Device& device, const std::string& shape, MatchCall& call, const PlanOptions& options,
               ChosenKernel& out) {
  KernelChoices& choices = *options.choices;
  const std::string& op = call.call.version().def->name;
  const std::string by_rule(out.choice->kernel);
  if (const KernelDef* rule = kernel_of(device, by_rule); rule == nullptr || !rule->measured) return {};
  std::vector<Candidate> candidates;
  std::vector<std::string> names;
  for (const KernelDef& k : device.kernels()) {
    if (!k.measured || !k.runs(op)) continue;
    Candidate c;
    c.choice = ask(device, k, call, options, c.threads).choice;
    if (!c.choice) continue;
    names.emplace_back(k.name);
    candidates.push_back(std::move(c));
  }
  if (candidates.size() < 2) return {};
  if (choices.measuring) choices.measuring(call.call.name());
  const auto timed = MOKA_TRY(choices.timer->time(call, candidates, out.choice->out, options));
  if (!timed) {
    out.by = ChosenBy::disturbed;
    return {};
  }
  const std::vector<Timed>& times = *timed;
  Measurement m{shape, options.threads, by_rule, by_rule, {}};
  for (size_t i = 0; i < names.size(); i++)
    if (std::isfinite(times[i].least)) m.times.push_back({names[i], times[i].least});
  if (const auto rule = std::find(names.begin(), names.end(), by_rule); rule != names.end())
    m.chosen = names[chosen_of(times, static_cast<size_t>(rule - names.begin()))];
  if (m.chosen != by_rule) {
    Match better = ask(device, *kernel_of(device, m.chosen), call, options, out.threads);
    if (!better.choice) return fail(ErrorCode::internal, "kernel ", m.chosen, " refuses what it was measured for");
    out.choice = std::move(better.choice);
  }
  out.by = ChosenBy::measured;
  out.measurement = std::make_shared<Measurement>(m);
  choices.measured(std::move(m));
  return {};
}

/// The first of the device's kernels that keep weights as stored to take the call; no choice if there is none.
Match stored(const Device& device, MatchCall& call, const PlanOptions& options, int& threads) {
  for (const KernelDef& k : device.kernels())
    if (k.low_memory && k.runs(call.call.version().def->name))
      if (Match m = ask(device, k, call, options, threads); m.choice) return m;
  return {};
}

/// Takes the cache's entry for the shape if its kernel runs the call.
bool from_cache(const Device& device, const std::string& shape, MatchCall& call, const PlanOptions& options,
                ChosenKernel& out) {
  auto known = options.choices->find(shape, options.threads);
  const KernelDef* def = known ? kernel_of(device, known->chosen) : nullptr;
  if (def == nullptr || !def->measured || !def->runs(call.call.version().def->name)) return false;
  out.choice = ask(device, *def, call, options, out.threads).choice;
  if (!out.choice) return false;
  out.by = ChosenBy::cache;
  out.measurement = std::make_shared<Measurement>(std::move(*known));
  return true;
}

/// Asks the device for its own choice. False: it refuses, which is added to the refusals.
Result<bool> ask_device(const Device& device, MatchCall& call, const PlanOptions& options, ChosenKernel& out) {
  out.device = &device;
  if (options.low_memory)
    if (Match m = stored(device, call, options, out.threads); m.choice) {
      out.choice = std::move(m.choice);
      return true;
    }
  const bool compete = options.choices && competitors(device, call.call.version().def->name) > 1;
  const std::string shape = compete ? shape_text(call) : std::string();
  const bool wanted = compete && options.choices->wants(shape, options.threads);
  if (compete && !wanted && from_cache(device, shape, call, options, out)) return true;
  const auto claims = [&](const MatchCall& c) { return device.claim(c); };
  Match m = device.memory() == nullptr ? with_threads(call, options, out.threads, claims) : claims(call);
  if (m.choice && device.memory() != nullptr && !applies_epilogues(device, *m.choice, call.epilogue))
    m = Match::no(kLeftEpilogue);
  if (!m.refusal.empty())
    out.refusals.push_back({std::string(device.name()), std::move(m.refusal), std::move(m.advice)});
  if (!m.choice) return false;
  out.choice = std::move(m.choice);
  if (wanted) MOKA_TRY(measure(device, shape, call, options, out));
  return true;
}

}  // namespace

Result<ChosenKernel> choose_on(const Device& device, MatchCall call, const PlanOptions& options) {
  ChosenKernel out;
  out.device = &device;
  const std::string* pin = options.choices ? pin_of(*options.choices, call) : nullptr;
  if (pin != nullptr && kernel_of(device, *pin) == nullptr)
    out.refusals.push_back({std::string(device.name()), cat("pinned to kernel '", *pin, "'"), {}});
  else if (pin != nullptr)
    return pinned(*pin, call, options, std::array{&device});
  else
    MOKA_TRY(ask_device(device, call, options, out));
  return out;
}

Result<ChosenKernel> choose_kernel(MatchCall call, const PlanOptions& options, std::span<const Device* const> devices) {
  if (options.choices)
    if (const std::string* pin = pin_of(*options.choices, call)) return pinned(*pin, call, options, devices);
  ChosenKernel out;
  for (const Device* d : devices)
    if (MOKA_TRY(ask_device(*d, call, options, out))) return out;
  std::string all;
  for (const Refusal& r : out.refusals) all += cat(all.empty() ? "" : "; ", r.device, ": ", r.reason);
  return fail(ErrorCode::unsupported, "operation '", call.call.name(), "' (", call.call.version().def->name,
              ") runs on no device: ", all);
}

}  // namespace moka::plan

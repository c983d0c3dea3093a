// SPDX-License-Identifier: Apache-2.0
#include "moka/difference.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "checking/features.h"
#include "checking/pairing.h"
#include "checking/predict.h"
#include "checking/text.h"

namespace moka {
namespace {

using Operations = std::vector<ModelComparison::Operation>;

std::map<std::string, int> producers_of(const Operations& operations) {
  std::map<std::string, int> out;
  for (size_t i = 0; i < operations.size(); ++i)
    for (const auto& [value, type] : operations[i].outputs) out.emplace(value, static_cast<int>(i));
  return out;
}

/// Follows differing values through the first model.
class Tracer {
 public:
  Tracer(const ModelComparison& structure, ValueDiff& diff)
      : structure_(structure),
        diff_(diff),
        by_value_a_(producers_of(structure.a)),
        by_value_b_(producers_of(structure.b)) {
    const auto& values = diff.found.values;
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i].other.empty()) continue;
      paired_a_.insert(values[i].value);
      paired_b_.insert(values[i].other);
      if (diff.found.first ? values[i].differs : !values[i].equal) differs_.emplace(values[i].value, i);
    }
  }

  void run() {
    for (const auto& [name, index] : differs_)
      if (is_origin(name)) diff_.origins.push_back(index);
    std::sort(diff_.origins.begin(), diff_.origins.end());
    if (diff_.origins.empty()) return;
    const ComparedValue& first = diff_.found.values[diff_.origins[0]];
    diff_.region_a = region(structure_.a, by_value_a_, paired_a_, first.value, false);
    diff_.region_b = region(structure_.b, by_value_b_, paired_b_, first.other, true);
    diff_.trail = trail(diff_.origins[0]);
  }

 private:
  /// The values that an operation reads, with those of its blocks' operations.
  std::vector<std::string> inputs_of(int op) const {
    std::vector<std::string> out;
    const int depth = structure_.a[static_cast<size_t>(op)].depth;
    for (size_t i = static_cast<size_t>(op); i < structure_.a.size(); ++i) {
      if (i > static_cast<size_t>(op) && structure_.a[i].depth <= depth) break;
      for (const auto& [parameter, values] : structure_.a[i].inputs)
        out.insert(out.end(), values.begin(), values.end());
    }
    return out;
  }

  /// Whether no value that it is computed from differs, looking through values that have no partner.
  bool is_origin(const std::string& value) const {
    std::set<std::string> seen;
    std::vector<std::string> left{value};
    while (!left.empty()) {
      const std::string name = left.back();
      left.pop_back();
      const auto at = by_value_a_.find(name);
      if (at == by_value_a_.end()) continue;
      for (const std::string& input : inputs_of(at->second)) {
        if (!seen.insert(input).second || input == value) continue;
        if (differs_.contains(input)) return false;
        if (!paired_a_.contains(input)) left.push_back(input);
      }
    }
    return true;
  }

  /// The operations that compute a value from values with partners.
  std::vector<int> region(const Operations& operations, const std::map<std::string, int>& producers,
                          const std::set<std::string>& paired, const std::string& value, bool is_b) const {
    std::set<int> out;
    std::vector<std::string> left{value};
    while (!left.empty()) {
      const auto at = producers.find(left.back());
      left.pop_back();
      if (at == producers.end() || !out.insert(at->second).second) continue;
      for (const auto& [parameter, values] : operations[static_cast<size_t>(at->second)].inputs)
        for (const std::string& input : values)
          if (!paired.contains(input)) left.push_back(input);
    }
    // Partners without a difference explain nothing, such as a reshape whose result is not a value of its own.
    const auto producer = producers.find(value);
    std::erase_if(out, [&](int i) {
      return (producer == producers.end() || i != producer->second) &&
             operations[static_cast<size_t>(i)].partner >= 0 &&
             std::none_of(structure_.differences.begin(), structure_.differences.end(),
                          [&](const auto& d) { return (is_b ? d.b : d.a) == i; });
    });
    return {out.begin(), out.end()};
  }

  /// The shortest way over differing values to one that no operation reads on, else to the last one.
  std::vector<size_t> trail(size_t origin) const {
    std::map<std::string, std::vector<int>> users;
    for (size_t i = 0; i < structure_.a.size(); ++i)
      for (const std::string& input : inputs_of(static_cast<int>(i))) users[input].push_back(static_cast<int>(i));
    const std::string start = diff_.found.values[origin].value;
    std::map<std::string, std::string> from{{start, ""}};
    std::vector<std::string> order{start};
    for (size_t n = 0; n < order.size(); ++n)
      for (const int user : users[order[n]])
        for (const auto& [value, type] : structure_.a[static_cast<size_t>(user)].outputs)
          if (differs_.contains(value) || !paired_a_.contains(value))
            if (from.emplace(value, order[n]).second) order.push_back(value);
    std::string end = start;
    for (const std::string& value : order)
      if (differs_.contains(value) && differs_.at(value) >= differs_.at(end)) end = value;
    std::vector<size_t> out;
    for (std::string value = end; !value.empty(); value = from.at(value))
      if (const auto at = differs_.find(value); at != differs_.end()) out.push_back(at->second);
    std::reverse(out.begin(), out.end());
    return out;
  }

  const ModelComparison& structure_;
  ValueDiff& diff_;
  std::map<std::string, int> by_value_a_, by_value_b_;
  std::set<std::string> paired_a_, paired_b_;
  std::map<std::string, size_t> differs_;  ///< by name: the first index
};

/// Sets the differences that count as explained: rounding, and the noise of weights that are stored in another form.
/// The noise adds up over the layers, so values may have less signal to noise than the weights.
void set_limits(const Model& a, const Model& b, const ModelComparison& structure, ValueOptions& how) {
  constexpr double margin = 10, least_allowed = 6, usual = 20;  // dB
  const Arithmetic one = arithmetic_of(a), two = arithmetic_of(b);
  if (one == two) return;
  how.tolerance = kHalfRounding;
  std::optional<double> least;
  for (const auto& d : structure.differences)
    if (d.form_changed && d.numbers && std::isfinite(d.numbers->snr))
      least = std::min(least.value_or(d.numbers->snr), d.numbers->snr);
  if (one.compressed != two.compressed && least) how.min_snr = std::clamp(*least - margin, least_allowed, usual);
}

}  // namespace

ValueDiff diff_values(const Model& a, const Model& b, const ModelComparison& structure, const DiffOptions& options) {
  const checking::PairedFeatures features(a, b.function().inputs, b.function().outputs, options.map, options.pixels,
                                          true);
  std::vector<Features> items = options.inputs;
  if (items.empty()) checking::require_runs(options.runs);
  for (int64_t run = 0; run < options.runs && options.inputs.empty(); ++run) {
    const uint64_t seed = options.seed + static_cast<uint64_t>(run);
    items.push_back(a.random_inputs(seed));
    checking::spread(items.back(), options.ranges, a.function(), seed);
  }
  std::map<std::string, std::string> names(structure.values.begin(), structure.values.end());
  ValueOptions how;
  if (!options.same_names) how.names = &names;
  if (options.tolerance)
    how.tolerance = options.tolerance;
  else
    set_limits(a, b, structure, how);
  ValueDiff out;
  out.min_snr = how.min_snr;
  std::vector<Features> ours, theirs;
  for (const Features& item : items) {
    ++out.predictions;
    try {
      ValueComparison found = compare_values(a, item, b, features.for_other(item), how);
      out.tolerance = std::max(out.tolerance, found.tolerance);
      ours.push_back(found.outputs);
      theirs.push_back(found.other_outputs);
      if (out.predictions == 1 || (!out.found.first && (found.first || !out.found.first_unequal)))
        out.found = std::move(found);
    } catch (const Exception& e) {
      out.fault = e.what();
      return out;
    }
  }
  out.outputs = features.errors(ours, theirs);
  for (const OutputError& e : out.outputs) {
    const std::string output = cat("output '", e.name, "': ");
    if (!e.faults.empty()) out.failures.push_back(output + e.faults[0]);
    if (e.unlike > 0)
      out.failures.push_back(
          cat(output, checking::count_text(e.unlike, "element"), " NaN or infinite on one side only"));
    if (e.same < e.labels) out.failures.push_back(cat(output, e.same, " of ", e.labels, " labels are the same"));
  }
  Tracer(structure, out).run();
  return out;
}

}  // namespace moka

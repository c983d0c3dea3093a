// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "moka/difference.h"

namespace moka {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 26;

bool is_whole(DataType type) { return type >= DataType::int8 && type <= DataType::boolean; }

std::vector<int64_t> squeezed(std::vector<int64_t> shape) {
  std::erase(shape, 1);
  return shape;
}

/// Elements of a value, every `step`-th.
struct Sample {
  std::string operation, value;
  std::vector<double> elements;
  int64_t step = 1;
  std::vector<int64_t> shape;
  DataType type = DataType::float32;
  bool is_constant = true;  ///< all elements are equal
  bool is_taken = false;
  ArrayFacts facts;
};

Sample sample_of(std::string_view operation, std::string_view value, const MultiArray& array, int64_t most) {
  Sample out;
  out.operation = operation;
  out.value = value;
  out.step = std::max<int64_t>(1, (array.count() + most - 1) / most);
  for (int64_t i = 0; i < array.count(); i += out.step) out.elements.push_back(array.at(i));
  out.shape = array.shape();
  out.type = array.type();
  for (const double v : out.elements) out.is_constant &= v == out.elements[0];
  out.facts = facts_of(array);
  return out;
}

bool same_form(const Sample& sample, const MultiArray& array) {
  return squeezed(sample.shape) == squeezed(array.shape()) && is_whole(sample.type) == is_whole(array.type());
}

void compare(const Sample& a, const MultiArray& b, double rounding, std::optional<double> min_snr, ComparedValue& to) {
  double magnitude = 0, signal = 0, noise = 0;
  for (size_t i = 0; i < a.elements.size(); ++i) {
    const double x = a.elements[i], y = b.at(static_cast<int64_t>(i) * a.step);
    if (std::isfinite(x) && std::isfinite(y)) {
      to.difference = std::max(to.difference, std::abs(x - y));
      magnitude = std::max({magnitude, std::abs(x), std::abs(y)});
      signal += y * y;
      noise += (x - y) * (x - y);
    } else if (!(std::isnan(x) && std::isnan(y)) && x != y) {
      to.unlike = true;
    }
  }
  to.relative = magnitude > 0 ? to.difference / magnitude : 0;
  to.snr = noise == 0 ? INFINITY : signal > 0 ? 10 * std::log10(signal / noise) : -INFINITY;
  to.equal = to.difference == 0 && !to.unlike;
  to.differs = to.unlike ||
               (min_snr && !is_whole(b.type()) ? to.snr < *min_snr : to.relative > (is_whole(b.type()) ? 0 : rounding));
}

/// The name of a value and how often it has been computed before.
using Occurrence = std::pair<std::string, size_t>;

class Occurrences {
 public:
  Occurrence next(const std::string& name) { return {name, counts_[name]++}; }

 private:
  std::map<std::string, size_t> counts_;
};

/// The values of the other model.
class Samples {
 public:
  explicit Samples(int64_t most) : most_(most) {}

  void add(std::string_view operation, std::string_view value, const MultiArray& array) {
    if (elements_ > kMostElements || samples_.size() >= kMostValues) return;
    Sample sample = sample_of(operation, value, array, most_);
    elements_ += static_cast<int64_t>(sample.elements.size());
    const auto at = samples_.emplace(names_.next(sample.value), std::move(sample)).first;
    by_count_.emplace(array.count(), &at->second);
  }
  Sample* find(const Occurrence& name) {
    const auto at = samples_.find(name);
    return at == samples_.end() ? nullptr : &at->second;
  }
  /// Values that no name pairs may agree with others.
  void take(const std::map<std::string, std::string>& names) {
    for (const auto& [mine, other] : names)
      for (size_t n = 0;; ++n) {
        Sample* sample = find({other, n});
        if (sample == nullptr) break;
        sample->is_taken = true;
      }
  }
  /// The first free value with these elements.
  Sample* like(const MultiArray& array, double rounding) {
    for (auto [at, end] = by_count_.equal_range(array.count()); at != end; ++at) {
      Sample& sample = *at->second;
      if (sample.is_taken || sample.is_constant || !same_form(sample, array)) continue;
      ComparedValue found;
      compare(sample, array, rounding, std::nullopt, found);
      if (!found.differs) return &sample;
    }
    return nullptr;
  }

 private:
  int64_t most_, elements_ = 0;
  Occurrences names_;
  std::map<Occurrence, Sample> samples_;
  std::multimap<int64_t, Sample*> by_count_;
};

}  // namespace

ArrayFacts facts_of(const MultiArray& array) {
  ArrayFacts facts;
  facts.type = array.type();
  facts.shape = array.shape();
  facts.least = std::numeric_limits<double>::infinity();
  facts.most = -facts.least;
  double sum = 0;
  for (int64_t i = 0; i < array.count(); ++i) {
    const double value = array.at(i);
    if (std::isnan(value)) {
      ++facts.nan;
    } else if (std::isinf(value)) {
      ++facts.infinite;
    } else {
      ++facts.finite;
      sum += value;
      facts.least = std::min(facts.least, value);
      facts.most = std::max(facts.most, value);
    }
  }
  if (facts.finite) facts.mean = sum / static_cast<double>(facts.finite);
  return facts;
}

Features observe_values(const Model& model, const Features& inputs, const ObserveValue& observe) {
  std::optional<State> state;
  PredictionOptions options;
  if (!model.function().states.empty()) options.state = &state.emplace(model.new_state());
  size_t index = 0;
  return model.intermediates(
      inputs,
      [&](std::string_view operation, std::string_view value, const MultiArray& array) {
        observe(index++, operation, value, array);
      },
      options);
}

ValueComparison compare_values(const Model& model, const Features& inputs, const Model& other,
                               const Features& other_inputs, const ValueOptions& options) {
  const auto count = static_cast<int64_t>(model.operations().operations.size());
  Samples samples(std::max<int64_t>(1024, kMostElements / std::max<int64_t>(1, count)));
  ValueComparison out;
  out.other_outputs = observe_values(
      other, other_inputs, [&](size_t, std::string_view operation, std::string_view value, const MultiArray& array) {
        samples.add(operation, value, array);
      });
  if (options.names != nullptr) samples.take(*options.names);
  bool has_half = false;
  Occurrences here;
  out.outputs = observe_values(
      model, inputs, [&](size_t index, std::string_view operation, std::string_view value, const MultiArray& array) {
        if (index >= kMostValues) {
          out.complete = false;
          return;
        }
        ComparedValue one;
        one.operation = operation;
        one.value = value;
        one.facts = facts_of(array);
        Occurrence name = here.next(one.value);
        const double rounding = options.tolerance.value_or(has_half ? kHalfRounding : kRounding);
        Sample* sample = nullptr;
        if (options.names == nullptr) {
          sample = samples.find(name);
        } else if (const auto at = options.names->find(one.value); at != options.names->end()) {
          name.first = at->second;
          sample = samples.find(name);
        } else if (sample = samples.like(array, rounding); sample != nullptr) {
          sample->is_taken = one.by_content = true;
        }
        if (sample != nullptr) {
          one.other = sample->value;
          one.other_operation = sample->operation;
          one.other_facts = sample->facts;
          has_half |= sample->type == DataType::float16 || array.type() == DataType::float16;
          one.has_form = same_form(*sample, array);
          one.differs = !one.has_form;
          const double tolerance = options.tolerance.value_or(has_half ? kHalfRounding : kRounding);
          out.tolerance = std::max(out.tolerance, tolerance);
          if (one.has_form) compare(*sample, array, tolerance, options.min_snr, one);
          if (one.differs && !out.first) out.first = index;
          if (!one.equal && !out.first_unequal) out.first_unequal = index;
        }
        out.values.push_back(std::move(one));
      });
  return out;
}

}  // namespace moka

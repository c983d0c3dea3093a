#include "view/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "text.h"
#include "usage_error.h"
#include "view/answer.h"

namespace moka::cli {
namespace {

constexpr size_t kMostValues = 20'000;
constexpr int64_t kMostElements = int64_t{1} << 26;
constexpr double kRounding = 0x1p-13, kHalfRounding = 0x1p-8;

/// Predicts once with `observe`, which gets the index of each value.
template <typename Observe>
void observe_values(const Model& model, const Features& inputs, const Observe& observe) {
  std::optional<State> state;
  PredictionOptions options;
  if (!model.function().states.empty()) options.state = &state.emplace(model.new_state());
  size_t index = 0;
  model.intermediates(
      inputs,
      [&](std::string_view operation, std::string_view value, const MultiArray& array) {
        observe(index++, operation, value, array);
      },
      options);
}

bool is_whole(DataType type) { return type >= DataType::int8 && type <= DataType::boolean; }

/// Elements of a value, every `step`-th.
struct Sample {
  std::vector<double> elements;
  int64_t step = 1;
  std::vector<int64_t> shape;
  DataType type = DataType::float32;
  Json facts;
};

Sample sample_of(const MultiArray& array, int64_t most) {
  Sample out;
  out.step = std::max<int64_t>(1, (array.count() + most - 1) / most);
  for (int64_t i = 0; i < array.count(); i += out.step) out.elements.push_back(array.at(i));
  out.shape = array.shape();
  out.type = array.type();
  out.facts = to_json(facts_of(array), array);
  return out;
}

struct Difference {
  double greatest = 0, magnitude = 0;
  bool not_finite = false;  ///< one is NaN or infinite and the other is something else
};

Difference difference_of(const Sample& a, const MultiArray& b) {
  Difference out;
  for (size_t i = 0; i < a.elements.size(); ++i) {
    const double x = a.elements[i], y = b.at(static_cast<int64_t>(i) * a.step);
    if (std::isfinite(x) && std::isfinite(y)) {
      out.greatest = std::max(out.greatest, std::abs(x - y));
      out.magnitude = std::max({out.magnitude, std::abs(x), std::abs(y)});
    } else if (!(std::isnan(x) && std::isnan(y)) && x != y) {
      out.not_finite = true;
    }
  }
  return out;
}

/// The name of a value and how often it has been computed before.
using Occurrence = std::pair<std::string, size_t>;

class Occurrences {
 public:
  Occurrence next(std::string_view value) {
    const std::string name(value);
    return {name, counts_[name]++};
  }

 private:
  std::map<std::string, size_t> counts_;
};

}  // namespace

Json to_json(const ArrayFacts& facts, const MultiArray& array) {
  return {{"type", to_string(array.type())},
          {"shape", array.shape()},
          {"minimum", facts.least},
          {"maximum", facts.most},
          {"mean", facts.mean},
          {"finite", facts.finite},
          {"nan", facts.nan},
          {"infinite", facts.infinite}};
}

Json values_of(const Model& model, const Features& inputs) {
  Json values = Json::array();
  bool complete = true;
  observe_values(model, inputs,
                 [&](size_t index, std::string_view operation, std::string_view value, const auto& array) {
                   complete = index < kMostValues;
                   if (!complete) return;
                   Json json = to_json(facts_of(array), array);
                   json["operation"] = operation;
                   json["value"] = value;
                   values.push_back(std::move(json));
                 });
  return {{"values", std::move(values)}, {"complete", complete}};
}

Json value_of(const Model& model, const Features& inputs, size_t index) {
  Json out;
  observe_values(model, inputs, [&](size_t i, std::string_view operation, std::string_view value, const auto& array) {
    if (i != index) return;
    out = shown_value(array);
    out["operation"] = operation;
    out["value"] = value;
  });
  if (out.is_null()) throw UsageError(fmt::format("the prediction has no value {}", index));
  return out;
}

Json compared_values(const Model& model, const Model& other, const Features& inputs) {
  const auto count = static_cast<int64_t>(model.operations().operations.size());
  const int64_t most = std::max<int64_t>(1024, kMostElements / std::max<int64_t>(1, count));
  std::map<Occurrence, Sample> samples;
  int64_t elements = 0;
  Occurrences there;
  observe_values(other, inputs, [&](size_t, std::string_view, std::string_view value, const auto& array) {
    if (elements > kMostElements || samples.size() >= kMostValues) return;
    Sample sample = sample_of(array, most);
    elements += static_cast<int64_t>(sample.elements.size());
    samples.emplace(there.next(value), std::move(sample));
  });

  Json values = Json::array();
  Json out{{"complete", true}};
  bool has_half = false;
  Occurrences here;
  observe_values(
      model, inputs, [&](size_t index, std::string_view operation, std::string_view value, const auto& array) {
        if (index >= kMostValues) {
          out["complete"] = false;
          return;
        }
        Json json = to_json(facts_of(array), array);
        json["operation"] = operation;
        json["value"] = value;
        if (const auto it = samples.find(here.next(value)); it != samples.end()) {
          const Sample& sample = it->second;
          const bool is_same_form = sample.shape == array.shape() && is_whole(sample.type) == is_whole(array.type());
          has_half |= sample.type == DataType::float16 || array.type() == DataType::float16;
          bool differs = !is_same_form;
          if (is_same_form) {
            const Difference d = difference_of(sample, array);
            const double relative = d.magnitude > 0 ? d.greatest / d.magnitude : 0;
            const double rounding = is_whole(array.type()) ? 0 : has_half ? kHalfRounding : kRounding;
            differs = d.not_finite || relative > rounding;
            json["difference"] = d.greatest;
            json["relative"] = relative;
          }
          json["differs"] = differs;
          json["other"] = sample.facts;
          if (differs && !out.contains("first")) out["first"] = index;
        }
        values.push_back(std::move(json));
      });
  out["values"] = std::move(values);
  return out;
}

}  // namespace moka::cli

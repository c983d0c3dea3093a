#include "check/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "input.h"
#include "io/io_error.h"
#include "model_facts.h"
#include "moka/input_sizes.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

const FeatureDescription* find(const std::vector<FeatureDescription>& in, const std::string& name) {
  const auto at = std::find_if(in.begin(), in.end(), [&](const auto& f) { return f.name == name; });
  return at == in.end() ? nullptr : &*at;
}

struct Range {
  std::string name;
  double low = 0, high = 1;
};

Range parse_range(const std::string& text, const FunctionDescription& function) {
  const size_t equals = text.find('='), colon = text.rfind(':');
  if (equals == std::string::npos || colon == std::string::npos || colon < equals)
    throw UsageError(fmt::format("--range: expected NAME=LOW:HIGH, got '{}'", text));
  const auto low = parse_number(text.substr(equals + 1, colon - equals - 1)),
             high = parse_number(text.substr(colon + 1));
  if (!low || !high || !(*low <= *high))
    throw UsageError(fmt::format("--range: expected NAME=LOW:HIGH with two numbers, got '{}'", text));
  Range range{text.substr(0, equals), *low, *high};
  const FeatureDescription* input = find(function.inputs, range.name);
  if (input == nullptr || input->type != FeatureType::multi_array)
    throw UsageError(fmt::format("--range {}: the model has no array input '{}'; it takes {}", text, range.name,
                                 expected_inputs(function)));
  return range;
}

/// Random numbers lie in [0, 1).
void spread(Features& inputs, const std::vector<Range>& ranges) {
  for (const Range& range : ranges) {
    FeatureValue* value = inputs.find(range.name);
    auto* array = value == nullptr ? nullptr : std::get_if<MultiArray>(value);
    if (array == nullptr) continue;
    MultiArray wide = array->converted(DataType::float64);
    for (double& v : wide.as<double>()) v = range.low + v * (range.high - range.low);
    *array = wide.converted(array->type());
  }
}

/// Probabilities in the order of the class labels, as other frameworks return them.
FeatureValue in_label_order(const FeatureValue& value, const FeatureValue& reference, const Model& model) {
  const auto* dictionary = std::get_if<Dictionary>(&value);
  const auto& labels = model.description().class_labels;
  if (dictionary == nullptr || std::holds_alternative<Dictionary>(reference) || labels.empty()) return value;
  MultiArray out(DataType::float64, {static_cast<int64_t>(labels.size())});
  for (size_t i = 0; i < labels.size(); ++i) {
    const auto numbers = out.as<double>();
    if (dictionary->string_keys) {
      const auto at = dictionary->strings.find(labels[i]);
      numbers[i] = at == dictionary->strings.end() ? 0 : at->second;
    } else {
      const auto at = dictionary->ints.find(std::strtoll(labels[i].c_str(), nullptr, 10));
      numbers[i] = at == dictionary->ints.end() ? 0 : at->second;
    }
  }
  return out;
}

class Comparison {
 public:
  Comparison(const Model& model, Reference& reference, const VerifyOptions& options)
      : model_(model), reference_(reference), options_(options) {
    const FunctionDescription& f = model.function();
    const NamePairs map = parse_map(options.map, f, reference.inputs(), reference.outputs());
    inputs_ = paired_features(f.inputs, reference.inputs(), map);
    outputs_ = paired_features(f.outputs, reference.outputs(), map);
    if (outputs_.empty())
      throw UsageError("no output of the model has a partner in the reference; --map NAME=OTHER names one");
    for (const auto& input : reference.inputs())
      if (!input.optional &&
          std::none_of(inputs_.begin(), inputs_.end(), [&](const auto& p) { return p.second == input.name; }))
        throw UsageError(fmt::format("the reference's input '{}' has no partner in the model; --map NAME={} names one",
                                     input.name, input.name));
  }

  const NamePairs& outputs() const { return outputs_; }

  VerifiedShape compare(std::string name, const std::vector<Features>& items) const {
    VerifiedShape out;
    out.name = std::move(name);
    std::vector<Features> one, two;
    try {
      one = predict_each(model_, items, "model");
    } catch (const Exception& e) {
      return failed(out, "the model: ", e.what());
    }
    try {
      std::vector<Features> others;
      for (const Features& item : items) others.push_back(for_reference(item));
      two = reference_.predict(others);
    } catch (const Exception& e) {
      return failed(out, "the reference: ", e.what());
    }
    out.predictions = static_cast<int64_t>(items.size());
    for (const auto& [mine, other] : outputs_) {
      OutputError error;
      error.name = mine;
      error.other = other;
      for (size_t i = 0; i < items.size(); ++i) {
        const FeatureValue *value = one[i].find(mine), *reference = two[i].find(other);
        if (value == nullptr || reference == nullptr) {
          error.faults.push_back("the output is missing in a prediction");
          continue;
        }
        const FeatureValue ordered = in_label_order(*value, *reference, model_);
        add_error(error, ordered, *reference, is_classes(mine, ordered));
      }
      out.outputs.push_back(std::move(error));
    }
    return out;
  }

 private:
  static VerifiedShape failed(VerifiedShape& out, const char* who, const char* what) {
    out.fault = std::string(who) + what;
    return std::move(out);
  }
  Features for_reference(const Features& item) const {
    Features out;
    for (const auto& [mine, other] : inputs_)
      if (const FeatureValue* value = item.find(mine))
        out[other] = adapted(*value, *find(reference_.inputs(), other), options_.pixels);
    return out;
  }
  /// The probabilities of a classifier; with --top-k every list of numbers.
  bool is_classes(const std::string& name, const FeatureValue& value) const {
    if (name == model_.function().predicted_probabilities_name) return true;
    if (options_.top_k == 0) return false;
    const auto* array = std::get_if<MultiArray>(&value);
    return array != nullptr && array->count() > 1 &&
           std::count_if(array->shape().begin(), array->shape().end(), [](int64_t d) { return d != 1; }) == 1;
  }

  const Model& model_;
  Reference& reference_;
  const VerifyOptions& options_;
  NamePairs inputs_, outputs_;
};

void judge(const VerifiedShape& shape, const VerifyOptions& options, Verification& to) {
  const std::string at = shape.name.empty() ? "" : fmt::format(" ({})", shape.name);
  const auto fail = [&](const std::string& text) { to.failures.push_back(text + at); };
  if (!shape.fault.empty()) fail(shape.fault);
  for (const OutputError& e : shape.outputs) {
    if (!e.faults.empty()) fail(fmt::format("output '{}': {}", e.name, e.faults[0]));
    if (e.unlike > 0)
      fail(fmt::format("output '{}': {} NaN or infinite on one side only", e.name, plural(e.unlike, "element")));
    if (e.has_numbers() && e.snr() < to.min_snr)
      fail(fmt::format("output '{}': {:.1f} dB, expected at least {:.1f} dB", e.name, e.snr(), to.min_snr));
    if (options.max_error && e.absolute > *options.max_error)
      fail(fmt::format("output '{}': the largest error is {}, allowed is {}", e.name, format_number(e.absolute),
                       format_number(*options.max_error)));
    if (options.top_k > 0 && e.agreement(options.top_k) >= 0 && e.agreement(options.top_k) < 1)
      fail(fmt::format("output '{}': the reference's class is among the {} best in {} of the predictions", e.name,
                       options.top_k, format_percent(e.agreement(options.top_k))));
    if (options.top_k == 0 && e.same < e.labels)
      fail(fmt::format("output '{}': {} of {} labels are the same", e.name, e.same, e.labels));
  }
}

void scan(const ModelStructure::Block& block, bool& half, bool& compressed) {
  for (const ModelStructure::Operation& op : block.operations) {
    compressed |= op.type.starts_with("constexpr_") && op.type != "constexpr_cast";
    for (const auto& [name, type] : op.outputs) half |= op.type != "const" && type.find("fp16") != std::string::npos;
    for (const ModelStructure::Block& inner : op.blocks) scan(inner, half, compressed);
  }
}

void scan(const ModelStructure& structure, bool& half, bool& compressed) {
  for (const auto& function : structure.functions) scan(function.body, half, compressed);
  for (const auto& weight : structure.weights)
    compressed |= weight.storage == "inline palette" || weight.storage == "inline linear";
  for (const auto& part : structure.models) scan(part.structure, half, compressed);
}

}  // namespace

double usual_snr(const Model& model, const Model* other) {
  bool half = false, compressed = false;
  scan(model.structure(), half, compressed);
  if (other != nullptr) scan(other->structure(), half, compressed);
  return compressed ? 20 : half ? 40 : 80;
}

Verification verified(const Model& model, Reference& reference, const VerifyOptions& options) {
  Verification out;
  out.reference = reference.name();
  out.is_default = !options.min_snr;
  out.min_snr = options.min_snr.value_or(usual_snr(model, reference.model()));
  const Comparison comparison(model, reference, options);
  for (const FeatureDescription& output : model.function().outputs)
    if (std::none_of(comparison.outputs().begin(), comparison.outputs().end(),
                     [&](const auto& pair) { return pair.first == output.name; }))
      out.uncompared.push_back(output.name);
  std::vector<Range> ranges;
  for (const std::string& text : options.ranges) ranges.push_back(parse_range(text, model.function()));
  const std::vector<Features> recorded = reference.recorded_inputs();
  if (!options.inputs.empty()) {
    out.shapes.push_back(comparison.compare({}, options.inputs));
  } else if (!recorded.empty()) {
    out.shapes.push_back(comparison.compare({}, recorded));
  } else {
    for (const ShapeChoice& choice : shape_choices(model.function(), options.all_shapes)) {
      std::vector<Features> items;
      for (int64_t run = 0; run < options.runs; ++run) {
        const uint64_t seed = options.seed + static_cast<uint64_t>(run);
        items.push_back(options.all_shapes ? random_inputs(choice.function, seed) : model.random_inputs(seed));
        spread(items.back(), ranges);
      }
      out.shapes.push_back(comparison.compare(choice.name, items));
    }
  }
  for (const VerifiedShape& shape : out.shapes) judge(shape, options, out);
  return out;
}

}  // namespace moka::cli

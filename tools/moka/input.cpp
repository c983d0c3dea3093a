// SPDX-License-Identifier: Apache-2.0
#include "input.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "input_steps.h"
#include "io/file.h"
#include "io/io_error.h"
#include "json_text.h"
#include "moka/model.h"
#include "text.h"

namespace moka::cli {
namespace {

using ParsedJson = nlohmann::json;

std::vector<std::string> names_of(const FunctionDescription& function) {
  std::vector<std::string> names;
  for (const auto& input : function.inputs) names.push_back(input.name);
  return names;
}

[[noreturn]] void unknown_input(const FunctionDescription& function, std::string_view name) {
  const auto close = nearest(name, names_of(function));
  throw UsageError(fmt::format("the model has no input '{}'{} {}", name,
                               close ? fmt::format("; did you mean '{}'? It takes", *close) : "; it takes",
                               expected_inputs(function)));
}

/// The user's arguments, sorted by their meaning.
class Collector {
 public:
  using AllRandom = std::function<Features(uint64_t seed)>;

  Collector(const FunctionDescription& function, const InputOptions& options, AllRandom all_random)
      : function_(function),
        texts_name_files_(options.texts_name_files),
        all_random_(std::move(all_random)),
        reader_(
            options, [this, &options](const std::string& name) { return random(name, options.seed); }, result_.notes) {}

  Inputs collect(const InputOptions& options) {
    if (options.inputs.empty() && options.texts.empty() && needs_values())
      throw UsageError(
          fmt::format("no inputs given; expected {} (--input random fills them all)", expected_inputs(function_)));
    for (const std::string& argument : options.inputs) take(argument);
    for (const auto& [name, text] : options.texts) take_text(name, text);
    result_.batch = steps_.has_value();
    Features common;
    for (const auto& input : function_.inputs)
      if (auto value = values_.find(input.name); value != values_.end()) common[input.name] = std::move(value->second);
    if (steps_)
      read_batch(common);
    else
      result_.rows.push_back(std::move(common));
    for (size_t r = 0; r < result_.rows.size(); ++r) complete(r);
    return std::move(result_);
  }

 private:
  bool needs_values() const {
    return std::any_of(function_.inputs.begin(), function_.inputs.end(), [](const auto& i) { return !i.optional; });
  }

  FeatureValue random(const std::string& name, uint64_t seed) {
    if (!random_) random_ = all_random_(seed);
    if (const FeatureValue* value = random_->find(name)) return *value;
    FunctionDescription one;  // an input that may be omitted
    one.inputs.push_back(*find_feature(function_.inputs, name));
    one.inputs[0].default_value.reset();
    return random_inputs(one, seed).at(name);
  }

  void set(const FeatureDescription& input, FeatureValue value) {
    if (!values_.emplace(input.name, std::move(value)).second)
      throw UsageError(fmt::format("input '{}': given twice", input.name));
  }

  void take_text(const std::string& name, const std::string& text) {
    const FeatureDescription* input = find_feature(function_.inputs, name);
    if (input == nullptr) unknown_input(function_, name);
    set(*input, value_from_text(*input, text, fmt::format("input '{}'", name)));
  }

  void take(const std::string& argument) {
    const FeatureDescription* named = nullptr;
    for (const auto& input : function_.inputs)  // a name may itself contain '='
      if (argument.starts_with(input.name + "=") && (!named || input.name.size() > named->name.size())) named = &input;
    if (named) return set(*named, reader_.read(*named, std::string_view(argument).substr(named->name.size() + 1)));
    if (argument == "random") {
      fill_ = true;
      return;
    }
    if (argument.starts_with('@') && take_file(argument.substr(1))) return;
    const size_t equals = argument.find('=');
    if (equals != std::string::npos && !argument.starts_with('@')) unknown_input(function_, argument.substr(0, equals));
    if (function_.inputs.size() != 1)
      throw UsageError(
          fmt::format("'{}': expected NAME=VALUE with one of the inputs {}", argument, expected_inputs(function_)));
    set(function_.inputs[0], reader_.read(function_.inputs[0], argument));
  }

  /// Whether the file gives inputs by name.
  bool take_file(const std::string& reference) {
    const FileReference file = parse_reference(reference);
    if (auto steps = read_steps(function_, file)) {
      if (steps_) throw UsageError(fmt::format("{}: a batch is already given by {}", steps->path, steps_->path));
      steps_ = std::move(steps);
      return true;
    }
    if (file.extension == "npz" && file.member.empty()) {
      for (const auto& [name, array] : reading([&] { return read_npz(file.path); })) {
        const FeatureDescription* input = find_feature(function_.inputs, name);
        if (!input && function_.inputs.size() == 1) return false;
        if (!input) unknown_input(function_, name);
        set(*input, reader_.read(*input, fmt::format("@{}:{}", file.path, name)));
      }
      return true;
    }
    if (file.extension != "json") return false;
    const io::Bytes bytes = io::read_file(file.path);
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const bool one = function_.inputs.size() == 1;
    if (one && !is_json(text)) return false;
    const ParsedJson json = parse_json(text, file.path);
    if (one && !(json.is_object() && json.contains(function_.inputs[0].name))) return false;
    if (!json.is_object())
      throw UsageError(
          fmt::format("{}: expected an object of inputs by name, or a list of such objects, got '{}'; the "
                      "inputs are {}",
                      file.path, shortened(json.dump(), 60), expected_inputs(function_)));
    for (const auto& [name, value] : json.items()) {
      const FeatureDescription* input = find_feature(function_.inputs, name);
      if (!input) unknown_input(function_, name);
      const std::string cell = value.is_string() ? value.get<std::string>() : value.dump();
      set(*input, value_of(*input, cell_of_json(*input, cell, value.is_string()), file.path));
    }
    return true;
  }

  FeatureValue value_of(const FeatureDescription& input, const Steps::Cell& cell, const std::string& path) {
    if (cell.literal || !texts_name_files_)
      return value_from_text(input, cell.text, fmt::format("{}: input '{}'", path, input.name));
    return reader_.read_cell(input, cell.text);
  }

  void read_batch(const Features& common) {
    std::vector<std::string> unused;
    bool any = false;
    for (const std::string& name : steps_->names) {
      const bool known = find_feature(function_.inputs, name);
      if (known && std::count(steps_->names.begin(), steps_->names.end(), name) > 1)
        throw UsageError(fmt::format("{}: column '{}': given twice", steps_->path, name));
      if (!known) unused.push_back(name);
      if (known && common.find(name))
        throw UsageError(fmt::format("input '{}': given by --input and by {}", name, steps_->path));
      any |= known;
    }
    if (!any)
      throw UsageError(fmt::format("{}: no column is named like an input; expected {}, got {}", steps_->path,
                                   expected_inputs(function_), quoted_list(steps_->names)));
    if (!unused.empty())
      result_.notes.push_back(
          fmt::format("{}: not used: column{} {}", steps_->path, unused.size() == 1 ? "" : "s", quoted_list(unused)));
    for (size_t r = 0; r < steps_->rows.size(); ++r) {
      Features& row = result_.rows.emplace_back(common);
      for (const auto& input : function_.inputs) {
        const auto cell = steps_->rows[r].find(input.name);
        if (cell == steps_->rows[r].end()) continue;
        const bool empty = cell->second.text.empty() && !cell->second.literal;
        if (empty && (input.optional || input.type != FeatureType::string)) continue;
        try {
          row[input.name] = value_of(input, cell->second, steps_->path);
        } catch (const UsageError& e) {
          throw UsageError(fmt::format("{}: {}", place(r), e.what()));
        }
      }
    }
  }

  std::string place(size_t row) const {
    return fmt::format("{}: {} {}", steps_->path, steps_->unit, steps_->numbers[row]);
  }

  /// Fills missing inputs if "random" was given; otherwise no required input may be missing.
  void complete(size_t row) {
    std::vector<std::string> missing;
    for (const auto& input : function_.inputs) {
      if (input.optional || result_.rows[row].find(input.name)) continue;
      if (fill_)
        result_.rows[row][input.name] = reader_.read(input, "random");
      else
        missing.push_back(input.name);
    }
    if (!missing.empty())
      throw UsageError(fmt::format("{}no value for input{} {}; expected {}", steps_ ? place(row) + ": " : std::string(),
                                   missing.size() == 1 ? "" : "s", quoted_list(missing), expected_inputs(function_)));
  }

  const FunctionDescription& function_;
  bool texts_name_files_;
  AllRandom all_random_;
  Inputs result_;
  ValueReader reader_;
  std::map<std::string, FeatureValue> values_;
  std::optional<Features> random_;
  std::optional<Steps> steps_;
  bool fill_ = false;  ///< use random values for inputs that are not given
};

}  // namespace

const FeatureDescription* find_feature(const std::vector<FeatureDescription>& features, std::string_view name) {
  for (const FeatureDescription& feature : features)
    if (feature.name == name) return &feature;
  return nullptr;
}

std::string expected_inputs(const FunctionDescription& function) {
  constexpr size_t kMost = 12;
  std::string out;
  for (size_t i = 0; i < std::min(kMost, function.inputs.size()); ++i) {
    const auto& input = function.inputs[i];
    std::string type = input.formatted_type();
    if (input.optional)
      type = type.ends_with(')') ? type.substr(0, type.size() - 1) + ", optional)" : type + ", optional";
    out += fmt::format("{}{}: {}", i ? "; " : "", input.name, type);
  }
  if (function.inputs.size() > kMost) out += fmt::format("; and {} more", function.inputs.size() - kMost);
  return out.empty() ? "no inputs" : out;
}

Inputs read_inputs(const FunctionDescription& function, const InputOptions& options) {
  return Collector(function, options, [&](uint64_t seed) { return random_inputs(function, seed); }).collect(options);
}

Inputs read_inputs(const Model& model, const InputOptions& options) {
  const auto is_random = [](const std::string& text) { return text == "random" || text.ends_with("=random"); };
  const bool all_random = options.texts.empty() && std::all_of(options.inputs.begin(), options.inputs.end(), is_random);
  const auto draw = [&](uint64_t seed) {
    try {
      return model.random_inputs(seed);
    } catch (const Exception&) {
      // The default sizes may fit the inputs that are given.
      if (all_random) throw;
      return random_inputs(model.function(), seed);
    }
  };
  return Collector(model.function(), options, draw).collect(options);
}

}  // namespace moka::cli

#include "input.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convert.h"
#include "io/csv.h"
#include "io/file.h"
#include "io/io_error.h"
#include "moka/model.h"
#include "text.h"
#include "usage_error.h"

namespace moka::cli {
namespace {

using Json = nlohmann::json;

std::vector<std::string> names_of(const FunctionDescription& function) {
  std::vector<std::string> names;
  for (const auto& input : function.inputs) names.push_back(input.name);
  return names;
}

const FeatureDescription* find(const FunctionDescription& function, std::string_view name) {
  for (const auto& input : function.inputs)
    if (input.name == name) return &input;
  return nullptr;
}

[[noreturn]] void unknown_input(const FunctionDescription& function, std::string_view name) {
  const auto close = nearest(name, names_of(function));
  throw UsageError(fmt::format("the model has no input '{}'{} {}", name,
                               close ? fmt::format("; did you mean '{}'? It takes", *close) : "; it takes",
                               expected_inputs(function)));
}

/// What was typed, sorted by what it means.
class Collector {
 public:
  Collector(const FunctionDescription& function, const InputOptions& options)
      : function_(function),
        reader_(
            options, [this, &options](const std::string& name) { return random(name, options.seed); }, result_.notes) {}

  Inputs collect(const std::vector<std::string>& arguments) {
    if (arguments.empty() && needs_values())
      throw UsageError(
          fmt::format("no inputs given; expected {} (--input random fills them all)", expected_inputs(function_)));
    for (const std::string& argument : arguments) take(argument);
    result_.batch = csv_.has_value();
    result_.rows.emplace_back();
    for (const auto& input : function_.inputs) {
      const auto value = values_.find(input.name);
      if (value != values_.end()) result_.rows[0][input.name] = std::move(value->second);
    }
    if (csv_) read_batch();
    require_all();
    return std::move(result_);
  }

 private:
  bool needs_values() const {
    return std::any_of(function_.inputs.begin(), function_.inputs.end(), [](const auto& i) { return !i.optional; });
  }

  FeatureValue random(const std::string& name, uint64_t seed) {
    if (!random_) random_ = random_inputs(function_, seed);
    const FeatureValue* value = random_->find(name);
    if (!value) throw UsageError(fmt::format("input '{}': no random value for this type", name));
    return *value;
  }

  void set(const FeatureDescription& input, FeatureValue value) {
    if (!values_.emplace(input.name, std::move(value)).second)
      throw UsageError(fmt::format("input '{}': given twice", input.name));
  }

  void take(const std::string& argument) {
    const FeatureDescription* named = nullptr;
    for (const auto& input : function_.inputs)  // a name may itself contain '='
      if (argument.starts_with(input.name + "=") && (!named || input.name.size() > named->name.size())) named = &input;
    if (named) return set(*named, reader_.read(*named, std::string_view(argument).substr(named->name.size() + 1)));
    if (argument == "random") {
      for (const auto& input : function_.inputs)
        if (!values_.contains(input.name) && !input.optional)
          values_.emplace(input.name, reader_.read(input, "random"));
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

  /// True when the file gives inputs by their names.
  bool take_file(const std::string& reference) {
    const FileReference file = parse_reference(reference);
    if (file.extension == "csv") {
      if (csv_) throw UsageError("expected one table of inputs, got two");
      csv_ = io::read_csv(file.path);
      csv_path_ = file.path;
      return true;
    }
    if (file.extension == "npz" && file.member.empty()) {
      for (const auto& [name, array] : io::read_npz(file.path)) {
        const FeatureDescription* input = find(function_, name);
        if (!input && function_.inputs.size() == 1) return false;
        if (!input) unknown_input(function_, name);
        set(*input, reader_.read(*input, fmt::format("@{}:{}", file.path, name)));
      }
      return true;
    }
    if (file.extension != "json") return false;
    const io::Bytes bytes = io::read_file(file.path);
    const Json json = Json::parse(reinterpret_cast<const char*>(bytes.data()),
                                  reinterpret_cast<const char*>(bytes.data()) + bytes.size(), nullptr, false);
    if (!json.is_object()) return false;
    const bool whole = function_.inputs.size() == 1 && !json.contains(function_.inputs[0].name);
    if (whole) return false;
    for (const auto& [name, value] : json.items()) {
      const FeatureDescription* input = find(function_, name);
      if (!input) unknown_input(function_, name);
      const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
      set(*input, value_from_text(*input, text, fmt::format("{}: input '{}'", file.path, name)));
    }
    return true;
  }

  void read_batch() {
    const Features common = std::move(result_.rows[0]);
    result_.rows.clear();
    if (csv_->rows.empty()) throw io::IoError(csv_path_ + ": expected a header and at least one row, got no rows");
    std::vector<std::string> unused;
    bool any = false;
    for (const std::string& column : csv_->header) {
      const bool known = find(function_, column);
      if (!known) unused.push_back(column);
      if (known && common.find(column))
        throw UsageError(fmt::format("input '{}': given by --input and by {}", column, csv_path_));
      any |= known;
    }
    if (!any)
      throw UsageError(fmt::format("{}: no column is named like an input; expected {}, got {}", csv_path_,
                                   expected_inputs(function_), quoted_list(csv_->header)));
    if (!unused.empty())
      result_.notes.push_back(
          fmt::format("{}: not used: column{} {}", csv_path_, unused.size() == 1 ? "" : "s", quoted_list(unused)));
    for (size_t r = 0; r < csv_->rows.size(); ++r) {
      Features& row = result_.rows.emplace_back(common);
      for (const auto& input : function_.inputs) {
        const auto column = csv_->column(input.name);
        if (!column) continue;
        const std::string& cell = csv_->rows[r][*column];
        if (cell.empty() && input.optional) continue;
        try {
          row[input.name] = reader_.read(input, cell);
        } catch (const UsageError& e) {
          throw UsageError(fmt::format("{}: row {}: {}", csv_path_, r + 1, e.what()));
        }
      }
    }
  }

  void require_all() const {
    std::vector<std::string> missing;
    for (const auto& input : function_.inputs)
      if (!input.optional && !result_.rows[0].find(input.name)) missing.push_back(input.name);
    if (!missing.empty())
      throw UsageError(fmt::format("no value for input{} {}; expected {}", missing.size() == 1 ? "" : "s",
                                   quoted_list(missing), expected_inputs(function_)));
  }

  const FunctionDescription& function_;
  Inputs result_;
  ValueReader reader_;
  std::map<std::string, FeatureValue> values_;
  std::optional<Features> random_;
  std::optional<io::Csv> csv_;
  std::string csv_path_;
};

}  // namespace

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
  return Collector(function, options).collect(options.inputs);
}

}  // namespace moka::cli

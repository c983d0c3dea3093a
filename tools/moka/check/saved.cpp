// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "check/reference.h"
#include "input.h"
#include "io/file.h"
#include "json_text.h"
#include "text.h"

namespace moka::cli {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Puts 0 in the place of null, which is what JSON has for NaN, and adds the positions of the nulls among the numbers.
void take_nulls(nlohmann::json& lists, int64_t& position, std::vector<int64_t>& nulls) {
  if (lists.is_array()) {
    for (nlohmann::json& item : lists) take_nulls(item, position, nulls);
    return;
  }
  if (lists.is_null()) {
    nulls.push_back(position);
    lists = 0;
  }
  ++position;
}

/// Nested lists of numbers as an array.
MultiArray array_from_json(const FeatureDescription& feature, nlohmann::json lists, const std::string& where) {
  int64_t count = 0;
  std::vector<int64_t> nulls;
  take_nulls(lists, count, nulls);
  auto array = std::get<MultiArray>(value_from_text(feature, lists.dump(), where));
  for (const int64_t at : nulls) {
    const auto i = static_cast<size_t>(at);
    switch (array.type()) {
      case DataType::float16: array.as<uint16_t>()[i] = 0x7e00; break;
      case DataType::float32: array.as<float>()[i] = std::numeric_limits<float>::quiet_NaN(); break;
      case DataType::float64: array.as<double>()[i] = kNan; break;
      default:
        throw UsageError(
            fmt::format("{}: expected whole numbers of type {}, got 'nan'", where, to_string(array.type())));
    }
  }
  return array;
}

/// Reads a recording.
class Saved {
 public:
  Saved(std::string path, const FunctionDescription& function) : path_(std::move(path)), function_(function) {}

  void add_case() {
    inputs_.emplace_back();
    answers_.emplace_back();
  }
  /// A value that belongs to the last case: an input if the model has one of this name.
  void add(const std::string& name, const FeatureValue& array) {
    if (const FeatureDescription* input = find_feature(function_.inputs, name)) {
      inputs_.back()[name] = input_value(*input, array);
    } else if (const FeatureDescription* output = find_feature(function_.outputs, name);
               output != nullptr && output->type == FeatureType::int64 && is_one_number(array)) {
      answers_.back()[name] = static_cast<int64_t>(std::get<MultiArray>(array).at(0));
    } else {
      answers_.back()[name] = array;
    }
  }
  void add_json(const nlohmann::json& one, size_t index) {
    add_case();
    if (!one.is_object() || !one.contains("outputs") || !one.at("outputs").is_object())
      throw UsageError(fmt::format("{}: case {} has no object 'outputs'", path_, index + 1));
    if (one.contains("inputs"))
      for (const auto& [name, value] : one.at("inputs").items()) {
        const FeatureDescription* input = find_feature(function_.inputs, name);
        if (input == nullptr)
          throw UsageError(
              fmt::format("{}: the model has no input '{}'; it takes {}", path_, name, expected_inputs(function_)));
        inputs_.back()[name] = value_of(*input, value);
      }
    for (const auto& [name, value] : one.at("outputs").items()) {
      const FeatureDescription* output = find_feature(function_.outputs, name);
      FeatureDescription any;
      any.name = name;
      any.array.type = DataType::float64;
      answers_.back()[name] = value_of(output ? loose(*output) : any, value);
    }
  }
  void set_device(std::string device) { device_ = std::move(device); }
  std::unique_ptr<Reference> finish() {
    const std::string name = device_.empty() ? path_ : fmt::format("{} ({})", path_, device_);
    return recorded_reference({name, std::move(inputs_), std::move(answers_)}, function_);
  }

 private:
  static bool is_one_number(const FeatureValue& value) {
    const auto* array = std::get_if<MultiArray>(&value);
    return array != nullptr && array->count() == 1;
  }
  /// A recorded array may have any shape and is compared as numbers.
  static FeatureDescription loose(FeatureDescription output) {
    if (output.type != FeatureType::multi_array) return output;
    output.array = {};
    output.array.type = DataType::float64;
    return output;
  }
  FeatureValue value_of(const FeatureDescription& feature, const nlohmann::json& value) const {
    const nlohmann::json& plain = value.is_object() && value.contains("values")  ? value.at("values")
                                  : value.is_object() && value.contains("value") ? value.at("value")
                                                                                 : value;
    const std::string where = fmt::format("{}: '{}'", path_, feature.name);
    if (plain.is_array() && feature.type == FeatureType::multi_array) return array_from_json(feature, plain, where);
    if (feature.type == FeatureType::dictionary && plain.is_object()) return dictionary_of(feature, plain, where);
    if (plain.is_null()) return value_from_text(feature, "nan", where);
    return value_from_text(feature, plain.is_string() ? plain.get<std::string>() : plain.dump(), where);
  }
  FeatureValue dictionary_of(const FeatureDescription& feature, nlohmann::json object, const std::string& where) const {
    std::vector<std::string> missing;
    for (auto& [key, value] : object.items())
      if (value.is_null()) {
        missing.push_back(key);
        value = 0;
      }
    FeatureValue value = value_from_text(feature, object.dump(), where);
    auto& dictionary = std::get<Dictionary>(value);
    for (const std::string& key : missing)
      (dictionary.string_keys ? dictionary.strings[key] : dictionary.ints[parse_integer(key).value()]) = kNan;
    return value;
  }
  FeatureValue input_value(const FeatureDescription& input, const FeatureValue& array) const {
    const std::string where = fmt::format("{}: input '{}'", path_, input.name);
    if (input.type == FeatureType::image) return image_of_array(input, array, where);
    if (!std::holds_alternative<MultiArray>(array))
      throw io::IoError(fmt::format("{}: expected numbers, got text", where));
    if (input.type == FeatureType::multi_array) return array;
    if (is_one_number(array) && (input.type == FeatureType::float64 || input.type == FeatureType::int64))
      return std::get<MultiArray>(array).at(0);
    throw UsageError(fmt::format("{}: expected {}, got an array", where, input.formatted_type()));
  }

  std::string path_, device_;
  const FunctionDescription function_;
  std::vector<Features> inputs_, answers_;
};

}  // namespace

std::unique_ptr<Reference> saved_reference(const std::string& path, const FunctionDescription& function) {
  Saved saved(path, function);
  const std::string ending = in_lower_case(std::filesystem::path(path).extension().string());
  if (ending == ".json") {
    const io::Bytes bytes = io::read_file(path);
    const nlohmann::json root = parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
    if (root.is_object() && root.contains("device") && root.at("device").is_string())
      saved.set_device(root.at("device").get<std::string>());
    if (root.is_object() && root.contains("cases")) {
      if (!root.at("cases").is_array()) throw UsageError(fmt::format("{}: 'cases' is not a list", path));
      for (size_t i = 0; i < root.at("cases").size(); ++i) saved.add_json(root.at("cases")[i], i);
    } else {
      saved.add_json(root, 0);
    }
  } else if (ending == ".npz") {
    saved.add_case();
    for (const auto& [name, array] : reading([&] { return read_npz(path); })) saved.add(name, array);
  } else {
    saved.add_case();
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(path))
      if (in_lower_case(entry.path().extension().string()) == ".npy") files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const auto& file : files) saved.add(file.stem().string(), reading([&] { return read_npy(file); }));
  }
  return saved.finish();
}

}  // namespace moka::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/npy.h"
#include "moka/conversion.h"
#include "moka/description.h"
#include "moka/feature.h"
#include "moka/model.h"

namespace moka::cli {

struct InputOptions {
  std::vector<std::string> inputs;                         ///< as typed by the user
  std::vector<std::pair<std::string, std::string>> texts;  ///< inputs by name whose text means itself
  std::string fit = "scaleFill";
  uint32_t rate = 0;  ///< in hertz; 0: the rate of the file
  bool pad = false;
  bool texts_name_files = true;  ///< a table's "@file" and a picture's name; else they are text
  uint64_t seed = 1;
  std::string pad_option = "--pad", rate_option = "--rate HZ";  ///< the options' names in messages
};

/// The inputs of one prediction, or of several.
struct Inputs {
  bool batch = false;
  std::vector<Features> rows;
  std::vector<std::string> notes;  ///< notes for the user on how files were used
};

/// Reads the user's arguments. Throws UsageError for names and values that do not fit, IoError for unusable files.
Inputs read_inputs(const FunctionDescription& function, const InputOptions& options);
/// Random values have shapes that the model can run.
Inputs read_inputs(const Model& model, const InputOptions& options);

/// Converts one VALUE for an input.
class ValueReader {
 public:
  using RandomValue = std::function<FeatureValue(const std::string& name)>;

  ValueReader(const InputOptions& options, RandomValue random, std::vector<std::string>& notes)
      : options_(options), random_(std::move(random)), notes_(notes) {}

  /// An argument: as a cell, or "random".
  FeatureValue read(const FeatureDescription& input, std::string_view text) const;
  /// A number, text, JSON or "@file". "@@" begins text that starts with "@".
  FeatureValue read_cell(const FeatureDescription& input, std::string_view text) const;

 private:
  FeatureValue read_file(const FeatureDescription& input, std::string_view reference) const;
  FeatureValue read_sound(const FeatureDescription& input, const std::string& path) const;
  FeatureValue read_picture(const FeatureDescription& input, const std::string& path) const;

  const InputOptions& options_;
  RandomValue random_;
  std::vector<std::string>& notes_;
};

/// A number, JSON text or a comma-separated list as the value of `input`; `where` begins messages.
FeatureValue value_from_text(const FeatureDescription& input, std::string_view text, const std::string& where);

/// Nested lists of numbers as an array of the declared type.
MultiArray array_from_json(const FeatureDescription& input, const nlohmann::json& lists, const std::string& where);

/// As moka::image_of_array. Throws UsageError; `where` begins messages.
Image image_of_array(const FeatureDescription& input, const io::Array& array, const std::string& where);

/// As moka::array_of_numbers. Throws UsageError; `where` begins messages.
MultiArray array_of_numbers(const FeatureDescription& input, const std::vector<double>& numbers,
                            std::optional<std::vector<int64_t>> shape, const std::string& where);

/// The dimension of the shape that counts the samples of a sound: the only one that is not 1 or that may vary.
std::optional<size_t> sample_axis(const MultiArrayConstraint& constraint);

/// The size that a picture of width x height is resized to.
std::pair<int64_t, int64_t> picture_size(const ImageConstraint& constraint, int64_t width, int64_t height);

/// Splits "x.npz:member" and "x.npz". The extension is in lower case, without the dot.
struct FileReference {
  std::string path, member, extension;
};
FileReference parse_reference(std::string_view reference);

/// The feature of this name, or nullptr.
const FeatureDescription* find_feature(const std::vector<FeatureDescription>& features, std::string_view name);

/// "wake (Double), coffee (Double, optional)".
std::string expected_inputs(const FunctionDescription& function);

}  // namespace moka::cli

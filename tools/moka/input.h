// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/io_error.h"
#include "moka/conversion.h"
#include "moka/description.h"
#include "moka/feature.h"
#include "moka/files.h"
#include "moka/model.h"
#include "usage_error.h"

namespace moka::cli {

struct InputOptions {
  std::vector<std::string> inputs;                         ///< as typed by the user
  std::vector<std::pair<std::string, std::string>> texts;  ///< inputs by name whose text means itself
  std::string fit = "scaleFill";
  std::string frame;  ///< of raw video: WIDTHxHEIGHT, and a format and a matrix after commas
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

/// Size, format and matrix of raw video as InputOptions::frame says them. Throws UsageError.
RawFrame raw_frame(const std::string& text);

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

  const InputOptions& options_;
  RandomValue random_;
  std::vector<std::string>& notes_;
};

/// As moka::value_of_text. Throws UsageError; `where` begins messages.
FeatureValue value_from_text(const FeatureDescription& input, std::string_view text, const std::string& where);

/// As moka::image_of_array, for what an array file contains. Throws UsageError; `where` begins messages.
Image image_of_array(const FeatureDescription& input, const FeatureValue& array, const std::string& where);

/// As moka::array_of_numbers. Throws UsageError; `where` begins messages.
MultiArray array_of_numbers(const FeatureDescription& input, const std::vector<double>& numbers,
                            std::optional<std::vector<int64_t>> shape, const std::string& where);

/// The numbers of a file, for a feature that is an array. Throws IoError for text.
MultiArray read_numbers(const std::filesystem::path& path);

/// Calls `read`, which reads a user's file or value by the library. An Exception becomes a UsageError where the value
/// does not fit, and else an IoError.
template <class Read>
auto reading(Read read) {
  try {
    return read();
  } catch (const Exception& e) {
    if (e.kind() == ErrorKind::invalid_argument) throw UsageError(e.what());
    throw io::IoError(e.what());
  }
}

/// Splits "x.npz:member" and "x.npz". The extension is in lower case, without the dot.
struct FileReference {
  std::string path, member, extension;
};
FileReference parse_reference(std::string_view reference);
/// Whether files with this extension are encoded pictures.
bool is_picture(const std::string& extension);

/// The feature of this name, or nullptr.
const FeatureDescription* find_feature(const std::vector<FeatureDescription>& features, std::string_view name);

/// "wake (Double), coffee (Double, optional)".
std::string expected_inputs(const FunctionDescription& function);

}  // namespace moka::cli

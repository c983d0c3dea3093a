// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "io/line.h"
#include "json.h"
#include "moka/description.h"
#include "moka/difference.h"
#include "moka/feature.h"
#include "outputs.h"

namespace moka::cli {

/// The entries of a dictionary in descending order of their numbers. Equal numbers are in the order of their keys, NaN
/// is last.
std::vector<std::pair<std::string, double>> ranked(const Dictionary& dictionary);

/// The outputs of one prediction as text: the top five classes, everything else in a table. `width`: of a line.
std::string shown(const Features& outputs, const FunctionDescription& function, bool color,
                  size_t width = io::kAnyWidth);

/// A batch, with one row per prediction.
std::string shown_batch(const std::vector<Features>& outputs, const FunctionDescription& function, bool color,
                        size_t width = io::kAnyWidth);

/// Writes every output into `folder`, which is created if necessary: arrays as .npy, pictures as .png (.npy for
/// floats), dictionaries and sequences as .json, the rest together in values.json. A batch numbers the files and adds
/// predictions.csv. Returns the files' paths. Throws UsageError, Exception, IoError.
std::vector<std::string> write_outputs(const std::vector<Features>& outputs, bool batch,
                                       const std::filesystem::path& folder, const Outputs& to);

/// A name that is valid in any file system: letters, digits, '-', '_' and '.', not beginning with a dot.
std::string safe_file_name(std::string_view name);

}  // namespace moka::cli

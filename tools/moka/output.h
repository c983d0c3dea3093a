#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "io/line.h"
#include "json.h"
#include "moka/description.h"
#include "moka/feature.h"

namespace moka::cli {

/// The outputs of one prediction for a person: classes as top five, everything else in a table. `width`: of a line.
std::string shown(const Features& outputs, const FunctionDescription& function, bool colour,
                  size_t width = io::kAnyWidth);

/// A batch: a row a prediction.
std::string shown_batch(const std::vector<Features>& outputs, const FunctionDescription& function, bool colour,
                        size_t width = io::kAnyWidth);

/// Least, greatest and mean of an array's numbers, nan and infinity counted aside.
struct ArrayFacts {
  double least = 0, most = 0, mean = 0;
  int64_t finite = 0, nan = 0, infinite = 0;
};
ArrayFacts facts_of(const MultiArray& array);

/// Writes every output into `folder` (made when absent): arrays .npy, pictures .png (.npy when float), dictionaries and
/// sequences .json, the rest together in values.json; a batch numbers the files and adds predictions.csv. Returns the
/// files' paths. Throws IoError.
std::vector<std::string> write_outputs(const std::vector<Features>& outputs, bool batch,
                                       const std::filesystem::path& folder);

/// A name that any file system takes: letters, digits, '-', '_' and '.', not beginning with a dot.
std::string safe_file_name(std::string_view name);

}  // namespace moka::cli

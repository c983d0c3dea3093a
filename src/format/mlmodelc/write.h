#pragma once

#include <map>
#include <string>
#include <string_view>

#include "format/model_file.h"

namespace moka::format {

/// Writes `model` as a compiled model that needs no other file. `folder` is made; it must not exist, or be empty.
/// `mil`: the program of an ML program, else unused: other models keep their whole specification (the target "spec").
/// `weights`: files by name relative to the folder, e.g. "weights/weight.bin". `functions`: of an ML program.
/// Errors: invalid_argument (the folder holds something; `model` is compiled already), io. What was written before an
/// error is removed.
Status write_mlmodelc(const ModelFile& model, std::string_view mil, uint64_t functions,
                      const std::map<std::string, Bytes>& weights, const std::string& folder);

}  // namespace moka::format

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "import/importer.h"
#include "ir/evaluate.h"
#include "models_folder.h"

namespace moka::test {

/// Feature values as tests/golden/classic_truth.py writes them.
using Json = nlohmann::json;

std::string golden_folder();
Result<std::string> read_file(const std::string& path);
/// The bytes of a gzip file.
Result<std::string> gunzip(const std::string& path);
Result<import::ImportedModel> import_bytes(std::string bytes);

/// Predicts with the reference kernels. A missing input fails.
Result<std::map<std::string, ir::RuntimeValue>> predict(const import::ImportedModel& model, const Json& inputs);

/// Expects `actual` to be the value `expected`: numbers differ by at most tolerance * max(1, |expected|).
void expect_value(const ir::RuntimeValue& actual, const Json& expected, double tolerance, const std::string& what);

}  // namespace moka::test

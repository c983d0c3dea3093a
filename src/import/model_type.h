// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "format/model_file.h"
#include "ir/tensor.h"

namespace moka::import {

/// Pipelines in pipelines that nest deeper are refused.
inline constexpr int kMaxPipelineDepth = 16;

/// Numbers of the members of the specification's Model.Type that the dispatch needs by name.
inline constexpr int kMLProgram = 502;

/// "glmRegressor" for 300; empty when unknown.
std::string_view model_type_name(int type);
/// The member of Model.Type that `model` holds. A compiled model's specification may omit it; the compiled file then
/// supplies it. 0 when there is none.
int model_type(const proto::Model& model, const format::ModelFile& file);
/// Class labels of a classifier or detector, or of the last one in a pipeline: a string or int64 tensor of rank 1.
/// Empty for other models.
Result<std::vector<ir::Tensor>> class_labels(const proto::Model& model, const format::ModelFile* file);

}  // namespace moka::import

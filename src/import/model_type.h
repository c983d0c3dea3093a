#pragma once

#include <string_view>

#include "format/model_file.h"
#include "ir/tensor.h"

namespace moka::import {

/// Numbers of the members of the specification's Model.Type that the dispatch itself knows.
inline constexpr int kMLProgram = 502;

/// "glmRegressor" for 300; empty when unknown.
std::string_view model_type_name(int type);
/// The member of Model.Type that `model` holds: its own, or, for a compiled model's file whose specification leaves it
/// out, the compiled model's. 0 when none.
int model_type(const proto::Model& model, const format::ModelFile& file);
/// Class labels of a classifier or detector, or of the last one in a pipeline: a string or int64 tensor of rank 1;
/// empty for other models.
Result<std::vector<ir::Tensor>> class_labels(const proto::Model& model, const format::ModelFile* file);

}  // namespace moka::import

#pragma once

#include <string>

#include "moka/model.h"

namespace moka {

/// Compiles a model as coremlc does: makes the folder `destination` (X.mlmodelc, new or empty), which needs no other
/// file. ML programs become MIL text with their weights; other models keep their specification, a form that only Moka
/// reads. Throws Exception: what Model::load throws for a model that cannot run, invalid_argument (destination), io.
MOKA_EXPORT void compile_model(const std::string& path, const std::string& destination);
MOKA_EXPORT void compile_model(const ModelAsset& asset, const std::string& destination);

}  // namespace moka

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/source.h"

namespace moka::editing {

/// Merges the models of a pipeline, which are ML programs with one function each, into one ML program. Features of the
/// pipeline keep their names; values are renamed if two models use the same name. If one model returns another element
/// type than the next one reads, a cast is added. All weights go to one file, which stores equal weights once. The
/// opset is the newest of the models' opsets. Errors: invalid_argument (no pipeline), unsupported (another kind of
/// model in it, images between models, contradicting shapes).
Status inline_pipeline(format::ModelSource& source);

}  // namespace moka::editing

#pragma once

#include "format/source.h"

namespace moka::editing {

/// Makes one ML program of a pipeline whose models are ML programs with one function each. Values get other names where
/// two models use the same one; features of the pipeline keep theirs. A cast is added where one model returns another
/// element type than the next one reads. All weights go to one file, equal ones once. The opset is the newest of the
/// models. Errors: invalid_argument (no pipeline), unsupported (another kind of model in it, images between models,
/// shapes that contradict).
Status inline_pipeline(format::ModelSource& source);

}  // namespace moka::editing

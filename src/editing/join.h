// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "format/source.h"

namespace moka::editing {

/// Adds a model and its weight files to a pipeline as the last stage. Weight files whose names are taken get new names.
/// The pipeline's description does not change. Error invalid_argument (no pipeline).
Status add_stage(format::ModelSource& pipeline, const format::ModelSource& model, const std::string& name);

/// Turns the model into a pipeline whose only stage, called `name`, is the model. The description does not change.
Status wrap_in_pipeline(format::ModelSource& source, const std::string& name);

/// Appends the stage `next` to `source`. If `source` is not a pipeline, it becomes the stage `name` of a new one. An
/// input of `next` reads the output of `source` with the same name. Inputs of `next` without such an output become
/// inputs of the pipeline. The outputs of the pipeline are those of `next`, and those of `source` that `next` does not
/// read. The specification version is the newer of the two. Errors: invalid_argument (two features with the same name
/// and different types, or two outputs with the same name).
Status append(format::ModelSource& source, const std::string& name, const format::ModelSource& next,
              const std::string& next_name);

/// Replaces the pipeline by its stage with this name or index (from 0). Error not_found.
Status extract_stage(format::ModelSource& source, const std::string& name);

}  // namespace moka::editing

#pragma once

#include <string>

#include "format/source.h"

namespace moka::editing {

/// Adds a model to the pipeline that `pipeline` is, with its weight files, which get new names where they are taken.
/// The description stays. Error invalid_argument (no pipeline).
Status add_stage(format::ModelSource& pipeline, const format::ModelSource& model, const std::string& name);

/// Makes a pipeline whose only stage is the model. The description stays.
Status wrap_in_pipeline(format::ModelSource& source, const std::string& name);

/// Lets `next` run after `source`, which is or becomes a pipeline: it reads what `source` returns under the names of
/// its inputs. The pipeline's inputs are those of `source` and what `next` needs beside; its outputs are those of
/// `next` and what `next` does not read. Raises the specification version to the newer one. Errors: invalid_argument
/// (features of one name and different types, or two results of one name).
Status append(format::ModelSource& source, const std::string& name, const format::ModelSource& next,
              const std::string& next_name);

/// The stage of this name, or of this number from 0 on, as a model. Error not_found.
Status extract_stage(format::ModelSource& source, const std::string& name);

}  // namespace moka::editing

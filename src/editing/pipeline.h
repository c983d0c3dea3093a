// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "editing/features.h"

namespace moka::editing {

struct Stage {
  std::string name;
  Message model;
};
/// The stages of a pipeline of any kind.
Result<std::vector<Stage>> stages_of(const Message& model);

/// A place where a feature of a pipeline enters or leaves a stage.
struct StagePlace {
  size_t stage = 0;
  bool is_input = false;
};
/// The places of the pipeline's feature `name`. For an input, these are the stages that read it. For an output, these
/// are the last stage that computes it and the later stages that read it.
Result<std::vector<StagePlace>> places_of(const Message& model, std::string_view name, Side side);

}  // namespace moka::editing

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
/// The places that the feature `name` of the pipeline passes: as an input, from the pipeline's input to the stages that
/// read it; as an output, from the last stage that computes it to those that read it afterwards.
Result<std::vector<StagePlace>> places_of(const Message& model, std::string_view name, Side side);

}  // namespace moka::editing

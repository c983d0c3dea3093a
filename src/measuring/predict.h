// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "moka/model.h"

namespace moka::measuring {

/// Calls `run` with options that have a new state if the model has states.
template <class F>
auto with_new_state(const Model& model, const F& run) {
  PredictionOptions options;
  std::optional<State> state;
  if (!model.function().states.empty()) options.state = &state.emplace(model.new_state());
  return run(options);
}

/// Predicts once, with a new state if the model has states.
inline Features predict_once(const Model& model, const Features& inputs) {
  return with_new_state(model, [&](const PredictionOptions& options) { return model.predict(inputs, options); });
}

}  // namespace moka::measuring

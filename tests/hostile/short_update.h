// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "moka/model.h"
#include "moka/update.h"

namespace moka::test {

/// Trains an updatable model for three mini-batches of at most three random examples, and predicts with the result.
/// Throws what UpdateTask throws.
inline void update_shortly(const ModelSource& source, const ModelDescription& description,
                           const ModelConfiguration& configuration, uint64_t seed) {
  FunctionDescription rows;
  rows.inputs = description.update->training_inputs;
  std::vector<Features> examples;
  for (uint64_t i = 0; i < 3; i++) {
    Features row = random_inputs(rows, seed * 3 + i);
    // A random label is hardly one of the model's.
    const std::vector<std::string>& labels = description.class_labels;
    for (const FeatureDescription& f : rows.inputs)
      if (f.type == FeatureType::string && !labels.empty()) row[f.name] = labels[i % labels.size()];
    examples.push_back(std::move(row));
  }
  UpdateTask* running = nullptr;
  UpdateOptions options;
  options.configuration = configuration;
  int left = 3;
  options.progress = [&](const UpdateContext& context) {
    if (context.event == UpdateEvent::mini_batch_end && --left == 0) running->cancel();
  };
  UpdateTask task(source, examples, std::move(options));
  running = &task;
  const Model updated = task.run().model(configuration);
  (void)updated.predict(random_inputs(updated.function(), seed));
}

}  // namespace moka::test

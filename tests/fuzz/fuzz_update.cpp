// SPDX-License-Identifier: Apache-2.0
// Input: a specification (.mlmodel). Trains an updatable model for three mini-batches of random examples, and predicts
// with the result.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>

#include "../hostile/short_update.h"
#include "moka/build.h"

namespace {

/// The caller allocates examples, so the memory budget does not cover them.
bool has_small_inputs(const std::vector<moka::FeatureDescription>& inputs) {
  for (const moka::FeatureDescription& f : inputs) {
    double count = f.type == moka::FeatureType::image
                       ? static_cast<double>(f.image.width) * static_cast<double>(f.image.height)
                       : 1;
    for (int64_t d : f.array.shape) count *= static_cast<double>(d);
    if (!(count >= 0 && count <= 1e5)) return false;
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  moka::ModelConfiguration configuration;
  configuration.memory_budget = size_t{64} << 20;
  configuration.loop_limit = 100;
  configuration.threads = 1;
  const auto bytes = std::as_bytes(std::span(data, size));
  try {
    const moka::Model model = moka::Model::load(moka::ModelAssetView{bytes, {}, nullptr}, configuration);
    const moka::ModelDescription& description = model.description();
    if (!description.update || !has_small_inputs(description.update->training_inputs) ||
        !has_small_inputs(model.function().inputs))
      return 0;
    moka::test::update_shortly(moka::ModelSource(moka::Message::parse("Model", bytes)), description, configuration, 1);
  } catch (const moka::Exception& e) {
    if (e.kind() == moka::ErrorKind::internal) {
      std::fprintf(stderr, "a bug by its own account: %s\n", e.what());
      std::abort();
    }
  }
  return 0;
}

// Input: a specification (.mlmodel). Loads it and predicts once, through the public interface.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "moka/moka.hpp"

namespace {

/// The caller allocates inputs, so the memory budget does not cover them.
bool has_small_inputs(const moka::FunctionDescription& function) {
  for (const auto* list : {&function.inputs, &function.states})
    for (const moka::FeatureDescription& f : *list) {
      double count = f.type == moka::FeatureType::image
                         ? static_cast<double>(f.image.width) * static_cast<double>(f.image.height)
                         : 1;
      for (int64_t d : f.array.shape) count *= static_cast<double>(d);
      if (!(count >= 0 && count <= 1e6)) return false;
    }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  moka::ModelConfiguration configuration;
  configuration.memory_budget = size_t{64} << 20;
  configuration.loop_limit = 100;
  configuration.threads = 1;
  moka::ModelAsset asset;
  auto* bytes = reinterpret_cast<const std::byte*>(data);
  asset.specification.assign(bytes, bytes + size);
  try {
    const moka::Model model = moka::Model::load(std::move(asset), configuration);
    if (!has_small_inputs(model.function())) return 0;
    std::optional<moka::State> state;
    moka::PredictionOptions options;
    if (!model.function().states.empty()) options.state = &state.emplace(model.new_state());
    (void)model.predict(moka::random_inputs(model.function()), options);
  } catch (const moka::Exception& e) {
    if (e.kind() != moka::ErrorKind::internal) return 0;
    std::fprintf(stderr, "a bug by its own account: %s\n", e.what());
    std::abort();
  }
  return 0;
}

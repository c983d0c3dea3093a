// SPDX-License-Identifier: Apache-2.0
// Input: a specification (.mlmodel). Loads it and predicts once through the public interface. If the environment
// variable MOKA_FUZZ_DEVICE names a device, the model also runs there. The input's bytes decide which operations stay
// on the CPU.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

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

/// The device, with the CPU for operations whose names contain a letter or digit that the bytes choose.
std::vector<moka::Pin> random_cut(const char* device, const uint8_t* data, size_t size) {
  uint32_t hash = 2166136261;
  for (size_t i = 0; i < size; i++) hash = (hash ^ data[i]) * 16777619;
  std::vector<moka::Pin> pins{{"*", device}};
  for (uint32_t n = hash % 4; n > 0; n--) {
    hash = hash * 1664525 + 1013904223;
    pins.push_back({std::string("*") + "abcdefghijklmnopqrstuvwxyz0123456789"[(hash >> 16) % 36] + "*", "cpu"});
  }
  return pins;
}

void predict(const moka::Model& model) {
  std::optional<moka::State> state;
  moka::PredictionOptions options;
  if (!model.function().states.empty()) options.state = &state.emplace(model.new_state());
  (void)model.predict(moka::random_inputs(model.function()), options);
}

[[noreturn]] void fail(const char* what, const moka::Exception& e) {
  std::fprintf(stderr, "%s: %s\n", what, e.what());
  std::abort();
}

/// A prediction that succeeds on the CPU succeeds for any assignment. The device's buffers may exceed the memory
/// budget.
void predict_in_cut(const moka::Model& model, const char* device, const uint8_t* data, size_t size) {
  moka::ModelConfiguration configuration = model.configuration();
  configuration.pins = random_cut(device, data, size);
  configuration.rates = "off";
  try {
    predict(model.configured(configuration));
  } catch (const moka::Exception& e) {
    if (e.kind() != moka::ErrorKind::out_of_budget)
      fail("a bug by its own account: the CPU predicts, a cut does not", e);
  }
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
    predict(model);
    if (const char* device = std::getenv("MOKA_FUZZ_DEVICE"); device != nullptr && *device != '\0')
      predict_in_cut(model, device, data, size);
  } catch (const moka::Exception& e) {
    if (e.kind() == moka::ErrorKind::internal) fail("a bug by its own account", e);
  }
  return 0;
}
